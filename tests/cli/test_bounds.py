"""`fastfed bounds`, and lines of bounds in figures."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from helpers import typed

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.display.bounds_tables import bounds_text
from fastfed.display.guides import LEAST, bound_lines
from fastfed.display.series import Line
from fastfed.model.instance import Instance
from fastfed.theory.bounds import bounds

DELTA = 0.1
SYNTHETIC = Instance.load("synthetic")


def test_bounds_command(capsys: pytest.CaptureFixture[str]) -> None:
    options = typed("--delta 0.1,0.01 --cost 10,2000 --schedule exponential:1.5,periodic:100")
    assert cli.run(["bounds", "synthetic", *options, "--all"]) == 0
    table = capsys.readouterr().out
    assert max(map(len, table.splitlines())) <= 100
    found = [
        bounds(SYNTHETIC, d, c, base=1.5, period=100) for d in (0.1, 0.01) for c in (10.0, 2000.0)
    ]
    assert table == bounds_text(found) + "\n"
    assert table.count("T = 228,921") == table.count("T = 255,343") == 1
    said = " ".join(table.split())
    assert "4 of 4 arms break C ln T_k <= T_k; FedElim's total <= 3T does not follow" in said
    assert "every arm meets C ln T_k <= T_k; FedElim's total <= 3T follows" in said
    rows = [row.split() for row in table.splitlines()]
    for row in (
        "3 0.1333 19,077 15,000 0 0.4 6,009 4,761 540.3",
        "0.1 10 periodic:100 as stated 230,121 2,301 23,012 253,133 1.106",
        "0.1 10 fedelim sharp 196,608 180 1,800 198,408 0.8667",
    ):
        assert row.split() in rows

    assert cli.run(["bounds", "synthetic", *options, "--sigma", "0.5", "--format", "json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert [(one["delta"], one["cost"]) for one in read] == [(b.delta, b.cost) for b in found]
    assert read[3] == bounds(SYNTHETIC, 0.01, 2000.0, 0.5, base=1.5, period=100).to_dict()


@pytest.mark.usefixtures("terminal")
def test_bounds_command_of_extreme_instances(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Instance([[0.3, 0.4]]).save(tmp_path / "lone.toml")
    Instance([[1e-9], [0.0]], arms=["a" * 60, "b"], clients=["c" * 60]).save(tmp_path / "near.toml")
    for name in (str(tmp_path / "lone.toml"), str(tmp_path / "near.toml"), "random:50,3,1"):
        assert cli.run(["bounds", name, "--all"]) == 0
        table = capsys.readouterr().out
        assert max(len(row) for row in table.splitlines()) <= 100
    assert "... 30 more arms: --format json has all" in table


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--delta", "0"], "delta = 0: must lie strictly between 0 and 1"),
        (["--delta", "5e-324"], "delta"),
        (["--cost", "-1"], "cost '-1'"),
        (["--cost", "1e308"], "cost"),
        (["--schedule", "periodic:2.5"], "period H = '2.5'"),
        (["--schedule", "exponential:1"], "base lambda = '1'"),
        (
            ["--schedule", "phases"],
            "must be one periodic:H, one exponential:LAMBDA or one adaptive",
        ),
        (["--sigma", "0"], "sigma = '0'"),
    ],
)
def test_bounds_command_refuses(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["bounds", "synthetic", *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


# Overlays


def rows_of(**values: object) -> pl.DataFrame:
    """Make the columns of a summary that tell settings apart."""
    setting = {"instance": "synthetic", "schedule": "fedelim", "delta": DELTA, "sigma": 1.0}
    setting |= {"radius": "paper", "goal": "best", "uplink": "exact", "cost": 10.0}
    return pl.DataFrame(setting | values)


def lines_of(
    x: str = "delta", y: str = "total", instance: Instance = SYNTHETIC, **values: object
) -> dict[str, Line]:
    found = bound_lines(rows_of(**values), {"synthetic": instance}, x, y)
    assert all(one.plain for one in found)
    return {one.label: one for one in found}


def test_bound_lines() -> None:
    lines = lines_of(delta=[0.01, 0.5, 0.1])
    assert [label.split()[0] for label in lines] == ["3T", "2T", "T", "no"]
    T = [float(bounds(SYNTHETIC, d).T) for d in (0.01, 0.1, 0.5)]
    assert lines["T (fedelim0, pulls)"].x == [0.01, 0.1, 0.5]
    assert lines["T (fedelim0, pulls)"].y == T
    assert lines["3T (fedelim, total)"].y == [3 * t for t in T]
    assert lines[LEAST].x == [0.01, 0.1]  # at 0.5 it is 0, and a logarithmic axis has none
    # at C = 1300, 3T follows for small deltas only; one delta makes a line, too
    some = lines_of(delta=[0.1, 1e-9, 1e-12], cost=1300.0)
    assert some["3T (fedelim, total)"].x == [1e-12, 1e-9]
    alone = lines_of(delta=0.01)[LEAST]
    assert alone.x[0] < 0.01 < alone.x[1]


def test_every_axis_that_has_bounds_has_its_own() -> None:
    """Each guide has the numbers of `ff.bounds` at its places, for every x and y with bounds."""
    costs = [0.0, 10.0, 1000.0]
    along = lines_of("cost", "communication", cost=costs)
    expected = [float(bounds(SYNTHETIC, DELTA, c).fedelim.summed.comm) for c in costs]
    (bound,) = along.values()
    assert (bound.x, bound.y) == (costs[1:], expected[1:])  # talking is free at C = 0
    assert set(lines_of("cost", "pulls", cost=costs)) == {
        "2T (fedelim, pulls)",
        "T (fedelim0, pulls)",
        LEAST,
    }
    names = ["periodic:10", "periodic:1000", "fedelim"]
    for y, part in (("total", "total"), ("pulls", "pulls"), ("communication", "comm")):
        found = lines_of("period", y, schedule=names)["bound of periodic:H"]
        assert found.x == [10.0, 1000.0]
        assert found.y == [
            float(getattr(bounds(SYNTHETIC, DELTA, 10.0, period=H).periodic.summed, part))
            for H in (10, 1000)
        ]
        every = lines_of("schedule", y, schedule=names)["bound of the schedule"]
        assert (every.x, every.joined) == ([0.0, 1.0, 2.0], False)
        assert every.y[:2] == found.y
    radii = ["mixture", "paper"]
    found = lines_of("radius", "pulls", radius=radii)["T (fedelim0, pulls)"]
    assert found.y == [float(bounds(SYNTHETIC, DELTA, radius=one).T) for one in radii]
    allowed = lines_of("delta", "error_rate", delta=[0.1, 0.01])
    assert [(one.x, one.y) for one in allowed.values()] == [([0.01, 0.1], [0.01, 0.1])]
    with pytest.raises(ff.InputError, match="no theorem bounds steps"):
        lines_of("delta", "steps")


def test_plot_with_bounds(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = str(tmp_path / "r")
    ff.sweep(
        instances="synthetic",
        deltas=[DELTA, 0.01],
        costs=[10],
        schedules=["fedelim"],
        trials=2,
        threads=1,
        out=folder,
        progress=False,
    )
    for options in ([], ["--bounds"]):
        out = str(tmp_path / f"figures{len(options)}")
        assert cli.run(["plot", folder, "--out", out, "--format", "svg", *options]) == 0
    plain, drawn = (
        (tmp_path / f"figures{i}" / "synthetic_s1_C10-total-delta.svg").read_text() for i in (0, 1)
    )
    for label in (
        "T (fedelim0, pulls)",
        "2T (fedelim, pulls)",
        "3T (fedelim, total)",
        "no algorithm below this (pulls)",
    ):
        assert f">{label}<" in drawn
        assert f">{label}<" not in plain


def test_a_figure_with_bounds_for_each_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    folder = str(tmp_path / "r")
    ff.sweep(
        instances="synthetic",
        deltas=[0.1, 0.01],
        schedules=["fedelim"],
        periods=[10, 100],
        trials=2,
        threads=1,
        out=folder,
        progress=False,
    )
    ask = ["plot", folder, "--out", str(tmp_path / "f"), "--format", "svg", "--bounds", "--x"]
    assert cli.run([*ask, "period", "--cost", "10"]) == 0
    files = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    assert files == ["total-period-bounds-d0.1.svg", "total-period-bounds-d0.01.svg"]
    for name in files:
        assert ">bound of periodic:H<" in (tmp_path / "f" / name).read_text()
    assert cli.run([*ask, "schedule", "--y", "pulls", "--delta", "0.1"]) == 0
    assert Path(capsys.readouterr().out.strip()).name == "pulls-schedule-bounds.svg"
    assert cli.run([*ask, "period", "--group", "delta", "--cost", "10"]) == 2
    assert "every delta has bounds of its own" in capsys.readouterr().err


def test_a_figure_of_the_default_radius_has_no_empty_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "s")
    ff.sweep(
        instances="synthetic",
        deltas=[0.1, 0.01],
        schedules=["fedelim"],
        radii=["paper", "mixture"],
        trials=2,
        threads=1,
        out=folder,
        progress=False,
    )
    asked = ["plot", folder, "--out", str(tmp_path), "--format", "svg", "--bounds", "--x", "delta"]
    assert cli.run([*asked, "--cost", "10"]) == 0
    files = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    assert sorted(files) == ["total-delta-bounds-mixture.svg", "total-delta-bounds.svg"]
