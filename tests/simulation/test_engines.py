"""Skipping changes nothing: skip = dense = Algorithm 1 as printed, whatever is combined.

Nothing here is statistical: every comparison is of whole numbers that must be equal. Skipping may
differ from stepping with probability `skip_error`, about 1e-11 a trial: seeds are fixed.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from as_printed import assert_as_printed, assert_engines_agree
from helpers import BOUNDS, EIGHT

import fastfed as ff
from fastfed.confidence import alpha_global, alpha_local
from fastfed.model.schedules import Schedule
from fastfed.simulation import reference
from fastfed.simulation.job import Job
from fastfed.simulation.rows import COUNTED


class Kernel(NamedTuple):
    """A combination of parts that is compiled by itself; goals, radii and weights are data."""

    rewards: str
    uplink: str = "exact"
    times: str = "fixed"
    participation: str = "full"

    def __str__(self) -> str:
        return "-".join(self)


DEFAULT = [Kernel("gaussian"), Kernel("finite"), Kernel("gaussian", times="chosen")]
OTHERS = [
    *(Kernel(rewards, "lattice") for rewards in ("gaussian", "cells", "finite", "poisson")),
    *(Kernel(rewards) for rewards in ("cells", "poisson")),
    *(Kernel(rewards, times="chosen") for rewards in ("cells", "finite", "poisson")),
    *(Kernel(rewards, "lattice", "chosen") for rewards in ("gaussian", "finite")),
    Kernel("finite", "laplace", participation="wait"),
    *(Kernel(rewards, participation="wait") for rewards in ("gaussian", "finite")),
    Kernel("gaussian", participation="random"),
]
KERNELS = [*DEFAULT, *(pytest.param(one, marks=pytest.mark.fuzz) for one in OTHERS)]
SETTINGS, TRIALS = 120, 6


def _mask(rng: np.random.Generator, arms: int, clients: int) -> np.ndarray:
    """Draw a mask with no arm without clients and no client without arms."""
    while True:
        mask = rng.random((arms, clients)) < rng.uniform(0.3, 0.9)
        if mask.any(axis=0).all() and mask.any(axis=1).all():
            return mask


def _rewards(family: str, unit: float, means: np.ndarray, rng: np.random.Generator) -> ff.Rewards:
    if family == "gaussian":
        return ff.Gaussian(unit)
    if family == "cells":
        return ff.Gaussian(unit * 10 ** rng.uniform(-1, 0.3, means.shape))
    if family == "poisson":
        return ff.Poisson(sigma=1.2)
    if rng.random() < 0.5:
        return ff.Bernoulli()
    values = [-1.0, 0.25, 1.0, 3.5, 1000.0, 1000.7, *(2**0.5 * rng.normal(size=6))]
    some = rng.choice(values, rng.integers(2, 13), replace=False)
    weights = rng.random((*means.shape, len(some))) ** 2 + 0.02
    if rng.random() < 0.5:  # values that are rare or never seen, and a cell with one value
        weights *= rng.random(weights.shape) < 0.7
        weights[..., [0, -1]] += 1e-6 * rng.random((*means.shape, 2))
        weights[0, 0] = np.eye(len(some))[0]
    return ff.Finite(some, weights)


def _instance(kernel: Kernel, rng: np.random.Generator) -> ff.Instance:
    """Draw an instance, with weights, several questions or a mask in half of the cases."""
    arms, clients = int(rng.integers(2, 9)), int(rng.integers(1, 7))
    shape, kind = (arms, clients), int(rng.integers(6))
    unit, shift = 10 ** rng.uniform(-2, 2), 0.0
    if kernel.rewards in ("gaussian", "cells"):
        shift = float(rng.choice([0.0, -5.0, 100.0]))
        means = unit * (shift + rng.uniform(-1, 1, shape))
    else:
        means = rng.uniform(0, 1, shape) * (3.0 if kernel.rewards == "poisson" else 1.0)
    rewards = _rewards(kernel.rewards, unit, means, rng)
    masked = kind == 0 and clients > 1 and kernel.participation == "full"
    if masked and (kernel.rewards == "cells" or isinstance(rewards, ff.Bernoulli)):
        # Gaussian arms that some clients lack have the kernel of cells
        some = ff.Instance(np.where(_mask(rng, *shape), means, np.nan), rewards)
        own = kernel.times == "fixed" and rng.random() < 0.5
        return some.own() if own else some
    questions = 1 if kernel.times == "chosen" or kind < 4 else 2
    weights = None if kind < 3 else rng.integers(0, 4, (questions, clients)) + np.eye(1, clients)
    given: Any = {"rewards": rewards, "weights": weights}
    if not isinstance(rewards, ff.Finite):
        given["means"] = means
    return ff.Instance(local=weights is None or rng.random() < 0.7, **given)


def _goal(instance: ff.Instance, scale: float, rng: np.random.Generator) -> str:
    low, high = float(np.nanmin(instance.means)), float(np.nanmax(instance.means))
    slack = "" if rng.random() < 0.5 else f",{rng.uniform(0.01, 0.3) * scale:.3g}"
    return str(
        rng.choice(
            [
                "best",
                f"top:{int(rng.integers(1, instance.shape[0]))}",
                f"eps:{rng.uniform(0.01, 1) * (high - low):.3g}",
                f"threshold:{rng.uniform(low, high):.6g}{slack}",
            ],
            p=[0.4, 0.2, 0.2, 0.2],
        )
    )


def _setting(kernel: Kernel, seed: int) -> tuple[ff.Instance, list[str], dict[str, Any]]:
    """Draw an instance, schedules and options that lead to this kernel."""
    rng = np.random.default_rng([*map(ord, str(kernel)), seed])
    instance = _instance(kernel, rng)
    scale = float(instance.default_sigma)
    options: dict[str, Any] = {
        "delta": float(10 ** rng.uniform(-6, -0.3)),
        "sigma": scale * float(rng.choice([1.0, 0.4, 0.2, 0.12])),
        "goal": _goal(instance, scale, rng),
        "max_steps": int(rng.choice([2**13, 2**13, 1024, 700, 17, 1])),
        "seed": seed,
    }
    radii = ["paper", "stitched", "mixture", "mixture:50"]
    if not options["goal"].startswith("threshold"):  # which has no pairs of arms
        radii += ["stitched-pairs", "mixture-pairs"]
    if kernel.participation == "random":
        radii.remove("paper")
        options["delta"] = min(options["delta"], 0.1)
    options["radius"] = str(rng.choice(radii))
    if kernel.participation != "full":
        options["participation"] = f"{kernel.participation}:{rng.choice([0.3, 0.7, 1.0])}"
    if kernel.uplink == "laplace":
        options["uplink"] = f"laplace:{10 ** rng.uniform(-1, 1):.3g}"
    elif kernel.uplink == "lattice":
        names = [f"dither:{rng.uniform(0.2, 3):.3g}"]
        if len(set(instance.questions.candidates.sum(axis=1).tolist())) == 1:
            names.append(f"round:{rng.uniform(0.05, 0.5):.3g}")
        options["uplink"] = str(rng.choice(names))
    fixed = [*EIGHT, "at:3,20,50,90", "exponential:1.3"]
    schedules = [str(one) for one in rng.choice(fixed, 4, replace=False)]
    if kernel.times == "chosen":
        schedules[1:1] = ["adaptive", "adaptive:2,1.3,1,0", "adaptive:8"]
    return instance, schedules, options


def assert_lazy_passes_and_bits_that_are_not_counted(
    instance: ff.Instance, schedules: list[str], dense: ff.Result, options: dict[str, Any]
) -> None:
    """Follow all clients to the end; skip all that a server may skip that counts no bits."""
    job = Job.of(instance, schedules, engine="skip", **options)
    whole = job.run(0, TRIALS, keep_departures=True)
    if "dither" in str(options) or "round" in str(options):
        none = job._problem.uplink._replace(most=np.int64(0))
        job._problem = job._problem._replace(uplink=none)
    uncounted = job.run(0, TRIALS)
    for name in COUNTED:
        np.testing.assert_array_equal(whole.column(name), dense.block.column(name), name)
        if name != "bits":
            np.testing.assert_array_equal(uncounted.column(name), dense.block.column(name), name)


def assert_replay_adds_up(told: ff.Replay) -> None:
    """Compare the last line with the row, and eliminations of `best` with their thresholds."""
    last = told.events[-1]
    assert (last.step, last.pulls, last.uplinks) == tuple(
        told.row[name] for name in ("steps", "pulls", "uplinks")
    )
    for event in told.events:
        if told.row["goal"] == "best" and event.event == "eliminated":
            assert event.leader - event.mean >= event.threshold * (1 - 1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_rows_are_those_of_every_step_and_of_algorithm_1(kernel: Kernel) -> None:
    """Draw settings at random; errors, cuts and skipped steps must be among them."""
    seen: Counter[str] = Counter()
    for seed in range(SETTINGS):
        instance, schedules, options = _setting(kernel, seed)
        skip, dense = assert_engines_agree(instance, schedules, trials=TRIALS, **options)
        assert (skip.pulls[..., ~instance.available] == 0).all()
        seen["skipped"] += int((skip.frame["skip_error"] > 0).sum())
        seen["drawn"] += int(skip.block.work[:, 1].sum())
        seen["stepped"] += int(dense.block.work[:, 1].sum())
        seen["ended"] += int((~skip.frame["truncated"]).sum())
        seen["wrong"] += int((~skip.frame["correct"] & ~skip.frame["truncated"]).sum())
        assert_lazy_passes_and_bits_that_are_not_counted(instance, schedules, dense, options)
        if seed < 60:
            one, most = schedules[seed % 4], min(options["max_steps"], 300)
            job = Job.of(instance, one, keep_pulls=True, **{**options, "max_steps": most})
            seen["printed"] += len(assert_as_printed(job, seed).eliminations)
            told = ff.replay(instance, one, trial=seed % TRIALS, **options)
            assert_replay_adds_up(told)
            row = skip.frame.filter(schedule=one, trial=seed % TRIALS).row(0, named=True)
            assert {**told.row, **{name: row[name] for name in BOUNDS}} == row
    assert min(seen[name] for name in ("skipped", "ended", "wrong", "printed")) > 60, seen
    most = 0.9 if kernel.participation == "full" else 0.95  # else the server visits every round
    assert seen["drawn"] < most * seen["stepped"], seen


@pytest.mark.parametrize(
    ("arms", "scale", "trials"), [(3, 0.12, 1031), (3, 0.16, 1031), (4, 0.2, 81), (6, 0.16, 1023)]
)
def test_an_arm_that_is_out_eliminates_no_other(arms: int, scale: float, trials: int) -> None:
    """Run known trials: it matters in one of some hundreds that a lead may come too late.

    In the last trial of each case, an arm leads another by g only after it was eliminated itself.
    """
    nearly_equal = ff.Instance(1e-9 * np.arange(arms)[:, None])
    options: Any = {"delta": 0.5, "seed": 9, "sigma": scale, "max_steps": 600}
    assert_engines_agree(nearly_equal, "fedelim0", trials=trials, **options)
    assert_as_printed(Job.of(nearly_equal, "fedelim0", keep_pulls=True, **options), trials - 1)


@pytest.mark.parametrize(
    ("schedules", "scale"),
    [
        (["at:5000", "at:100,4097", "at:4097"], None),
        (["periodic:5000", "at:100,4097,9000", "periodic:4097"], None),
        (["at:168", "adaptive:16", "at:129"], 0.2),
        (["at:168", "at:129,168", "at:100,168", "adaptive", "at:129", "fedelim0"], 0.2),
    ],
)
def test_a_shared_comparison_outlives_the_looks_between(
    schedules: list[str], scale: float | None
) -> None:
    """A schedule that is settled at once leaves the place of its list to the next one.

    The third schedule has the arms of the first in play, and one with two arms, or one that
    certifies nothing, looks between them.
    """
    instance = ff.Instance([[1.0, 1.0], [0.6, 0.6], [0.0, -0.5]])
    assert_engines_agree(instance, schedules, delta=0.1, trials=100, sigma=scale, max_steps=2**14)


def test_skip_equals_dense_at_a_gap_of_a_fiftieth_of_the_noise() -> None:
    """Some 2e5 steps a trial, the longest that are stepped here (at 0.6 of the honest scale)."""
    schedules = ["fedelim", "fedelim0", "periodic:1000", "exponential:1.5"]
    skip, dense = assert_engines_agree(
        ff.Instance([[0.02], [0.0]]), schedules, delta=0.5, trials=30, seed=2, sigma=0.6
    )
    assert skip.frame["steps"].mean() > 1e5
    assert skip.block.work[:, 1].sum() * 100 < dense.block.work[:, 1].sum()


@pytest.mark.parametrize("sigma", [1e-100, 1e100])
def test_any_unit_of_rewards(sigma: float) -> None:
    """Squares of sums may be far from 1, in either direction."""
    means = sigma * np.array([[0.0, 0.3], [0.5, 1.0], [0.9, 0.1]])
    skip, _ = assert_engines_agree(
        ff.Instance(means, ff.Gaussian(sigma)), ["fedelim", "fedelim0"], delta=0.1, trials=20
    )
    assert (skip.frame["skip_error"] > 0).all()
    assert skip.frame["correct"].all()


@pytest.mark.parametrize("name", ["fedelim", "fedelim0", "periodic:10", "at:7,8,100,1000"])
def test_algorithm_1_without_noise_by_hand(name: str) -> None:
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
