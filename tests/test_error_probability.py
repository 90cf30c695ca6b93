"""Rare errors: against first passage by numbers, against plain counting, and what is said of them.

Every comparison of an estimate with a known probability allows 5.5 standard errors: a false alarm
with probability 4e-8. There are fewer than 60, so this file raises one with less than 3e-6, and
with fixed seeds it does so always or never.
"""

from __future__ import annotations

import math

import first_passage
import numpy as np
import pytest
from helpers import refused

import fastfed as ff
from fastfed import radius
from fastfed.theory.error_probability import Estimate
from fastfed.theory.tilts import Cumulants, Looks, rivalry, tilted_instance

_SIGMAS = 5.5
FEDELIM = [2**t for t in range(20)]
# gap, delta, confidence scale: errors from 2e-3 down to 2e-13
GAUSSIAN = [(0.3, 0.1, 0.6), (0.5, 0.1, 0.7), (0.3, 0.1, 0.9), (0.2, 0.01, 1.0), (0.5, 1e-3, 1.0),
            (1.0, 1e-3, 1.0), (0.5, 1e-4, 1.0)]
# the two means, delta, confidence scale: errors from 5e-6 down to 6e-91
BERNOULLI = [(0.6, 0.4, 0.1, 0.3), (0.9, 0.85, 0.1, 0.3), (0.6, 0.4, 0.1, 0.4),
             (0.6, 0.4, 0.1, 1.0)]


def boundary(delta, scale):
    log_c = radius.local_log(2, 1, delta)
    return lambda n: radius.boundary(n, 1, log_c, scale)


def agrees(estimate: Estimate, truth: float) -> bool:
    assert not estimate.warnings, estimate.warnings
    return abs(estimate.probability - truth) < _SIGMAS * estimate.standard_error


@pytest.mark.parametrize(("gap", "delta", "scale"), GAUSSIAN)
def test_gaussian_rewards_err_as_often_as_first_passage_says(gap, delta, scale):
    found = ff.error_probability(ff.Instance([[gap], [0.0]]), "fedelim", delta=delta, sigma=scale,
                                 trials=4000, seed=1)
    g = boundary(delta, scale)
    every = first_passage.gaussian(gap, 1.0, g, range(1, 300))
    assert agrees(found.local[0], every)
    assert agrees(found.server, first_passage.gaussian(gap, 1.0, g, FEDELIM))
    assert agrees(found.joint, every)  # a client that looks at every step errs where its server does
    assert found.local[0].relative_error < 0.06
    assert found.local[0].bound > every


@pytest.mark.parametrize(("better", "worse", "delta", "scale"), BERNOULLI)
def test_bernoulli_rewards_err_as_often_as_first_passage_says(better, worse, delta, scale):
    instance = ff.Instance([[better], [worse]], rewards=ff.Bernoulli())
    found = ff.error_probability(instance, "fedelim", delta=delta, sigma=scale, trials=2000, seed=1)
    g = boundary(delta, scale)
    every = first_passage.bernoulli(better, worse, g, range(1, 1500))
    assert agrees(found.local[0], every)
    assert agrees(found.server, first_passage.bernoulli(better, worse, g, FEDELIM[:12]))
    assert agrees(found.joint, every)
    assert found.local[0].bound > every


def test_first_passage_does_not_depend_on_its_grid():
    g = boundary(0.1, 0.6)
    coarse, fine = (first_passage.gaussian(0.3, 1.0, g, range(1, 60), width) for width in (3.0, 1.4))
    assert coarse == pytest.approx(fine, rel=1e-11)


COUNTED = [
    (ff.Instance([[0.9, 0.1, 0.2], [0.1, 0.6, 0.1], [0.3, 0.2, 0.8]]), "fedelim", 0.1, 0.35),
    (ff.Instance([[0.9, 0.1], [0.2, 0.6], [0.3, 0.15], [0.5, 0.0], [0.1, 0.2]]), "fedelim0", 0.1,
     0.4),
    (ff.Instance([[1.0, 0.2, 0.1, 0.9], [0.3, 0.9, 0.4, 0.1]]), "periodic:3", 0.2, 0.35),
    (ff.Instance([[1.0, 0.2, 0.1, 0.9], [0.3, 0.9, 0.4, 0.1], [0.0, 0.0, 0.9, 0.0]]),
     "exponential:1.5", 0.2, 0.35),
    (ff.Instance([[0.9, 0.4], [0.2, 0.8]]), "superexponential", 0.1, 0.35),
    (ff.Instance([[0.9], [0.2], [0.6]]), "at:1,5,25,125,100000", 0.1, 0.4),
    (ff.Instance([[0.9, 0.3], [0.5, 0.6], [0.2, 0.1]], rewards=ff.Bernoulli()), "fedelim", 0.2,
     0.22),
    (ff.Instance(rewards=ff.Finite([0.0, 1.0, 5.0], [
        [[1, 2, 3], [4, 1, 1]], [[2, 3, 1], [2, 1, 2]], [[4, 2, 1], [9, 1, 1]]])), "periodic:2", 0.2,
     0.8),
]


@pytest.mark.parametrize(("instance", "schedule", "delta", "sigma"), COUNTED)
def test_frequent_errors_are_as_frequent_as_plain_counting_says(instance, schedule, delta, sigma):
    found = ff.error_probability(instance, schedule, delta=delta, sigma=sigma, trials=3000, seed=2)
    trials = 40_000
    rows = ff.simulate(instance, schedule, delta=delta, sigma=sigma, trials=trials, seed=3).frame
    assert not rows["truncated"].any()
    wrong = rows["local_errors"].to_numpy()
    counted = {
        "clients": wrong, "server": rows["global_arm"].to_numpy() != instance.global_best,
        "any": ~rows["correct"].to_numpy()}
    estimated = {
        "clients": (sum(one.probability for one in found.local),
                    math.hypot(*(one.standard_error for one in found.local))),
        "server": (found.server.probability, found.server.standard_error),
        "any": (found.joint.probability, found.joint.standard_error)}
    for answer, seen in counted.items():
        mean, error = estimated[answer]
        assert seen.sum() > 30, (answer, seen.sum())
        spread = math.hypot(error, seen.std() / math.sqrt(trials))
        assert abs(seen.mean() - mean) < _SIGMAS * spread, (answer, seen.mean(), mean, spread)
