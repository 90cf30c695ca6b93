"""The report in a real browser, without a network: what it shows, and that it stays silent."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
from browsing import EVIL, NEEDS_BROWSER, Opened, launched

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.display.compare_table import compare_columns
from fastfed.display.styles import label_of, styles
from fastfed.display.tables import summary_cells
from fastfed.storage.summary_cache import stored_summary
from fastfed.text import digits, number, printable, rate, short

pytestmark = [pytest.mark.browser, NEEDS_BROWSER]

SCHEDULES = ["fedelim", "fedelim0", "periodic:7", "superexponential"]
DELTAS = [0.2, 0.05]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a small sweep of two instances, one of which has a name that resembles markup."""
    folder = tmp_path_factory.mktemp("report") / "sweep"
    plain = ff.Instance([[0.9, 0.1], [0.1, 0.8]], name="plain")
    evil = ff.Instance([[0.9, 0.1], [0.1, 0.8]], name=EVIL, arms=[EVIL, "b"], clients=[EVIL, "d"])
    ff.sweep(
        instances=[plain, evil],
        deltas=DELTAS,
        costs=[0, 10, 100],
        schedules=SCHEDULES,
        trials=40,
        out=folder,
        threads=1,
    )
    assert cli.run(["report", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from launched()


@pytest.fixture
def opened(browser: Any, folder: Path) -> Iterator[Opened]:
    one = Opened(browser, folder / "report.html", 1400)
    yield one
    one.context.close()
    assert one.said == []
    assert len(one.asked) == 1  # the file itself


def printed(frame: pl.DataFrame) -> dict[str, list[str]]:
    """Return the output of `fastfed summary` for these rows, by schedule in the page's words."""
    _, columns = summary_cells(frame)
    by_head = {column.head: column.cells for column in columns}
    heads = ("total ± sem", "pulls", "error % [95 %]", "x FE0")
    return {
        label_of(name): [by_head[head][row] for head in heads]
        for row, name in enumerate(by_head["schedule"])
    }


def test_table_has_the_numbers_of_the_summary(opened: Opened, folder: Path) -> None:
    """At five costs, two instances and two deltas, to the last digit that is printed."""
    costs = ["0", "0.37", "10", "1234.5", "1000000"]
    summary = stored_summary(folder, [float(cost) for cost in costs])
    for place, instance in enumerate(("plain", EVIL)):
        opened.choose("instance", place)
        for index, delta in enumerate(DELTAS):
            opened.choose("delta", index)
            for cost in costs:
                opened.type_cost(cost)
                frame = summary.filter(
                    pl.col("instance") == instance,
                    pl.col("delta") == delta,
                    pl.col("cost") == float(cost),
                )
                shown = {row[0]: [row[1], row[3], row[5], row[6]] for row in opened.rows()}
                assert shown == printed(frame)


def test_prices_can_be_edited(opened: Opened, folder: Path) -> None:
    """The table is that of the summary at the new prices; a wrong price gets a message."""
    opened.page.locator("#prices summary").click()
    field = opened.page.locator("#price-fields label", has_text="rounds").locator("input")
    field.fill("25")
    opened.type_cost("10")
    frame = ff.open_sweep(folder).summary([10], prices={"rounds": 25})
    here = frame.filter(pl.col("instance") == "plain", pl.col("delta") == DELTAS[0])
    shown = {row[0]: [row[1], row[3], row[5], row[6]] for row in opened.rows()}
    assert shown == printed(here)
    headline = opened.page.inner_text("#cheapest")
    winner = here.sort("total_mean")["schedule"][0]
    assert headline.startswith("Cheapest at C = 10, pulls=1,rounds=25: " + label_of(winner))
    assert "fastfed best --price pulls=1,rounds=25" in opened.page.inner_text("#rivals")
    assert "pulls + 10 x uplinks + 25 x rounds" in opened.page.inner_text("#total-delta")
    assert {row[2] for row in opened.rows()} == {""}  # quantiles need the trials
    field.fill("-1")
    assert "rounds must be a number from 0 on" in opened.page.inner_text("#wrong-price")
    assert field.get_attribute("aria-invalid") == "true"
    field.fill("0")
    assert opened.page.inner_text("#wrong-price") == ""
    assert "" not in {row[2] for row in opened.rows()}


DRAWN = """figure => [...document.querySelectorAll(`#${figure} svg .mark-rule.role-mark line`)]
  .map(line => line.__data__).filter(item => item.datum.schedule).map(item => ({
    schedule: item.datum.schedule, x: item.datum.x, low: item.datum.low, high: item.datum.high,
    shown: item.datum.shown, foot: item.y, head: item.y2 }))"""


def bars(opened: Opened, figure: str, shown: list[str]) -> list[dict[str, Any]]:
    """Return the error bars of a figure as they are drawn, once their tooltips say ``shown``."""
    opened.page.wait_for_function(
        f"([figure, shown]) => JSON.stringify(({DRAWN})(figure).map(bar => bar.shown)) === "
        "JSON.stringify(shown)",
        arg=[figure, shown],
    )
    found: list[dict[str, Any]] = opened.page.evaluate(DRAWN, figure)
    return found


def assert_bars(found: list[dict[str, Any]], rows: list[dict[str, Any]], what: str) -> None:
    """Each reaches from mean - sem to mean + sem, in its data and in its pixels."""
    pixels = [
        (math.log(bar[end]), bar[side])
        for bar in found
        for end, side in (("low", "foot"), ("high", "head"))
    ]
    (a, top), (b, bottom) = min(pixels), max(pixels)
    for bar, row in zip(found, rows, strict=True):
        mean, sem = row[f"{what}_mean"], row[f"{what}_sem"]
        assert bar["schedule"] == row["schedule"]
        assert bar["low"] == pytest.approx(mean - sem, rel=1e-11)
        assert bar["high"] == pytest.approx(mean + sem, rel=1e-11)
        for end, side in (("low", "foot"), ("high", "head")):
            at = top + (bottom - top) * (math.log(bar[end]) - a) / (b - a)
            assert bar[side] == pytest.approx(at, abs=0.01)


def test_error_bars_are_those_of_the_summary(opened: Opened, folder: Path) -> None:
    """Compare the error bars of every figure at five costs.

    The bars agree to the last digit of the tooltips and to a hundredth of a pixel. Error rates have
    exact intervals.
    """
    costs = [0.0, 0.37, 10.0, 1234.5, 1e6]
    summary = stored_summary(folder, costs).filter(pl.col("instance") == "plain")
    for cost in costs:
        opened.type_cost(str(cost))
        rows = summary.filter(pl.col("cost") == cost).to_dicts()
        first = [row for row in rows if row["delta"] == DELTAS[0]]
        periodic = [row for row in first if row["schedule"] in ("fedelim0", "periodic:7")]
        for figure, what, of in (
            ("total-delta", "total", rows),
            ("communication-delta", "communication", rows),
            ("total-period", "total", periodic),
            ("trade-off", "pulls", first),
        ):
            if cost == 0 and what == "communication":
                said = opened.page.inner_text(f"#{figure} .note")
                assert said == "Communication costs nothing at C = 0."
                assert opened.page.locator(f"#{figure} .chart").is_hidden()
                continue
            shown = [number(row[f"{what}_mean"], row[f"{what}_sem"]) for row in of]
            assert_bars(bars(opened, figure, shown), of, what)
        if not any(row["error_rate"] for row in rows):
            assert "No trial of these schedules erred" in opened.page.inner_text("#errors .note")
            continue
        rates = [
            f"{rate(row['error_rate'], row['error_low'], row['error_high'])} %" for row in rows
        ]
        for bar, row in zip(bars(opened, "errors", rates), rows, strict=True):
            assert bar["high"] == row["error_high"]
            assert bar["low"] == row["error_low"] or row["error_low"] == 0 < bar["low"]


def test_quantiles_are_those_of_the_summary(opened: Opened, folder: Path) -> None:
    frame = stored_summary(folder, [10.0]).filter(
        pl.col("instance") == "plain", pl.col("delta") == DELTAS[0]
    )
    opened.type_cost("10")
    shown = {row[0]: row[2] for row in opened.rows()}
    for row in frame.to_dicts():
        assert shown[label_of(row["schedule"])] == " / ".join(
            short(row[f"total_{share}"]) for share in ("q05", "q50", "q95")
        )
    opened.type_cost("11")  # the sweep did not ask for it: nobody knows
    assert {row[2] for row in opened.rows()} == {""}


def test_slider_and_field_agree(opened: Opened) -> None:
    slider = opened.page.locator("#slider")
    slider.focus()
    for key, cost in (("Home", "0"), ("End", "1000000")):
        slider.press(key)
        assert opened.page.input_value("#cost") == cost
        assert f"C = {cost}" in opened.page.inner_text("#table-title")
        assert slider.get_attribute("aria-valuetext") == f"C = {cost}"
    opened.type_cost("100")
    assert float(slider.input_value()) == pytest.approx(200, abs=2)


def test_sorting_by_keyboard(opened: Opened, folder: Path) -> None:
    button = opened.page.locator("#table thead button", has_text="uplinks").first
    pulls = stored_summary(folder, [1.0]).filter(
        pl.col("instance") == "plain", pl.col("delta") == DELTAS[0]
    )
    order = [label_of(name) for name in pulls.sort("communication_mean")["schedule"]]
    button.focus()
    button.press("Enter")
    assert [row[0] for row in opened.rows()] == order
    opened.page.keyboard.press("Enter")  # the focus stayed
    assert [row[0] for row in opened.rows()] == order[::-1]
    heads = opened.page.locator("#table thead th[aria-sort=descending]")
    assert heads.all_inner_texts() == ["uplinks ▼"]


def test_selection_is_everywhere(opened: Opened) -> None:
    button = opened.page.get_by_role("button", name="periodic:7")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert opened.page.locator("#table tr.single td").first.inner_text() == "periodic:7"
    faint = "#total-delta svg .mark-symbol path[opacity='0.12']"
    opened.page.wait_for_selector(faint, state="attached")
    assert opened.page.locator(faint).count() == (len(SCHEDULES) - 1) * len(DELTAS)
    other = opened.page.get_by_role("button", name="superexponential")
    other.click()  # several at once
    assert opened.page.locator("#table tr.single").count() == 2
    other.click()
    button.click()
    opened.page.wait_for_selector(faint, state="detached")
    assert opened.page.locator("#table tr.single").count() == 0


def test_schedules_are_searched_and_hidden(opened: Opened) -> None:
    items = opened.page.locator("#names li")
    opened.page.fill("#search", "SUPER")
    assert [one.get_attribute("data-name") for one in items.all() if one.is_visible()] == [
        "superexponential"
    ]
    opened.page.uncheck("#names li[data-name=superexponential] input")
    assert "3 of 4 shown" in opened.page.inner_text("#schedules-title")
    assert "superexponential" not in {row[0] for row in opened.rows()}
    drawn = (
        "[...document.querySelectorAll('#total-delta svg .mark-symbol path')]"
        ".filter(one => one.__data__.datum.schedule).length"
    )
    opened.page.wait_for_function(f"() => {drawn} === {3 * len(DELTAS)}")
    opened.page.click("#none")
    assert opened.rows() == []
    assert opened.page.locator("#total-delta .chart").is_hidden()
    assert opened.page.inner_text("#total-delta .note") == "No trial of these schedules ended."
    opened.page.click("#all")
    assert len(opened.rows()) == 4


def test_the_cheapest_is_a_headline(opened: Opened, folder: Path) -> None:
    opened.type_cost("10")
    frame = stored_summary(folder, [10.0]).filter(
        pl.col("instance") == "plain", pl.col("delta") == DELTAS[0]
    )
    best = frame.sort("total_mean").row(0, named=True)
    total = number(best["total_mean"], best["total_sem"])
    paper = frame.filter(schedule="fedelim")["total_mean"].item()
    times = digits(paper / best["total_mean"])
    more = "" if best["schedule"] == "fedelim" else f"; fedelim costs {times} times as much"
    assert opened.page.inner_text("#cheapest") == (
        f"Cheapest at C = 10: {label_of(best['schedule'])}, total {total}{more}"
    )


def test_the_period_panel_has_a_line_and_level_schedules(opened: Opened) -> None:
    assert opened.page.locator("#total-period svg .mark-line path").count() == 1
    names = opened.page.locator("#total-period svg .mark-text text").all_text_contents()
    assert {"fedelim", "superexponential"} <= set(names)


def test_the_leading_figures_answer(opened: Opened) -> None:
    lead = opened.page.locator("#lead figure").evaluate_all("all => all.map(one => one.id)")
    assert lead == ["total-cost", "total-period"]


def test_a_wrong_cost_gets_a_message(opened: Opened) -> None:
    opened.type_cost("100")
    opened.type_cost("-3")
    assert opened.page.inner_text("#wrong-cost") == (
        "C must be a number from 0 on; the page still shows C = 100"
    )
    assert "C = 100" in opened.page.inner_text("#table-title")
    opened.type_cost("7")
    assert opened.page.inner_text("#wrong-cost") == ""


def test_colours_are_those_of_the_figures(opened: Opened) -> None:
    strokes = opened.page.eval_on_selector_all(
        "#names li",
        "all => all.map(one => [one.dataset.name, one.querySelector('svg path')"
        ".getAttribute('stroke')])",
    )
    looks = styles(SCHEDULES)
    assert dict(strokes) == {name: look.colour for name, look in looks.items()}
    opened.page.uncheck("#names li[data-name=fedelim] input")
    again = opened.page.eval_on_selector_all(
        "#names svg path:first-child", "all => all.map(one => one.getAttribute('stroke'))"
    )
    assert again == [stroke for _, stroke in strokes]


def test_figures_are_dark_in_dark_mode(browser: Any, folder: Path) -> None:
    one = Opened(browser, folder / "report.html", 1400, color_scheme="dark")
    ground = "() => getComputedStyle(document.querySelector('#total-delta svg')).backgroundColor"
    assert one.page.evaluate(ground) == "rgb(30, 33, 37)"
    one.page.emulate_media(color_scheme="light")
    one.page.wait_for_function(f"() => ({ground})() === 'rgb(255, 255, 255)'")
    assert one.said == []
    one.context.close()


def test_one_delta_has_schedules_along_x(browser: Any, tmp_path: Path) -> None:
    """No deltas are made up, and several radii can stand side by side on the same axis."""
    swept = ff.sweep(
        instances="synthetic",
        deltas=[0.1],
        radii=["paper", "mixture-pairs"],
        schedules=["fedelim", "fedelim0"],
        trials=30,
        out=tmp_path / "sweep",
        threads=1,
        progress=False,
    )
    one = Opened(browser, swept.report(tmp_path / "report.html"), 1400)
    assert one.page.inner_text("#total-delta h2") == "Total cost by schedule"
    ticks = one.page.locator("#total-delta svg .role-axis-label text").all_text_contents()
    assert {"fedelim", "fedelim0"} <= set(ticks)
    one.page.select_option("#beside-key", "radius")
    one.page.wait_for_selector("#beside-1 svg")
    heads = one.page.locator("#beside h2").all_inner_texts()
    assert [head.rpartition(" ")[2] for head in heads] == ["paper", "mixture-pairs"]
    labels = [
        one.page.locator(f"#beside-{place} svg .role-axis-label text").all_text_contents()
        for place in (0, 1)
    ]
    assert labels[0] == labels[1]
    assert one.said == []
    one.context.close()


def test_buttons_show_line_and_marker_of_their_schedule(opened: Opened) -> None:
    """No two alike, so that lines of one colour can be told apart."""
    swatches = opened.page.evaluate(
        "[...document.querySelectorAll('#names svg')].map(one => one.innerHTML)"
    )
    assert len(set(swatches)) == len(SCHEDULES)
    assert all(one.count("<path") == 2 and 'd=""' not in one for one in swatches)


def test_clicking_a_point_selects_its_schedule(opened: Opened) -> None:
    opened.page.locator("#trade-off svg .mark-symbol path").first.click()
    assert opened.page.locator("#names button[aria-pressed=true]").count() == 1


def test_bounds_can_be_switched_on(opened: Opened) -> None:
    texts = opened.page.locator("#total-delta svg .mark-text text")
    opened.page.check("#bounds")
    opened.page.wait_for_function(
        "document.querySelector('#total-delta svg').textContent.includes('2T')"
    )
    assert {"T", "2T", "lower bound"} <= set(texts.all_text_contents())
    assert "undefined" not in opened.page.inner_text("body")


@pytest.mark.parametrize("kind", ["SVG", "PNG"])
def test_every_figure_can_be_saved(opened: Opened, tmp_path: Path, kind: str) -> None:
    """One kind a page: Chromium lets a page save ten files before it asks the user."""
    opened.page.wait_for_selector("#compare-chart svg")
    buttons = opened.page.get_by_role("button", name=f"Save as {kind}")
    assert buttons.count() == 6  # no trial erred: a sentence is in the place of a figure
    for place in range(buttons.count()):
        with opened.page.expect_download() as download:
            buttons.nth(place).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        if kind == "SVG":
            root = ElementTree.parse(path).getroot()
            assert root.tag.endswith("svg")
            texts = {"".join(one.itertext()) for one in root.iter() if one.tag.endswith("text")}
            figure = buttons.nth(place).locator("xpath=ancestor::figure")
            assert figure.locator("h2, h3").inner_text() in texts  # title, subtitle, legend
            assert any(text and text.startswith("instance plain") for text in texts)
            assert ("fedelim0" if place < 5 else "fedelim") in texts
            assert not any("chosen above" in text for text in texts)  # nothing is above it
        else:
            assert path.read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.iterdir())) == 6


