"""Importance sampling of rare events on the engine: a stratified mixture of tilted rewards.

An event that is decided by what a trial has seen when it happens has, under rewards tilted by
theta, a likelihood ratio that needs nothing but the walks' values X there,

    dq / dp = exp(sum over cells (k, m) of theta[k, m] (X[k, m](n) - n mean[k, m]) - n psi(theta)),

n the number of rewards of that cell that the event depends on (an arm that has left before no
longer counts; cells that are not tilted drop out). With trials shared out over tilts t in the
proportions pi_t, every one of them weighs 1 / sum over t of pi_t dq_t / dp, whichever tilt it
came from (Veach and Guibas's balance heuristic, Owen and Zhou's deterministic mixture). The sum
of these weights over trials with the event, divided by all trials, is an unbiased estimate of the
event's probability; strata give its standard error.

A first run with rough shares says which shares are good: those under which the trials with the
event would be likeliest (iterations of expectation maximisation on the weighted trials). Its
trials are not used for the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.kernels.trials import Control
from fastfed.model.instance import Instance
from fastfed.model.schedules import Schedule
from fastfed.model.setting import Setting
from fastfed.simulation.job import Job, new_control
from fastfed.simulation.rows import Block
from fastfed.simulation.walks import values_at
from fastfed.theory.tilts import Floats, Ints, Tilt, tilted_instance

_LEAST = 2  # trials of a stratum: one alone has no standard error
_DEFENCE = 0.15  # of the shares stay as they were before they were improved
_ROUNDS = 30
_CELLS = 2**20  # trials x arms x clients that are looked at together: 8 MB an array
_APART = 2**34  # trial numbers of one run lie this far from the next one's
# cells of an instance whose job is kept for the second run. To make a job of one client of
# `movielens` takes 1.2 ms, and its trials 0.8; jobs of many clients would take too much memory
_KEPT_CELLS = 256


Judged = tuple[npt.NDArray[np.bool_], Ints]
"""Which trials have the event, and how many rewards of each cell decided it (trials, K, M)."""
Judge = Callable[[Block], Judged]
"""Judges the trials of a block, which has departures."""


@dataclass(frozen=True)
class RareEvent:
    """Something rare about trials of an instance, and how to see it."""

    setting: Setting  # trials are not followed past its last step
    schedule: Schedule
    judge: Judge

    def job(self, instance: Instance) -> Job:
        """Make the job of another instance, in the same setting otherwise."""
        return Job(replace(self.setting, instance=instance), self.schedule)


@dataclass(frozen=True)
class Sample:
    """The trials that had the event, stratum by stratum, with the logarithms of their weights."""

    counts: Ints  # (T,) trials of each stratum
    stratum: Ints  # (errors,)
    log_ratios: Floats  # (errors, T) ln dq_t / dp, or (0, T) if they were not kept
    log_weights: Floats  # (errors,)
    steps: Ints  # (errors,) when it happened

    @property
    def shares(self) -> Floats:
        """Share of each stratum (tilt) among all trials, (T,)."""
        return np.asarray(self.counts / self.counts.sum())

    @property
    def errors(self) -> Ints:
        """Number of trials of each stratum (tilt) that had the event, (T,)."""
        return np.bincount(self.stratum, minlength=len(self.counts))

    def moments(self) -> tuple[float, float]:
        """Return ln of the estimate, and its relative standard error."""
        if not len(self.stratum):
            return -math.inf, math.inf
        top = float(self.log_weights.max())
        weights = np.exp(self.log_weights - top)
        n = self.counts
        first = np.bincount(self.stratum, weights, len(n)) / n
        second = np.bincount(self.stratum, weights**2, len(n)) / n
        variance = np.maximum(second - first**2, 0.0) * n / (n - 1)
        mean = float(self.shares @ first)
        return top + math.log(mean), math.sqrt(float((self.shares**2 * variance / n).sum())) / mean

    def effective(self) -> tuple[float, float]:
        """Return the effective number of weights, and the largest one's share of their sum."""
        if not len(self.stratum):
            return 0.0, 1.0
        weights = np.exp(self.log_weights - self.log_weights.max())
        return float(weights.sum() ** 2 / (weights**2).sum()), float(1.0 / weights.sum())

    def median_step(self) -> int | None:
        """Find the step by which half of the event's probability has come; None if none has."""
        if not len(self.stratum):
            return None
        order = np.argsort(self.steps)
        weights = np.exp(self.log_weights[order] - self.log_weights.max()).cumsum()
        return int(self.steps[order][np.searchsorted(weights, 0.5 * weights[-1])])


