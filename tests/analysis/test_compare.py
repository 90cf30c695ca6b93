"""Paired comparisons: against brute force, their groups, and the coverage of their intervals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from helpers import OTHER, SMALL, refused
from made_up_trials import moments_of
from scipy import stats

import fastfed as ff
from fastfed.analysis.compare import estimates
from fastfed.analysis.paired import Paired
from fastfed.analysis.prices import PULLS
from fastfed.analysis.trials import BLOCK, side_by_side
from fastfed.display.compare_table import ratio_text

GRID: dict[str, Any] = {
    "instances": [SMALL, OTHER],
    "deltas": [0.1, 0.05],
    "costs": [0, 10],
    "schedules": ["fedelim", "fedelim0", "periodic:10"],
    "radii": ["paper", "mixture"],
    "trials": 120,
    "threads": 1,
    "progress": False,
}
CELL = ["instance", "delta", "sigma", "radius", "goal", "uplink", "schedule"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> ff.Sweep:
    return ff.sweep(**GRID, out=tmp_path_factory.mktemp("compare") / "all", part_size=50)


def cost_of(rows: pl.DataFrame, row: dict[str, Any]) -> npt.NDArray[np.float64]:
    if row["measure"] != "total":
        return rows[row["measure"]].to_numpy().astype(float)
    pulls, uplinks, bits = (rows[name].to_numpy() for name in ("pulls", "uplinks", "bits"))
    return np.asarray(pulls + (row["cost"] or 0) * uplinks + (row["bit_cost"] or 0) * bits, float)


@pytest.mark.parametrize("by", ["radius", "schedule", "delta", "instance"])
def test_ratios_and_differences_by_brute_force(swept: ff.Sweep, by: str) -> None:
    found = swept.compare(by=by, cost=[0, 7], bit_cost=[0.5])
    rows = swept.frame.sort("trial")
    count = {"radius": 2 * 2 * 3, "schedule": 2 * 2 * 2 * 2, "delta": 12, "instance": 12}[by]
    assert found.frame.height == count * 6  # three totals, pulls, uplinks, bits
    assert found.level == 1 - 0.05 / found.frame.height  # by Bonferroni's rule
    for row in found.frame.to_dicts():
        mine, theirs = (
            rows.filter(*(pl.col(name) == {**row, by: value}[name] for name in CELL))
            for value in (row[by], row["reference"])
        )
        x, y = cost_of(mine, row), cost_of(theirs, row)
        assert row["pairs"] == len(x) == 120
        assert row["mean"] == pytest.approx(x.mean(), rel=1e-12)
        assert row["reference_mean"] == pytest.approx(y.mean(), rel=1e-12)
        assert row["ratio"] == pytest.approx(x.mean() / y.mean(), rel=1e-12)
        assert row["difference"] == pytest.approx((x - y).mean(), rel=1e-9, abs=1e-9)
        if not row["differ"]:
            assert (x == y).all()
            assert row["ratio_low"] is None
            assert not row["separated"]
            continue
        low, high = row["difference_low"], row["difference_high"]
        worst = [
            stats.t.interval(found.level, 120, *_with(x - y, one)) for one in (-y.max(), x.max())
        ]
        if row["measure"] != "total":  # the dearest total is bounded by the parts' own
            assert low == pytest.approx(min(worst[0][0], 0 if low == 0 else np.inf), rel=1e-9)
            assert high == pytest.approx(max(worst[1][1], 0 if high == 0 else -np.inf), rel=1e-9)
        assert (
            row["separated"]
            == (not low <= 0 <= high)
            == (not row["ratio_low"] <= 1 <= (row["ratio_high"] or np.inf))
        )


def _with(values: npt.NDArray[np.float64], further: float) -> tuple[float, float]:
    every = np.append(values, further)
    return float(every.mean()), float(every.std(ddof=1) / np.sqrt(len(every)))


def test_references(swept: ff.Sweep) -> None:
    def reference(**options: Any) -> set[Any]:
        return set(swept.compare(cost=10, **options).frame["reference"])

    assert reference(by="radius") == {"paper"}
    assert reference(by="schedule") == {"fedelim0"}
    assert reference(by="delta") == {0.1}
    assert reference(by="delta", to="0.05") == {0.05}
    assert reference(by="schedule", to="fedelim") == {"fedelim"}
    refused(lambda: reference(by="radius", to="papr"), "papr", "did you mean 'paper'")
    refused(lambda: reference(by="radus"), "radus", "did you mean 'radius'")
    refused(lambda: reference(by="goal"), "all rows have goal best", "instance, delta, radius")


def test_two_sweeps(swept: ff.Sweep, tmp_path: Path) -> None:
    """Cells of equal names are compared; rows of the same seed are equal."""
    again = ff.sweep(**{**GRID, "deltas": [0.05]}, out=tmp_path / "again")
    same = swept.compare(again, cost=10)
    assert same.frame.height == 2 * 2 * 3 * 4
    assert not same.frame["differ"].sum()
    assert not same.frame["separated"].any()
    assert "equal" in str(same)
    other = ff.sweep(**{**GRID, "deltas": [0.05], "seed": 1}, out=tmp_path / "other")
    found = swept.compare(other, cost=10).frame
    assert found["differ"].min() > 0
    assert set(found["sweep"]) == {str(tmp_path / "other")}
    refused(lambda: swept.filter(delta=0.1).compare(again), "no cell of the one")


def test_schedules_that_do_not_end_are_excluded_and_named() -> None:
    res = ff.simulate(SMALL, ["fedelim", "fedelim0", "at:1,2"], delta=0.1, trials=300, threads=1)
    found = res.compare(by="schedule", cost=10)
    assert set(found.frame["schedule"]) == {"fedelim"}
    assert "at:1,2" in found.notes[0]
    assert "do not end than delta allows" in found.notes[0]
    refused(lambda: res.compare(by="schedule", to="at:1,2"), "nothing to compare", "at:1,2")


def test_the_table(swept: ff.Sweep) -> None:
    text = str(swept.filter(delta=0.1).compare(by="radius", cost=10))
    assert "reference paper" in text
    assert "mixture" in text
    assert "95 %" in text
    assert len(text.splitlines()) == 3 + 1 + 6
    assert "bits" not in text.splitlines()[4]  # all uplinks are exact
    assert "<table" in swept.compare(by="radius", cost=10)._repr_html_()


def test_streams_of_batches_are_aligned() -> None:
    """Batches of different sizes and gaps give the same trials side by side."""

    def stream(*parts: range) -> Iterator[dict[str, dict[str, npt.NDArray[np.int64]]]]:
        for part in parts:
            yield {"s": {"trial": BLOCK // 4 * np.array(part), "pulls": np.array(part) * 10}}

    streams = {"a": stream(range(5), range(5, 12)), "b": stream(range(3, 4), range(8, 20))}
    seen: dict[str, list[int]] = {"a": [], "b": []}
    both: list[int] = []
    for item in side_by_side(streams):
        own = [set((batch["s"]["trial"] // (BLOCK // 4)).tolist()) for batch in item.values()]
        both += sorted(set.intersection(*own)) if len(own) == 2 else []
        for name, batch in item.items():
            numbers = (batch["s"]["trial"] // (BLOCK // 4)).tolist()
            assert len({number // 4 for number in numbers}) == 1  # one block
            seen[name] += numbers
    assert seen == {"a": list(range(12)), "b": [3, *range(8, 20)]}
    assert both == [3, 8, 9, 10, 11]


def paired(x: npt.NDArray[np.int64], y: npt.NDArray[np.int64]) -> Paired:
    sums = moments_of([x, y], np.zeros((2, len(x))))
    return sums.pair(*sums.schedules, PULLS)


@pytest.mark.parametrize(("share", "trials"), [(1.0, 200), (0.3, 400), (0.02, 1000)])
def test_coverage(share: float, trials: int) -> None:
    """At most 36 of 300 intervals of 95 % miss (chance below 1e-6 if 5 % do).

    Costs are log-normal; in a share of trials the two differ, by a skew factor.
    """
    rng = np.random.default_rng(7)
    scale, shape = 1000.0, 0.6
    ratio = 1 + share * (np.exp(0.3 + 0.5**2 / 2) - 1)
    mean = scale * np.exp(shape**2 / 2)
    missed = {"ratio": 0, "difference": 0}
    for _ in range(300):
        y = scale * np.exp(shape * rng.standard_normal(trials))
        factor = np.where(
            rng.random(trials) < share, np.exp(0.3 + 0.5 * rng.standard_normal(trials)), 1.0
        )
        row = estimates(paired(np.rint(y * factor).astype(int), np.rint(y).astype(int)), 0.95)
        for name, truth in (("ratio", ratio), ("difference", (ratio - 1) * mean)):
            low, high = row[f"{name}_low"], row[f"{name}_high"]
            missed[name] += not (low <= truth <= (np.inf if high is None else high))
    assert max(missed.values()) <= 36, missed


def test_equal_schedules_are_seldom_separated() -> None:
    """At most 36 of 300 pairs of equal distribution are separated at 95 %."""
    rng = np.random.default_rng(8)
    wrong = 0
    for _ in range(300):
        x, y = np.rint(1000 * np.exp(0.8 * rng.standard_normal((2, 150)))).astype(int)
        wrong += estimates(paired(x, y), 0.95)["separated"]
    assert wrong <= 36


def test_a_ratio_that_is_separated_from_1_does_not_look_like_1() -> None:
    row = {"ratio": 1.00031, "ratio_low": 1.00012, "ratio_high": 1.0005, "differ": 99}
    assert ratio_text({**row, "separated": True}) == "1.0003 [1.0001, 1.0005]"
    assert ratio_text({**row, "separated": False}) == "1 [1, 1]"
    assert ratio_text({**row, "separated": True, "ratio_high": None}) == "1.0003 [1.0001, no limit]"
