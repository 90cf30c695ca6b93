"""The report: one file, no request, names as text, and the numbers of the summary at every C."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import webbrowser
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from helpers import SMALL, run, snapshot, typed
from made_up_trials import NAMES, envelope_of, moments_of, simulated

import fastfed as ff
import fastfed.display.report as report
from fastfed.analysis.cheapest import Envelope
from fastfed.analysis.moments import Moments, Prices
from fastfed.cli import app as cli
from fastfed.display.report.data import cell_data, report_data
from fastfed.display.report.page import page
from fastfed.display.styles import styles
from fastfed.model.counts import COUNTS
from fastfed.model.schedules import Schedule
from fastfed.storage import manifest
from fastfed.text import number, rate, short, tidy
from fastfed.theory.bounds import bounds
from fastfed.version import ROWS

HERE = Path(report.__file__).parent
EVIL = "<script>alert(1)</script> </script> <!-- \"q\" 'r' & @TITLE@ \x1b[31m " + "x" * 300


def cell_of(cell: dict[str, Any], *given: Any, **more: Any) -> tuple[Envelope, Moments]:
    """Return the cheapest schedules and the sums of made-up trials."""
    return envelope_of(*given, **more, cell=cell), moments_of(*given, **more)


def cells(trials: int = 50, instance: str = "here") -> list[tuple[Envelope, Moments]]:
    rng = np.random.default_rng(1)
    return [
        cell_of({"instance": instance, "delta": delta, "sigma": 1.0}, *simulated(rng, trials, 4))
        for delta in (0.1, 0.01)
    ]


def data_of(cells: Sequence[tuple[Envelope, Moments]], about: dict[str, Any]) -> Any:
    """Return the numbers of a page of made-up cells."""
    schedules = [[Schedule.parse(name) for name in moments.schedules] for _, moments in cells]
    return report_data(
        [
            cell_data(cell, each, moments)
            for (cell, moments), each in zip(cells, schedules, strict=True)
        ],
        [one for each in schedules for one in each],
        about,
    )


class Elements(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.inside = False


def test_a_page_of_too_many_cells_is_refused(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fastfed.display.report.write.MOST_CELLS", 0)
    assert cli.run(["report", str(good), "--out", str(tmp_path / "page.html")]) == 2
    assert capsys.readouterr().err == (
        f"fastfed: {good}: 1 cells, and a page shows at most 0; name some of them, as in `fastfed "
        "report DIR --delta 0.1`\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_page_is_one_file_that_asks_for_nothing() -> None:
    text = page(data_of(cells(), {"seed": 0}))
    found = Elements(text)
    for tag, attributes in found.found:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base"), tag
        assert not {"src", "href", "action"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert len(text.encode()) < 2_000_000


def test_policy_forbids_requests_and_lists_every_script() -> None:
    found = Elements(page(data_of(cells(), {})))
    (policy,) = (
        attributes["content"]
        for tag, attributes in found.found
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules
    assert "unsafe" not in rules["script-src"]
    data, *scripts = found.scripts
    json.loads(data)
    hashes = {
        f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'"
        for one in scripts
    }
    assert set(rules["script-src"].split()) == hashes
    assert len(scripts) == 9
    # either would be read otherwise by a browser than it was hashed
    assert not any("<!--" in one or "\r" in one for one in scripts)


def test_names_are_text() -> None:
    plain = Elements(page(data_of(cells(), {"a": "b"}), "title"))
    evil = Elements(page(data_of(cells(instance=EVIL), {EVIL: EVIL}), EVIL))
    assert [tag for tag, _ in evil.found] == [tag for tag, _ in plain.found]
    assert evil.scripts[1:] == plain.scripts[1:]
    data = json.loads(evil.scripts[0])
    assert data["cells"][0]["where"]["instance"].startswith("<script>alert(1)</script>")
    assert "\x1b" not in evil.scripts[0]


def test_size_does_not_grow_with_the_trials() -> None:
    few, many = (len(page(data_of(cells(trials), {}))) for trials in (50, 5000))
    assert abs(many - few) < 3000


def test_styles_are_those_of_the_figures() -> None:
    data = data_of(cells(), {})
    for one in data["schedules"]:
        assert one["colour"] == styles(NAMES[:4])[one["name"]].colour


def test_scripts_are_those_that_were_fetched() -> None:
    versions = json.loads((HERE / "vendor" / "versions.json").read_text())
    assert set(versions) == {"vega", "vega-lite", "vega-embed"}
    licences = (HERE / "vendor" / "LICENSES.txt").read_text()
    for name, one in versions.items():
        content = (HERE / "vendor" / f"{name}.min.js").read_bytes()
        assert hashlib.sha256(content).hexdigest() == one["sha256"]
        assert re.search(rf"\b{name} {re.escape(one['version'])}\b", licences)


# What the page computes


def computed(expression: str, argument: object) -> Any:
    """Evaluate a JavaScript expression in ``model`` and ``given``."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed: the page's arithmetic is not tested")
    script = (
        "const model = require(process.argv[1]);"
        "const given = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        f"console.log(JSON.stringify({expression}));"
    )
    done = subprocess.run(
        [node, "-e", script, str(HERE / "model.js")],
        text=True,
        check=True,
        input=json.dumps(argument),
        capture_output=True,
    )
    return json.loads(done.stdout)


