"""Evidence for the claims: sums over paired trials, read from finished sweeps.

There is one `Place` for each data set, delta and confidence scale.

Two precautions are built in here. Schedules are compared trial by trial, on the same rewards, over
the trials that both ended, if each ended as many as its guarantee says. A claim may be about the
best of several schedules (the best period, the best base). Then the trials with even numbers choose
the best, and those with odd numbers judge it: the least of several means of the same trials would
look better than it is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

from fastfed.analysis.check import CellCheck, judge
from fastfed.analysis.comparable import comparable
from fastfed.analysis.moments import Halves, Moments
from fastfed.analysis.prices import PULLS, Prices
from fastfed.analysis.trials import Passes, Trials, collect, samples
from fastfed.analysis.verdicts import Cell
from fastfed.model.goals import Best
from fastfed.model.instance import Instance
from fastfed.model.schedules import Schedule
from fastfed.paper.doubling import TRIALS as TRIALS_DOUBLED
from fastfed.paper.doubling import doubling
from fastfed.paper.good_event import good_event
from fastfed.paper.optimum import LIMITS, improvements, limit_of_fedelim0, limits, tightness
from fastfed.storage.folder import Store
from fastfed.theory.characteristic import characteristic_time
from fastfed.theory.lower_bounds import error_information

COST = 10.0  # the C of the paper's panels (b) and (c)
COSTS = (0.0, 1.0, 10.0, 100.0, 1_000.0, 10_000.0)
PAPER, PAIRS = "paper", "mixture-pairs"
RADII = (PAPER, "stitched", "mixture", "stitched-pairs", PAIRS)
PRICES = {"fedelim": Prices.total(COST), "fedelim0": PULLS}
"""What a schedule costs in the paper's panels (a), and in the study of radii."""
RUNS = tuple(f"{name} {radius}" for radius in (PAPER, PAIRS) for name in PRICES)
"""Schedules with their radii, in the study of T*."""
# The good event is followed step by step, at up to a microsecond for a step of one walk: so there
# are limits to its runs, and to the walks (arms x clients) of all of them together.
MOST_RUNS = 1_000
MOST_WALKS = 40_000
WALKS_A_TRIAL = 40

Evidence = Mapping[str, Sequence[Any]]
"""Places and cells by the names that ``cells`` has in `claims.toml`.

    panels        places of every data set at its own confidence scale, over delta
    scales        places of the paper's data sets, with other confidence scales, too
    studies       places of one delta, with many bases and periods
    gaps          places of the synthetic instance with its gaps multiplied
    radii         places of FedElim and FedElim0 under every radius
    optimum       places of FedElim and FedElim0 beside the least pulls
    checked       lines of `fastfed check` on the panels
    good_event, doubling, tightness, improvements, limits    cells
"""


@dataclass(frozen=True, eq=False)
class Place:
    """The trials of all schedules at one place, and what theory says of it.

    In the studies of radii and of T*, the names of the sums are schedules with their radii.
    """

    instance: str
    delta: float
    sigma: float
    halves: Halves
    condition: Mapping[float, bool] = field(default_factory=dict)
    """Map the costs of an uplink to Theorem 4's condition: C ln T_k <= T_k for every arm."""
    T: float = 0.0
    gap: float = 0.0
    """The smallest local gap."""
    best_period: int = 0
    """The whole H whose bound is least, at C = 10."""
    least: float = 0.0
    """T* kl(delta, 1 - delta), in the study of T*."""
    proportions: float = 0.0
    """Pulls of FedElim0 with a radius per pair over T*, as delta -> 0."""
    chosen: Halves | None = None
    """Sums over the trials that all schedules answered rightly which may be compared; None: those
    of all trials."""

    @property
    def head(self) -> Cell:
        return {"instance": self.instance, "delta": self.delta}

    @cached_property
    def whole(self) -> Moments:
        """The sums over all trials."""
        return self.halves.all

    @cached_property
    def schedules(self) -> tuple[str, ...]:
        """The names with at least one trial that ended."""
        return tuple(name for name in self.halves.even.schedules if self.whole.ended(name))

    def relative_error(self, name: str, prices: Prices) -> float:
        """Return the standard error of a mean over the mean; NaN below two trials."""
        mean, sem = self.whole.mean(name, prices), self.whole.sem(name, prices)
        return math.nan if sem is None or not mean else sem / mean

    def cheapest(self, names: Iterable[str], cost: float) -> str | None:
        """Choose the schedule with the least mean total cost, by the trials with even numbers.

        Schedules that fail in too many trials are excluded. The others are compared over the trials
        that all schedules answered rightly which are not excluded.
        """
        chosen = comparable(self.whole, self.delta, names).schedules
        even = (self.chosen or self.halves).even
        means = {name: even.mean(name, Prices.total(cost)) for name in chosen}
        known = {name: mean for name, mean in means.items() if mean is not None}
        return min(known, key=known.__getitem__, default=None)

    def factor(self, run: str) -> tuple[float, float] | None:
        """Return mean pulls over the least pulls, and the standard error; None if none ended."""
        mean, sem = self.whole.mean(run, PULLS), self.whole.sem(run, PULLS)
        return None if mean is None else (mean / self.least, (sem or math.nan) / self.least)

    def split(self) -> dict[str, float] | None:
        """Split FedElim's factor over the least pulls into four that multiply to it.

        The radius: FedElim with the paper's over FedElim with `mixture-pairs`. Doubling: FedElim
        over FedElim0, both with `mixture-pairs`. Proportions: the limit of FedElim0 as delta -> 0,
        which pulls all active arms alike. Thresholds: the rest, because at this delta the radius
        is wider than in the limit. None if one of the runs ended no trial.
        """
        own, pairs, every = (
            self.factor(run)
            for run in (f"fedelim {PAPER}", f"fedelim {PAIRS}", f"fedelim0 {PAIRS}")
        )
        if own is None or pairs is None or every is None:
            return None
        return {
            "radius": own[0] / pairs[0],
            "doubling": pairs[0] / every[0],
            "proportions": self.proportions,
            "thresholds": every[0] / self.proportions,
        }


