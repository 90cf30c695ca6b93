"""What verdicts "safe" hang on, and that each of them is booked.

Work counts (`test_work`) pin what the engine does; the tests here say why it is right, and fail for
that reason: spreads of rewards against NumPy, margins of rounding at the boundary itself, verdicts
of duels against the tree that they cut short, and rows that would differ if the tolerance were not
what it is said to be.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import BOUNDS
from scipy import stats

import fastfed as ff
from fastfed import radius
from fastfed.engine.job import Job
from fastfed.kernels import boundary
from fastfed.kernels.compiling import from_python, kernel
from fastfed.kernels.laws import counts, finite, finite_duel
from fastfed.kernels.laws.finite import finite_law
from fastfed.kernels.laws.permuted import DISTANCES, RANGES, SQUARES
from fastfed.kernels.memory import (
    DEPTHS,
    DRAWN,
    LEFT,
    ORIGIN,
    RIGHT,
    SKIP_TOLERANCE,
    A,
    B,
    Who,
    ints,
)

deviations = from_python(counts.deviations)
measure = from_python(finite._measure)
spread_in_duel = from_python(finite_duel._spread)


def rewards_of(counted, rise, length):
    """The rewards of an interval, less the last value, in any order."""
    return np.repeat([*rise, 0.0], [*counted, length - sum(counted)])


@pytest.mark.parametrize("kinds", [1, 2, 5, 9])
def test_the_spread_of_rewards_in_an_interval(kinds):
    """Squared distances from the mean, and distances above it: of what the counts stand for."""
    rng = np.random.default_rng(kinds)
    for _ in range(200):
        length = 2 ** int(rng.integers(1, 12))
        counted = rng.multinomial(length, rng.dirichlet(np.full(kinds + 1, 0.4)))[:-1]
        rise = rng.normal(0.0, 3.0, kinds)
        left = rng.integers(0, 2**40, kinds)
        squares, distances = deviations(left, left + counted, kinds, rise, length)
        rewards = rewards_of(counted, rise, length)
        away = rewards - rewards.mean()
        assert squares == pytest.approx((away**2).sum(), rel=1e-11, abs=1e-11)
        assert distances == pytest.approx(np.maximum(away, 0.0).sum(), rel=1e-11, abs=1e-11)
        memory = finite_duel.duel_memory(kinds)
        memory.kinds[1], memory.rise[1], memory.reach[1] = kinds, rise, 5.0
        memory.counts[0, 1], memory.counts[1, 1] = left, left + counted
        reach = 5.0 if distances > 0 else 0.0
        assert spread_in_duel(memory, 1, (0, 1), length) == (
            squares,
            reach,
            reach * reach / 4,
            distances,
        )


@pytest.mark.parametrize("clients", [1, 3])
def test_the_spread_of_arms_that_a_pass_judges_by(clients):
    """An arm's is the sum over clients, whichever of the three forms is chosen."""
    rng = np.random.default_rng(7)
    values = np.array([0.0, 0.5, 1.0, 4.0])
    seen = set()
    for length in (8, 64, 1024, 2**16):
        law = finite_law(values, rng.integers(1, 9, (3, clients, 4)) + np.eye(4)[0] * 20)
        memory = law.memory(ORIGIN + 1, 3, clients)
        sums = np.zeros((3, 3))
        for k in range(3):
            for m in range(clients):
                counted = rng.multinomial(length, np.diff([0.0, 0.1, 0.2, 0.35, 1.0]))[:-1]
                memory.counts[1, m, k] = counted
                rewards = rewards_of(counted, law.rise[k, m], length)
                away = rewards - rewards.mean()
                sums[k, SQUARES] += (away**2).sum()
                sums[k, RANGES] += law.reach[k, m] ** 2 / 4
                sums[k, DISTANCES] += np.maximum(away, 0.0).sum()
        frame = ints(DEPTHS, 7)
        frame[0, A], frame[0, B], frame[0, LEFT], frame[0, RIGHT] = 0, length, ORIGIN, 1
        frame[0, DRAWN] = 3
        spread = np.zeros(3)
        who = Who(np.uint64(0), np.int64(0), np.int64(0), np.int64(clients))
        measure(law, memory, who, frame, np.arange(3, dtype=np.uint32), spread, np.int64(0))
        form = next(form for form in range(3) if np.allclose(spread, sums[:, form], rtol=1e-9))
        seen.add(form)
    assert {SQUARES, DISTANCES} <= seen


