"""Sums over trials, and what is concluded from paired ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_trials import halves_of, moments_of
from scipy import stats

from fastfed.analysis.intervals import (
    LEAST_DIFFERING,
    clopper_pearson,
    mean_tails,
    share_power,
    share_tails,
)
from fastfed.analysis.moments import Moments
from fastfed.analysis.paired import Paired
from fastfed.analysis.prices import PULLS, UPLINK, UPLINKS, Prices
from fastfed.analysis.trials import BLOCK, Aligned

NAMES = ("fedelim", "fedelim0", "periodic:10")


def approx(numbers: Sequence[Any]) -> Any:
    """Equal up to rounding."""
    return pytest.approx([float(one) for one in numbers], rel=1e-12)


def batch(
    rng: np.random.Generator, trials: int = 500, high: int = 10**6
) -> dict[str, dict[str, np.ndarray]]:
    found = {}
    for name in NAMES:
        truncated = rng.random(trials) < 0.05
        keep = rng.random(trials) < (0.8 if name == "periodic:10" else 1.1)  # some are missing
        columns = {
            "trial": np.arange(trials),
            "pulls": rng.integers(1, high, trials),
            "uplinks": rng.integers(0, high, trials),
            "correct": ~truncated,
            "truncated": truncated,
        }
        found[name] = {key: values[keep] for key, values in columns.items()}
    return found


def sums(given: dict[str, dict[str, np.ndarray]], partners: tuple[str, ...] = NAMES) -> Moments:
    made = Moments(NAMES, partners)
    made.add(Aligned.of(given, NAMES))
    return made


@pytest.mark.parametrize("high", [100, 10**6, 2**40, 2**62])
@pytest.mark.parametrize("partners", [NAMES, ("fedelim0",)])
def test_every_sum_in_fractions(high: int, partners: tuple[str, ...]) -> None:
    given = batch(np.random.default_rng(1), high=high)
    found = sums(given, partners)
    costs = {
        name: {
            int(trial): (int(p), int(u))
            for trial, p, u, cut in zip(
                *(given[name][key] for key in ("trial", "pulls", "uplinks", "truncated")),
                strict=True,
            )
            if not cut
        }
        for name in NAMES
    }
    C = Fraction(0.1)
    for one in NAMES:
        for other in partners:
            both = costs[one].keys() & costs[other].keys()
            x = [costs[one][t][0] + C * costs[one][t][1] for t in both]
            y = [costs[other][t][0] for t in both]
            pair = found.pair(one, other, Prices.total(0.1), PULLS)
            assert (pair.pairs, pair.differ) == (len(both), len(both))
            means = sum(x) / len(both), Fraction(sum(y), len(both))
            assert pair.means == approx(means)
            d = [a - b for a, b in zip(x, y, strict=True)]
            forms = ((pair.vv, y, y), (-pair.uv, y, d), (pair.uu, d, d))
            for scatter, one_sum, other_sum in forms:
                products = sum(a * b for a, b in zip(one_sum, other_sum, strict=True))
                exact = products - sum(one_sum) * sum(other_sum) / Fraction(len(both))
                size = math.sqrt(sum(a * a for a in one_sum) * sum(b * b for b in other_sum))
                assert scatter == pytest.approx(float(exact), abs=1e-13 * size)
            same = found.pair(one, other, UPLINKS)
            assert same.differ == sum(costs[one][t][1] != costs[other][t][1] for t in both)


def test_covariances_of_columns_of_different_size() -> None:
    """Pulls scatter over 2^62 while uplinks hardly move.

    In floating point, the difference of the two variances would be noise.
    """
    rng = np.random.default_rng(3)
    pulls, uplinks = rng.integers(2**40, 2**62, 40), rng.integers(20, 22, 40)
    made = moments_of(pulls[None], uplinks[None])
    (name,) = made.schedules
    x, y = ([Fraction(int(value)) for value in values] for values in (pulls, uplinks))
    exact = (sum(a * b for a, b in zip(x, y, strict=True)) - sum(x) * sum(y) / 40) / 39
    means, covariance = made.described(name)
    assert covariance[0, 1] == pytest.approx(float(exact), rel=1e-12)
    assert covariance[0, 0] == pytest.approx(made.std(name, PULLS) ** 2, rel=1e-14)
    assert means[0] == made.mean(name, PULLS)


def test_constants_have_no_scatter() -> None:
    """However large they are, and however many blocks there are."""
    most = 2**62 - 1
    pair = paired(np.full(3 * BLOCK, most), np.full(3 * BLOCK, most - 2**40))
    assert (pair.vv, pair.uv, pair.uu, pair.differ) == (0.0, 0.0, 0.0, 3 * BLOCK)
    assert (pair.u, pair.most[0]) == (2.0**40, float(most))


def test_sums_do_not_depend_on_batches() -> None:
    """Blocks are cut at the same trials, however the trials come."""
    rng = np.random.default_rng(2)
    pulls, uplinks = rng.integers(1, 10**9, (3, 5000)), rng.integers(0, 99, (3, 5000))
    found = [moments_of(pulls, uplinks, parts=parts).sums for parts in (1, 3, 50)]
    for other in found[1:]:
        pairs = zip(found[0].pairs, other.pairs, strict=True)
        sums = [(found[0].own, other.own), *((a.sums, b.sums) for a, b in pairs)]
        for one, two in sums:
            np.testing.assert_array_equal(one.mean, two.mean)
            np.testing.assert_array_equal(one.scatter, two.scatter)


def test_rare_large_values_keep_the_digits_of_the_others() -> None:
    rng = np.random.default_rng(12)
    y = rng.integers(10**6, 10**6 + 100, 5000)
    x = y + rng.integers(0, 3, 5000)
    y[77] = x[77] = 2**61
    d = [int(a) - int(b) for a, b in zip(x, y, strict=True)]
    exact = Fraction(sum(v * v for v in d)) - Fraction(sum(d) ** 2, len(d))
    pair = paired(x, y)
    assert pair.uu == pytest.approx(float(exact), rel=1e-12)
    assert pair.u == pytest.approx(sum(d) / len(d), rel=1e-12)


def test_halves_add_up() -> None:
    given = batch(np.random.default_rng(3))
    halves = halves_of(given, NAMES)
    pairs = [
        part.pair("fedelim", "periodic:10", Prices.total(3.0)) for part in (halves.all, sums(given))
    ]
    assert pairs[0].means == pytest.approx(pairs[1].means, rel=1e-14)
    assert pairs[0].uu == pytest.approx(pairs[1].uu, rel=1e-12)
    even = given["fedelim"]["trial"] % 2 == 0
    assert halves.even.trials("fedelim") == even.sum()
    kept = even & ~given["fedelim"]["truncated"]
    assert halves.even.mean("fedelim", PULLS) == pytest.approx(
        given["fedelim"]["pulls"][kept].mean(), rel=1e-14
    )


def test_no_trials() -> None:
    empty = {
        name: {key: values[:0] for key, values in columns.items()}
        for name, columns in batch(np.random.default_rng(4)).items()
    }
    found = sums(empty)
    assert (found.trials("fedelim"), found.ended("fedelim")) == (0, 0)
    assert found.mean("fedelim", PULLS) is None
    pair = found.pair("fedelim", "fedelim0", PULLS)
    assert (pair.ratio, pair.ratio_sem, pair.tails()) == (None, None, (1.0, 1.0))


def test_dear_uplinks_do_not_overflow() -> None:
    found = sums(batch(np.random.default_rng(5), high=2**40))
    assert found.pair("fedelim", "fedelim0", Prices.total(1e100)).ratio == pytest.approx(1, rel=1)
    assert math.isfinite(found.sem("fedelim", Prices.total(1e100)) or math.nan)


# Intervals


@given(st.integers(1, 10**6), st.floats(0, 1), st.sampled_from([0.95, 0.99]))
def test_clopper_pearson_by_its_definition(trials: int, share: float, level: float) -> None:
    """At either end, what was seen or more, or less, has half of the error probability."""
    errors = round(share * trials)
    low, high = clopper_pearson(errors, trials, level)
    assert (low == 0) == (errors == 0)
    assert (high == 1) == (errors == trials)
    if errors < trials:
        assert stats.binom.cdf(errors, trials, high) == pytest.approx((1 - level) / 2, rel=1e-6)
    if errors:
        assert stats.binom.sf(errors - 1, trials, low) == pytest.approx((1 - level) / 2, rel=1e-6)


@pytest.mark.parametrize(
    ("errors", "trials", "limit"), [(0, 20, 1e-6), (3, 100, 0.1), (17, 100, 0.1), (100, 100, 0.5)]
)
def test_share_tails_are_binomial(errors: int, trials: int, limit: float) -> None:
    few, many = share_tails(errors, trials, limit)
    assert few == pytest.approx(stats.binom.cdf(errors, trials, limit), rel=1e-9)
    assert many == pytest.approx(stats.binom.sf(errors - 1, trials, limit), rel=1e-9)


def test_power_is_that_of_the_test() -> None:
    """The share of samples at twice the limit whose interval lies above the limit."""
    for trials, limit in ((20, 1e-6), (100, 0.1), (3000, 0.01)):
        errors = np.arange(trials + 1)
        shown = np.array([clopper_pearson(int(k), trials)[0] > limit for k in errors])
        power = stats.binom.pmf(errors, trials, 2 * limit)[shown].sum()
        assert share_power(trials, limit) == pytest.approx(power, rel=1e-9)
    assert share_power(20, 1e-6) < 1e-4


def paired(x: np.ndarray, y: np.ndarray) -> Paired:
    sums = moments_of([x, y], np.zeros((2, len(x))))
    return sums.pair(*sums.schedules, PULLS)


def test_student_with_the_worst_further_trial() -> None:
    """By SciPy: the differences that were seen, and the worst one that the costs allow."""
    rng = np.random.default_rng(6)
    x, y = rng.integers(0, 2**30, 70), rng.integers(0, 2**30, 70)
    for limit in (1, 2, 0.5):
        d = x - limit * y
        expected = [
            stats.ttest_1samp([*d, x.max()], 0, alternative="less").pvalue,
            stats.ttest_1samp([*d, -limit * y.max()], 0, alternative="greater").pvalue,
        ]
        assert paired(x, y).tails(limit - 1) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("differing", [0, 1, 5, 58])
def test_few_differing_trials_decide_nothing(differing: int) -> None:
    """All but a few of 10,000 trials are equal.

    A standard error over all trials would be zero, or would make the difference many standard
    errors wide.
    """
    y = np.full(10_000, 1000)
    x = y + (np.arange(10_000) < differing) * 5000
    assert paired(x, y).tails() == (1.0, 1.0)
    value, sem = paired(x, y).mean(), paired(x, y).sem()
    assert value == pytest.approx(5000 * differing / 10_000)
    assert (sem is None) == (differing < 2)


def test_enough_differing_trials_decide_what_no_further_trial_could_tip() -> None:
    y = np.full(10_000, 1000)
    for difference_, decided in ((10, False), (5000, True)):
        x = y + (np.arange(10_000) < LEAST_DIFFERING) * difference_
        assert (paired(x, y).tails()[1] < 1e-6) == decided


@pytest.mark.parametrize("rare", [0.3, 0.1, 0.05, 0.02, 0.01, 0.002])
@pytest.mark.parametrize("dear", [1.0, 2.0])
def test_false_verdicts_of_skew_differences_exactly(rare: float, dear: float) -> None:
    """Add up the probability of a false verdict over all samples of two-valued differences.

    Means are equal: +1 has probability 1 - q and -(1 - q) / q has probability q, and costs are at
    least as large. A verdict at 5 % has a probability below 5.2 % for the numbers of trials here.
    Student's test alone has up to 37 %.
    """
    opposite = (1 - rare) / rare
    worst, alone = 0.0, 0.0
    for differing in (*range(LEAST_DIFFERING, 400, 10), *range(400, 4000, 200)):
        n = np.arange(differing + 1)
        chance = stats.binom.pmf(n, differing, rare)
        wrong = {}
        for further in (0, 1):
            p = np.array(
                [
                    min(
                        mean_tails(
                            differing,
                            1 - int(k) / differing / rare,
                            int(k) * (1 - int(k) / differing) / rare**2,
                            -dear * opposite * further,
                            (dear * opposite + 1) * further,
                        )
                    )
                    for k, mass in zip(n, chance, strict=True)
                    if mass > 1e-9
                ]
            )
            wrong[further] = float(chance[chance > 1e-9][p < 0.025].sum())
        worst, alone = max(worst, wrong[1]), max(alone, wrong[0])
    assert worst < 0.052
    assert alone > 0.06


def test_sums_over_trials_that_some_schedules_ended() -> None:
    """Against the trials themselves: what all of some schedules ended, with the others' sums."""
    rng = np.random.default_rng(8)
    given = batch(rng)
    whole = sums(given)
    for chosen in (NAMES, NAMES[:2], NAMES[2:]):
        shared = set.intersection(
            *(
                {int(t) for t, cut in zip(one["trial"], one["truncated"], strict=True) if not cut}
                for one in (given[name] for name in chosen)
            )
        )
        found = Moments(NAMES, NAMES, common=chosen)
        found.add(Aligned.of(given, NAMES))
        for name in chosen:
            here = np.isin(given[name]["trial"], list(shared))
            assert found.ended(name) == len(shared)
            assert found.trials(name) == len(given[name]["trial"])
            assert found.mean(name, PULLS) == pytest.approx(given[name]["pulls"][here].mean())
            assert found.excess(name, UPLINKS, 0.0)[-1] == given[name]["uplinks"][here].max()
        if chosen == NAMES:
            pair = found.pair("fedelim", "fedelim0", PULLS)
            assert pair.pairs < whole.pair("fedelim", "fedelim0", PULLS).pairs


