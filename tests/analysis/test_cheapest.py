"""The cheapest schedule: against brute force over C, and its intervals on simulated trials."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_trials import CELL, NAMES, apart, envelope_of, moments_of, simulated
from polars.testing import assert_frame_equal
from scipy import stats

import fastfed as ff
from fastfed.analysis.cheapest import Cheapest, Envelope, cheapest
from fastfed.analysis.comparable import Failures
from fastfed.analysis.intervals import LEAST_DIFFERING
from fastfed.analysis.moments import Moments
from fastfed.analysis.prices import BIT, UPLINK, Prices
from fastfed.analysis.trials import Passes
from fastfed.display.cheapest_text import best_table


def winner_at(found: Envelope, cost: float) -> str:
    return next(one.winner for one in found.pieces if one.low <= cost <= one.high)


# The envelope


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(2, 6), st.integers(1, 3))
def test_envelope_against_brute_force(seed: int, count: int, trials: int, scale: int) -> None:
    """Small whole numbers: ties, parallel and equal lines are common."""
    rng = np.random.default_rng(seed)
    pulls, uplinks = rng.integers(0, 4**scale, (2, count, trials))
    found = envelope_of(pulls, uplinks, cell=CELL)
    lows, highs = [p.low for p in found.pieces], [p.high for p in found.pieces]
    assert lows == [0.0, *highs[:-1]]
    assert highs[-1] == math.inf
    assert all(low < high for low, high in zip(lows, highs, strict=True))
    a, b = pulls.mean(axis=1), uplinks.mean(axis=1)
    for cost in [0.0, *np.geomspace(1e-3, 1e6, 200), *lows]:
        totals = dict(zip(NAMES, a + cost * b, strict=False))
        least = pytest.approx(min(totals.values()), rel=1e-9, abs=1e-9)
        assert totals[winner_at(found, float(cost))] == least
    for cost in (0.0, 0.7, 1e3):
        least = pytest.approx((a + cost * b).min(), rel=1e-9, abs=1e-9)
        assert found.at(cost)["total_mean"] == least


def test_schedules_that_do_the_same_are_equal_and_no_rivals() -> None:
    pulls, uplinks = simulated(np.random.default_rng(4), 200, 2)
    found = envelope_of(
        [*pulls, pulls[0]],
        [*uplinks, uplinks[0]],
        names=("fedelim0", "fedelim", "periodic:1"),
        cell=CELL,
    )
    assert found.pieces[0].winner == "fedelim0"
    assert found.pieces[0].equal == ("periodic:1",)
    assert "periodic:1" not in {one.schedule for one in found.pieces[0].rivals}
    assert found.at(0)["equal"] == ["periodic:1"]
    assert found.at(0)["runner_up"] == "fedelim"
    assert "fedelim0 = periodic:1" in str(found)


# Differences


def test_equal_trials_are_set_aside() -> None:
    """99 of 100 trials are equal: the mean is over all of them, the test over the others."""
    rng = np.random.default_rng(6)
    pulls = np.tile(rng.integers(1000, 2000, 400), (2, 1))
    pulls[1, :4] += [5, 6, 7, 5]
    found = apart(moments_of(pulls, pulls))
    d = pulls[1] - pulls[0]
    assert (found.pairs, found.differ) == (400, 4)
    assert found.mean(0) == pytest.approx(d.mean())
    assert found.sem(0) == pytest.approx(stats.sem(d))
    assert found.undecided(0.95) == [(0.0, math.inf)]
    pulls[1, :LEAST_DIFFERING] += 5000
    found = apart(moments_of(pulls, pulls * 0))
    assert (found.differ, found.undecided(0.95)) == (LEAST_DIFFERING, [])


def test_undecided_costs_are_those_of_the_paired_test() -> None:
    """The intervals of C, solved for, and the p-values at each C: one test in two forms."""
    rng = np.random.default_rng(7)
    decided = 0
    for _ in range(20):
        pulls = rng.normal(1000, 100, (2, 150)) + rng.normal(0, 60, (2, 1))
        uplinks = rng.normal(300, 30, (2, 150)) + rng.normal(0, 20, (2, 1))
        pulls, uplinks = pulls.astype(np.int64), uplinks.astype(np.int64)
        moments = moments_of(pulls, uplinks)
        found = apart(moments)
        spans = found.undecided(0.95)
        above = found.not_above(0.95)
        for cost in [0.0, *np.geomspace(1e-3, 1e4, 100)]:
            pair = moments.pair("periodic:10", "fedelim0", Prices.total(cost))
            below, surely = (p < 0.025 for p in pair.tails())
            assert any(a <= cost <= b for a, b in spans) == (not below and not surely)
            assert any(a <= cost <= b for a, b in above) != surely
            decided += below or surely
    assert 200 < decided < 1800


def test_rivals_are_those_of_paired_tests_at_the_level_for_all_of_them() -> None:
    """Compare with SciPy's paired test at 5 % / (S - 1) and the worst further trial."""
    rng = np.random.default_rng(20)
    borderline = 0
    for _ in range(200):
        luck = rng.gamma(4, 100, 200)
        pulls = np.stack([luck + rng.gamma(4, 30, 200) + 1000 + 12 * i for i in range(4)])
        pulls = pulls.astype(np.int64)
        found = envelope_of(pulls, pulls * 0 + 10, cell=CELL).at(1.0)
        won = NAMES.index(found["winner"])
        p = {
            NAMES[i]: 2
            * stats.ttest_1samp(
                [*(pulls[i] - pulls[won]), -pulls[won].max() - 10], 0, alternative="greater"
            ).pvalue
            for i in range(4)
            if i != won
        }
        assert set(found["rivals"]) == {name for name, one in p.items() if one >= 0.05 / 3}
        borderline += any(0.05 / 3 <= one < 0.05 for one in p.values())
    assert borderline > 20  # or a test at 5 % for each of them would have passed