def at(cost: float, **prices: float) -> list[float]:
    """Return a price for each count, as the page has them."""
    known = {"pulls": 1.0, **prices, "uplinks": cost}
    return [known.get(name, 0.0) for name in COUNTS]


def test_any_prices_have_the_numbers_of_the_summary(tmp_path: Path) -> None:
    """Means, errors, ratios and winners, of counts that cost nothing by default."""
    run(tmp_path, schedules=["fedelim", "fedelim0", "periodic:10"], trials=60)
    sweep = ff.open_sweep(tmp_path)
    page = sweep.report(tmp_path / "report.html").read_text()
    data = json.loads(Elements(page).scripts[0])
    assert list(data["counts"]) == list(COUNTS)
    assert data["prices"] == {"pulls": 1.0}
    for cost, prices in (
        (10.0, {"rounds": 50.0, "downlinks": 1.0}),
        (0.0, {"pulls": 0.0, "busiest": 1.0, "rounds": 20.0}),
        (3.0, {"bits": 0.25, "steps": 0.5}),
    ):
        (cell,) = data["cells"]
        found = computed(
            "[model.winner(given.cell, given.p, 1), given.cell.rows.map(row => ({...model.total("
            "row, given.p), ratio: model.ratio(row, given.p)}))]",
            {"cell": cell, "p": at(cost, **prices)},
        )
        known = sweep.summary([cost], prices=prices)
        assert [row["mean"] for row in found[1]] == pytest.approx(known["total_mean"].to_list())
        assert [row["sem"] for row in found[1]] == pytest.approx(known["total_sem"].to_list())
        ratios = known["ratio_to_fedelim0"].to_list()
        assert [row["ratio"] for row in found[1]] == pytest.approx(ratios)
        assert found[0] == sweep.best([cost], prices=prices)["winner"].item()


def test_a_count_that_is_not_known_has_no_price() -> None:
    """The made-up trials have pulls and uplinks alone."""
    (cell, _) = data_of(cells(), {})["cells"]
    found = computed(
        "[model.total(given.cell.rows[0], given.p), model.ratio(given.cell.rows[0], given.p), "
        "model.winner(given.cell, given.p, 1)]",
        {"cell": cell, "p": at(1.0, rounds=1.0)},
    )
    assert found == [{"mean": None, "sem": None}, None, None]


def test_a_report_begins_with_the_prices_of_its_sweep(tmp_path: Path) -> None:
    sweep = ff.sweep(
        instances=[SMALL],
        deltas=[0.1],
        costs=[7],
        prices={"rounds": 40},
        schedules=["fedelim", "fedelim0"],
        trials=60,
        out=tmp_path,
        progress=False,
    )
    data = json.loads(Elements(sweep.report(tmp_path / "page.html").read_text()).scripts[0])
    (cell,) = data["cells"]
    assert data["prices"] == {"pulls": 1.0, "rounds": 40.0}
    known, ranges = sweep.summary(), sweep.best().frame
    assert [piece["winner"] for piece in cell["pieces"]] == ranges["winner"].to_list()
    assert [row["quantiles"]["total"][0][1] for row in cell["rows"]] == known["total_q50"].to_list()
    compared = sweep.compare("schedule", [7], prices={"rounds": 40}).frame
    (line,) = data["compare"]["schedule"]["lines"]
    (total,) = compared.filter(measure="total")["ratio"].to_list()
    assert line["ratios"]["0"][0] == pytest.approx(total)


