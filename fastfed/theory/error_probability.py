"""Probabilities of wrong answers, far below those that counting can see.

FedElim gives M + 1 answers: each client's best arm and the best arm overall. One of them is wrong
from the step on at which its best arm is eliminated; whatever is declared later, or nothing where
the arms that are left tie, cannot mend it. So three kinds of event are estimated, each by a
`Mixture` of tilted rewards:

* a client's answer is wrong. It depends on that client's walks alone, so only that client is
  simulated: a K x 1 instance at delta / M has the same radius, since ln(8 K M / delta) is all that
  the radius knows of M and delta;
* the server's answer is wrong. It depends on all walks, at communication times, each with the
  weight of its client;
* any answer is wrong. This is decided at the first wrong elimination anywhere, and its mixture is
  the union of all the others, in proportion to what they contribute.

Trials are not followed past the step ``last`` after which Chernoff's bound says that next to
nothing can happen; what it leaves is reported beside the estimate.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fastfed.confidence import Confidence
from fastfed.errors import InputError
from fastfed.kernels.memory import NEVER
from fastfed.model.instance import Instance
from fastfed.model.radii import Radius
from fastfed.model.schedules import At, Periodic, Schedule
from fastfed.model.setting import Setting, resolve_sigma
from fastfed.simulation.rows import Block, Departures
from fastfed.theory.error_estimates import ErrorProbability, Estimate
from fastfed.theory.importance_sampling import Judge, Judged, Mixture, RareEvent, Sample, improved
from fastfed.theory.tilts import RARER, Floats, Ints, Looks, RivalPair, Rivalry, Tilt, rivalry
from fastfed.validation import (
    LEAST_DELTA,
    checked_delta,
    checked_seed,
    checked_threads,
    checked_whole,
    shown,
)

_LN10 = math.log(10.0)
_NEXT_TO_NOTHING = math.log(1e-6)  # of the largest step's bound may lie past the last step
_PILOT = 0.2  # of the trials go into finding good shares, on top of ``trials``
_LEAST_PILOT = 200
_WORTH_A_TILT = 1e-6  # of the probability that any answer is wrong
_EVENLY = 0.1  # of the joint mixture goes to all its tilts alike
# an estimate is doubted with fewer effective errors, a heavier trial, two runs so many standard
# errors apart, a larger share left out
_FEW, _HEAVY, _APART, _MISSED = 100.0, 0.1, 4.5, 0.01


def error_probability(
    instance: Instance | str | Path | npt.ArrayLike,
    schedule: str | Schedule = "fedelim",
    *,
    delta: float,
    radius: str | Radius = "paper",
    trials: int = 10_000,
    seed: int = 0,
    sigma: float | str | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> ErrorProbability:
    """Estimate the probability of a wrong answer: client by client, at the server, and anywhere.

    Parameters
    ----------
    instance
        An `Instance`, a built-in's name or a file, or a K x M array of means.
    schedule
        When clients talk to the server.
    delta, radius, sigma, threads
        As of `fastfed.simulate`.
    trials
        The number of trials for each of the M + 2 estimates.
    seed
        The same seed gives the same result, on any number of threads.
    progress
        Called with (estimates done, estimates in all).

    Returns
    -------
    ErrorProbability
        Print it, or take ``local``, ``server`` and ``joint``, or its ``frame``.

    Examples
    --------
    >>> import fastfed as ff
    >>> found = ff.error_probability([[0.9], [0.1]], delta=0.01, trials=500)
    >>> found.joint.estimate < 1e-6
    True
    """
    one = Instance.of(instance)
    times = Schedule.parse(schedule)
    if not times.eliminates:
        raise InputError(
            f"schedule {times}: error probabilities are those of elimination at given times, and "
            "this algorithm has rules of its own; count its errors with simulate"
        )
    if len(one.questions) > 1 or not one.questions.local:
        raise InputError(
            f"{one.name} has {one.questions.summary}: error_probability is for one question of the "
            "server beside those of all clients; simulate counts errors of any others"
        )
    if not one.questions.full:
        raise InputError(
            f"{one.name}: some clients lack arms, and error_probability is for clients that have "
            "all of them; simulate counts errors"
        )
    setting = Setting(
        one,
        _checked_delta(delta, one),
        resolve_sigma(one, sigma),
        checked_seed(seed),
        "skip",
        radius=Radius.parse(radius),
    )
    count, cores = checked_whole("trials", trials, 100, 2**32), checked_threads(threads)
    return _Run(setting, times, count, cores, progress or (lambda done, total: None)).result()


def _checked_delta(delta: object, instance: Instance) -> float:
    """Check delta, and delta / M as well, with which a client is simulated by itself."""
    value, clients = checked_delta(delta), instance.shape[1]
    if value / clients < LEAST_DELTA:
        raise InputError(
            f"delta = {shown(delta)}: too small for the error probabilities of "
            f"{clients} clients, at least {clients * LEAST_DELTA * (1 + 1e-9):.3g}"
        )
    return value


@dataclass(frozen=True)
class _Question:
    """An answer, the event that it is wrong, and what Chernoff's bound says of it."""

    answer: str
    event: RareEvent
    tilts: list[Tilt]
    log_bound: float
    log_left_out: float


