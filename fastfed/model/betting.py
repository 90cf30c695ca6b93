"""The radius `betting` in a setting: its numbers for the kernels, and what it cannot do.

docs/explanation/betting.md has the rule and its proof.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.capital import MOST_STAKE, bets
from fastfed.errors import InputError
from fastfed.model.goals import Eps, Top
from fastfed.model.rewards import Bernoulli, Finite

if TYPE_CHECKING:
    from fastfed.model.setting import Setting

Floats = npt.NDArray[np.float64]

_MORE = (20, 24, 32, 48, 64)


def refuse(setting: Setting) -> None:
    """Refuse rewards without known bounds, and messages that are not sums or may be lost."""
    rewards, uplink = setting.instance.rewards, str(setting.uplink)
    if str(setting.participation) != "full":
        raise InputError(
            f"radius {setting.radius}: the server bets on the sums of all clients, and "
            f"participation {setting.participation} loses some; use participation full"
        )
    if not isinstance(rewards, Bernoulli | Finite):
        raise InputError(
            f"radius {setting.radius}: bets need rewards from a known interval, and those of "
            f"{setting.instance.name} are {rewards.family}; use mixture-pairs, or Bernoulli or "
            "finite rewards"
        )
    if uplink != "exact":
        raise InputError(
            f"radius {setting.radius}: the server bets on exact sums, and uplink {uplink} sends "
            "others; use the uplink exact, or the radius mixture-pairs"
        )


class Histogram(NamedTuple):
    """Rewards as histograms: values (V,), weights (K, M, V), and the range of the values."""

    values: Floats
    weights: Floats
    range: float


def histogram(setting: Setting) -> Histogram:
    """Return the rewards of an instance; cells that are never pulled pay the smallest value."""
    rewards, means = setting.instance.rewards, setting.instance.means
    law: Any = rewards.as_finite(means) if isinstance(rewards, Bernoulli) else rewards
    weights = law.weights.copy()
    weights[~weights.any(axis=2), 0] = 1.0
    return Histogram(law.values, weights, law.range)


def scaled_slack(setting: Setting) -> float:
    """Return E of the goal eps:E, scaled as rewards are; 0 for other goals."""
    goal = setting.goal
    return goal.slack / histogram(setting).range if isinstance(goal, Eps) else 0.0


def question_weights(setting: Setting) -> Floats:
    """Return the weight of each client in the server's value of each arm, (Q, K, M)."""
    return np.array(setting.instance.questions.shares, order="C")


def kernel(setting: Setting, count: int) -> Any:
    """Make the numbers that kernels read."""
    from fastfed.kernels.betting import Bets

    law = histogram(setting)
    values, shares = law.values, law.weights
    # the order of `kernels.rewards.finite`: rare values first, those that are never paid left out
    order = np.argsort(shares, axis=2, kind="stable")
    unpaid = np.count_nonzero(shares == 0, axis=2)[..., None]
    place = np.minimum(unpaid + np.arange(len(values)), len(values) - 1)
    weights = question_weights(setting)
    return Bets(
        np.array(bets(count)),
        np.int64(3 if isinstance(setting.goal, Eps) else 2),
        scaled_slack(setting),
        -math.log(setting.radii.client.budget),
        np.array([-math.log(one.budget) for one in setting.radii.questions]),
        setting.reward_kernel.origin - values[0],
        1.0 / law.range,
        (values - values[0]) / law.range,
        np.arange(1.0, len(values) + 1.0),
        np.take_along_axis(order, place, 2),
        weights,
        weights / weights.max(axis=(1, 2), keepdims=True),
    )


def refuse_endless(setting: Setting, count: int) -> None:
    """Refuse gaps that no bet resolves before the last step of a trial."""
    limit = setting.instance.most_steps
    needed, where = longest(setting, count)
    if needed <= limit:
        return
    more = next((n for n in _MORE if n > count and longest(setting, n)[0] <= limit), None)
    fix = "make the gap larger" if more is None else f"take more bets, as in betting:{more}"
    time = "for ever" if math.isinf(needed) else f"{needed:.2g} steps and the limit is {limit:,}"
    raise InputError(
        f"radius {setting.radius} in {setting.instance.name}: a gap of {where} is too small for "
        f"{count} bets, a trial could take {time}; {fix}, or set max_steps to get truncated trials"
    )


def longest(setting: Setting, count: int) -> tuple[float, str]:
    """Return about how many steps the hardest question takes, and its name.

    That is the level over the mean growth of a capital's logarithm, with centres at the means.
    """
    instance, law = setting.instance, histogram(setting)
    y = (law.values - law.values[0]) / law.range
    shares = law.weights / law.weights.sum(axis=2, keepdims=True)
    means, stakes, slack = shares @ y, np.array(bets(count)), scaled_slack(setting)
    asked = []
    if instance.questions.local:
        level = math.log(count) - math.log(setting.radii.client.budget)
        for m, client in enumerate(instance.clients):
            away = np.multiply.outer(stakes, y - means[instance.available[:, m], m].max())
            above, below = np.log(1.0 + away), np.log(1.0 - away + stakes[:, None] * slack)
            mine = instance.available[:, m]
            sides = shares[mine, m] @ above.T, shares[mine, m] @ below.T
            growth = _least_growth(setting, means[mine, m], *sides)
            asked.append((level / growth if growth > 0.0 else math.inf, f"client {client}"))
    for q, p in enumerate(question_weights(setting)):
        level = math.log(count) - math.log(setting.radii.of(q).budget)
        values, share = (p * means).sum(axis=1), p / p.max()
        centre = values[p.any(axis=1)].max() + means - values[:, None]
        reach = (share * np.maximum(np.abs(centre), np.abs(1.0 - centre))).max()
        stake = np.minimum(stakes, MOST_STAKE / reach)[:, None, None]
        above, below = np.zeros((2, len(means), count))
        for at, weight in ((1.0, means), (0.0, 1.0 - means)):
            above += (weight * np.log(1.0 + stake * share * (at - centre))).sum(axis=2).T
            below += (weight * np.log(1.0 - stake * share * (at - centre - slack))).sum(axis=2).T
        asked_of = instance.questions.candidates[q]
        growth = _least_growth(setting, values[asked_of], above[asked_of], below[asked_of])
        text = instance.questions.text(q)
        asked.append((level / growth if growth > 0.0 else math.inf, text))
    return max(asked)


def _least_growth(setting: Setting, values: Floats, above: Floats, below: Floats) -> float:
    """Return the growth of the best bet, for the pair of arms for which it is least."""
    wanted = setting.goal.count if isinstance(setting.goal, Top) else 1
    order = np.argsort(-values, kind="stable")
    pairs = above[order[:wanted], None, :] + below[None, order[wanted:], :]
    return float(pairs.max(axis=2).min()) if len(order) > wanted else math.inf