@kernel
def passes_the_chord(lead, curve, a, length, i, level):
    """As a leaf of a duel and a walked interval compare: see `duel` and `elimination`."""
    g_a = boundary.boundary_below(curve, a, level)
    g_b = boundary.boundary_below(curve, a + length, level + ((a + length) >> level))
    rise = (g_b - g_a) / float(length)
    return lead >= (g_a + rise * float(i)) * boundary.CHORD


@pytest.mark.parametrize("level", [3, 10, 25, 40, 51])
def test_a_lead_that_reaches_the_boundary_passes_the_chord(level):
    """A lead of g itself, as the formula rounds it, must never be held below a chord: the chord is
    a first, quick comparison, and who fails it is not looked at again."""
    rng = np.random.default_rng(level)
    start = 2 ** (level - 1)
    for _ in range(300):
        walks, log_c = float(rng.integers(1, 50)), rng.uniform(math.log(16.0), 60.0)
        scale = 10.0 ** rng.uniform(-3, 3)
        curve = boundary.PaperCurve(
            walks,
            8.0 * walks * scale * scale,
            log_c,
            scale,
            np.zeros((boundary.LEVELS, boundary.PARTS)),
        )
        boundary.tabulate(curve)
        a = start + 4 * int(rng.integers(0, max(1, start // 4)))
        for i in range(1, 4):
            lead = radius.boundary(float(a + i), walks, log_c, scale)
            assert passes_the_chord(lead, curve, a, 4, i, level)


@pytest.mark.parametrize(
    "instance",
    [
        ff.Instance([[0.03], [0.0]]),
        ff.Instance([[0.52], [0.48]], ff.Bernoulli()),
        ff.Instance(rewards=ff.Finite([0.0, 0.3, 1.0], [[[3, 2, 3]], [[4, 2, 2.5]]])),
    ],
    ids=["gaussian", "coins", "three values"],
)
def test_verdicts_of_duels_are_booked(instance):
    """Two arms, one client, and a server that talks once: nearly all looks are those of duels. Each
    look that is not safe is opened and has two looks below it, or is walked. So about half of them
    are safe, and each of those is two verdicts, one for either leader."""
    job = Job(instance, ["at:1"], delta=0.01, sigma=0.5)
    block = job.run(0, 30)
    verdicts = block.skip_error.sum() / SKIP_TOLERANCE
    looks = block.work[:, 0].sum()
    assert looks > 100 * 30
    assert 0.8 * looks < verdicts < 1.2 * looks


SIX = ff.Instance([[0.2, 0.1], [0.1, 0.15], [0.0, 0.05]])


@pytest.mark.long
def test_the_tolerance_is_as_small_as_it_is_booked():
    """20,000 short trials, every step visited and not. A tolerance of 1e-4 that is booked as 1e-15
    makes a dozen of them differ."""
    frames = [
        ff.simulate(
            SIX, ["fedelim0"], delta=0.2, trials=20_000, sigma=0.4, max_steps=2**12, engine=engine
        ).frame
        for engine in ("skip", "dense")
    ]
    assert frames[0]["skip_error"].mean() < 1e-11
    assert frames[0].drop(BOUNDS).equals(frames[1].drop(BOUNDS))


LOOSE = """
import math, sys
import fastfed.kernels.memory as memory
memory.SKIP_TOLERANCE = 3e-3
memory.BAR = -math.log(3e-3)
import fastfed as ff
six = ff.Instance([[0.2, 0.1], [0.1, 0.15], [0.0, 0.05]])
for trials, schedule in ((3000, "fedelim0"), (3000, "periodic:3")):
    frames = [ff.simulate(six, schedule, delta=0.2, trials=trials, sigma=0.4, max_steps=2**12,
                          engine=engine).frame for engine in ("skip", "dense")]
    skip, dense = (frame.drop("skip_error", "draw_error") for frame in frames)
    same = skip.hash_rows(seed=0) == dense.hash_rows(seed=0)
    print(int((~same).sum()), len(same), float(frames[0]["skip_error"].clip(0, 1).mean()))
"""


@pytest.mark.long
def test_a_loose_tolerance_is_booked_as_it_is(tmp_path: Path) -> None:
    """With a tolerance of 3e-3 rows do differ from those of every step, so that a bound that is
    booked too small is refuted, and no larger share than the mean of `skip_error` (exact one-sided
    tests, 5e-7 each)."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    told = subprocess.run(
        [sys.executable, "-c", LOOSE], check=True, env=environment, capture_output=True, text=True
    ).stdout
    for line in told.splitlines():
        differing, rows, bound = line.split()
        assert int(differing) >= 10
        assert stats.binom.sf(int(differing) - 1, int(rows), min(1.0, float(bound))) > 5e-7