def test_data_can_be_saved(opened: Opened, folder: Path, tmp_path: Path) -> None:
    with opened.page.expect_download() as download:
        opened.page.click("#csv")
    download.value.save_as(tmp_path / "data.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "data.csv").read_text())))
    summary = stored_summary(folder, [1.0])
    assert len(rows) == len(summary)
    for row, known in zip(rows, summary.to_dicts(), strict=True):
        assert row["schedule"] == known["schedule"]
        assert float(row["pulls"]) == known["pulls_mean"]
        assert float(row["rounds"]) == known["rounds_mean"]
        assert math.sqrt(float(row["var_pulls"])) == pytest.approx(known["pulls_std"])
        assert float(row["uplinks_q50"]) == known["communication_q50"]


def test_verdicts_are_those_of_check(opened: Opened, folder: Path) -> None:
    from fastfed.api.sweep import check

    found = check(folder)
    claims = {row[0]: row for row in opened.rows("claims")}
    assert set(claims) == set(found.frame["claim"])
    heads = opened.page.locator("#claims thead th").all_inner_texts()
    for claim, row in claims.items():
        counted = found.frame.filter(pl.col("claim") == claim)["verdict"].to_list()
        for head, count in list(zip(heads, row, strict=True))[1:-1]:
            assert int(count) == counted.count(head)
    here = found.frame.filter(pl.col("instance") == "plain", pl.col("delta") == DELTAS[0])
    assert len(opened.rows("lines")) == len(here)


def test_comparisons_are_those_of_compare(opened: Opened, folder: Path) -> None:
    """The table has the ratios and intervals that `fastfed compare` prints, for each choice."""
    sweep = ff.open_sweep(folder)
    options = opened.page.locator("#compare-by option").all_inner_texts()
    assert options == ["schedule", "instance", "delta"]
    for by in options:
        opened.page.select_option("#compare-by", by)
        found = sweep.compare(by=by)
        printed = {column.head: column.cells for column in compare_columns(found)[1]}
        here = {"instance": "plain", "delta": str(DELTAS[0])}
        wanted = set()
        for place, cost in enumerate(printed["C"]):
            if all(by == key or printed[key][place] == value for key, value in here.items()):
                line = [printed[name][place] for name in (by, "total", "pulls", "uplinks")]
                schedule = [] if by == "schedule" else [printed["schedule"][place]]
                wanted.add((*schedule, cost, *line))
        heads = opened.page.locator("#compare-table thead th").all_inner_texts()
        totals = [head for head in heads if head.startswith("total")]
        assert totals == ["total at C = 0", "total at C = 10", "total at C = 100"]
        assert "bits" not in heads  # of exact uplinks: 64 times the uplinks
        shown = set()
        for row in opened.rows("compare-table"):
            cells = dict(zip(heads, row, strict=True))
            schedule = [] if by == "schedule" else [cells["schedule"]]
            value = EVIL_SHOWN if cells[by] == printable(EVIL) else cells[by]
            for total in totals:
                cost = total.rpartition(" ")[2]
                shown.add((*schedule, cost, value, cells[total], cells["pulls"], cells["uplinks"]))
        if by == "instance":  # a table in a terminal shortens the name
            wanted = {(a, b, EVIL_SHOWN, *rest) for a, b, _, *rest in wanted}
        assert shown == wanted
    opened.page.uncheck("#names li[data-name=superexponential] input")
    assert "superexponential" not in {row[0] for row in opened.rows("compare-table")}


EVIL_SHOWN = "the long name"


def test_too_many_comparisons_are_said(
    browser: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastfed.display.report.compare.MOST", 20)
    one = Opened(browser, ff.open_sweep(folder).report(tmp_path / "report.html"), 1400)
    note = one.page.inner_text("#compare-note")
    assert note.startswith("72 comparisons by schedule are too many for a page: use fastfed")
    assert one.page.locator("#compare-figure").is_hidden()
    assert one.said == []
    one.context.close()


def test_the_cheapest_is_among_those_that_are_shown(browser: Any, tmp_path: Path) -> None:
    """A page of many schedules shows a few, which follow C until the user chooses."""
    names = ["fedelim", "fedelim0", *(f"periodic:{2**power}" for power in range(1, 21))]
    res = ff.simulate([[0.9, 0.2], [0.3, 0.7]], names, delta=0.1, trials=40, threads=1)
    one = Opened(browser, res.report(tmp_path / "report.html"), 1400)
    winners = set()
    every = {"fedelim", "fedelim0", *res.best().frame["winner"]}
    assert len(one.rows()) == min(10, len(every)) > 6
    for cost in ("0", "1", "30", "1000", "100000"):
        one.type_cost(cost)
        winner = one.page.inner_text("#cheapest").partition(": ")[2].partition(",")[0]
        assert winner in {row[0] for row in one.rows()}
        assert len(one.rows()) <= 10
        winners.add(winner)
    assert len(winners) > 2
    one.page.click("#schedules summary")
    one.page.click("#all")
    one.type_cost("1")
    assert len(one.rows()) == len(names)  # what the user chose stays
    assert one.said == []
    one.context.close()


def test_ticks_stand_at_the_deltas_of_the_sweep(opened: Opened) -> None:
    axis = "#total-delta svg .role-axis-label text"
    shown = opened.page.locator(axis).all_text_contents()
    assert set(map(str, DELTAS)) <= set(shown)
    assert "0.1" not in shown  # which was not run


def test_what_was_run_is_said(opened: Opened, folder: Path) -> None:
    text = opened.page.text_content("#about") or ""
    for word in (
        "seed",
        "version of the rows",
        "versions",
        "fastfed",
        "trials",
        "superexponential",
    ):
        assert word in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1400])
