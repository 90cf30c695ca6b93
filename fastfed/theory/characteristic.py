"""Characteristic time T*: the pulls that no delta-PAC algorithm can do without.

An algorithm that is right with probability 1 - delta on every instance, and pulls arm k of client m
t_km times on average, satisfies for every alternative mu' (Kaufmann, Cappe and Garivier 2016,
Lemma 1)

    sum over cells of t_km d(mu_km, mu'_km) >= kl(delta, 1 - delta).

The alternatives are a union of half-spaces (`fastfed.theory.alternatives`). With F_c(w) the least
of sum w d over half-space c, expected pulls are at least T* kl(delta, 1 - delta), where

    T* = min sum w_km    subject to F_c(w) >= 1 for every c.

*Gaussian rewards.* By Cauchy-Schwarz 1 / F_c = sum over cells of A_cx / w_x with A_cx =
2 a_cx^2 s_x / gap_c^2, s the variance: linear constraints in u = 1 / w, which
`fastfed.theory.gaussian_programme` solves. Bernoulli and Poisson rewards need rounds of such
programmes (`fastfed.theory.family_programme`). Either way a lower and an upper value are proved,
and T* is reported by its lower value, so that it never promises too much.

*Time.* Clients that pull side by side, one arm each at a step, take at least the largest of their
numbers of pulls. So the least expected time is kl(delta, 1 - delta) times the minimum of the
largest sum over the arms of a client, subject to the same constraints.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fastfed.model.goals import Goal
from fastfed.model.instance import Instance
from fastfed.theory.alternatives import HalfSpaces, half_spaces, no_half_spaces
from fastfed.theory.families import family_of, gaussian_variances
from fastfed.theory.family_programme import solve_family
from fastfed.theory.gaussian_programme import solve_rows, with_data

Floats = npt.NDArray[np.float64]

TOLERANCE = 1e-6
"""The relative distance between the two values at which the solver stops."""
_MOST = 1e200  # of the pulls that one pair needs: the solver's squares would overflow above


@dataclass(frozen=True, eq=False)
class Characteristic:
    """T* of an instance, between a lower and an upper value."""

    lower: float | None
    """Certified: T* is at least this. None where there is no number."""
    upper: float | None
    """Certified: T* is at most this, the sum of ``allocation`` (or the largest of a client)."""
    allocation: Floats | None
    """(K, M): pulls per unit of kl(delta, 1 - delta) that satisfy every constraint."""
    note: str = ""
    """One line: the reason why there is no number, or how far the two values are apart."""


def characteristic_time(
    instance: Instance, goal: Goal, tolerance: float = TOLERANCE, *, side_by_side: bool = False
) -> Characteristic:
    """Compute T*, what every delta-PAC algorithm pays per unit of kl(delta, 1 - delta).

    Parameters
    ----------
    instance
        Means and rewards.
    goal
        The goal; it must have one right answer (`Best`, `Top`, `Threshold` without slack). It is
        asked in every question of the server, and of each client unless ``local=False``.
    tolerance
        The relative distance between the lower and the upper value.
    side_by_side
        Whether clients pull side by side, so that their largest number of pulls is to be least, and
        not the sum.

    Returns
    -------
    Characteristic
        Without a number, and with a note, where none is known.
    """
    goal.check(instance)
    return _cached(instance, goal, tolerance, side_by_side)


@lru_cache(maxsize=64)
def _cached(instance: Instance, goal: Goal, tolerance: float, side_by_side: bool) -> Characteristic:
    """Compute T* once for each instance and goal: summaries ask for the same one many times."""
    shape = instance.shape
    variances, family = gaussian_variances(instance.rewards, shape), family_of(instance.rewards)
    reason = no_half_spaces(goal)
    if variances is None and family is None:
        reason = (
            f"{instance.rewards.family} rewards: the family of alternatives is not given, "
            "so T* is not defined"
        )
    if reason is not None:
        return Characteristic(None, None, None, reason)
    spaces = half_spaces(instance, goal)
    groups = np.tile(np.arange(shape[1]), shape[0]) if side_by_side else None
    if variances is not None:
        rows = _gaussian_rows(spaces, variances.ravel())
        if not rows.data.max(initial=0.0) < _MOST:
            return Characteristic(
                None, None, None, f"a gap is too small for the noise: T* is above {_MOST:g}"
            )
        found = solve_rows(rows, tolerance, groups=groups)
        lower, upper, pulls = found.lower, found.upper, found.allocation
    else:
        assert family is not None
        means = np.nan_to_num(instance.means.ravel())
        lower, upper, pulls = solve_family(spaces, family, means, tolerance, groups)
    lower = min(lower, upper)  # they may cross by a rounding error
    apart = upper / lower - 1.0 if lower else 0.0
    note = "" if apart <= tolerance else f"T* may be larger by up to {100 * apart:.2g} %"
    allocation = pulls.reshape(shape)
    allocation.setflags(write=False)
    return Characteristic(lower, upper, allocation, note)


def _gaussian_rows(spaces: HalfSpaces, variances: Floats) -> sparse.csr_array:
    with np.errstate(over="ignore"):  # infinite rows are refused by the caller
        scaled = spaces.moves.data / spaces.per_entry(spaces.gaps)
        return with_data(spaces.moves, 2.0 * scaled**2 * variances[spaces.cells])