def test_every_cost_has_the_numbers_of_the_summary() -> None:
    costs = [0.0, 0.37, 10.0, 1234.5, 1e6]
    every = cells(200)
    data = data_of(every, {})
    found = computed(
        "given.costs.map(c => given.data.cells.map(cell => cell.rows.map(row => { const t = "
        "model.total(row, c); return [model.withError(t.mean, t.sem), model.short(row.means[0]), "
        "model.rate(row)]; })))",
        {"costs": [at(cost) for cost in costs], "data": data},
    )
    for cost, by_cell in zip(costs, found, strict=True):
        for (_, moments), rows in zip(every, by_cell, strict=True):
            for name, texts in zip(moments.schedules, rows, strict=True):
                prices = Prices.total(cost)
                assert texts[0] == number(moments.mean(name, prices), moments.sem(name, prices))
                assert texts[1] == short(moments.mean(name, Prices.total(0)))
                row = next(one for one in data["cells"][0]["rows"] if one["schedule"] == name)
                assert texts[2] == rate(0.0, row["error_low"], row["error_high"])


def test_winner_is_that_of_the_envelope() -> None:
    data = data_of(cells(200), {})
    costs = np.geomspace(1e-3, 1e5, 60).tolist()
    found = computed(
        "given.costs.map(c => given.cells.map(cell => model.winner(cell, c, 1)))",
        {"costs": [at(cost) for cost in costs], "cells": data["cells"]},
    )
    for cost, winners in zip(costs, found, strict=True):
        for cell, winner in zip(data["cells"], winners, strict=True):
            piece = next(
                one
                for one in cell["pieces"]
                if one["low"] <= cost and (one["high"] is None or cost <= one["high"])
            )
            assert piece["winner"] == winner


def test_a_schedule_that_does_not_end_wins_nowhere_on_the_page() -> None:
    """A schedule that ends only its cheapest trials is the cheapest by its own mean."""
    pulls, uplinks = simulated(np.random.default_rng(1), 200, 3)
    pulls[2], uplinks[2] = pulls[2] // 4, uplinks[2] // 4
    ended = np.full(pulls.shape, True)
    ended[2] = pulls[2] <= np.sort(pulls[2])[79]
    cell = {"instance": "here", "delta": 0.1, "sigma": 1.0}
    (found,) = data_of([cell_of(cell, pulls, uplinks, ended)], {})["cells"]
    assert list(found["excluded"]) == [NAMES[2]]
    assert found["excluded"][NAMES[2]].startswith("60 % of 200 trials did not end")
    assert NAMES[2] not in {piece["winner"] for piece in found["pieces"]}
    compared = {row["schedule"]: row["compared"] for row in found["rows"]}
    assert compared[NAMES[2]] is None
    assert None not in (compared[NAMES[0]][:2], compared[NAMES[1]][:2])
    costs = [at(cost) for cost in (0.0, 1.0, 1e4)]
    winners = computed(
        "given.costs.map(c => model.winner(given.cell, c, 1))", {"costs": costs, "cell": found}
    )
    assert NAMES[2] not in winners


def test_numbers_are_written_as_in_python() -> None:
    rng = np.random.default_rng(3)
    values = (10.0 ** rng.uniform(-8, 20, 400)).tolist()
    errors = [value * 10.0 ** rng.uniform(-9, 0.5) for value in values]
    pairs = [*zip(values, errors, strict=True), (5.0, 0.0), (5.0, None), (0.0, 0.0)]
    found = computed("given.map(([v, e]) => model.withError(v, e))", pairs)
    for (value, error), text in zip(pairs, found, strict=True):
        assert text == number(value, error), (value, error)
    assert computed("given.map(model.short)", values) == [short(value) for value in values]