# Costs that are given


def test_margin_is_paired() -> None:
    pulls, uplinks = simulated(np.random.default_rng(11), 500, 3)
    best = Cheapest((envelope_of(pulls, uplinks, cell=CELL),))
    table = best.at([0.0, 1.0, 1000.0])
    assert table["cost"].to_list() == [0.0, 1.0, 1000.0]
    for row in table.iter_rows(named=True):
        totals = pulls + row["cost"] * uplinks
        order = np.argsort(totals.mean(axis=1))
        one, two = totals[order[0]], totals[order[1]]
        assert (row["winner"], row["runner_up"]) == (NAMES[order[0]], NAMES[order[1]])
        assert row["total_mean"] == pytest.approx(one.mean())
        assert row["total_sem"] == pytest.approx(stats.sem(one))
        assert row["margin"] == pytest.approx((two - one).mean())
        assert row["margin_sem"] == pytest.approx(stats.sem(two - one))
        assert row["pairs"] == 500
        assert set(row["rivals"]) <= set(NAMES)


def test_rivals_of_a_piece_are_those_at_its_costs() -> None:
    pulls, uplinks = simulated(np.random.default_rng(12), 30, 5)
    found = envelope_of(pulls, uplinks, cell=CELL)
    for piece in found.pieces:
        for cost in np.geomspace(piece.low + 1e-6, min(piece.high, 1e5) * (1 - 1e-9), 30):
            here = {
                one.schedule for one in piece.rivals if any(a <= cost <= b for a, b in one.where)
            }
            row = found.at(float(cost))
            assert row["winner"] == piece.winner
            assert set(row["rivals"]) == here


def test_frame_has_every_piece() -> None:
    pulls, uplinks = simulated(np.random.default_rng(13), 200, 4)
    found = Cheapest(
        (
            envelope_of(pulls, uplinks, cell=CELL),
            envelope_of(pulls[:1], uplinks[:1], cell={**CELL, "delta": 0.01}),
        )
    )
    frame = found.frame
    assert frame.height == sum(len(one.pieces) for one in found.envelopes)
    assert frame["delta"].to_list() == [0.1] * (frame.height - 1) + [0.01]
    assert frame.schema["rivals"] == pl.List(pl.String)
    crossing = frame.filter(pl.col("cost_to").is_finite(), pl.col("delta") == 0.1)
    assert (crossing["cost_to_low"] < crossing["cost_to"]).all()
    assert (crossing["cost_to"] < crossing["cost_to_high"]).all()
    assert frame["cost_to_low"][-1] is None


# Trials that did not end


@pytest.mark.parametrize("failed", ["ended", "right"])
def test_trials_that_failed_are_left_out_in_pairs(failed: str) -> None:
    """A trial that any schedule did not end, or erred in, is left out, whatever it cost."""
    rng = np.random.default_rng(14)
    pulls, uplinks = simulated(rng, 300, 3)
    good = rng.random(pulls.shape) > 0.08
    pulls[~good] = 10**9
    found = envelope_of(pulls, uplinks, cell=CELL, **{failed: good})
    row = found.at(0.0)
    shared = good.all(axis=0)
    assert row["total_mean"] == pytest.approx(pulls[0][shared].mean())
    assert row["pairs"] == found.compared == shared.sum()
    assert row["margin"] == pytest.approx((pulls[1] - pulls[0])[shared].mean())
    assert f"compared over trials that all answered rightly, {shared.sum()} or more" in str(found)