@dataclass(frozen=True)
class _Answered:
    estimate: Estimate
    mixture: Mixture | None = None
    sample: Sample | None = None


@dataclass(frozen=True)
class _Run:
    """The questions of one call, in turn."""

    setting: Setting
    schedule: Schedule
    trials: int
    threads: int
    report: Callable[[int, int], object]

    def result(self) -> ErrorProbability:
        setting, clients = self.setting, self.setting.instance.shape[1]
        questions = [*(self._local(m) for m in range(clients)), self._server()]
        answered = []
        for number, question in enumerate(questions):
            self.report(number, clients + 2)
            answered.append(self._answer(question, number))
        self.report(clients + 1, clients + 2)
        joint = self._joint(questions, answered)
        self.report(clients + 2, clients + 2)
        shares = tuple(
            (one.estimate.answer, tilt, float(share), int(count), int(errors))
            for one in [*answered, joint]
            if one.mixture is not None and one.sample is not None
            for tilt, share, count, errors in zip(
                one.mixture.tilts,
                one.sample.shares,
                one.sample.counts,
                one.sample.errors,
                strict=True,
            )
        )
        return ErrorProbability(
            setting.instance,
            self.schedule,
            setting.delta,
            setting.sigma,
            str(setting.radius),
            setting.seed,
            tuple(one.estimate for one in answered[:clients]),
            answered[clients].estimate,
            joint.estimate,
            shares,
        )

    def _local(self, m: int) -> _Question:
        instance = self.setting.instance
        best, clients = int(instance.local_best[m]), instance.shape[1]
        alone = _one_client(instance, m)
        rivals = _rivals(alone, best, np.ones(1), Periodic(1), self.setting.radii.client)
        setting = replace(self.setting, instance=alone, delta=self.setting.delta / clients)
        # the server of this instance is of no interest: it talks once and is done
        event = _event(setting, At([1]), _last_step(rivals), partial(_local_judge, best))
        return _question(f"client {instance.clients[m]}", event, rivals, m)

    def _server(self) -> _Question:
        instance, weights = self.setting.instance, self.setting.instance.questions.factors[0, 0]
        best = instance.global_best
        rivals = _rivals(instance, best, weights, self.schedule, self.setting.radii.largest_sums)
        judge = partial(_server_judge, best)
        event = _event(self.setting, self.schedule, _last_step(rivals), judge)
        return _question("server", event, rivals, None)

    def _answer(self, question: _Question, number: int) -> _Answered:
        """Estimate one answer: a pilot run with rough shares, then the run with improved shares."""
        mixture = self._mixture(question)
        if mixture is None:
            return _Answered(_impossible(question))
        exponents = np.array([tilt.exponent for tilt in mixture.tilts])
        rough = np.exp(-0.5 * (exponents - exponents.min()))
        rough /= rough.sum()
        return self._two_runs(question, mixture, rough, number)

    def _two_runs(
        self, question: _Question, mixture: Mixture, rough: Floats, number: int
    ) -> _Answered:
        pilot = mixture.run(
            rough, max(_LEAST_PILOT, int(_PILOT * self.trials)), 2 * number, keep_ratios=True
        )
        sample = mixture.run(improved(pilot, rough), self.trials, 2 * number + 1)
        return _Answered(_estimate(question, sample, pilot), mixture, sample)

    def _joint(self, questions: Sequence[_Question], answered: Sequence[_Answered]) -> _Answered:
        """Estimate the probability that any answer is wrong.

        The mixture has the tilts of all answers, with their shares times the probability of their
        answer. Tilts with tiny shares are not run. If an answer has no tilt left, its Chernoff
        bound is added to ``left_out``.
        """
        instance = self.setting.instance
        weights = _relative([one.estimate.log10 for one in answered])
        tilts: list[Tilt] = []
        shares: list[float] = []
        missed: list[float] = []
        for question, one, weight in zip(questions, answered, weights, strict=True):
            found = (
                []
                if one.mixture is None or one.sample is None
                else [
                    (_embedded(tilt, instance.shape), weight * float(share))
                    for tilt, share in zip(one.mixture.tilts, one.sample.shares, strict=True)
                    if weight * float(share) >= _WORTH_A_TILT
                ]
            )
            tilts += [tilt for tilt, _ in found]
            shares += [share for _, share in found]
            missed.append(question.log_left_out if found else question.log_bound)
        last = max(question.event.setting.last_step for question in questions)
        judge = partial(_joint_judge, instance.local_best, instance.global_best)
        event = _event(self.setting, self.schedule, last, judge)
        question = _Question(
            "any", event, tilts, _log_total([q.log_bound for q in questions]), _log_total(missed)
        )
        mixture = self._mixture(question)
        if mixture is None:
            return _Answered(_impossible(question))
        rough = np.array(shares)
        rough = (1 - _EVENLY) * rough / rough.sum() + _EVENLY / len(rough)
        return self._two_runs(question, mixture, rough, len(questions))

    def _mixture(self, question: _Question) -> Mixture | None:
        if not question.tilts:
            return None
        mixture = Mixture(question.event, question.tilts, self.threads)
        return mixture if mixture.tilts else None


