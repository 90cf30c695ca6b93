"""Exact sums over trials, and what is concluded from paired ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from fastfed.statistics import moments
from fastfed.statistics.intervals import (
    clopper_pearson,
    difference,
    mean_tails,
    paired_tails,
    share_power,
    share_tails,
)
from fastfed.statistics.moments import PULLS, UPLINKS, Halves, Moments, Prices, Trials, root

NAMES = ("fedelim", "fedelim0", "periodic:10")


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
    made.add(Trials.of(given, NAMES))
    return made


@pytest.mark.parametrize("high", [100, 10**6, 2**40, 2**62])
@pytest.mark.parametrize("partners", [NAMES, ("fedelim0",)])
def test_every_sum_in_python_integers(high: int, partners: tuple[str, ...]) -> None:
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
            assert (pair.count, pair.differ) == (len(both), len(both))
            assert (pair.x, pair.y) == (sum(x), sum(y))
            assert pair.xx == sum(a * a for a in x)
            assert pair.yy == sum(b * b for b in y)
            assert pair.xy == sum(a * b for a, b in zip(x, y, strict=True))
            assert found.pair(other, one, PULLS, Prices.total(0.1)).xy == pair.xy
            same = found.pair(one, other, UPLINKS)
            assert same.differ == sum(costs[one][t][1] != costs[other][t][1] for t in both)


def test_covariances_are_exact_before_they_are_rounded() -> None:
    """Pulls that scatter over 2^62 beside uplinks that hardly move: what is left of the difference
    of two variances would be noise."""
    rng = np.random.default_rng(3)
    pulls, uplinks = rng.integers(2**40, 2**62, 40), rng.integers(20, 22, 40)
    made = Moments(["fedelim"])
    truths = np.ones(40, dtype=bool)
    made.add(
        Trials.of(
            {
                "fedelim": {
                    "trial": np.arange(40),
                    "pulls": pulls,
                    "uplinks": uplinks,
                    "correct": truths,
                    "truncated": ~truths,
                }
            },
            ["fedelim"],
        )
    )
    x, y = ([Fraction(int(value)) for value in values] for values in (pulls, uplinks))
    exact = (sum(a * b for a, b in zip(x, y, strict=True)) - sum(x) * sum(y) / 40) / 39
    assert made.covariance("fedelim", PULLS, UPLINKS) == float(exact)
    assert made.covariance("fedelim", PULLS, PULLS) == pytest.approx(
        made.std("fedelim", PULLS) ** 2, rel=1e-14
    )


def test_sums_survive_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    given = batch(np.random.default_rng(2), 3000)
    whole = sums(given).pair("fedelim", "fedelim0", PULLS)
    monkeypatch.setattr(moments, "_CHUNK", 7)
    monkeypatch.setattr(moments, "_MOST_CHUNKS", 3)
    assert sums(given).pair("fedelim", "fedelim0", PULLS) == whole


def test_the_largest_numbers_fill_every_bit() -> None:
    """A chunk of trials whose limbs are all ones: one bit more in a limb and doubles would
    round."""
    most = 2**62 - 1
    pair = paired(np.full(8_191, most), np.full(8_191, most - 1))
    assert pair.xx == 8_191 * most**2
    assert pair.xy == 8_191 * most * (most - 1)


def test_halves_add_up() -> None:
    given = batch(np.random.default_rng(3))
    halves = Halves.of([given], NAMES, NAMES)
    pairs = [
        part.pair("fedelim", "periodic:10", Prices.total(3.0)) for part in (halves.all, sums(given))
    ]
    assert pairs[0] == pairs[1]
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
    assert (pair.ratio, pair.ratio_sem, paired_tails(pair)) == (None, None, (1.0, 1.0))


def test_dear_uplinks_overflow_to_infinity() -> None:
    found = sums(batch(np.random.default_rng(5), high=2**40))
    assert found.mean("fedelim", Prices.total(1e308)) == math.inf
    assert found.pair("fedelim", "fedelim0", Prices.total(1e308)).ratio == pytest.approx(1, rel=1)


@pytest.mark.parametrize(
    "number", [Fraction(2), Fraction(1, 3), Fraction(10) ** 500, Fraction(0), Fraction(7, 10**300)]
)
def test_root(number: Fraction) -> None:
    assert abs(Fraction(root(number)) ** 2 - number) <= number * Fraction(1e-15)


# Intervals


@pytest.mark.parametrize(
    ("errors", "trials"),
    [
        (0, 1),
        (1, 1),
        (0, 10),
        (10, 10),
        (1, 10),
        (5, 10),
        (3, 1000),
        (0, 10_000),
        (37, 10_000),
        (999_999, 1_000_000),
    ],
)
@pytest.mark.parametrize("level", [0.95, 0.99])
def test_clopper_pearson_is_scipys(errors: int, trials: int, level: float) -> None:
    interval = stats.binomtest(errors, trials).proportion_ci(level, method="exact")
    assert clopper_pearson(errors, trials, level) == pytest.approx(
        (interval.low, interval.high), rel=1e-9, abs=1e-15
    )


def test_clopper_pearson_by_its_definition() -> None:
    """At either end, what was seen has probability 2.5 %."""
    low, high = clopper_pearson(4, 50)
    assert stats.binom.cdf(4, 50, high) == pytest.approx(0.025, rel=1e-9)
    assert stats.binom.sf(3, 50, low) == pytest.approx(0.025, rel=1e-9)


def test_no_error_is_no_zero() -> None:
    low, high = clopper_pearson(0, 10_000)
    assert low == 0
    assert high == pytest.approx(1 - 0.025 ** (1 / 10_000), rel=1e-9)


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


def paired(x: np.ndarray, y: np.ndarray) -> moments.Paired:
    none = np.zeros(len(x), bool)
    made = Moments(NAMES[:2], NAMES[:2])
    made.add(
        Trials.of(
            {
                name: {
                    "trial": np.arange(len(x)),
                    "pulls": values,
                    "uplinks": none.astype(int),
                    "correct": ~none,
                    "truncated": none,
                }
                for name, values in zip(NAMES, (x, y), strict=False)
            },
            NAMES[:2],
        )
    )
    return made.pair("fedelim", "fedelim0", PULLS)


def test_student_where_all_differ() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.integers(0, 2**30, 50), rng.integers(0, 2**30, 50)
    for limit in (1, 2, 0.5):
        expected = [
            stats.ttest_1samp(x - limit * y, 0, alternative=side).pvalue
            for side in ("less", "greater")
        ]
        assert paired_tails(paired(x, y), Fraction(limit)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("differing", [0, 1, 2, 5])
def test_few_differing_trials_are_no_certainty(differing: int) -> None:
    """10,000 trials, all but a few equal: a standard error over all would be zero, or say that
    the difference is many standard errors wide."""
    y = np.full(10_000, 1000)
    x = y + (np.arange(10_000) < differing) * 5
    assert min(paired_tails(paired(x, y))) == (1.0 if differing < 2 else 2.0**-differing)
    value, sem = difference(paired(x, y))
    assert value == pytest.approx(5 * differing / 10_000)
    assert (sem is None) == (differing < 2)


@pytest.mark.parametrize("share", [0.002, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("shape", ["normal", "skew", "two"])
def test_rare_differences_seldom_mislead(share: float, shape: str) -> None:
    """Schedules that differ in few trials and are equally dear on average: the share of samples
    that call one of them dearer at 5 % stays near 5 %. Over 20,000 samples it was 5.7 % at most
    (the skew law, ten differing trials); at that rate 10 % of 800 samples have a probability of
    1.5e-6."""
    rng = np.random.default_rng(7)
    samples, trials = 800, 1000
    misled = 0
    for _ in range(samples):
        count = int(rng.binomial(trials, share))
        d = {
            "normal": lambda n: rng.normal(0, 1, n),
            "two": lambda n: rng.choice([-1.0, 1.0], n),
            "skew": lambda n: rng.gamma(4, 1, n) - 4,
        }[shape](count)
        variance = float(d.var(ddof=1)) if count > 1 else 0.0
        mean = float(d.mean()) if count else 0.0
        misled += min(mean_tails(count, mean, variance)) < 0.025
    assert misled / samples < 0.1