def test_half_way_between_two_numbers_is_rounded_as_in_python() -> None:
    values = [1000.5, 1001.5, 1002.5, 0.125, 0.375, 2.5, 12.5, 1234.5, 99.5, 1e6 + 0.5, 0.5, 9.5]
    assert computed("given.map(model.short)", values) == [short(value) for value in values]
    assert computed("given.map(v => model.general(v, 2))", values) == [
        tidy(f"{value:.2g}") for value in values
    ]
    pairs = [(1000.5, 10.5), (2.5, 0.125), (1000.25, 1.5), (0.5, 0.5), (12.5, 12.5), (0.0, 2.5)]
    assert computed("given.map(([v, e]) => model.withError(v, e))", pairs) == [
        number(*pair) for pair in pairs
    ]


# The command


def test_command_writes_the_page_into_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "sweep")
    assert cli.run(["report", str(tmp_path / "sweep")]) == 0
    path = tmp_path / "sweep" / "report.html"
    assert capsys.readouterr().out.strip() == str(path)
    before = path.read_bytes()
    other = tmp_path / "a" / "b.html"
    assert cli.run(["report", str(tmp_path / "sweep"), "--out", str(other)]) == 0
    data, again = (
        json.loads(Elements(one.decode()).scripts[0]) for one in (before, other.read_bytes())
    )
    about = data.pop("about")
    told = again.pop("about")
    assert data == again  # all but the date and the command
    assert {key for key in about if about[key] != told[key]} <= {"page made at", "page made by"}
    assert (about["radius"], about["goal"], about["uplink"]) == ("paper", "best", "exact")
    assert {"sigma", "rewards", "versions", "made with"} <= set(about)
    assert about["page made at"].endswith(" UTC")
    assert about["seed"] == "0"
    assert about["instance"] == "small"
    assert about["version of the rows"] == str(ROWS)


def test_command_opens_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path)
    seen: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: bool(seen.append(address)))
    assert cli.run(["report", str(tmp_path), "--open"]) == 0
    assert seen == [(tmp_path / "report.html").resolve().as_uri()]
    assert "no browser could be started" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["nowhere"], ["sweep", "--out", "."], ["sweep", "--out", "file/report.html"]]
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run(tmp_path / "sweep")
    (tmp_path / "file").write_text("")
    capsys.readouterr()
    before = snapshot(tmp_path)
    assert cli.run(["report", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert snapshot(tmp_path) == before


def test_an_instance_that_is_gone_costs_only_bounds_and_verdicts(tmp_path: Path) -> None:
    source = tmp_path / "mine.toml"
    source.write_text("means = [[0.9, 0.1], [0.1, 0.4]]\n")
    assert (
        cli.run(
            [
                *typed(
                    f"sweep --instance {source} --delta 0.1 --trials 5 --schedule fedelim --out"
                ),
                str(tmp_path / "sweep"),
                "--quiet",
            ]
        )
        == 0
    )
    record = manifest.read_record(tmp_path / "sweep" / "sweep.json")
    record = msgspec.structs.replace(record, instances={})
    manifest.write_record(tmp_path / "sweep" / "sweep.json", record)
    source.unlink()
    assert cli.run(["report", str(tmp_path / "sweep")]) == 0
    text = (tmp_path / "sweep" / "report.html").read_text()
    data = json.loads(Elements(text).scripts[0])
    assert "cannot be had any more" in data["about"]["no bounds and no verdicts"]
    assert "claims" not in data
    assert "bounds" not in data["cells"][0]
    assert data["cells"][0]["rows"][0]["trials"] == 5


def test_bounds_are_those_of_the_theorems(tmp_path: Path) -> None:
    run(tmp_path)
    ff.open_sweep(tmp_path).report(tmp_path / "report.html")
    (cell,) = json.loads(Elements((tmp_path / "report.html").read_text()).scripts[0])["cells"]
    found = cell["bounds"]
    assert found["T"] == pytest.approx(float(bounds(SMALL, 0.1, 1.0).T), rel=1e-8)
    for factor in (0.999, 1.001):
        b = bounds(SMALL, 0.1, factor * found["three"])
        assert bool(b.three_T_follows) == (factor < 1)