def _rivals(
    instance: Instance, best: int, weights: Floats, schedule: Schedule, confidence: Confidence
) -> list[Rivalry]:
    """Compare every other arm with the best, at the looks of a schedule."""
    looks = Looks.of(schedule, instance.most_steps)
    return [
        rivalry(RivalPair(instance, k, best, weights), looks, confidence.boundary)
        for k in range(instance.shape[0])
        if k != best
    ]


def _event(setting: Setting, schedule: Schedule, last: int, judge: Judge) -> RareEvent:
    """Make the event of trials that are followed up to the step ``last``."""
    return RareEvent(replace(setting, max_steps=last), schedule, judge)


def _question(
    answer: str, event: RareEvent, rivals: Sequence[Rivalry], client: int | None
) -> _Question:
    """Choose the tilts that are worth trying; bound the event, and the rest that they miss."""
    least, last = _least(rivals), event.setting.last_step
    near = [rival for rival in rivals if rival.least <= least + RARER]
    tilts = [tilt for rival in near for tilt in rival.tilts(least + RARER, last, client)]
    missed = [rival.beyond(last if rival in near else 0) for rival in rivals]
    return _Question(
        answer, event, tilts, _log_total([rival.beyond(0) for rival in rivals]), _log_total(missed)
    )


def _local_judge(best: int, block: Block) -> Judged:
    found = _departures(block)
    out = found.local_eliminated_at
    wrong = _eliminated(out[:, best, 0], found.local_arms[:, 0] != best)
    return wrong, np.minimum(out, out[:, best, None, :])


def _server_judge(best: int, block: Block) -> Judged:
    found = _departures(block)
    out = found.global_eliminated_at[:, 0, 0]
    wrong = _eliminated(out[:, best], block.column("global_arm")[0] != best)
    stops = np.minimum(out, out[:, best, None])
    return wrong, np.repeat(stops[:, :, None], found.local_eliminated_at.shape[2], axis=2)