def test_a_schedule_that_ends_the_easy_trials_only_is_excluded() -> None:
    """The cheapest by its own mean, because it left the dear ones."""
    pulls, uplinks = simulated(np.random.default_rng(21), 300, 3)
    ended = np.full(pulls.shape, True)
    ended[2] = pulls[2] <= np.sort(pulls[2])[74]
    assert pulls[2][ended[2]].mean() < pulls[0].mean()
    found = envelope_of(pulls, uplinks, ended, cell=CELL)
    assert found.excluded == {"fedelim": Failures(0, 225, 300, 0.1)}
    assert {one.winner for one in found.pieces} == {"fedelim0", "periodic:10"}
    assert found.compared == 300
    assert found.at(0.0)["excluded"] == ["fedelim"]
    assert "75 % of 300 trials did not end (95 % int" in str(found.excluded["fedelim"])
    assert best_table(Cheapest((found,)), [1.0]).text().endswith(": fedelim 75 % [69.7, 79.8]")
    # as many as delta allows, give or take what chance does, are no reason
    ended[2] = np.arange(300) >= 35
    assert not envelope_of(pulls, uplinks, ended, cell=CELL).excluded


def test_a_schedule_that_errs_is_excluded_with_its_rate() -> None:
    """A cheap schedule that is wrong in more trials than delta allows does not win."""
    pulls, uplinks = simulated(np.random.default_rng(25), 300, 3)
    pulls[2] = 1
    right = np.full(pulls.shape, True)
    right[2] = np.arange(300) % 5 == 0
    found = envelope_of(pulls, uplinks, right=right, cell=CELL)
    assert found.excluded == {"fedelim": Failures(240, 0, 300, 0.1)}
    assert "fedelim" not in {one.winner for one in found.pieces}
    assert found.compared == 300
    assert "80 % of 300 trials are wrong (95 % int" in str(found.excluded["fedelim"])
    # wrong answers and none count together, up to delta itself and what chance does
    right[2], ended = np.arange(300) >= 25, np.full(pulls.shape, True)
    ended[2] = np.arange(300) < 275
    both = envelope_of(pulls, uplinks, ended, right=right, cell=CELL).excluded
    assert both == {"fedelim": Failures(25, 25, 300, 0.1)}
    assert "are wrong or did not end" in str(both["fedelim"])
    for wrong, out in ((41, False), (42, True)):
        right[2] = np.arange(300) >= wrong
        assert bool(envelope_of(pulls, uplinks, right=right, cell=CELL).excluded) == out


def test_a_winner_that_failed_trials_make_dear_is_named() -> None:
    """Its trials that fail are left out, and cost more than all others together."""
    pulls, uplinks = np.full((3, 300), [[90], [100], [110]]), np.full((3, 300), 5)
    right = np.full(pulls.shape, True)
    right[0, 0], pulls[0, 0] = False, 90 * 301
    found = envelope_of(pulls, uplinks, right=right)
    assert found.dearer == {"fedelim0": 2.0}
    assert "so many times as high: fedelim0 2" in str(Cheapest((found,)))
    pulls[0, 0] -= 1
    assert not envelope_of(pulls, uplinks, right=right).dearer


def test_too_few_trials_for_delta_separate_nothing() -> None:
    """Below 3 / delta trials a schedule that fails with probability delta may never be seen to."""
    pulls, uplinks = simulated(np.random.default_rng(27), 300, 2)
    pulls[1] = 10 * pulls[0]
    separate, not_yet = (
        envelope_of(pulls, uplinks, cell={**CELL, "delta": delta}) for delta in (0.01, 0.0099)
    )
    assert separate.at(0.0)["rivals"] == []
    assert not_yet.at(0.0)["rivals"] == ["periodic:10"]
    assert "3 / delta are needed, up to 304" in str(not_yet)
    text = best_table(Cheapest((separate, not_yet)), [0.0]).text()
    assert "too few trials to separate anything in 1 of 2 cells: 3 / delta are needed" in text


