"""A sweep against the theorems: rows made up for each verdict, and sweeps that hold and do not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers import SMALL, run, typed
from made_up_trials import Cells

import fastfed as ff
from fastfed.analysis.check import Check
from fastfed.analysis.check import check as check_trials
from fastfed.analysis.intervals import clopper_pearson
from fastfed.analysis.verdicts import (
    DOES_NOT_APPLY,
    HOLDS,
    NOT_ENOUGH_TRIALS,
    NOT_REFUTED,
    VIOLATED,
)
from fastfed.cli import app as cli
from fastfed.display.tables import check_table
from fastfed.theory.bounds import bounds

B = bounds("synthetic", 0.1, 10.0)


def made_up(
    samples: dict[str, dict[str, Any]],
    costs: Sequence[float] = (10.0,),
    instance: str = "synthetic",
) -> Check:
    """Check trials that are given.

    Those of a schedule are its ``pulls``, ``uplinks``, ``correct`` and ``truncated``: each is one
    number, or one number for each trial.
    """
    batch = {}
    for schedule, given in samples.items():
        columns = {"uplinks": 12, "correct": True, "truncated": False, **given}
        count = max(np.size(values) for values in columns.values())
        rows = {name: np.broadcast_to(values, count) for name, values in columns.items()}
        batch[schedule] = {"trial": np.arange(count), **rows}
    trials: Any = Cells([[batch]], list(samples), instance)
    return check_trials(trials, costs)


def line(found: Check, claim: str, **where: object) -> dict[str, Any]:
    return found.frame.filter(pl.col("claim") == claim).row(
        by_predicate=pl.all_horizontal(
            *(pl.col(name) == value for name, value in where.items()), pl.lit(True)
        ),
        named=True,
    )


def first(count: int, value: object, rest: object, of: int = 100) -> np.ndarray:
    """``value`` in the first ``count`` trials, ``rest`` in the others."""
    return np.where(np.arange(of) < count, value, rest)


# Sweeps


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the default grid.

    At delta = 0.001, 3,700 trials without an error do not confirm the error rate over all 45 lines
    of a claim. They would confirm a single line.
    """
    out = tmp_path_factory.mktemp("default") / "results"
    assert cli.run(["sweep", "--trials", "3700", "--out", str(out), "--quiet"]) == 0
    return out


def test_the_default_grid_holds(default: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["check", str(default)]) == 0
    short = capsys.readouterr().out.splitlines()
    assert len(short) <= 24
    assert max(map(len, short)) <= 120
    assert cli.run(["check", str(default), "--all"]) == 0
    table = capsys.readouterr().out
    # per delta: 9 schedules x 10 claims, 4 ratios of FedElim; 3 lines on H are for information
    counts = ff.check(default).counts()
    assert (counts[VIOLATED], counts[NOT_ENOUGH_TRIALS], counts[DOES_NOT_APPLY]) == (0, 0, 15)
    assert counts[HOLDS] + counts[NOT_REFUTED] == 470
    unsure = ff.check(default).frame.filter(verdict=NOT_REFUTED)
    assert unsure["delta"].unique().to_list() == [0.001]
    assert unsure["power"].is_between(0.3, 0.35).all()
    assert f"holds: {counts[HOLDS]}\nviolated: 0\nnot refuted: " in table
    assert "not refuted (32%)" in table
    assert max(map(len, table.splitlines())) <= 120


def test_best_period_stands_beside_the_optimum(default: Path) -> None:
    found = ff.check(default).frame.filter(schedule="periodic", delta=0.1)
    assert found["cost"].to_list() == [0.0, 10.0, 100.0]
    assert found["mean"].to_list() == [1.0, 100.0, 1000.0]
    assert found["bound"].to_list() == pytest.approx([0.0, 436.769, 1381.185], abs=1e-3)
    assert found["tightness"].to_list() == [
        None,
        pytest.approx(0.229, abs=1e-3),
        pytest.approx(0.724, abs=1e-3),
    ]


