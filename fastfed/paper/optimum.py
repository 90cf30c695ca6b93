"""Computed cells about the optimum T* and the lower bound: no chance is in them.

T* kl(delta, 1 - delta) are the least pulls of any algorithm. Per unit of ln(1/delta) FedElim0 pulls
sum max(c / Delta_km^2, c / (M Delta_k^2)) times in the limit of small delta, with c = 8 sigma^2 for
a radius per arm and 4 sigma^2 for a radius per pair, because an arm is eliminated at a lead of 2
alpha. docs/explanation/optimum.md has the proof that this is at most 8 T*, or 4 T*, and that T* is
at most 2 M times Theorem 3.
"""

from __future__ import annotations

import math

import numpy as np

from fastfed.analysis.verdicts import Cell, computed
from fastfed.model.goals import Best
from fastfed.model.instance import Instance
from fastfed.theory.bounds import bounds
from fastfed.theory.characteristic import TOLERANCE, characteristic_time
from fastfed.theory.lower_bounds import theorem_3

LIMITS = {"paper": 8.0, "mixture-pairs": 4.0}
"""FedElim0 as delta -> 0: at most so many times T*."""
_DELTA = 0.01


def limit_of_fedelim0(instance: Instance, scale: float) -> float:
    """Compute the pulls of FedElim0 per unit of ln(1/delta) as delta -> 0.

    ``scale`` is 8 sigma^2 for a radius per arm and 4 sigma^2 for a radius per pair.
    """
    clients = instance.shape[1]
    narrowest = np.minimum(
        instance.local_gaps**2, clients * np.asarray(instance.global_gaps)[:, None] ** 2
    )
    return float((scale / narrowest).sum())


def _gaussians() -> list[tuple[str, str, Instance]]:
    """List the data sets and random instances, all with Gaussian rewards: name, what, instance."""
    around = "Gaussian rewards around its means"
    found = [
        (name, around if name != "synthetic" else "as it is", Instance(Instance.load(name).means))
        for name in ("synthetic", "bernoulli", "movielens")
    ]
    for seed in range(1, 25):
        arms, clients = 2 + seed % 9, 1 + 2 * (seed % 12)
        name = f"random:{arms},{clients},{seed}"
        found.append(("random", name, Instance.load(name)))
    return found


def attaining(clients: int) -> Instance:
    """Make an instance of two arms on which T* is 2 M times Theorem 3.

    The differences d_m of the arms have |d_m| >= D and the sum D. So the global gap is D / M, and
    Theorem 3 has D for every gap, local or global. T* is bound by the server alone.
    """
    signs = np.where(np.arange(clients) < (clients + 1) // 2, 1.0, -1.0)
    if clients % 2 == 0:
        signs[0] = 2.0
    return Instance(0.2 * np.stack([np.maximum(signs, 0), np.maximum(-signs, 0)]))


def improvements() -> list[Cell]:
    """Compare T* with 2 M times Theorem 3: at most as much, and equal where it is attained."""
    cells = []
    for name, what, instance in _gaussians():
        most, ratio = _over_theorem_3(instance, upper=True)
        cells.append(_limit_cell(name, what, ratio / most, f"T* is {ratio:.3g} x Theorem 3"))
    for clients in (2, 3, 4, 10, 100):
        most, ratio = _over_theorem_3(attaining(clients), upper=False)
        text = f"T* is {ratio:.6g} x Theorem 3: attained"
        cells.append(_limit_cell("two arms", f"M = {clients}", most / ratio, text))
    return cells


def _over_theorem_3(instance: Instance, upper: bool) -> tuple[float, float]:
    """Return 2 M, and T* over Theorem 3, both per unit of ln(1/delta)."""
    found = characteristic_time(instance, Best())
    value = found.upper if upper else found.lower
    assert value is not None
    unit = 1 / (2.4 * math.e)  # the delta at which ln(1 / (2.4 delta)) = 1
    return 2.0 * instance.shape[1], value / float(theorem_3(instance, np.asarray(unit)))


def _limit_cell(name: str, what: str, value: float, text: str, limit: float = 1.0) -> Cell:
    """Make a cell whose value should be at most ``limit``, up to the solver's tolerance."""
    return {"instance": name, "what": what, **computed(value / (1 + 2 * TOLERANCE), limit, text)}


def limits() -> list[Cell]:
    """Compare FedElim0's limit as delta -> 0 with 8 T*, and with 4 T* for a radius per pair."""
    cells = []
    for name, what, instance in _gaussians():
        least = characteristic_time(instance, Best()).lower
        assert least is not None
        for radius, most in LIMITS.items():
            value = limit_of_fedelim0(instance, most) / least
            cells.append(_limit_cell(name, f"{what}, {radius}", value, f"{value:.3f} T*", most))
    return cells


def tightness() -> list[Cell]:
    """Compute T over the lower bound as the clients of the synthetic instance are repeated.

    The ratio is relative to the first number of clients from which Delta_km <= sqrt(M) Delta_k.
    """
    means = Instance.load("synthetic").means
    found: dict[int, float] = {}
    for times in (16, 64, 256, 1024):
        many = Instance(np.tile(means, times))
        wide = np.sqrt(many.shape[1]) * many.global_gaps
        assert (many.local_gaps <= wide[:, None]).all()
        b = bounds(many, _DELTA)
        found[many.shape[1]] = float(b.T / b.lower)
    first = next(iter(found.values()))
    return [
        {
            "instance": "synthetic",
            "delta": _DELTA,
            "what": f"M = {clients:,}",
            "value": value / first,
            "text": f"{value / first:.3f}, T over the lower bound {value:,.0f}",
        }
        for clients, value in found.items()
    ]