def test_point_and_interval_of_a_crossover_are_of_the_same_trials() -> None:
    """Trials that only one of two schedules ended once moved the point out of its interval."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        pulls, uplinks = simulated(rng, 400, 3)
        ended = np.full(pulls.shape, True)
        ended[1] = pulls[1] < np.quantile(pulls[1], 0.92)
        found = envelope_of(pulls, uplinks, ended, cell=CELL)
        assert not found.excluded
        for piece in found.pieces[:-1]:
            low, high = piece.high_interval or (math.nan, math.nan)
            assert low <= piece.high <= high
            one, other = (
                (pulls[NAMES.index(p.winner)], uplinks[NAMES.index(p.winner)])
                for p in (piece, found.pieces[found.pieces.index(piece) + 1])
            )
            shared = ended.all(axis=0)
            crossing = (other[0] - one[0])[shared].mean() / (one[1] - other[1])[shared].mean()
            assert piece.high == pytest.approx(crossing)


def test_a_schedule_that_does_not_end_does_not_win() -> None:
    """Listed times that stop at 3,500 steps: 64 % of trials do not end."""
    names = ["fedelim", "fedelim0", "at:300,2000,3500"]
    best = ff.simulate("synthetic", names, delta=0.1, trials=400, seed=1).best()
    assert best.at([10.0])["winner"].to_list() == ["fedelim"]
    assert best.frame["excluded"].to_list() == [["at:300,2000,3500"]] * 2
    assert "than delta allows: at:300,2000,3500 65 % [60.1, 69.7]" in str(best)


def test_a_schedule_that_never_ends_has_no_cost() -> None:
    pulls, uplinks = simulated(np.random.default_rng(15), 50, 3)
    ended = np.full(pulls.shape, True)
    ended[0] = False
    found = envelope_of(pulls, uplinks, ended, cell=CELL)
    assert list(found.excluded) == ["fedelim0"]
    assert found.pieces[0].winner == "periodic:10"
    assert "allows: fedelim0 100 % [" in str(found)
    one = envelope_of(pulls[:, :1], uplinks[:, :1], ended[:, :1], cell=CELL)
    assert one.never_right == ("fedelim0",)  # one trial is no share above delta
    assert "no cost: fedelim0" in str(one)
    nothing = envelope_of(pulls, uplinks, ended & False, cell=CELL)
    assert nothing.pieces == ()


@pytest.mark.parametrize("trials", [1, 2])
def test_too_few_trials_separate_nothing(trials: int) -> None:
    pulls, uplinks = simulated(np.random.default_rng(16), trials, 3)
    found = envelope_of(pulls, uplinks, cell=CELL)
    for piece in found.pieces:
        assert {one.schedule for one in piece.rivals} == set(NAMES[:3]) - {piece.winner}
        assert piece.high_interval in (None, (0.0, math.inf))
    assert "no limit" in str(found)
    assert f"({trials} trials differ; 59 are needed)" in str(found)


def test_costs_of_a_bit_stand_beside_those_of_an_uplink() -> None:
    """An uplink of 64 bits; a schedule whose bits were not counted has no cost."""
    names = ["fedelim", "fedelim0", "periodic:7"]
    found = ff.simulate([[0.9, 0.2], [0.1, 0.8]], names, delta=0.1, trials=60)
    costs = np.array([0.0, 0.01, 0.1, 1.0, 10.0])
    bits, uplinks = found.best(bit_costs=costs), found.best(costs=64 * costs)
    unlike = ["cost", "bit_cost"]
    assert_frame_equal(bits.drop(unlike), uplinks.drop(unlike))
    assert bits["winner"].n_unique() > 1
    both = found.best(costs=[1.0], bit_costs=[1.0])
    assert both.select("cost", "bit_cost").rows() == [(1.0, None), (None, 1.0)]
    pulls, sent = simulated(np.random.default_rng(2), 50, 2)
    uncounted = Cheapest((envelope_of(pulls, sent, cell=CELL),))  # batches without bits
    assert uncounted.at([], [1.0])["winner"].to_list() == [None]
    assert "no schedule" in best_table(uncounted, [], [1.0]).text()


def test_pairs_with_the_winners_are_enough() -> None:
    """Schedules are paired with the few winners only, and nothing else changes."""
    names = [f"periodic:{period}" for period in range(1, 61)]
    result = ff.simulate([[0.9, 0.1], [0.1, 0.4]], names, delta=0.1, trials=80, seed=3)
    [cell] = result.held()
    rows = Passes(partial(result.batches, cell, names), names)
    rows.collect(every := Moments(names, names, ("pulls", "uplinks", "bits")))
    [found] = cheapest(result).envelopes
    wanted = replace(found, moments=every)
    assert found.pieces[0].rivals
    assert {one.winner for one in found.pieces} <= set(found.moments.partners)
    assert len(found.pieces) <= len(found.moments.partners) < 20
    for cost in (0.0, 0.5, found.pieces[0].high, 20.0, 1e6):
        for unit in (UPLINK, BIT):
            assert found.at(cost, unit) == wanted.at(cost, unit)