def test_differences_are_those_of_pairs() -> None:
    """Compare with fractions, with trials that did not end."""
    rng = np.random.default_rng(8)
    pulls, uplinks = rng.integers(1, 10**12, (3, 50)), rng.integers(0, 40, (3, 50))
    pulls[1, :9], uplinks[1, :9] = pulls[0, :9], uplinks[0, :9]
    ended = rng.random((3, 50)) < 0.8
    sums = moments_of(pulls, uplinks, ended, parts=3)
    for i, one in enumerate(sums.schedules):
        for j, other in enumerate(sums.schedules):
            found = sums.apart(one, other, UPLINK)
            both = ended[i] & ended[j]
            gaps = [a[i][both] - a[j][both] for a in (pulls, uplinks)]
            differ = (gaps[0] != 0) | (gaps[1] != 0)
            assert (found.pairs, found.differ) == (both.sum(), differ.sum())
            assert found.most == (pulls[i][ended[i]].max(), uplinks[i][ended[i]].max())
            assert found.turned.most == (pulls[j][ended[j]].max(), uplinks[j][ended[j]].max())
            assert found.mean(3.0) == pytest.approx((gaps[0] + 3 * gaps[1]).mean())
            if differ.any():
                d = [Fraction(int(p)) + 3 * int(s) for p, s in zip(*gaps, strict=True)]
                assert found.sem(3.0) == pytest.approx(stats.sem([float(one) for one in d]))
                d = [one for one, here in zip(d, differ, strict=True) if here]
                count, mean, scatter, least, most = found.values(3.0)
                assert (count, mean) == (len(d), pytest.approx(float(sum(d) / len(d))))
                exact = sum(one * one for one in d) - sum(d) ** 2 / len(d)
                assert scatter == pytest.approx(float(exact))
                assert (-least, most) == tuple(
                    pulls[k][ended[k]].max() + 3 * uplinks[k][ended[k]].max() for k in (j, i)
                )


def test_a_count_that_is_not_known_has_no_cost() -> None:
    """Sums of a column that the rows lack are unknown, and only those."""
    pulls, uplinks = np.arange(1, 41).reshape(2, 20), np.ones((2, 20))
    found = moments_of(pulls, uplinks)
    first = found.schedules[0]
    assert found.mean(first, Prices.of({"busiest": 1.0})) is None
    assert found.sem(first, Prices.of({"pulls": 1.0, "busiest": 1.0})) is None
    assert found.mean(first, Prices.of({"pulls": 1.0, "uplinks": 2.0})) == 12.5