def _joint_judge(best: Ints, overall: int, block: Block) -> Judged:
    found = _departures(block)
    server_out = found.global_eliminated_at[:, 0, 0]
    local = found.local_eliminated_at[:, best, np.arange(len(best))]
    local = np.where(found.local_arms != best, local, NEVER).min(axis=1)
    server = np.where(block.column("global_arm")[0] != overall, server_out[:, overall], NEVER)
    first = np.minimum(local, server)
    used = np.maximum(found.local_eliminated_at, server_out[:, :, None])
    return first < NEVER, np.minimum(used, first[:, None, None])


def _departures(block: Block) -> Departures:
    assert block.departures is not None
    return block.departures


def _eliminated(out: Ints, undeclared: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Tell whether the arm has left, and not because it was declared."""
    return np.asarray((out < NEVER) & undeclared)


def _one_client(instance: Instance, m: int) -> Instance:
    """Return the instance of client m alone, K x 1."""
    rewards = instance.rewards.part(range(instance.shape[0]), [m])
    return Instance(None if rewards.own_means is not None else instance.means[:, [m]], rewards)


def _embedded(tilt: Tilt, shape: tuple[int, int]) -> Tilt:
    """Return a client's tilt as one of the whole instance."""
    if tilt.client is None:
        return tilt
    theta = np.zeros(shape)
    theta[:, tilt.client] = tilt.theta[:, 0]
    return replace(tilt, theta=theta)


def _least(rivals: Sequence[Rivalry]) -> float:
    return min((rival.least for rival in rivals), default=math.inf)


def _last_step(rivals: Sequence[Rivalry]) -> int:
    """Find the step after which, by Chernoff's bound, next to nothing can go wrong."""
    least = _least(rivals)
    if math.isinf(least):
        return 1
    steps = np.unique(np.concatenate([rival.steps for rival in rivals])).tolist()
    enough = _NEXT_TO_NOTHING - least
    place = bisect_left(
        steps, True, key=lambda step: _log_total([r.beyond(step) for r in rivals]) <= enough
    )
    return int(steps[min(place, len(steps) - 1)])


def _impossible(question: _Question) -> Estimate:
    """Return the estimate 0, for an error that no rewards can cause."""
    return Estimate(question.answer, -math.inf, 0.0, 0.0, 0, 0, None, -math.inf, -math.inf, ())


def _estimate(question: _Question, sample: Sample, pilot: Sample) -> Estimate:
    log, relative = sample.moments()
    effective, heaviest = sample.effective()
    return Estimate(
        question.answer,
        log / _LN10,
        relative,
        effective,
        len(sample.stratum),
        int(sample.counts.sum()),
        sample.median_step(),
        question.log_bound / _LN10,
        question.log_left_out / _LN10,
        tuple(_doubts(question, sample, pilot, effective, heaviest)),
    )


def _doubts(
    question: _Question, sample: Sample, pilot: Sample, effective: float, heaviest: float
) -> Iterator[str]:
    """Yield the reasons not to trust the estimate."""
    log, relative = sample.moments()
    if not len(sample.stratum):
        yield "no trial erred, although some were made to: take more trials"
        return
    if effective < _FEW:
        yield f"fewer than {_FEW:.0f} effective errors: take more trials"
    if heaviest > _HEAVY:
        yield f"one trial has {heaviest:.0%} of all weight: take more trials"
    if len(pilot.stratum):
        first, spread = pilot.moments()
        ratio = math.exp(min(first - log, 50.0))
        if abs(ratio - 1) > _APART * math.hypot(relative, ratio * spread):
            yield (
                f"the run that chose the tilts' shares gave {ratio:.2g} times as much, more "
                f"than {_APART:g} standard errors off: take more trials"
            )
    if question.log_left_out - log > math.log(_MISSED):
        share = math.exp(min(question.log_left_out - log, 0.0))
        yield f"up to {share:.0%} of it may lie where no tilt was aimed at"


def _relative(logs: Sequence[float]) -> list[float]:
    """Return the numbers 10^log10 divided by their sum; equal shares if all are 0."""
    top = max((log for log in logs if math.isfinite(log)), default=0.0)
    found = np.array([10.0 ** max(log - top, -300.0) for log in logs])
    return [float(share) for share in found / found.sum()]


def _log_total(logs: Sequence[float]) -> float:
    return float(np.logaddexp.reduce(logs)) if logs else -math.inf
