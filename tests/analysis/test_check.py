"""A sweep against the theorems: rows made up for each verdict, and sweeps that hold and do not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from helpers import typed

from fastfed.analysis.check import Check
from fastfed.analysis.intervals import clopper_pearson
from fastfed.analysis.verdicts import (
    DOES_NOT_APPLY,
    HOLDS,
    NOT_ENOUGH_TRIALS,
    NOT_REFUTED,
    VIOLATED,
)
from fastfed.api.sweep import check
from fastfed.cli import app as cli
from fastfed.display.tables import check_table
from fastfed.model.cell import Cell
from fastfed.model.instance import Instance
from fastfed.model.spec import Spec
from fastfed.storage import checked_parquet, manifest
from fastfed.storage.folder import Store
from fastfed.storage.manifest import Piece
from fastfed.storage.summary_cache import stored_summary
from fastfed.theory.bounds import bounds

DELTA = 0.1
SYNTHETIC = Instance.load("synthetic")
B = bounds(SYNTHETIC, DELTA, 10.0)


def made_up(
    folder: Path,
    samples: dict[str, dict[str, Any]],
    *,
    costs: Sequence[float] = (10.0,),
    sigma: float = 1.0,
    instance: str = "synthetic",
    digest: str = SYNTHETIC.digest,
) -> Path:
    """Make the folder of a sweep from given trials.

    The trials of a schedule are its ``pulls``, ``uplinks``, ``correct`` and ``truncated``. Each is
    one number, or one number for each trial.
    """
    store = Store(folder)
    store.trials.mkdir(parents=True)
    cell = Cell(instance, digest, DELTA, sigma, 0, "skip", None)
    spec = Spec([instance], [DELTA], list(costs), list(samples), 100, 0, "skip")
    for schedule, given in samples.items():
        columns = {"uplinks": 12, "bits": 768, "rounds": 3, "steps": 9, **given}
        columns = {"correct": True, "truncated": False, "skip_error": 0.0, **columns}
        count = max(np.size(values) for values in columns.values())
        table = pa.table(
            {
                "trial": np.arange(count),
                **{name: np.broadcast_to(values, count).copy() for name, values in columns.items()},
            }
        )
        store.write_part([Piece(cell, (schedule,), 0, count)], checked_parquet.encode(table))
    one_for_all = {name: getattr(spec, name) for name in manifest.ONE_FOR_ALL}
    store.write_record(
        manifest.Record(
            spec=spec,
            spec_hash=spec.hash,
            versions=manifest.versions(),
            cells=(cell,),
            instances={},
            **one_for_all,
        )
    )
    return folder


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
    counts = check(default).counts()
    assert (counts[VIOLATED], counts[NOT_ENOUGH_TRIALS], counts[DOES_NOT_APPLY]) == (0, 0, 15)
    assert counts[HOLDS] + counts[NOT_REFUTED] == 470
    unsure = check(default).frame.filter(verdict=NOT_REFUTED)
    assert unsure["delta"].unique().to_list() == [0.001]
    assert unsure["power"].is_between(0.3, 0.35).all()
    assert f"holds: {counts[HOLDS]}\nviolated: 0\nnot refuted: " in table
    assert "not refuted (32%)" in table
    assert max(map(len, table.splitlines())) <= 120


def test_tightness_is_mean_over_bound(default: Path) -> None:
    found = check(default)
    means = stored_summary(default, [0.0, 10.0, 100.0])
    for delta in (0.1, 0.01, 0.001):
        b = bounds(SYNTHETIC, delta, 100.0, period=1000)
        for schedule, claim, cost, what, bound in (
            ("fedelim", "pulls <= 2T", None, "pulls", 2 * b.T),
            ("fedelim", "pulls <= sharp", None, "pulls", b.fedelim.sharp.pulls),
            ("fedelim", "total <= 3T", 100.0, "total", 3 * b.T),
            ("fedelim0", "pulls <= T", None, "pulls", b.T),
            ("fedelim0", "mean pulls >= Theorem 3", None, "pulls", b.lower),
            ("fedelim0", "mean pulls >= T* kl", None, "pulls", b.least_pulls),
            ("periodic:1000", "pulls <= T + HMK", None, "pulls", b.T + 12_000),
            ("periodic:1000", "total <= summed", 100.0, "total", b.periodic.summed.total),
        ):
            row = found.frame.filter(delta=delta, schedule=schedule, claim=claim)
            row = row if cost is None else row.filter(cost=cost)
            mean = means.filter(delta=delta, schedule=schedule, cost=cost or 0.0)[f"{what}_mean"]
            assert row["bound"].item() == pytest.approx(bound, rel=1e-12)
            assert row["mean"].item() == pytest.approx(mean.item(), rel=1e-12)
            assert row["tightness"].item() == pytest.approx(mean.item() / bound, rel=1e-12)
        ratio = means.filter(delta=delta, schedule="fedelim", cost=0.0)["ratio_to_fedelim0"]
        found_ratio = found.frame.filter(delta=delta, claim="pulls / FedElim0 <= 2")["mean"]
        assert found_ratio.item() == pytest.approx(ratio.item(), rel=1e-12)
    # T is loose by a factor of about 6 here, 2T by 8: the reader is to see that
    loose = found.frame.filter(pl.col("claim").is_in(["pulls <= T", "pulls <= 2T"]))["tightness"]
    assert loose.is_between(0.1, 0.2).all()


def test_best_period_stands_beside_the_optimum(default: Path) -> None:
    found = check(default).frame.filter(schedule="periodic", delta=0.1)
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
    found = check(tmp_path)
    assert found.violated
    assert not found.contradicted
    errors = found.frame.filter(claim="error rate <= delta", sigma=0.1)
    assert errors.height == 18
    assert set(errors["verdict"]) == {VIOLATED}
    # bounds are those of the small scale, and the lower bound says nothing of such a run
    T = bounds(SYNTHETIC, 0.01, sigma=0.1).T
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
def test_shares_of_trials(tmp_path: Path, outside: int, verdict: str) -> None:
    # of 100: 4 have the interval 0.011 - 0.0993, 5 0.016 - 0.113, 16 0.094 - 0.247,
    # 17 0.102 - 0.258
    over = first(outside, 2 * B.T + 1, 2 * B.T - 1).astype(int)
    found = check(made_up(tmp_path / "a", {"fedelim": {"pulls": over}}))
    wrong = check(
        made_up(
            tmp_path / "b", {"fedelim": {"pulls": 50_000, "correct": first(outside, False, True)}}
        )
    )
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
        assert cli.run(["check", str(tmp_path / "b")]) == 1


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
def test_each_scheme_has_its_own_bounds(
    tmp_path: Path, schedule: str, claims: dict[str, float]
) -> None:
    found = check(made_up(tmp_path, {schedule: {"pulls": np.full(100, 50_000)}}))
    for claim, bound in claims.items():
        row = line(found, claim)
        assert row["bound"] == pytest.approx(bound, rel=1e-12)
        assert row["verdict"] == HOLDS
    assert (line(found, claim)["cost"] == 10.0) == claim.startswith("total")


def test_costs_on_the_bound_are_within(tmp_path: Path) -> None:
    at = {"pulls": np.full(100, 12 * 15000), "uplinks": 12 * 15000}
    above = {"pulls": np.full(100, 12 * 15000 + 1), "uplinks": 12 * 15000 + 1}
    for name, sample, verdict in (("at", at, HOLDS), ("above", above, VIOLATED)):
        found = check(made_up(tmp_path / name, {"fedelim0": sample}))
        assert line(found, "pulls <= sharp")["verdict"] == verdict
        assert line(found, "uplinks <= sharp")["verdict"] == verdict
        assert line(found, "pulls <= T")["verdict"] == HOLDS


def test_listed_times_have_no_bound(tmp_path: Path) -> None:
    found = check(made_up(tmp_path, {"at:1,100,10000": {"pulls": np.full(100, 50_000)}}))
    assert line(found, "pulls <= bound")["verdict"] == DOES_NOT_APPLY
    assert line(found, "pulls <= bound")["mean"] == 50_000
    assert line(found, "error rate <= delta")["verdict"] == HOLDS


@pytest.mark.usefixtures("terminal")
def test_lines_of_a_table_can_be_told_apart(tmp_path: Path) -> None:
    """Two schedules that begin alike, and costs in one notation; 100 columns, aligned."""
    names = [
        f"at:1,5,25,125,625,3125,15625,78125,390625,{last},5000000" for last in (1953125, 1953126)
    ]
    samples = {name: {"pulls": np.full(100, 50_000)} for name in (*names, "fedelim", "fedelim0")}
    found = check(made_up(tmp_path, samples, costs=(10.0, 1000.0)))
    text = check_table(found, every=True).text()
    assert max(map(len, text.splitlines())) <= 100
    assert "total <= 3T, C 1,000" in text
    rows = [line for line in text.splitlines() if " <= " in line and line.startswith("at:")]
    assert len({line.split()[0] for line in rows}) == 2
    heads = [line for line in text.splitlines() if line.startswith("schedule")]
    assert all(line[heads[0].index("claim") - 1] == " " for line in rows)
    assert len(str(found).splitlines()) <= 30


def test_three_T_only_where_it_follows(tmp_path: Path) -> None:
    # Theorem 4's condition holds up to C = 1935, its conclusion follows up to about 1190
    sample = {
        "fedelim": {"pulls": np.full(100, 50_000), "uplinks": 180},
        "fedelim0": {"pulls": np.full(100, 40_000)},
    }
    found = check(made_up(tmp_path, sample, costs=(1100.0, 1900.0)))
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


def test_trials_that_did_not_end_decide_nothing(tmp_path: Path) -> None:
    """Trials that did not end neither refute nor confirm a claim.

    A sweep that was cut off early does not refute Theorem 1. A sweep that also errs does.
    """

    def verdicts(name: str, truncated: int, pulls: object, wrong: int = 0) -> tuple[str, str]:
        cut = first(truncated, True, False)
        found = check(
            made_up(
                tmp_path / name,
                {
                    "fedelim": {
                        "pulls": first(truncated, pulls, 50_000),
                        "truncated": cut,
                        "correct": first(truncated + wrong, False, True),
                    }
                },
            )
        )
        return (
            line(found, "error rate <= delta")["verdict"],
            line(found, "pulls <= 2T")["verdict"],
        )

    assert verdicts("few", 4, 1000) == (HOLDS, HOLDS)
    assert verdicts("many", 50, 1000) == (NOT_ENOUGH_TRIALS, NOT_ENOUGH_TRIALS)
    assert verdicts("all", 100, 1000) == (NOT_ENOUGH_TRIALS, NOT_ENOUGH_TRIALS)
    assert verdicts("dear", 50, 2 * int(B.T) + 5) == (NOT_ENOUGH_TRIALS, VIOLATED)
    assert verdicts("wrong", 50, 1000, wrong=40) == (VIOLATED, NOT_ENOUGH_TRIALS)
    found = check(tmp_path / "few")
    assert line(found, "error rate <= delta")["mean"] == 0.0
    assert line(found, "error rate <= delta")["high"] == pytest.approx(clopper_pearson(4, 100)[1])
    assert stored_summary(tmp_path / "few", [10.0])["error_rate"].to_list() == [0.04]
    assert "some trials did not end, up to 4 of a line" in str(found)
    assert "some trials did not end" in line(found, "error rate <= delta")["reason"]


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
def test_lower_bound(tmp_path: Path, pulls: np.ndarray, truncated: int, verdict: str) -> None:
    cut = first(truncated, True, False, len(pulls))
    row = line(
        check(made_up(tmp_path, {"fedelim": {"pulls": pulls, "truncated": cut}})),
        "mean pulls >= Theorem 3",
    )
    assert row["verdict"] == verdict
    assert row["tightness"] == pytest.approx(pulls[~cut].mean() / B.lower)


def test_lower_bound_is_about_gaussian_rewards(tmp_path: Path) -> None:
    row = line(
        check(
            made_up(
                tmp_path,
                {"fedelim": {"pulls": np.full(100, 180)}},
                instance="bernoulli",
                digest=Instance.load("bernoulli").digest,
            )
        ),
        "mean pulls >= Theorem 3",
    )
    assert (row["verdict"], row["reason"]) == (
        DOES_NOT_APPLY,
        "Theorem 3 is about Gaussian rewards of one variance",
    )


@pytest.mark.parametrize(
    ("pulls", "verdict"),
    [
        (np.full(100, 1900), HOLDS),
        (np.full(100, 2100), VIOLATED),
        (first(50, 1000, 3100), NOT_ENOUGH_TRIALS),  # 2.05, give or take 0.21
        (np.array([1900]), NOT_ENOUGH_TRIALS),
    ],
)
def test_ratio_of_pulls(tmp_path: Path, pulls: np.ndarray, verdict: str) -> None:
    """A measured ratio is no theorem: a violated one contradicts nothing."""
    found = check(
        made_up(
            tmp_path,
            {"fedelim": {"pulls": pulls}, "fedelim0": {"pulls": np.full(len(pulls), 1000)}},
        )
    )
    row = line(found, "pulls / FedElim0 <= 2")
    assert row["verdict"] == verdict
    assert row["mean"] == pulls.mean() / 1000
    # total cost over pulls: 12 uplinks at C = 10 are 0.12 more
    assert line(found, "total / FedElim0 <= 3")["mean"] == pytest.approx(pulls.mean() / 1000 + 0.12)


def test_ratios_are_over_trials_that_both_ended(tmp_path: Path) -> None:
    alone = check(made_up(tmp_path / "alone", {"fedelim": {"pulls": np.full(100, 1900)}}))
    row = line(alone, "pulls / FedElim0 <= 2")
    assert (row["verdict"], row["reason"]) == (DOES_NOT_APPLY, "the sweep has no fedelim0")
    cut = check(
        made_up(
            tmp_path / "cut",
            {
                "fedelim": {"pulls": first(1, 1950, 1900)},
                "fedelim0": {"pulls": np.full(100, 1000), "truncated": first(1, True, False)},
            },
        )
    )
    row = line(cut, "pulls / FedElim0 <= 2")
    assert (row["mean"], row["verdict"]) == (1.9, HOLDS)
    assert str(cut).startswith("note: some trials did not end")
    # 50 trials of fedelim0 stand beside the first 50 of fedelim
    half = check(
        made_up(
            tmp_path / "half",
            {
                "fedelim": {"pulls": first(50, 1900, 9000)},
                "periodic:1": {"pulls": np.full(50, 1000)},
            },
        )
    )
    assert line(half, "pulls / FedElim0 <= 2")["mean"] == 1.9
    assert "all rows: synthetic, delta 0.1, 50 to 100 trials" in str(half)


def test_lone_arm(tmp_path: Path) -> None:
    Instance([[0.3, 0.4]]).save(tmp_path / "lone.toml")
    lone = str(tmp_path / "lone.toml")
    out = tmp_path / "results"
    assert (
        cli.run(
            [
                "sweep",
                "--instance",
                lone,
                *typed(
                    "--delta 0.1 --trials 50 --period 1,10 --schedule fedelim,fedelim0 --out "
                    f"{out} --quiet"
                ),
            ]
        )
        == 0
    )
    found = check(out)
    assert not found.violated
    assert set(found.frame.filter(~pl.col("claim").str.contains("FedElim0|H_opt"))["verdict"]) == {
        HOLDS
    }


# Commands


def test_check_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made_up(tmp_path / "r", {"fedelim": {"pulls": np.array([1900])}})
    assert cli.run(["check", str(folder), "--format", "json", "--cost", "7"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert read == check(folder, [7.0]).frame.to_dicts()
    assert {row["cost"] for row in read} == {None, 7.0}
    assert {row["verdict"] for row in read} == {NOT_REFUTED, NOT_ENOUGH_TRIALS, DOES_NOT_APPLY}


def test_instance_that_cannot_be_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of a built-in instance that a later version has changed, it seems."""
    other = Instance([[1.0], [0.5]])
    folder = made_up(tmp_path / "r", {"fedelim": {"pulls": np.full(10, 100)}}, digest=other.digest)
    for command in (["check"], ["plot", "--bounds"]):
        assert cli.run([*command, str(folder)]) == 2
        message = capsys.readouterr().err
        assert "instance 'synthetic' cannot be had any more (it now has other means" in message
        assert message.count("\n") == 1


@pytest.mark.parametrize("prepare", ["absent", "empty"])
def test_folder_without_rows(
    tmp_path: Path, prepare: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if prepare == "empty":
        made_up(tmp_path / "r", {"fedelim": {"pulls": 1}})
        for path in (tmp_path / "r" / "trials").iterdir():
            path.unlink()
    assert cli.run(["check", str(tmp_path / "r")]) == 2
    message = capsys.readouterr().err
    assert ("not a sweep's folder" if prepare == "absent" else "no rows yet") in message
    assert message.count("\n") == 1
