"""Lower bounds on the expected pulls of every delta-PAC algorithm: Theorem 3 and T*.

Both are about algorithms that are right with probability 1 - delta on every instance. A run is one
of these only if its radii hold for its rewards: see `not_delta_pac`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.model.goals import Best, Goal
from fastfed.model.instance import Instance
from fastfed.model.radii import Betting, Radius

Floats = npt.NDArray[np.float64]


def no_theorem_3(instance: Instance, goal: Goal) -> str | None:
    """Return the reason why Theorem 3 does not apply, or None if it does."""
    if not isinstance(goal, Best):
        return "Theorem 3 is about the best arm"
    if instance.rewards.noise is None:
        return "Theorem 3 is about Gaussian rewards of one variance"
    return None


def theorem_3(instance: Instance, delta: Floats) -> Floats:
    """Compute Theorem 3 with the factor 2 that its proof ends with and its statement drops.

    Departures: Delta / sigma for Delta, with the noise of the rewards, not the confidence scale
    that one run chose: the theorem is about every algorithm. And at least 0, where 2.4 delta > 1.

    The proof changes one cell at a time until an answer changes. A change of the server's value by
    Delta_k takes M Delta_k at one client, or Delta_k / W_km if it has the weight W_km.
    """
    questions, noise = instance.questions, instance.default_sigma
    changes = [
        inverse * gaps[:, None]
        for inverse, gaps in zip(questions.inverse, instance.server_gaps, strict=True)
    ]
    narrowest = np.min([*([instance.local_gaps] if questions.local else []), *changes], axis=0)
    least = np.maximum(2.0 * np.log(1.0 / (2.4 * delta)), 0.0)
    with np.errstate(over="ignore"):  # gaps below 1e-154 of the noise: infinity
        return np.asarray(least * np.sum((noise / narrowest) ** 2))


def error_information(delta: npt.ArrayLike) -> Floats:
    """Compute kl(delta, 1 - delta), and 0 from delta = 1/2 on, where a guess is good enough."""
    d = np.asarray(delta, dtype=np.float64)
    return np.where(d < 0.5, (1.0 - 2.0 * d) * (np.log1p(-d) - np.log(d)), 0.0)


def not_delta_pac(instance: Instance, sigma: float, radius: Radius) -> str | None:
    """Return the reason why no theorem makes a run delta-PAC, or None if one does.

    Parameters
    ----------
    instance
        Means and rewards.
    sigma
        The confidence scale of the run.
    radius
        The confidence radius of the run.
    """
    if not radius.built_in() or type(radius) is Radius:
        return f"radius {radius}: not known to be delta-PAC"
    if isinstance(radius, Betting):  # proved for the rewards that it takes, whatever the scale
        return None
    try:
        needed = instance.rewards.proxy_sigma
    except InputError:
        return f"{instance.rewards.family} rewards: no scale makes a run delta-PAC"
    if sigma < needed * (1.0 - 1e-12):
        return f"scale {sigma:g}, these rewards need {needed:g}: not delta-PAC"
    return None


def over_least_pulls(
    instance: Instance, mean_pulls: float, where: Mapping[str, Any]
) -> float | None:
    """Return mean pulls over T* kl(delta, 1 - delta), or None where that is no lower bound.

    Parameters
    ----------
    instance
        The instance of the run.
    mean_pulls
        Pulls of a trial on average.
    where
        ``delta``, ``sigma``, and the names of ``radius`` and ``goal``, as a summary has them.
    """
    from fastfed.theory.characteristic import characteristic_time

    try:
        radius, goal = Radius.parse(where["radius"]), Goal.parse(where["goal"])
    except InputError:  # a radius of the user's own has a name that nothing can be made from
        return None
    if not_delta_pac(instance, where["sigma"], radius):
        return None
    least = characteristic_time(instance, goal).lower
    pulls = None if least is None else least * float(error_information(where["delta"]))
    return mean_pulls / pulls if pulls else None
