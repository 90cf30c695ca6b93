"""Observed rewards: how sure their means are, and what other samples might have shown.

An instance that is made from observed rewards takes the observed means for the true ones. A gap
that is smaller than its standard error may as well have the other sign, and then it is not known
which arm is best. `doubtful_gaps` finds such gaps. `resample` draws the observations again, with
replacement (the bootstrap), to see what that does to an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.model.rewards import Finite
from fastfed.model.rewards.finite import ABSENT

if TYPE_CHECKING:
    from fastfed.model.instance import Instance

_MOST_NAMED = 3  # gaps in one message
_MOST_DRAWS = 1000  # of one sample, until no arms tie for the best


def counts_of(instance: Instance) -> npt.NDArray[np.float64]:
    """Return how often each reward was observed, (K, M, V); refuse what was not observed."""
    rewards = instance.rewards
    if not isinstance(rewards, Finite):
        raise InputError(
            f"{instance.name}: its rewards are {rewards!r} and were not observed; only an instance "
            "of observed rewards can be drawn again"
        )
    counts = rewards.weights
    if (counts != np.rint(counts)).any():
        raise InputError(
            f"{instance.name}: the weights of its rewards are no counts; only observed rewards can "
            "be drawn again"
        )
    return counts


def resample(instance: Instance, rng: np.random.Generator) -> Instance:
    """Draw as many rewards of each arm at each client as were observed, with replacement."""
    from fastfed.model.instance import changed

    counts = counts_of(instance)
    rewards = instance.rewards
    assert isinstance(rewards, Finite)
    drawn = np.zeros_like(counts)
    for k, m in np.argwhere(instance.available).tolist():
        total = int(counts[k, m].sum())
        drawn[k, m] = rng.multinomial(total, counts[k, m] / total)
    name = f"{instance.name} resampled"
    return changed(instance, rewards=Finite(rewards.values, drawn, ABSENT), name=name)


def with_samples(instance: Instance, count: int, seed: int) -> list[Instance]:
    """Return an instance and samples of it, numbered from 1.

    A sample in which arms tie for the best is drawn again, because no trial of it would end. It is
    not if they tie in the instance itself, for a goal that allows it.
    """
    samples = [instance]
    tied = not _has_best(instance)
    for number in range(1, count + 1):
        rng = np.random.default_rng([seed, number])
        draws = (instance.resample(rng) for _ in range(_MOST_DRAWS))
        one = next((one for one in draws if tied or _has_best(one)), None)
        if one is None:
            raise InputError(
                f"{instance.name}: arms tie for the best in {_MOST_DRAWS:,} samples; it has too "
                "few rewards for --bootstrap"
            )
        one.name = f"{instance.name}#{number}"
        samples.append(one)
    return samples


def _has_best(instance: Instance) -> bool:
    """Tell whether one arm is the best at each client and in each question of the server."""
    from fastfed.model.goals import Best

    try:
        Best().check(instance)
    except InputError:
        return False
    return True


def doubtful_gaps(instance: Instance, filled: bool = False) -> str:
    """Name the gaps that are inside their standard errors; empty if there are none.

    Compared are, at each client and in each question of the server, the best arm and the next. With
    ``filled``, cells with one reward may be filled ones, whose rewards are certain.
    """
    rewards = instance.rewards
    assert isinstance(rewards, Finite)
    counts = rewards.weights
    if (counts != np.rint(counts)).any():  # a distribution, and no observations
        return ""
    seen = counts.sum(axis=2)
    means = np.nan_to_num(instance.means)
    squares = (counts * (rewards.values - means[:, :, None]) ** 2).sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(seen > 1, squares / (seen - 1) / seen, 0.0 if filled else np.inf)
    questions = instance.questions
    columns = [
        (f"client {name}", instance.means[:, m], variance[:, m])
        for m, name in enumerate(instance.clients if questions.local else ())
    ]
    server = [
        (questions.text(q), instance.values[q], _weighted(variance, shares))
        for q, shares in enumerate(questions.shares)
    ]
    found = []
    for where, means, errors in [*columns, *server]:
        if np.count_nonzero(~np.isnan(means)) < 2:
            continue
        best, after = np.argsort(-means, kind="stable")[:2]  # NaN, of absent arms, comes last
        gap, sem = means[best] - means[after], float(np.sqrt(errors[best] + errors[after]))
        if gap <= sem:
            size = "unknown" if np.isinf(sem) else f"{sem:.2g}"
            found.append(
                f"{where}: {instance.arms[best]} leads {instance.arms[after]} by {gap:.2g}, "
                f"standard error {size}"
            )
    if not found:
        return ""
    more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return (
        f"{instance.name}: {len(found)} gap{'s are' if len(found) > 1 else ' is'} inside "
        f"{'their' if len(found) > 1 else 'its'} standard error, so that the best arm is not "
        f"certain ({'; '.join(found[:_MOST_NAMED])}{more}); `fastfed instance "
        "FILE --bootstrap 20 --out inst.toml` writes samples that show what that does to the answer"
    )


def _weighted(variance: npt.NDArray[np.float64], shares: npt.NDArray[np.float64]) -> Any:
    """Return the variance of each arm's value, (K,); infinite if that of a mean in it is."""
    with np.errstate(invalid="ignore"):
        return np.where(shares > 0.0, variance * shares**2, 0.0).sum(axis=1)