def named(run: str) -> dict[str, str]:
    """Return the coordinates of a cell that the name of a sum stands for."""
    return dict(zip(("schedule", "radius"), run.split(), strict=False))


def read_evidence(stores: Mapping[str, Store]) -> Evidence:
    """Read the evidence of the finished sweeps, which are by the names of their specs."""
    found: dict[str, list[Any]] = defaultdict(list)
    for name, store in stores.items():
        kind = name.partition("-")[0]
        if kind == "optimum":
            found[kind] += run_places(store)
        if kind not in ("panels", "twin", "scales", "gaps", "study"):
            continue
        places = checked_places(store)
        found[{"twin": "panels", "study": "studies"}.get(kind, kind)] += [one for one, _ in places]
        if kind == "panels":
            found["scales"] += [one for one, _ in places]
        if kind in ("panels", "twin"):
            lines = [line for place, one in places for line in one.lines(place.whole)]
            found["checked"] += judge(lines).lines
            found["good_event"] += _good_event(store)
    if {"panels", "radii"} <= stores.keys():
        found["radii"] += run_places(stores["panels"], stores["radii"])
    if any(place.instance == "synthetic" for place in found["panels"]):
        record = stores["panels"].record()
        found["doubling"] += doubling(min(2 * record.spec.trials, TRIALS_DOUBLED), record.seed)
        for computed in (tightness, improvements, limits):
            found[computed.__name__] += computed()
    return found


def checked_places(trials: Trials) -> list[tuple[Place, CellCheck]]:
    """Read every cell of a sweep once: for the claims, and for the theorems."""
    places = []
    at_cost = COSTS.index(COST)
    for cell, schedules in trials.held().items():
        names = [str(one) for one in schedules]
        halves, checked = Halves(names, names), CellCheck(trials, cell, schedules, list(COSTS))
        rows = Passes(partial(trials.batches, cell, names), names)
        rows.collect(halves, checked)
        chosen = Halves(names, (), comparable(halves.all, cell.delta).schedules)
        rows.collect(chosen)
        b = checked.bounds
        place = Place(
            cell.instance,
            cell.delta,
            cell.sigma,
            halves,
            {cost: bool(b.condition[index].all()) for index, cost in enumerate(COSTS)},
            T=float(b.T[0]),
            gap=float(b.local_gaps.min()),
            best_period=int(b.periodic.parameter[at_cost]),  # type: ignore[index]
            chosen=chosen,
        )
        places.append((place, checked))
    return places


def _good_event(store: Store) -> Iterator[Cell]:
    """Measure the share of runs on the good event, at the deltas of the panels.

    The seed is that of the panels. There are at most as many runs as the panels have trials.
    MovieLens's Gaussian twin stands in for it: those walks are faster to follow.
    """
    record = store.record()
    for name, instance in store.instances.items():
        if name != "movielens":
            walks = min(MOST_WALKS, WALKS_A_TRIAL * record.spec.trials)
            runs = max(1, min(record.spec.trials, MOST_RUNS, walks // instance.means.size))
            yield from good_event(instance, record.spec.delta, runs, seed=record.seed)


def run_places(*sweeps: Trials) -> list[Place]:
    """Make the places of FedElim and FedElim0 at which sweeps have several radii.

    All radii meet the same rewards, because the seed alone decides the walks.
    """
    found: dict[tuple[str, float, float], dict[str, Any]] = defaultdict(dict)
    for trials in sweeps:
        for cell in trials.held():
            found[cell.instance, cell.delta, cell.sigma][cell.radius] = (trials, cell)
    places = []
    for (name, delta, sigma), radii in found.items():
        if len(radii) > 1:
            batch = {
                f"{schedule} {radius}": samples(trials.batches(cell, [schedule]), schedule)
                for radius, (trials, cell) in radii.items()
                for schedule in PRICES
            }
            collect([batch], list(batch), halves := Halves(list(batch), list(batch)))
            star, limit = _of_the_optimum(name)
            least = star * float(error_information(delta))
            places.append(
                Place(name, delta, sigma, halves, least=least, proportions=limit * sigma**2 / star)
            )
    return places


@cache
def _of_the_optimum(name: str) -> tuple[float, float]:
    """Return T* of an instance, and the limit of FedElim0 with a radius per pair, at scale 1."""
    instance = Instance.load(name)
    star = characteristic_time(instance, Best()).lower
    return star or math.nan, limit_of_fedelim0(instance, LIMITS[PAIRS])


def in_words(schedule: str) -> str:
    """Write a schedule as H = 100, as lambda = 1.5, or by its name."""
    one = Schedule.parse(schedule)
    symbol = {"periodic": "H", "exponential": "lambda", "fedelim": "lambda"}.get(one.family)
    return schedule if symbol is None or one.value is None else f"{symbol} = {one.value:g}"