def test_a_tenth_of_the_scale_is_violated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With radii a tenth of what they should be, nearly every trial is wrong (over 80 %)."""
    out = str(tmp_path)
    assert (
        cli.run(
            [
                *typed("sweep --trials 200 --delta 0.1,0.01 --sigma 0.1 --max-steps 1000000 --out"),
                out,
                "--quiet",
            ]
        )
        == 0
    )
    assert cli.run(["check", out]) == 0  # no theorem promises anything of such a scale
    assert "no theorem applies: scale 0.1, these rewards need 1" in capsys.readouterr().out
    found = ff.check(tmp_path)
    assert found.violated
    assert not found.contradicted
    errors = found.frame.filter(claim="error rate <= delta", sigma=0.1)
    assert errors.height == 18
    assert set(errors["verdict"]) == {VIOLATED}
    # bounds are those of the small scale, and the lower bound says nothing of such a run
    T = bounds("synthetic", 0.01, sigma=0.1).T
    assert found.frame.filter(delta=0.01, claim="pulls <= 2T")["bound"].item() == 2 * T
    assert set(found.frame.filter(claim="mean pulls >= Theorem 3")["reason"]) == {
        "scale 0.1, these rewards need 1: not delta-PAC"
    }


# Verdicts, on made-up trials at delta = 0.1


@pytest.mark.parametrize(
    ("outside", "verdict"),
    [
        (0, HOLDS),
        (3, HOLDS),
        (4, HOLDS),
        (5, NOT_REFUTED),
        (16, NOT_ENOUGH_TRIALS),
        (17, VIOLATED),
        (100, VIOLATED),
    ],
)
def test_shares_of_trials(outside: int, verdict: str) -> None:
    # of 100: 4 have the interval 0.011 - 0.0993, 5 0.016 - 0.113, 16 0.094 - 0.247,
    # 17 0.102 - 0.258
    over = first(outside, 2 * B.T + 1, 2 * B.T - 1).astype(int)
    found = made_up({"fedelim": {"pulls": over}})
    wrong = made_up({"fedelim": {"pulls": 50_000, "correct": first(outside, False, True)}})
    for row in (line(found, "pulls <= 2T"), line(wrong, "error rate <= delta")):
        assert row["verdict"] == verdict
        assert row["outside"] == outside / 100
        assert (row["low"], row["high"]) == clopper_pearson(outside, 100)
    assert line(found, "pulls <= 2T")["tightness"] == pytest.approx(over.mean() / (2 * B.T))
    assert line(wrong, "error rate <= delta")["tightness"] == pytest.approx(outside / 10)
    assert line(found, "error rate <= delta")["verdict"] == HOLDS
    assert wrong.violated == wrong.contradicted == (verdict == VIOLATED)
    if verdict == VIOLATED:
        assert line(wrong, "error rate <= delta")["reason"] == "contradicts a theorem that applies"


@pytest.mark.parametrize(
    ("schedule", "claims"),
    [
        (
            "fedelim",
            {
                "pulls <= 2T": 2 * B.T,
                "pulls <= sharp": 12 * 16384,
                "uplinks <= summed": 192,
                "uplinks <= sharp": 180,
                "total <= 3T": 3 * B.T,
            },
        ),
        ("exponential:2", {"pulls <= 2T": 2 * B.T, "total <= 3T": 3 * B.T}),
        (
            "exponential:1.5",
            {
                "pulls <= 1.5T": 1.5 * B.T,
                "uplinks <= summed": 312,
                "uplinks <= sharp": 300,
                "total <= summed": 1.5 * B.T + 3120,
            },
        ),
        ("superexponential", {"pulls <= T^2": B.T**2, "uplinks <= sharp": 60}),
        ("fedelim0", {"pulls <= T": B.T, "uplinks <= sharp": 180_000, "pulls <= sharp": 180_000}),
        (
            "periodic:100",
            {
                "pulls <= T + HMK": B.T + 1200,
                "uplinks <= summed": 12 * 191,
                "total <= summed": 12 * 19100 + 10 * 12 * 191,
            },
        ),
    ],
)
def test_each_scheme_has_its_own_bounds(schedule: str, claims: dict[str, float]) -> None:
    found = made_up({schedule: {"pulls": np.full(100, 50_000)}})
    for claim, bound in claims.items():
        row = line(found, claim)
        assert row["bound"] == pytest.approx(bound, rel=1e-12)
        assert row["verdict"] == HOLDS
    assert (line(found, claim)["cost"] == 10.0) == claim.startswith("total")


def test_costs_on_the_bound_are_within() -> None:
    for more, verdict in ((0, HOLDS), (1, VIOLATED)):
        count = 12 * 15000 + more
        found = made_up({"fedelim0": {"pulls": np.full(100, count), "uplinks": count}})
        assert line(found, "pulls <= sharp")["verdict"] == verdict
        assert line(found, "uplinks <= sharp")["verdict"] == verdict
        assert line(found, "pulls <= T")["verdict"] == HOLDS


def test_listed_times_have_no_bound() -> None:
    found = made_up({"at:1,100,10000": {"pulls": np.full(100, 50_000)}})
    assert line(found, "pulls <= bound")["verdict"] == DOES_NOT_APPLY
    assert line(found, "pulls <= bound")["mean"] == 50_000
    assert line(found, "error rate <= delta")["verdict"] == HOLDS


@pytest.mark.usefixtures("terminal")
def test_lines_of_a_table_can_be_told_apart() -> None:
    """Two schedules that begin alike, and costs in one notation; 100 columns, aligned."""
    names = [
        f"at:1,5,25,125,625,3125,15625,78125,390625,{last},5000000" for last in (1953125, 1953126)
    ]
    samples = {name: {"pulls": np.full(100, 50_000)} for name in (*names, "fedelim", "fedelim0")}
    found = made_up(samples, costs=(10.0, 1000.0))
    text = check_table(found, every=True).text()
    assert max(map(len, text.splitlines())) <= 100
    assert "total <= 3T, C 1,000" in text
    rows = [line for line in text.splitlines() if " <= " in line and line.startswith("at:")]
    assert len({line.split()[0] for line in rows}) == 2
    heads = [line for line in text.splitlines() if line.startswith("schedule")]
    assert all(line[heads[0].index("claim") - 1] == " " for line in rows)
    assert len(str(found).splitlines()) <= 30


def test_three_T_only_where_it_follows() -> None:
    # Theorem 4's condition holds up to C = 1935, its conclusion follows up to about 1190
    sample = {
        "fedelim": {"pulls": np.full(100, 50_000), "uplinks": 180},
        "fedelim0": {"pulls": np.full(100, 40_000)},
    }
    found = made_up(sample, costs=(1100.0, 1900.0))
    for claim, low, high in (
        ("total <= 3T", HOLDS, DOES_NOT_APPLY),
        ("total / FedElim0 <= 3", VIOLATED, DOES_NOT_APPLY),
    ):
        assert line(found, claim, cost=1100.0)["verdict"] == low
        assert line(found, claim, cost=1900.0)["verdict"] == high
        assert "3T does not follow" in line(found, claim, cost=1900.0)["reason"]
    assert (
        line(found, "total / FedElim0 <= 3", cost=1100.0)["mean"] == (50_000 + 1100 * 180) / 40_000
    )


def test_trials_that_did_not_end_decide_nothing() -> None:
    """Trials that did not end neither refute nor confirm a claim.

    A sweep that was cut off early does not refute Theorem 1. A sweep that also errs does.
    """

    def checked(truncated: int, pulls: int = 1000, wrong: int = 0) -> Check:
        given = {
            "pulls": first(truncated, pulls, 50_000),
            "truncated": first(truncated, True, False),
            "correct": first(truncated + wrong, False, True),
        }
        return made_up({"fedelim": given})

    for given, error, pulls in (
        ((4,), HOLDS, HOLDS),
        ((50,), NOT_ENOUGH_TRIALS, NOT_ENOUGH_TRIALS),
        ((100,), NOT_ENOUGH_TRIALS, NOT_ENOUGH_TRIALS),
        ((50, 2 * int(B.T) + 5), NOT_ENOUGH_TRIALS, VIOLATED),
        ((50, 1000, 40), VIOLATED, NOT_ENOUGH_TRIALS),
    ):
        found = checked(*given)
        assert line(found, "error rate <= delta")["verdict"] == error
        assert line(found, "pulls <= 2T")["verdict"] == pulls
    found = checked(4)
    row = line(found, "error rate <= delta")
    assert (row["mean"], row["high"]) == (0.0, pytest.approx(clopper_pearson(4, 100)[1]))
    assert "some trials did not end, up to 4 of a line" in str(found)
    assert "some trials did not end" in row["reason"]


@pytest.mark.parametrize(
    ("pulls", "truncated", "verdict"),
    [
        (np.full(100, 250), 0, HOLDS),  # the lower bound is 214.07
        (np.full(100, 180), 0, VIOLATED),
        (first(50, 100, 330), 0, NOT_ENOUGH_TRIALS),  # 215 on average, give or take 23
        (np.array([1000]), 0, NOT_ENOUGH_TRIALS),
        (np.full(100, 180), 1, NOT_ENOUGH_TRIALS),  # they would have pulled on
        (np.full(100, 250), 1, HOLDS),
    ],
)
def test_lower_bound(pulls: np.ndarray, truncated: int, verdict: str) -> None:
    cut = first(truncated, True, False, len(pulls))
    found = made_up({"fedelim": {"pulls": pulls, "truncated": cut}})
    row = line(found, "mean pulls >= Theorem 3")
    assert row["verdict"] == verdict
    assert row["tightness"] == pytest.approx(pulls[~cut].mean() / B.lower)


def test_lower_bound_is_about_gaussian_rewards() -> None:
    found = made_up({"fedelim": {"pulls": np.full(100, 180)}}, instance="bernoulli")
    row = line(found, "mean pulls >= Theorem 3")
    reason = "Theorem 3 is about Gaussian rewards of one variance"
    assert (row["verdict"], row["reason"]) == (DOES_NOT_APPLY, reason)


@pytest.mark.parametrize(
    ("pulls", "verdict"),
    [
        (np.full(100, 1900), HOLDS),
        (np.full(100, 2100), VIOLATED),
        (first(50, 1000, 3100), NOT_ENOUGH_TRIALS),  # 2.05, give or take 0.21
        (np.array([1900]), NOT_ENOUGH_TRIALS),
    ],
)
def test_ratio_of_pulls(pulls: np.ndarray, verdict: str) -> None:
    """A measured ratio is no theorem: a violated one contradicts nothing."""
    found = made_up({"fedelim": {"pulls": pulls}, "fedelim0": {"pulls": np.full(len(pulls), 1000)}})
    row = line(found, "pulls / FedElim0 <= 2")
    assert row["verdict"] == verdict
    assert row["mean"] == pulls.mean() / 1000
    # total cost over pulls: 12 uplinks at C = 10 are 0.12 more
    assert line(found, "total / FedElim0 <= 3")["mean"] == pytest.approx(pulls.mean() / 1000 + 0.12)


def test_ratios_are_over_trials_that_both_ended() -> None:
    row = line(made_up({"fedelim": {"pulls": np.full(100, 1900)}}), "pulls / FedElim0 <= 2")
    assert (row["verdict"], row["reason"]) == (DOES_NOT_APPLY, "the sweep has no fedelim0")
    ended = {"pulls": np.full(100, 1000), "truncated": first(1, True, False)}
    cut = made_up({"fedelim": {"pulls": first(1, 1950, 1900)}, "fedelim0": ended})
    row = line(cut, "pulls / FedElim0 <= 2")
    assert (row["mean"], row["verdict"]) == (1.9, HOLDS)
    assert str(cut).startswith("note: some trials did not end")
    # 50 trials of fedelim0 stand beside the first 50 of fedelim
    fewer = {"pulls": np.full(50, 1000)}
    half = made_up({"fedelim": {"pulls": first(50, 1900, 9000)}, "periodic:1": fewer})
    assert line(half, "pulls / FedElim0 <= 2")["mean"] == 1.9
    assert "all rows: synthetic, delta 0.1, 50 to 100 trials" in str(half)


def test_lone_arm() -> None:
    names = ["fedelim", "fedelim0", "periodic:10"]
    found = ff.simulate([[0.3, 0.4]], names, delta=0.1, trials=50, threads=1).check()
    assert not found.violated
    theorems = found.frame.filter(~pl.col("claim").str.contains("FedElim0|H_opt"))
    assert set(theorems["verdict"]) == {HOLDS}


# Commands


def test_check_as_json(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["check", str(good), "--format", "json", "--cost", "7"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert read == ff.check(good, [7.0]).frame.to_dicts()
    assert {row["cost"] for row in read} == {None, 7.0}


def test_a_contradiction_is_the_status_of_the_command(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Check, "contradicted", True)
    assert cli.run(["check", str(good)]) == 1


def test_instance_that_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A built-in instance has another digest than the rows have."""
    run(tmp_path, instances=["synthetic"], trials=2)
    monkeypatch.setattr("fastfed.storage.folder.loaded", lambda name: SMALL)
    for command in (["check"], ["plot", "--bounds"]):
        assert cli.run([*command, str(tmp_path)]) == 2
        message = capsys.readouterr().err
        assert "instance 'synthetic' cannot be had any more (it now has other means" in message
        assert message.count("\n") == 1


@pytest.mark.parametrize("prepare", ["absent", "empty"])
def test_folder_without_rows(
    folder: Path, prepare: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if prepare == "empty":
        for path in (folder / "trials").iterdir():
            path.unlink()
    assert cli.run(["check", str(folder if prepare == "empty" else folder / "r")]) == 2
    message = capsys.readouterr().err
    assert ("not a sweep's folder" if prepare == "absent" else "no rows yet") in message
    assert message.count("\n") == 1
