"""Skipping changes nothing: skip = dense = Algorithm 1 as printed, on the same walks.

Nothing here is statistical: every comparison is of whole numbers that must be equal. Skipping may
differ from stepping with probability `skip_error`, about 1e-11 a trial: seeds are fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from helpers import BOUNDS, EIGHT
from polars.testing import assert_frame_equal

import fastfed as ff
from fastfed.confidence import alpha_global, alpha_local, boundary, global_log, local_log
from fastfed.kernels.compiling import kernel
from fastfed.kernels.rewards.gaussian_walk import value_at
from fastfed.model.schedules import Schedule
from fastfed.simulation import reference
from fastfed.simulation.job import Job
from fastfed.simulation.replay import departures


@dataclass(frozen=True)
class Case:
    """An instance drawn from its own seed, and how it is run."""

    arms: int
    clients: int
    delta: float
    noise: float = 1.0
    scale: float | None = None  # of the confidence radii; None: the noise
    spread: float = 1.0  # of the means, which lie around `shift`
    shift: float = 0.0
    gap: float = 0.2  # every local and the global gap are at least this
    max_steps: int | None = None
    trials: int = 100

    def __str__(self) -> str:
        return (
            f"{self.arms}x{self.clients}-delta{self.delta:g}-noise{self.noise:g}"
            f"-scale{self.scale or self.noise:g}-gap{self.gap:g}-cut{self.max_steps}"
        )

    def instance(self) -> ff.Instance:
        rng = np.random.default_rng([self.arms, self.clients, int(self.gap * 1000)])
        while True:
            means = self.shift + self.spread * rng.uniform(-1, 1, (self.arms, self.clients))
            inst = ff.Instance(means, ff.Gaussian(self.noise))
            if min(inst.local_gaps.min(), inst.global_gaps.min()) >= self.gap:
                return inst


CASES = [
    Case(2, 1, 0.1),
    Case(2, 1, 1e-6, gap=0.3),
    Case(2, 2, 0.5, gap=0.1),
    Case(2, 3, 0.01, shift=-5.0),
    Case(2, 4, 1e-3, noise=0.5),
    Case(2, 5, 0.05, noise=3.0, spread=4.0, gap=0.9),
    Case(2, 6, 1e-6, spread=0.5),
    Case(3, 1, 0.5, gap=0.1),
    Case(3, 2, 0.2, noise=0.1, spread=0.2, gap=0.02),
    Case(3, 3, 1e-4, shift=-1.0),
    Case(3, 4, 0.01, noise=2.0, spread=3.0, gap=0.5),
    Case(3, 6, 0.3, gap=0.1),
    Case(4, 1, 0.1, gap=0.05, noise=0.3),
    Case(4, 2, 1e-5, gap=0.1, noise=0.4),
    Case(4, 3, 0.01, shift=100.0),
    Case(4, 5, 0.5, gap=0.05, noise=0.25),
    Case(5, 1, 1e-6, noise=0.2, gap=0.05),
    Case(5, 2, 0.02, noise=0.05, spread=0.1, gap=0.01),
    Case(5, 4, 0.1, gap=0.1, noise=0.5),
    Case(6, 1, 0.4, gap=0.05, noise=0.3),
    Case(6, 3, 0.01, shift=-3.0, gap=0.1, noise=0.5),
    Case(6, 6, 0.05, gap=0.05, noise=0.25),
    Case(7, 2, 1e-3, gap=0.02, noise=0.1),
    Case(7, 5, 0.5, gap=0.02, noise=0.1),
    Case(8, 1, 1e-6, gap=0.02, noise=0.1),
    Case(8, 4, 0.1, gap=0.02, noise=0.1),
    Case(8, 6, 0.01, gap=0.05, noise=0.2),
    # a confidence scale far below, and above, the noise
    Case(4, 3, 0.3, scale=0.1, gap=0.02, trials=300),
    Case(6, 2, 0.3, scale=0.2, gap=0.02, trials=300),
    Case(3, 2, 0.1, scale=1.7, gap=0.3),
    # cut off in the middle
    Case(4, 3, 0.01, gap=0.1, max_steps=700),
    Case(5, 2, 0.1, gap=0.1, max_steps=1024),
    Case(3, 3, 0.1, gap=0.1, max_steps=17),
    Case(2, 2, 0.1, gap=0.1, max_steps=1),
]


def run(case: Case, engine: str, schedules=EIGHT) -> ff.Result:
    return ff.simulate(
        case.instance(),
        schedules,
        delta=case.delta,
        trials=case.trials,
        seed=11,
        engine=engine,
        sigma=case.scale,
        max_steps=case.max_steps,
        keep_pulls=True,
    )


def assert_same_but_skip_error(skip: ff.Result, dense: ff.Result) -> None:
    assert_frame_equal(skip.frame.drop(BOUNDS), dense.frame.drop(BOUNDS))
    np.testing.assert_array_equal(skip.pulls, dense.pulls)
    assert (dense.frame["skip_error"] == 0).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_skip_equals_dense_bit_for_bit(case):
    skip, dense = run(case, "skip"), run(case, "dense")
    assert_same_but_skip_error(skip, dense)
    assert skip.pulls.shape == (8, case.trials, case.arms, case.clients)
    errors = skip.frame["skip_error"]
    assert errors.is_between(0, 1e-9).all()
    # it did skip, where there was anything to skip
    if case.max_steps is None and case.scale is None:
        assert (errors > 0).any()
        assert skip.block.work[:, 1].sum() < dense.block.work[:, 1].sum()


@pytest.mark.parametrize(
    ("schedules", "scale"),
    [
        (["at:5000", "at:100,4097", "at:4097"], None),
        (["periodic:5000", "at:100,4097,9000", "periodic:4097"], None),
        (["at:168", "adaptive:16", "at:129"], 0.2),
        (["at:168", "at:129,168", "at:100,168", "adaptive", "at:129", "fedelim0"], 0.2),
    ],
)
def test_a_shared_comparison_outlives_the_looks_between(schedules, scale):
    """A schedule that is settled at once leaves the place of its list to the next one.

    The third schedule has the arms of the first in play, and one with two arms, or one that
    certifies nothing, looks between them.
    """
    instance = ff.Instance([[1.0, 1.0], [0.6, 0.6], [0.0, -0.5]])
    options = {"delta": 0.1, "trials": 100, "sigma": scale, "max_steps": 2**14, "keep_pulls": True}
    found = [
        ff.simulate(instance, schedules, engine=engine, **options) for engine in ("skip", "dense")
    ]
    assert_same_but_skip_error(*found)


def test_skip_equals_dense_at_a_gap_of_a_fiftieth_of_the_noise():
    """Some 2e5 steps a trial, the longest that are stepped here (at 0.6 of the honest scale)."""
    inst = ff.Instance([[0.02], [0.0]])
    schedules = ["fedelim", "fedelim0", "periodic:1000", "exponential:1.5"]
    skip, dense = (
        ff.simulate(
            inst,
            schedules,
            delta=0.5,
            trials=100,
            seed=2,
            engine=engine,
            sigma=0.6,
            keep_pulls=True,
        )
        for engine in ("skip", "dense")
    )
    assert_same_but_skip_error(skip, dense)
    assert skip.frame["steps"].mean() > 1e5
    assert skip.block.work[:, 1].sum() * 100 < dense.block.work[:, 1].sum()


def test_the_cases_are_as_wide_as_they_claim():
    """At least 25 honest instances over the whole range of shapes, deltas, noises and gaps."""
    honest = [case for case in CASES if case.max_steps is None and case.trials >= 100]
    assert len(honest) >= 25
    assert {case.arms for case in honest} == set(range(2, 9))
    assert {case.clients for case in honest} == set(range(1, 7))
    assert {min(case.delta for case in honest), max(case.delta for case in honest)} == {1e-6, 0.5}
    assert any(case.instance().means.min() < 0 for case in honest)
    assert any(case.noise != 1 for case in honest)
    assert min(case.instance().local_gaps.min() for case in honest) < 0.02
    kinds = {type(Schedule.parse(name)).__name__ for name in EIGHT}
    assert kinds == {"FedElim", "FedElim0", "Periodic", "Exponential", "SuperExponential", "At"}


def test_skip_error_is_the_sum_over_the_certificates():
    """About 1e-15 a verdict, some hundreds to thousands of verdicts a trial; longer trials more."""
    job = {"delta": 0.01, "trials": 50, "seed": 1, "engine": "skip"}
    near = ff.simulate(ff.Instance.load("synthetic"), **job).frame["skip_error"]
    far = ff.simulate(ff.Instance.load("scaled:synthetic,0.01"), **job).frame["skip_error"]
    assert (near > 1e-15).all()
    assert (far < 1e-9).all()
    assert far.mean() > near.mean()


# --- Algorithm 1 as printed, on the same walk

WALKS = [
    Case(2, 1, 0.1, gap=0.5, trials=2),
    Case(3, 2, 0.01, spread=2.0, gap=0.5, trials=2),
    Case(4, 3, 0.5, noise=0.5, gap=0.3, trials=2),
    Case(5, 2, 1e-6, noise=0.3, gap=0.2, trials=2),
    Case(8, 1, 0.1, noise=0.2, spread=1.5, gap=0.15, trials=2),
    Case(2, 6, 0.05, noise=2.0, spread=6.0, gap=2.0, shift=-4.0, trials=2),
    # rash: short, and arms that are out may come to lead again
    Case(4, 3, 0.3, scale=0.15, gap=0.02, trials=5),
    Case(6, 2, 0.3, scale=0.12, gap=0.02, trials=40),
    Case(5, 1, 0.5, scale=0.12, gap=0.02, trials=80),
    Case(4, 2, 0.1, gap=0.2, max_steps=100, trials=2),
]


@pytest.mark.parametrize("engine", ["dense", "skip"])
@pytest.mark.parametrize("case", WALKS, ids=str)
def test_engines_follow_algorithm_1_elimination_by_elimination(case, engine):
    inst = case.instance()
    for name in ["fedelim", "periodic:1", "periodic:10", "exponential:1.3", "at:3,20,50,90"]:
        job = Job.of(
            inst,
            [name],
            delta=case.delta,
            seed=21,
            engine=engine,
            sigma=case.scale,
            max_steps=case.max_steps,
            keep_pulls=True,
        )
        for trial in range(case.trials):
            assert_as_printed(job, trial)


def test_an_arm_that_is_out_eliminates_no_other():
    """An eliminated arm can lead again some steps later, at a scale far below the noise.

    Even then the lead matters in one trial of some hundreds. Hence the number of trials.
    """
    case = Case(8, 1, 0.5, scale=0.16, gap=0.02)
    job = Job.of(
        case.instance(),
        ["fedelim0"],
        delta=case.delta,
        seed=21,
        engine="skip",
        sigma=case.scale,
        keep_pulls=True,
    )
    for trial in range(800):
        assert_as_printed(job, trial)


@pytest.mark.parametrize(
    ("arms", "scale", "trials"), [(3, 0.12, 1031), (3, 0.16, 1031), (4, 0.2, 81), (6, 0.16, 1023)]
)
def test_pairwise_passes_with_an_eliminated_arm(arms, scale, trials):
    """Run known trials with few unresolved pairs.

    In the last trial of each case, an arm leads another by g only after it was eliminated itself.
    """
    run = {
        "delta": 0.5,
        "trials": trials,
        "seed": 9,
        "sigma": scale,
        "max_steps": 600,
        "keep_pulls": True,
    }
    nearly_equal = ff.Instance(1e-9 * np.arange(arms)[:, None])
    skip = ff.simulate(nearly_equal, "fedelim0", engine="skip", **run)
    dense = ff.simulate(nearly_equal, "fedelim0", engine="dense", **run)
    assert_frame_equal(skip.frame.drop(BOUNDS), dense.frame.drop(BOUNDS))
    np.testing.assert_array_equal(skip.pulls, dense.pulls)


@pytest.mark.parametrize("sigma", [1e-100, 1e-60, 1e60, 1e100])
def test_any_unit_of_rewards(sigma):
    """Squares of sums may be far from 1, in either direction."""
    means = sigma * np.array([[0.0, 0.3], [0.5, 1.0], [0.9, 0.1]])
    run = {"delta": 0.1, "trials": 20, "keep_pulls": True}
    skip, dense = (
        ff.simulate(
            ff.Instance(means, ff.Gaussian(sigma)), ["fedelim", "fedelim0"], engine=engine, **run
        )
        for engine in ("skip", "dense")
    )
    assert_frame_equal(skip.frame.drop(BOUNDS), dense.frame.drop(BOUNDS))
    np.testing.assert_array_equal(skip.pulls, dense.pulls)
    assert (skip.frame["skip_error"] > 0).all()
    assert skip.frame["correct"].all()


def assert_as_printed(job: Job, trial: int) -> None:
    inst = job.instance
    printed = reference.fedelim(
        inst,
        job.schedules[0],
        job.setting.delta,
        reference.walk_rewards(inst, job.setting.seed, trial),
        sigma=job.setting.sigma,
        max_steps=job.max_steps,
    )
    left = departures(job, trial)
    arms, clients = inst.shape
    at_clients = [
        (int(left.local[k, m]), m, k)
        for m in range(clients)
        for k in range(arms)
        if left.local[k, m] <= left.horizon and k != left.local_arms[m]
    ]
    at_server = [
        (int(left.server[0, k]), None, k)
        for k in range(arms)
        if left.server[0, k] <= left.horizon and k != left.server_arms[0]
    ]
    # Algorithm 1 goes step by step, client by client, the server last
    order = sorted(
        at_clients + at_server, key=lambda e: (e[0], clients if e[1] is None else e[1], e[2])
    )
    assert order == printed.eliminations
    declared = {
        m: int(left.local_arms[m]) for m in range(clients) if left.local[:, m].max() <= left.horizon
    }
    assert declared == printed.local_arms
    assert left.server_arms[0] == printed.global_arm
    assert left.truncated == printed.truncated

    row = job.frame(left.block).row(0, named=True)
    np.testing.assert_array_equal(left.block.pulls[0, 0], printed.pulls)
    assert row["pulls"] == printed.pulls.sum()
    names = ("uplinks", "rounds", "steps", "busiest", "downlinks", "global_arm", "truncated")
    assert [row[name] for name in names] == [getattr(printed, name) for name in names]
    wrong = [m for m, arm in printed.local_arms.items() if arm != inst.local_best[m]]
    assert row["local_errors"] == len(wrong)
    assert row["correct"] == (
        not wrong and len(printed.local_arms) == clients and printed.global_arm == inst.global_best
    )
    local = [n for n, client, _ in printed.eliminations if client is not None]
    server = [n for n, client, _ in printed.eliminations if client is None]
    if not printed.truncated:
        assert row["local_steps"] == max(local)
        assert row["global_steps"] == max(server)


# Algorithm 1 is too slow for long trials, so for those the rule is applied to whole walks at once.

LONG = [  # means, noise, confidence scale, delta
    ([[0.15], [0.0]], 1.0, 1.0, 0.5),
    ([[0.3, -0.2], [0.0, 0.3], [0.1, 0.0]], 1.0, 1.0, 0.3),
    ([[-2.0], [-1.97], [-2.05], [-1.94], [-2.1]], 0.2, 0.2, 0.1),
    ([[0.2, 0.1], [0.1, 0.3], [0.15, 0.05], [0.0, 0.25]], 1.0, 0.3, 0.1),
]


@kernel
def _walks(out, seed, trial, means, sigma):
    for k in range(out.shape[0]):
        for m in range(out.shape[1]):
            for n in range(out.shape[2]):
                out[k, m, n] = value_at((seed, trial, m, k, n + 1), means[k, m], sigma)


def out_at(sums: np.ndarray, boundary: np.ndarray, times: np.ndarray) -> tuple[list[int], int]:
    """Return the time at which each arm leaves, and the arms that remain.

    The rule is applied to sums, at every one of ``times``.
    """
    out = [0] * len(sums)
    alive = list(range(len(sums)))
    seen, bar = sums[:, times - 1], boundary[times - 1]
    at = -1
    while len(alive) > 1:
        here = seen[alive, at + 1 :]
        hit = here.max(axis=0) - here >= bar[at + 1 :]
        at += 1 + int(np.argmax(hit.any(axis=0)))
        gone = [k for k in alive if seen[alive, at].max() - seen[k, at] >= bar[at]]
        assert gone, "not decided within the walk"
        alive = [k for k in alive if k not in gone]
        for k in gone + (alive if len(alive) == 1 else []):
            out[k] = int(times[at])
    return out, alive[0]


@pytest.mark.parametrize(("means", "noise", "scale", "delta"), LONG)
def test_engines_find_every_elimination_of_a_long_walk(means, noise, scale, delta):
    inst = ff.Instance(means, ff.Gaussian(noise))
    arms, clients = inst.shape
    steps = np.arange(1, 2**15 + 1)
    walks = np.empty((arms, clients, len(steps)))
    local_bar, server_bar = (
        np.array([boundary(n, count, log_c, scale) for n in steps.tolist()])
        for count, log_c in (
            (1, local_log(arms, clients, delta)),
            (clients, global_log(arms, delta)),
        )
    )
    last = 0
    for trial in range(4):
        _walks(walks, np.uint64(31), trial, inst.means, noise)
        local = [out_at(walks[:, m], local_bar, steps) for m in range(clients)]
        for name in ["fedelim", "fedelim0", "periodic:10"]:
            server, winner = out_at(
                walks.sum(axis=1), server_bar, Schedule.parse(name).times(len(steps))
            )
            for engine in ("dense", "skip"):
                job = Job.of(inst, [name], delta=delta, seed=31, engine=engine, sigma=scale)
                left = departures(job, trial)
                assert left.local.T.tolist() == [out for out, _ in local]
                assert left.local_arms.tolist() == [arm for _, arm in local]
                assert (left.server[0].tolist(), left.server_arms[0]) == (server, winner)
            last = max(last, left.local.max(), left.server.max())
    assert last > 4000


@pytest.mark.parametrize("name", ["fedelim", "fedelim0", "periodic:10", "at:7,8,100,1000"])
def test_algorithm_1_without_noise_by_hand(name):
    """Check the reference itself, on rewards that equal the means.

    Arm k is eliminated at the first step, or communication time, at which its gap to the best arm
    is 2 alpha.
    """
    inst = ff.Instance([[4.0, 0.0], [0.0, 3.5], [3.0, 2.8]])
    schedule, delta = Schedule.parse(name), 0.1
    out = reference.fedelim(inst, schedule, delta, lambda k, m, n: inst.means[k, m])
    steps = range(1, 1001)
    times = schedule.times(1000).tolist()
    local = np.array(
        [
            [next(n for n in steps if gap >= 2 * alpha_local(n, 3, 2, delta)) for gap in row]
            for row in inst.local_gaps
        ]
    )
    server = np.array(
        [
            next(n for n in times if gap >= 2 * alpha_global(n, 3, 2, delta))
            for gap in inst.global_gaps
        ]
    )
    # a best arm's gap is that of the last rival, and it leaves with that rival
    np.testing.assert_array_equal(out.pulls, np.maximum(local, server[:, None]))
    assert out.uplinks == 2 * sum((server >= n).sum() for n in times)
    assert out.rounds == sum(n <= server.max() for n in times)
    assert out.local_arms == {0: 0, 1: 1}
    assert out.global_arm == 2
    assert out.steps == out.pulls.max()
    assert not out.truncated