class _Part(NamedTuple):
    """See `Sample`."""

    log_ratios: Floats
    log_weights: Floats
    steps: Ints


def _joined(parts: Sequence[_Part]) -> _Part:
    return _Part(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


class Mixture:
    """Tilts of one event, made ready to run."""

    def __init__(self, event: RareEvent, tilts: Sequence[Tilt], threads: int) -> None:
        self.event, self._threads, instance = event, threads, event.setting.instance
        made = [(tilt, tilted_instance(instance, tilt)) for tilt in tilts]
        self.tilts = [tilt for tilt, found in made if found is not None]
        self._instances = [found[0] for _, found in made if found is not None]
        thetas = [found[1] for _, found in made if found is not None]
        self._touched = np.array(thetas).reshape(-1, *instance.shape).any(axis=0)
        law, means = instance.rewards, instance.means
        self._thetas = np.array([theta[self._touched] for theta in thetas])
        self._psis = np.array([law.cumulants(means, theta)[0][self._touched] for theta in thetas])
        self._means = means[self._touched]
        self._jobs: dict[int, Job] = {}

    def run(self, shares: Floats, trials: int, number: int, keep_ratios: bool = False) -> Sample:
        """Run ``trials`` trials in these shares; ``number`` tells this run from others.

        Ratios are kept for `improved`; weights alone take less memory.
        """
        counts = np.maximum(_LEAST, np.rint(shares * trials)).astype(np.int64)
        firsts = number * _APART + np.cumsum(counts) - counts
        log_shares = np.log(counts / counts.sum())
        control = new_control()
        pool = ThreadPoolExecutor(self._threads, thread_name_prefix="fastfed")
        try:
            run = partial(self._stratum, log_shares, keep_ratios, control)
            places = range(len(self._instances))
            parts = list(pool.map(run, places, firsts.tolist(), counts.tolist()))
        finally:  # also on Ctrl-C: the kernels leave after their current trial
            control.stop[0] = 1
            pool.shutdown(wait=True, cancel_futures=True)
        stratum = np.repeat(np.arange(len(counts)), [len(part.steps) for part in parts])
        return Sample(counts, stratum, *_joined(parts))

    def _stratum(
        self,
        log_shares: Floats,
        keep_ratios: bool,
        control: Control,
        place: int,
        first: int,
        count: int,
    ) -> _Part:
        """Run the trials of one tilted instance; return those that had the event."""
        job = self._job(place)
        instance, space = job.instance, job.space()
        length = max(1, _CELLS // instance.means.size)
        parts = []
        for begin in range(first, first + count, length):
            block = job.run(
                begin, min(length, first + count - begin), control, space, keep_departures=True
            )
            happened, stops = self.event.judge(block)
            trials = np.flatnonzero(happened)
            stops = stops[trials]
            sums = values_at(
                instance,
                job.setting.seed,
                begin + trials,
                np.where(self._touched, stops, 0),
                job.setting.reward_kernel,
            )[:, self._touched]
            n = stops[:, self._touched]
            ratios = (sums - n * self._means) @ self._thetas.T - n @ self._psis.T
            parts.append(
                _Part(
                    ratios if keep_ratios else np.zeros((0, len(log_shares))),
                    -_log_sum(ratios + log_shares),
                    stops.max(axis=(1, 2), initial=0),
                )
            )
        return _joined(parts)

    def _job(self, place: int) -> Job:
        """Make the job of a tilted instance, once for both runs unless it is large."""
        job = self._jobs.get(place)
        if job is None:
            job = self.event.job(self._instances[place])
            if job.instance.means.size <= _KEPT_CELLS:
                self._jobs[place] = job
        return job


def improved(sample: Sample, before: Floats) -> Floats:
    """Choose new shares of the tilts from the trials that erred; keep a part of ``before``."""
    if not len(sample.stratum):
        return before
    weights = np.exp(sample.log_weights - sample.log_weights.max())
    weights /= weights.sum()
    ratios = np.exp(sample.log_ratios + sample.log_weights[:, None])
    shares = before
    for _ in range(_ROUNDS):
        mixed = ratios @ shares
        shares = shares * ((weights / mixed) @ ratios)
    return np.asarray((1 - _DEFENCE) * shares / shares.sum() + _DEFENCE * before)


def _log_sum(logs: Floats) -> Floats:
    if not len(logs):
        return np.zeros(0)
    top = logs.max(axis=1)
    return np.asarray(np.log(np.exp(logs - top[:, None]).sum(axis=1)) + top)
