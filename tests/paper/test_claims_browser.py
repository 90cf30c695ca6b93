"""The page of `reproduce` in a real browser, without a network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from browsing import EVIL, NEEDS_BROWSER, Opened, launched

from fastfed.analysis.verdicts import Claim, conclude, does_not_apply, share
from fastfed.display.series import Chart, Line
from fastfed.display.styles import style_of
from fastfed.paper.page import page_data, write_page
from fastfed.text import printable

pytestmark = [pytest.mark.browser, NEEDS_BROWSER]

NAMES = ("synthetic", EVIL)


def claims() -> list[Claim]:
    found = []
    for key in ("total-three", "base-two", "minimum-map"):
        cells = [
            {"instance": name, "delta": delta, "cost": 10.0, **share(3 * place, 0, 100, 0.1)}
            for name in NAMES
            for place, delta in enumerate((0.1, 0.01, 1e-3))
        ]
        cells[0] = does_not_apply(cells[0], "no reason <b>at all</b>")
        cells = [{**cell, "value": cell["value"] + 0.5} for cell in cells]
        one = conclude(key, f"What {key} says.", "Theorem <1>", "at most 1", cells)
        assert one is not None
        found.append(one)
    return found


def charts() -> dict[str, Chart]:
    def chart(title: str, **options: Any) -> Chart:
        x = [0.1, 0.01, 1e-3]
        lines = [
            Line("FedElim", x, [3.0, 4.0, 5.0], [1.0, 1.0, 4.999], style=style_of("fedelim")),
            Line(EVIL, x, [30.0, 40.0, 50.0], style=style_of("periodic:5")),
            Line("a guide", x, [1.0, 2.0, 3.0], plain=True),
        ]
        return Chart(lines, "delta", "cost", [title, "a note"], **options)

    return {
        "synthetic-a": chart("synthetic (a)", small_to_the_right=True),
        f"{EVIL}-a": chart(f"{printable(EVIL)} (a)"),
        "synthetic-base": chart("base", marks=[0.05]),
        "synthetic-gap": chart("gap", log_y=True),
    }


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(
        tmp_path_factory.mktemp("claims") / "report.html",
        charts(),
        claims(),
        {"instance": EVIL},
        [f"outlook {EVIL}", f"note {EVIL}"],
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from launched()


@pytest.fixture
def opened(browser: Any, path: Path) -> Iterator[Opened]:
    one = Opened(browser, path, 1400, "#table button.square")
    yield one
    one.context.close()
    assert one.said == []
    assert len(one.asked) == 1  # the file itself


def test_every_claim_has_its_figures_and_its_cells(opened: Opened) -> None:
    """Links lead to something that is there, in both directions, and cells open when asked for."""
    hrefs = opened.page.eval_on_selector_all(
        "a:not([download])", "all => all.map(one => one.getAttribute('href'))"
    )
    assert len(hrefs) > 12
    for href in hrefs:
        assert opened.page.evaluate(
            "id => document.getElementById(id) !== null", href.removeprefix("#")
        ), href
    opened.page.locator("#cells-total-three summary").click()
    cells = opened.page.locator("#cells-total-three tbody tr")
    cells.first.wait_for()
    assert cells.count() == 6
    assert "does not apply: no reason <b>at all</b>" in cells.first.inner_text()
    assert "#figure-synthetic-base" in hrefs
    assert opened.page.locator("#figure-synthetic-base a", has_text="base-two").count() == 1


def test_a_square_has_its_numbers_and_opens_its_cells(opened: Opened) -> None:
    rows = opened.rows()
    assert [row[0] for row in rows] == ["total-three", "base-two", "minimum-map"]
    assert rows[0][-1] == claims()[0].sentence
    square = opened.page.locator("#table tbody tr").first.locator("button.square").first
    said = square.get_attribute("title")
    assert said.startswith("total-three on synthetic: 3 cells: ")
    assert "1 do not apply" in said
    assert "synthetic, delta = " in said
    stripes = square.locator("span").evaluate_all("all => all.map(one => one.offsetWidth)")
    assert len([width for width in stripes if width > 5]) == said.count(" not ") + said.count(
        "hold"
    )
    square.click()
    cells = opened.page.locator("#cells-total-three tbody tr")
    cells.first.wait_for()
    assert cells.count() == 3
    assert {one.split("\t")[0] for one in cells.all_inner_texts()} == {"synthetic"}
    head = opened.page.locator("#cells-total-three summary")
    assert head.inner_text().startswith("3 of 6 cells: those on synthetic;")
    head.click()
    head.click()
    cells.nth(5).wait_for()
    assert head.inner_text() == "All 6 cells"


def test_the_heads_of_the_matrix_are_not_broken(opened: Opened) -> None:
    """Names of instances stand upright, each on one line, and a very long one is cut."""
    sizes = opened.page.locator("#table thead span").evaluate_all(
        "all => all.map(one => [one.offsetWidth, one.offsetHeight])"
    )
    assert len(sizes) > 1
    assert all(width < 30 and 40 < height < 200 for width, height in sizes), sizes


def test_every_figure_is_its_own_picture(opened: Opened) -> None:
    """Each is drawn, has its own title in it, and can be saved as SVG."""
    pictures = opened.page.locator("figure img")
    assert pictures.count() == opened.page.locator("figure").count() == 4
    for picture in pictures.all():
        picture.evaluate("one => one.decode()")
        title = picture.get_attribute("alt").split("; ")[0]
        texts = ElementTree.fromstring(unquote(picture.get_attribute("src").split(",", 1)[1]))
        assert title[:20] in "".join(texts.itertext())


def test_lines_have_the_styles_of_every_other_figure(opened: Opened, tmp_path: Path) -> None:
    """FedElim's colour and its solid line, and the dashes of the period; in the saved file, too."""
    with opened.page.expect_download() as waited:
        opened.page.locator("#figure-synthetic-a a[download]").click()
    waited.value.save_as(tmp_path / waited.value.suggested_filename)
    looks = (tmp_path / "synthetic-a.svg").read_text()
    fedelim, period = style_of("fedelim"), style_of("periodic:5")
    lines = [one for one in re.findall(r'style="([^"]*)"', looks) if "fill: none" in one]
    assert any(fedelim.colour in one and "dasharray" not in one for one in lines)
    assert any(period.colour in one and "dasharray" in one for one in lines)


def test_names_are_shown_as_text(opened: Opened) -> None:
    opened.page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    assert "<script>alert(1)</script>" in opened.page.inner_text("#notes")
    assert "<script>alert(1)</script>" in opened.page.inner_text("#outlook")
    assert opened.page.locator("img:not(.chart)").count() == 0
    assert "\x1b" not in opened.page.content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1400])
def test_nothing_overflows(browser: Any, path: Path, width: int, scheme: str) -> None:
    one = Opened(browser, path, width, "#table button.square", color_scheme=scheme)
    one.page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    assert one.page.evaluate("document.documentElement.scrollWidth") <= width
    assert one.said == []
    one.context.close()


def test_the_page_is_of_plain_data() -> None:
    data = page_data(charts(), claims(), {}, ["the outlook"])
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    by_key = {one["key"]: one for one in data["claims"]}
    assert by_key["total-three"]["figures"] == ["synthetic-a", printable(f"{EVIL}-a")]
    assert by_key["base-two"]["figures"] == ["synthetic-base"]
    assert data["outlook"] == "the outlook"