def test_nothing_overflows(browser: Any, folder: Path, width: int, scheme: str) -> None:
    """Also with a name of 300 characters; wide tables scroll within their own frame."""
    one = Opened(browser, folder / "report.html", width, color_scheme=scheme)
    one.choose("instance", 1)
    one.page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    assert one.page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [figure.bounding_box() for figure in one.page.locator("figure").all()]
    for place, a in enumerate(boxes):
        for b in boxes[place + 1 :]:
            apart = (
                a["x"] + a["width"] <= b["x"]
                or b["x"] + b["width"] <= a["x"]
                or a["y"] + a["height"] <= b["y"]
                or b["y"] + b["height"] <= a["y"]
            )
            assert apart
    assert one.said == []
    one.context.close()


def test_names_are_shown_as_text(opened: Opened) -> None:
    opened.choose("instance", 1)
    assert "<script>alert(1)</script>" in opened.page.inner_text("#table-title")
    assert "<img src=x onerror=alert(2)>" in opened.page.inner_text("#table-title")
    assert opened.page.locator("img").count() == 0
    assert "\x1b" not in opened.page.content()


def test_two_goals_and_two_uplinks(browser: Any, tmp_path: Path) -> None:
    """Each choice shows its own rows and lines, and numbers in one notation.

    The kernels are those of `test_part.py`.
    """
    goals, uplinks = ["best", "threshold:0.3"], ["exact", "dither:1"]
    swept = ff.sweep(
        instances="synthetic",
        deltas=[0.1],
        costs=[10, 1000],
        goals=goals,
        uplinks=uplinks,
        schedules=["fedelim", "fedelim0"],
        periods=[10],
        trials=30,
        out=tmp_path / "sweep",
        threads=1,
        progress=False,
    )
    one = Opened(browser, swept.report(tmp_path / "report.html"), 1400)
    one.type_cost("10")
    summary, verdicts = swept.summary([10.0]), swept.check().frame
    for place, goal in enumerate(goals):
        one.choose("goal", place)
        for index, uplink in enumerate(uplinks):
            one.choose("uplink", index)
            frame = summary.filter(goal=goal, uplink=uplink)
            shown = {row[0]: [row[1], row[3], row[5], row[6]] for row in one.rows()}
            assert shown == printed(frame)
            assert f"goal {goal}, uplink {uplink}" in one.page.inner_text("#table-title")
            lines = one.rows("lines")
            assert len(lines) == len(verdicts.filter(goal=goal, uplink=uplink))
            assert {line[2] for line in lines} == {"", "10", "1,000"}
    assert verdicts["tightness"].max() > 100  # a lower bound, far below what is measured
    assert not [row for row in one.rows("claims") if "e2" in row[-1]]
    assert one.said == []
    one.context.close()


def test_names_that_objects_of_javascript_have(browser: Any, tmp_path: Path) -> None:
    """An instance called constructor once ended all figures of the comparison."""
    made = [
        ff.Instance([[0.9, 0.1], [0.15 * place, 0.8]], name=name)
        for place, name in enumerate(("plain", "constructor", "__proto__"))
    ]
    found = ff.sweep(
        instances=made, deltas=[0.1], costs=[10], schedules=SCHEDULES[:2], trials=40, threads=1
    )
    found.report(tmp_path / "names.html")
    one = Opened(browser, tmp_path / "names.html", 1000)
    one.page.select_option("#compare-by", "instance")
    legend = "#compare-chart svg .role-legend-label text"
    one.page.wait_for_function(f"() => document.querySelectorAll('{legend}').length === 2")
    labels = one.page.locator(legend).all_text_contents()
    assert [label.strip("\u200b") for label in labels] == ["constructor", "__proto__"]
    assert len(one.rows("compare-table")) == 4
    one.context.close()
    assert one.said == []
