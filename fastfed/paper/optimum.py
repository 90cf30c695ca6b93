"""Distance of FedElim from the optimum T*: a study that the paper does not have.

FedElim and FedElim0 run with the paper's radius and with `mixture-pairs`, over deltas from 0.1 to
1e-12, on the data sets and on random instances. All four meet the same rewards. Mean pulls are
divided by the least pulls of any algorithm, T* kl(delta, 1 - delta).

FedElim's factor over the least pulls is a product of four (`Split`):

    radius        FedElim with the paper's radius over FedElim with `mixture-pairs`
    doubling      FedElim with `mixture-pairs` over FedElim0 with `mixture-pairs`
    proportions   the limit of FedElim0 with a radius per pair as delta -> 0: all active arms are
                  pulled alike, and not in the proportions of T*
    thresholds    the rest: at this delta the radius is wider than in the limit

The limit is computed. Per unit of ln(1/delta) FedElim0 pulls sum max(c / Delta_km^2,
c / (M Delta_k^2)) times, with c = 8 sigma^2 for a radius per arm and 4 sigma^2 for a radius per
pair, because an arm is eliminated at a lead of 2 alpha. docs/explanation/optimum.md has the proof
that this is at most 8 T*, or 4 T*, and that T* is at most 2 M times Theorem 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastfed.analysis.moments import PULLS, Moments
from fastfed.analysis.trials import Trials, collect, samples
from fastfed.analysis.verdicts import Cell, computed
from fastfed.model.goals import Best
from fastfed.model.instance import Instance
from fastfed.paper.markdown import WORDS, document, measured, table
from fastfed.theory.characteristic import TOLERANCE, characteristic_time
from fastfed.theory.lower_bounds import error_information, theorem_3

DELTAS = (0.1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-9, 1e-12)
PAIRS = "mixture-pairs"
RADII = ("paper", PAIRS)
SCHEDULES = ("fedelim", "fedelim0")
RUNS = {(schedule, radius): f"{schedule} {radius}" for radius in RADII for schedule in SCHEDULES}
"""The four runs, by schedule and radius."""
RANDOM = ("random:3,4,1", "random:5,8,1", "random:10,20,2")
SIGMAS = {"bernoulli": 0.5}
"""Confidence scales other than the instance's own: what rewards in [0, 1] need."""
LIMITS = {"paper": 8.0, PAIRS: 4.0}
"""FedElim0 as delta -> 0: at most so many times T*."""
_FACTORS = ("radius", "doubling", "proportions", "thresholds")


@dataclass(frozen=True)
class Split:
    """FedElim's mean pulls over the least pulls, as a product of four factors."""

    radius: float
    doubling: float
    proportions: float
    thresholds: float

    @property
    def total(self) -> float:
        return self.radius * self.doubling * self.proportions * self.thresholds


@dataclass(frozen=True, eq=False)
class OptimumPlace:
    """The four runs on an instance at a delta, on the same rewards."""

    instance: str
    delta: float
    moments: Moments
    """Its names are those of `RUNS`; each is paired with each."""
    least: float
    """T* kl(delta, 1 - delta)."""
    proportions: float
    """Pulls of FedElim0 with a radius per pair over T*, as delta -> 0."""

    @property
    def head(self) -> Cell:
        return {"instance": self.instance, "delta": self.delta}

    def factor(self, run: str) -> tuple[float, float] | None:
        """Return mean pulls over the least pulls, and the standard error; None if none ended."""
        mean, sem = self.moments.mean(run, PULLS), self.moments.sem(run, PULLS)
        return None if mean is None else (mean / self.least, (sem or math.nan) / self.least)

    def split(self) -> Split | None:
        """Split FedElim's factor; None if one of the runs ended no trial."""
        own, pairs, every = (
            self.factor(RUNS[run])
            for run in (("fedelim", "paper"), ("fedelim", PAIRS), ("fedelim0", PAIRS))
        )
        if own is None or pairs is None or every is None:
            return None
        return Split(
            own[0] / pairs[0], pairs[0] / every[0], self.proportions, every[0] / self.proportions
        )


def optimum_places(trials: Trials) -> list[OptimumPlace]:
    """Collect the four runs of each instance and delta from a sweep of the study."""
    cells: dict[tuple[str, float], dict[str, Any]] = {}
    for cell in trials.held():
        cells.setdefault((cell.instance, cell.delta), {})[cell.radius] = cell
    found = []
    for (name, delta), by_radius in cells.items():
        instance = trials.instances[name]
        batch = {
            RUNS[schedule, radius]: samples(trials.batches(cell, [schedule]), schedule)
            for radius, cell in by_radius.items()
            for schedule in SCHEDULES
        }
        runs = tuple(RUNS.values())
        moments = Moments(runs, runs)
        collect([batch], runs, moments)
        sigma = next(iter(by_radius.values())).sigma
        least = characteristic_time(instance, Best()).lower
        assert least is not None
        found.append(
            OptimumPlace(
                name,
                delta,
                moments,
                least * float(error_information(delta)),
                limit_of_fedelim0(instance, LIMITS[PAIRS] * sigma**2) / least,
            )
        )
    return found


def limit_of_fedelim0(instance: Instance, scale: float) -> float:
    """Compute the pulls of FedElim0 per unit of ln(1/delta) as delta -> 0.

    ``scale`` is 8 sigma^2 for a radius per arm and 4 sigma^2 for a radius per pair.
    """
    clients = instance.shape[1]
    narrowest = np.minimum(
        instance.local_gaps**2, clients * np.asarray(instance.global_gaps)[:, None] ** 2
    )
    return float((scale / narrowest).sum())


# ---- computed cells: no chance in them -----------------------------------------------------------


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


# ---- table -------------------------------------------------------------------------------------


def optimum_table(places: Sequence[OptimumPlace]) -> list[dict[str, Any]]:
    """Tabulate the study: a row for each instance and delta."""
    rows = []
    for place in places:
        split = place.split()
        row: dict[str, Any] = {**place.head, "least_pulls": place.least}
        for run in RUNS.values():
            found = place.factor(run)
            row[run] = None if found is None else found[0]
            row[f"{run} sem"] = None if found is None else found[1]
        for name in (*_FACTORS, "total"):
            row[name] = None if split is None else getattr(split, name)
        rows.append(row)
    return rows


def optimum_text(found: Sequence[dict[str, Any]]) -> str:
    """Write the table of pulls over the least pulls of any algorithm, as Markdown."""
    runs = [f"{WORDS[schedule]}, {radius}" for schedule, radius in RUNS]
    rows = []
    for row in found:
        shown = [measured(row[run], row[f"{run} sem"]) for run in RUNS.values()]
        factors = ["" if row[name] is None else f"{row[name]:.2f}" for name in _FACTORS]
        rows.append([row["instance"], f"{row['delta']:g}", *shown, *factors])
    return document(
        "Pulls over the least pulls of any algorithm",
        "Mean pulls over T* kl(delta, 1 - delta), ± one standard error. FedElim's factor with the "
        "paper's radius is the product of the last four columns: the radius against "
        f"{PAIRS}, communicating at powers of two and not at every step, pulling all active arms "
        "alike, and thresholds that are wider than in the limit of small delta.",
        table(["instance", "delta", *runs, *_FACTORS], "lrrrrrrrrr", rows),
    )
