"""Names from other people's files: shown escaped, whatever shows them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.text import printable, printable_json, spreadsheet_cell

NASTY = "=cmd|' /C calc'!A1\x1b[2J\x07\r\nforged\u202etxt\x9b31m\t\x00"
FORMULAS = ["=HYPERLINK(1)", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1"]


@pytest.fixture(scope="module")
def nasty() -> ff.Instance:
    return ff.Instance(
        [[0.9, 0.1], [0.1, 0.4]],
        name=NASTY,
        arms=[NASTY, "b"],
        clients=["a", NASTY],
        description=NASTY,
    )


def harmless(text: str) -> None:
    """No character that a terminal obeys, and no line that a name has forged."""
    assert all(printable(line) == line for line in text.split("\n")), text
    assert not any(line.startswith("forged") for line in text.split("\n"))
    assert "forged" in text  # the name was shown


def test_objects_show_names_escaped(nasty: ff.Instance, tmp_path: Path) -> None:
    result = ff.simulate(nasty, ["fedelim", "fedelim0"], delta=0.1, trials=20, threads=1)
    result.save(tmp_path / "saved\x1b[2Jforged")
    sweep = ff.open_sweep(tmp_path / "saved\x1b[2Jforged")
    (cell,) = sweep._store.held()
    shown: list[Any] = [nasty, result, result.best(), result.check(), sweep, sweep.best(), cell]
    shown += [ff.replay(nasty, "fedelim", delta=0.1), ff.bounds(nasty, delta=0.1)]
    shown += [ff.error_probability(nasty, delta=0.1, trials=100)]
    for one in shown:
        harmless(str(one))
        harmless(repr(one))


def test_errors_from_python_are_one_printable_line(nasty: ff.Instance, tmp_path: Path) -> None:
    other = ff.Instance([[0.9, 0.1], [0.2, 0.4]], name=NASTY)
    for call in (
        lambda: ff.open_sweep(NASTY.replace("\x00", "")),
        lambda: ff.simulate(nasty, NASTY, delta=0.1, trials=1),
        lambda: ff.sweep(instances=[nasty, other], trials=1, out=tmp_path / "two"),
    ):
        with pytest.raises(ff.InputError) as caught:
            call()
        harmless(str(caught.value))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [NASTY, *FORMULAS])
def test_csv_has_no_live_formula_and_json_keeps_the_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    instance = ff.Instance([[0.9, 0.1], [0.1, 0.4]], name=name)
    ff.simulate(instance, "fedelim", delta=0.1, trials=2, threads=1).save(tmp_path / "out")
    assert cli.run(["summary", str(tmp_path / "out"), "--format", "csv"]) == 0
    text = capsys.readouterr().out
    assert printable(text.replace("\n", "")) == text.replace("\n", "")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 3
    for row in rows:
        assert row["instance"] == f"'{printable(name)}"
        assert float(row["cost"]) >= 0
    assert cli.run(["summary", str(tmp_path / "out"), "--format", "json"]) == 0
    text = capsys.readouterr().out
    assert printable(text.rstrip("\n")) == text.rstrip("\n")
    assert json.loads(text)[0]["instance"] == name


def test_plain_text_stays_as_it_is() -> None:
    assert spreadsheet_cell("fedelim0") == "fedelim0"
    assert spreadsheet_cell("δ = 0.1, a-b") == "δ = 0.1, a-b"
    assert printable_json('{"a": "δ\\n"}\n') == '{"a": "δ\\n"}\n'
