"""Certificates that a walk does not cross: each one is valid and each one is counted.

Work counts (`test_work`) pin what the engine does. The tests here show why it is right, and fail
for that reason. They compare spreads of rewards with NumPy, and rounding margins at the boundary
itself. They compare verdicts of pairwise passes with the tree that these cut short, and rows with
the rows that another tolerance would give.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import fastfed as ff
from fastfed import confidence as radius
from fastfed.kernels import radii as boundary
from fastfed.kernels.compiling import from_python, kernel
from fastfed.kernels.memory import SKIP_TOLERANCE
from fastfed.kernels.rewards import counts, finite, finite_pairwise
from fastfed.kernels.uplinks import lattice
from fastfed.simulation.job import Job

deviations = from_python(counts.deviations)
measure = from_python(finite._measure)
spread_of_pair = from_python(finite_pairwise._spread)


def rewards_of(counted, rise, length):
    """Return the rewards of an interval, less the last value, in any order."""
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
        memory = finite_pairwise.pairwise_memory(kinds)
        memory.kinds[1], memory.rise[1], memory.reach[1] = kinds, rise, 5.0
        memory.counts[0, 1], memory.counts[1, 1] = left, left + counted
        reach = 5.0 if distances > 0 else 0.0
        assert spread_of_pair(memory, 1, (0, 1), length) == (
            squares,
            reach,
            reach * reach / 4,
            distances,
        )


@kernel
def passes_the_chord(lead, curve, a, length, i, level):
    """Compare as a leaf of a pairwise pass and a walked interval do."""
    g_a = boundary.boundary_below(curve, a, level)
    g_b = boundary.boundary_below(curve, a + length, level + ((a + length) >> level))
    rise = (g_b - g_a) / float(length)
    return lead >= (g_a + rise * float(i)) * boundary.CHORD


@pytest.mark.parametrize("level", [3, 10, 25, 40, 51])
def test_a_lead_that_reaches_the_boundary_passes_the_chord(level):
    """A lead of g itself, as the formula rounds it, is never found below a chord.

    The chord is a first, quick comparison: a lead below it is not examined again.
    """
    rng = np.random.default_rng(level)
    start = 2 ** (level - 1)
    for _ in range(300):
        walks, log_c = float(rng.integers(1, 50)), rng.uniform(math.log(16.0), 60.0)
        scale = 10.0 ** rng.uniform(-3, 3)
        paper = radius.Confidence(radius.PAPER, walks, scale, False, 0.01, log_c, 0.0)
        curve = boundary.make_radius(paper)
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
def test_certificates_of_pairwise_passes_are_counted(instance):
    """Count the verdicts of two arms, one client and a server that communicates once.

    Nearly all looks are those of pairwise passes. A look that is not certified has two looks below
    it, or is walked. So about half of the looks are certified. Each of these is two verdicts, one
    for either leader.
    """
    job = Job.of(instance, ["at:1"], delta=0.01, sigma=0.5)
    block = job.run(0, 30)
    verdicts = block.skip_error.sum() / SKIP_TOLERANCE
    looks = block.work[:, 0].sum()
    assert looks > 100 * 30
    assert 0.8 * looks < verdicts < 1.2 * looks


@pytest.mark.parametrize("clients", [1, 2, 3, 10, 100])
def test_likely_message_errors_are_as_rare_as_they_are_booked(clients):
    """A message error is uniform: sub-Gaussian with a twelfth of the squared step.

    So the sum over one arm exceeds t with probability exp(-6 t^2 / (clients step^2)) at most, and
    over a pair of arms with exp(-3 t^2 / (clients step^2)). For an interval of 2^i steps these
    must be the tolerance over 2^i, unless t is what the errors add up to at most.
    """
    step = 0.3
    uplink = lattice.dithered_uplink(step, clients)
    lengths = np.arange(len(uplink.errors_of_arm))
    for errors, arms in ((uplink.errors_of_arm, 1), (uplink.errors_of_pair, 2)):
        chance = -6 / arms * errors**2 / (clients * step**2)
        booked = math.log(SKIP_TOLERANCE) - lengths * math.log(2.0)
        sure = errors >= arms * clients * step / 2
        assert (sure | (chance <= booked)).all()
        # and not much larger than needed
        assert (sure | (chance > booked - 1e-6 * abs(booked))).all()
        assert (errors <= arms * clients * step / 2 * (1 + 1e-8)).all()
