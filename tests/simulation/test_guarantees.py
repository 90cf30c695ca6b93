"""Distributions of the engine against Algorithm 1, and the paper's guarantee on errors.

Every test has fixed seeds and states its false-alarm probability. ALARM = 1e-6 for each test is
split evenly (Bonferroni) over its comparisons. The reference draws from a NumPy generator, the
engine from its own walks, so the two samples are independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fastfed as ff
from fastfed.model.schedules import Schedule
from fastfed.simulation import reference

pytestmark = pytest.mark.statistical

ALARM = 1e-6
TRIALS = 4000

EASY = ff.Instance([[1.7, -1.2], [0.3, 2.4], [-2.0, 0.5]], name="easy")
CLOSE = ff.Instance([[0.9, 0.2], [0.3, 1.0], [0.5, 0.4]], ff.Gaussian(1.5), name="close")


@dataclass(frozen=True)
class Setting:
    instance: ff.Instance
    schedule: str
    delta: float
    sigma: float | None = None  # confidence scale; None: honest

    def __str__(self) -> str:
        return f"{self.instance.name}-{self.schedule}-sigma{self.sigma}"


HONEST = Setting(EASY, "fedelim", 0.1)
RASH = [
    Setting(EASY, "fedelim", 0.1, sigma=0.15),
    Setting(CLOSE, "periodic:10", 0.3, sigma=0.15),
    Setting(CLOSE, "fedelim0", 0.3, sigma=0.2),
]


def stream(instance: ff.Instance, seed: int) -> reference.Rewards:
    """i.i.d. rewards of a NumPy generator; drawn in blocks, because one at a time is slow."""
    rng = np.random.default_rng(seed)
    means, sigma = instance.means.tolist(), instance.rewards.sigma

    def normals():
        while True:
            yield from rng.standard_normal(4096).tolist()

    draws = normals()
    return lambda k, m, n: means[k][m] + sigma * next(draws)


def sample_reference(setting: Setting) -> dict[str, np.ndarray]:
    instance, schedule = setting.instance, Schedule.parse(setting.schedule)
    reward = stream(instance, seed=77)
    outcomes = [
        reference.fedelim(instance, schedule, setting.delta, reward, sigma=setting.sigma)
        for _ in range(TRIALS)
    ]
    wrong = np.array(
        [
            [out.local_arms[m] != best for m, best in enumerate(instance.local_best)]
            for out in outcomes
        ]
    )
    pulls = np.array([out.pulls for out in outcomes])
    return {
        "pulls": pulls.sum(axis=(1, 2)),
        "uplinks": np.array([out.uplinks for out in outcomes]),
        "rounds": np.array([out.rounds for out in outcomes]),
        "steps": np.array([out.steps for out in outcomes]),
        "local_steps": np.array(
            [max(n for n, who, _ in out.eliminations if who is not None) for out in outcomes]
        ),
        "global_steps": np.array(
            [max(n for n, who, _ in out.eliminations if who is None) for out in outcomes]
        ),
        "global_arm": np.array([out.global_arm for out in outcomes]),
        "local_errors": wrong.sum(axis=1),
        **{
            f"pulls of arm {k} at client {m}": pulls[:, k, m]
            for k, m in np.ndindex(*instance.shape)
        },
    }


def sample_engine(setting: Setting, trials: int) -> dict[str, np.ndarray]:
    result = ff.simulate(
        setting.instance,
        setting.schedule,
        delta=setting.delta,
        trials=trials,
        seed=4,
        engine="skip",
        sigma=setting.sigma,
        keep_pulls=True,
    )
    assert (result.frame["skip_error"] < 1e-9).all()
    return {
        **{
            name: result.frame[name].to_numpy()
            for name in (
                "pulls",
                "uplinks",
                "rounds",
                "steps",
                "local_steps",
                "global_steps",
                "global_arm",
                "local_errors",
                "correct",
            )
        },
        **{
            f"pulls of arm {k} at client {m}": result.pulls[0, :, k, m]
            for k, m in np.ndindex(*setting.instance.shape)
        },
    }


@pytest.fixture(scope="module")
def printed():
    """Make samples of the reference, each of them once."""
    made: dict[Setting, dict[str, np.ndarray]] = {}

    def sample(setting: Setting) -> dict[str, np.ndarray]:
        if setting not in made:
            made[setting] = sample_reference(setting)
        return made[setting]

    return sample


def compared(sample: dict[str, np.ndarray]) -> list[str]:
    return [name for name in sample if "arm" not in name or "pulls" in name]


@pytest.mark.parametrize("setting", [HONEST, *RASH], ids=str)
def test_engine_and_reference_agree_in_distribution(setting, printed):
    """Compare 4,000 trials of the engine with 4,000 of the reference.

    The tests are Kolmogorov-Smirnov (conservative on whole numbers) and a z-test of the means. They
    compare pulls, uplinks, rounds, steps, errors, and the pulls of every arm at every client.
    """
    ours, theirs = sample_engine(setting, TRIALS), printed(setting)
    names = compared(theirs)
    assert len(names) == 7 + setting.instance.means.size
    share = ALARM / (2 * len(names))
    for name in names:
        x, y = ours[name], theirs[name]
        assert len(x) == len(y) == TRIALS
        spread = np.sqrt((x.var() + y.var()) / TRIALS)
        z = abs(x.mean() - y.mean()) / spread if spread > 0 else 0.0
        assert z < stats.norm.isf(share / 2), f"means of {name}: {x.mean()} and {y.mean()}"
        p = stats.ks_2samp(x, y, method="asymp").pvalue
        assert p > share, f"{name}: Kolmogorov-Smirnov p = {p:.2g}"


def test_the_comparison_would_notice(printed):
    """It has power: a confidence scale 4 % off, or half the delta, does not pass."""
    theirs = printed(HONEST)
    for other in (Setting(EASY, "fedelim", 0.1, sigma=1.04), Setting(EASY, "fedelim", 0.05)):
        ours = sample_engine(other, TRIALS)
        p = min(
            stats.ks_2samp(ours[name], theirs[name], method="asymp").pvalue
            for name in compared(theirs)
        )
        assert p < ALARM


@pytest.mark.parametrize("setting", RASH, ids=str)
def test_errors_are_counted_as_the_reference_counts_them(setting, printed):
    """Use a confidence scale far below the noise, so that wrong declarations are frequent.

    Fisher's exact test compares the local, global and joint error rates. A chi-square test compares
    the joint table of wrong clients and the arm that the server declared.
    """
    theirs, ours = printed(setting), sample_engine(setting, 40_000)
    best = setting.instance.global_best
    theirs = {**theirs, "correct": (theirs["local_errors"] == 0) & (theirs["global_arm"] == best)}
    events = {
        "local": lambda s: s["local_errors"] > 0,
        "global": lambda s: s["global_arm"] != best,
        "joint": lambda s: ~s["correct"],
    }
    share = ALARM / 5
    for name, wrong in events.items():
        counts = [[int(wrong(s).sum()), int((~wrong(s)).sum())] for s in (ours, theirs)]
        rate = counts[0][0] / 40_000
        assert 0.03 < rate < 0.97, f"{name} error rate {rate}: too rare to compare"
        p = stats.fisher_exact(counts).pvalue
        assert p > share, f"{name} error rates {rate} and {counts[1][0] / TRIALS}: p = {p:.2g}"

    def table(codes) -> list[list[int]]:
        cells = sorted(set(codes(theirs).tolist()) | set(codes(ours).tolist()))
        wide = [[int((codes(s) == cell).sum()) for cell in cells] for s in (ours, theirs)]
        kept = [column for column in zip(*wide, strict=True) if sum(column) > 50]
        return [list(row) for row in zip(*kept, strict=True)]

    who = table(lambda s: 2 * s["local_errors"] + (s["global_arm"] != best))
    assert stats.chi2_contingency(who).pvalue > share
    arms = table(lambda s: s["global_arm"])
    assert stats.chi2_contingency(arms).pvalue > share


@pytest.mark.parametrize("setting", RASH, ids=str)
def test_correct_means_every_answer_is_right(setting):
    ours = sample_engine(setting, 2000)
    right = (ours["local_errors"] == 0) & (ours["global_arm"] == setting.instance.global_best)
    np.testing.assert_array_equal(ours["correct"], right)
    assert set(ours["local_errors"].tolist()) == {0, 1, 2}


def upper_limit(errors: int, trials: int) -> float:
    """Clopper-Pearson: the error rate is below this, with confidence 1 - ALARM."""
    return float(stats.beta.ppf(1 - ALARM, errors + 1, trials - errors))


@pytest.mark.parametrize("delta", [0.1, 0.01])
@pytest.mark.parametrize("name", ["synthetic", "random:3,2,4"])
def test_error_rates_are_below_delta_at_the_honest_scale(name, delta):
    """The upper limit of the error rate lies below delta.

    The false-alarm probability is below 1e-6 as long as the true rate is below delta / 4. The radii
    are generous, and the true rate is far below that.
    """
    trials = 5000
    frame = ff.simulate(
        ff.Instance.load(name),
        ["fedelim", "fedelim0", "periodic:100"],
        delta=delta,
        trials=trials,
        seed=6,
    ).frame
    for schedule, rows in frame.group_by("schedule"):
        errors = int((~rows["correct"]).sum())
        assert upper_limit(errors, trials) < delta, f"{schedule}: {errors} errors"
    # a trial that never ends, because only arms that tie are left, counts as an error
    assert not frame.filter("truncated")["correct"].any()


def test_the_error_limit_would_notice():
    """At a tenth of the honest scale the same test fails: errors are frequent, and are counted."""
    frame = ff.simulate(
        ff.Instance.load("synthetic"), delta=0.01, trials=5000, seed=6, sigma=0.1
    ).frame
    assert upper_limit(int((~frame["correct"]).sum()), 5000) > 0.01


def test_independent_rewards_of_the_reference():
    """Mean and variance of 50,000 rewards of one arm (two comparisons share ALARM)."""
    count = 50_000
    reward = reference.independent_rewards(CLOSE, np.random.default_rng(8))
    rewards = np.array([reward(1, 0, n) for n in range(1, count + 1)])
    assert abs(rewards.mean() - 0.3) < stats.norm.isf(ALARM / 4) * 1.5 / np.sqrt(count)
    square = ((rewards - 0.3) ** 2).sum() / 1.5**2
    assert stats.chi2.ppf(ALARM / 4, count) < square < stats.chi2.isf(ALARM / 4, count)


def test_independent_rewards_drive_algorithm_1(printed):
    """The reference's own rewards and the faster ones of this file have the same distribution.

    A z-test compares the mean pulls of 300 trials with those of 4,000, with false-alarm probability
    1e-6.
    """
    reward = reference.independent_rewards(EASY, np.random.default_rng(9))
    few = np.array(
        [
            reference.fedelim(EASY, Schedule.parse("fedelim"), 0.1, reward).pulls.sum()
            for _ in range(300)
        ]
    )
    many = printed(HONEST)["pulls"]
    spread = np.sqrt(few.var() / len(few) + many.var() / len(many))
    assert abs(few.mean() - many.mean()) < stats.norm.isf(ALARM / 2) * spread


def test_trials_of_one_run_are_independent():
    """Pulls of consecutive trials, and of one trial under two seeds: correlations 0."""
    inst = ff.Instance.load("synthetic")
    a, b = (
        ff.simulate(inst, "fedelim0", delta=0.1, trials=8000, seed=seed).frame["pulls"].to_numpy()
        for seed in (1, 2)
    )
    limit = stats.norm.isf(ALARM / 3 / 2) / np.sqrt(8000)
    for x, y in [(a[1:], a[:-1]), (a[2:], a[:-2]), (a, b)]:
        assert abs(np.corrcoef(x, y)[0, 1]) < limit


def test_shared_rewards_make_schedules_move_together():
    """Common random numbers: two schedules on the same trials are strongly correlated."""
    wide = ff.simulate(
        ff.Instance.load("synthetic"), ["periodic:10", "fedelim0"], delta=0.1, trials=2000, seed=1
    ).frame.pivot("schedule", index="trial", values="pulls")
    assert wide.select(pl.corr("periodic:10", "fedelim0")).item() > 0.9
