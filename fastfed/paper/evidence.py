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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from fastfed.analysis.check import CellCheck, judge
from fastfed.analysis.comparable import comparable
from fastfed.analysis.moments import Halves, Moments
from fastfed.analysis.prices import PULLS, Prices
from fastfed.analysis.trials import Passes, Trials, collect, samples
from fastfed.analysis.verdicts import Cell, comparison
from fastfed.model.goals import Best
from fastfed.model.schedules import Schedule
from fastfed.paper.doubling import TRIALS as TRIALS_DOUBLED
from fastfed.paper.doubling import Doubling, doubling
from fastfed.paper.good_event import good_event
from fastfed.paper.optimum import LIMITS, improvements, limit_of_fedelim0, limits, tightness
from fastfed.storage.folder import Store
from fastfed.theory.characteristic import characteristic_time
from fastfed.theory.lower_bounds import error_information

COST = 10.0  # the C of the paper's panels (b) and (c)
COSTS = (0.0, 1.0, 10.0, 100.0, 1_000.0, 10_000.0)
TWIN = "gaussian:movielens"
PAPER, PAIRS = "paper", "mixture-pairs"
RADII = (PAPER, "stitched", "mixture", "stitched-pairs", PAIRS)
PRICES = {"fedelim": Prices.total(COST), "fedelim0": PULLS}
"""What a schedule costs in the paper's panels (a), and in the study of radii."""
RUNS = {(name, radius): f"{name} {radius}" for radius in (PAPER, PAIRS) for name in PRICES}
"""The runs of the study of T*, by schedule and radius."""
# The good event is followed step by step, at up to a microsecond for a step of one walk: so there
# are limits to its runs, and to the walks (arms x clients) of all of them together.
MOST_RUNS = 1_000
MOST_WALKS = 40_000
WALKS_A_TRIAL = 40


@dataclass(frozen=True, eq=False)
class Place:
    """The trials of all schedules at one place, and what theory says of it.

    In the studies of radii, the names of the sums are radii, or schedules with radii.
    """

    instance: str
    delta: float
    sigma: float
    halves: Halves
    costs: tuple[float, ...] = COSTS
    """Those of an uplink that are looked at."""
    condition: Mapping[float, bool] = field(default_factory=dict)
    """By cost: whether Theorem 4's condition, C ln T_k <= T_k for every arm, is met."""
    T: float = 0.0
    gap: float = 0.0
    """The smallest local gap."""
    best_period: int = 0
    """The whole H whose bound is least, at C = 10."""
    schedule: str | None = None
    """That of all sums, where their names are radii."""
    least: float = 0.0
    """T* kl(delta, 1 - delta), in the study of T*."""
    proportions: float = 0.0
    """Pulls of FedElim0 with a radius per pair over T*, as delta -> 0."""
    chosen: Halves | None = None
    """Sums over the trials that all schedules answered rightly which may be compared; None: those
    of all trials."""

    @property
    def head(self) -> Cell:
        found = {"instance": self.instance, "delta": self.delta}
        return found if self.schedule is None else {**found, "schedule": self.schedule}

    @property
    def label(self) -> str:
        """The coordinate that the names of the sums stand for."""
        return "schedule" if self.schedule is None else "radius"

    @property
    def price(self) -> Prices:
        """The cost of the schedule."""
        return PRICES[self.schedule or "fedelim"]

    @cached_property
    def whole(self) -> Moments:
        """The sums over all trials."""
        return self.halves.all

    @cached_property
    def schedules(self) -> tuple[str, ...]:
        """The names with at least one trial that ended."""
        return tuple(name for name in self.halves.even.schedules if self.whole.ended(name))

    @property
    def periods(self) -> dict[int, str]:
        """Map H to its periodic schedule; FedElim0 is H = 1 under another name."""
        names = [name for name in self.schedules if name.startswith("periodic:")]
        found = {Schedule.parse(name).period or 0: name for name in names}
        return {period: found[period] for period in sorted(found)}

    def relative_error(self, name: str, prices: Prices) -> float:
        """Return the standard error of a mean over the mean; NaN below two trials."""
        mean, sem = self.whole.mean(name, prices), self.whole.sem(name, prices)
        return math.nan if sem is None or not mean else sem / mean

    def compare(
        self,
        one: str,
        other: str,
        x: Prices,
        y: Prices | None = None,
        *,
        limit: float = 1.0,
        note: str = "",
        judge: Moments | None = None,
        **where: Any,
    ) -> Cell:
        """Compare one schedule's mean cost with another's; the ratio should be at most ``limit``.

        An uplink costs ``x`` for the first schedule and ``y`` for the other (None: the same). All
        trials judge, or those of ``judge``.
        """
        prices = (x, x if y is None else y)
        found = comparison(self.whole, (one, other), prices, self.delta, limit, note, judge)
        return {**self.head, **where, **found}

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
            self.factor(RUNS[run])
            for run in (("fedelim", PAPER), ("fedelim", PAIRS), ("fedelim0", PAIRS))
        )
        if own is None or pairs is None or every is None:
            return None
        return {
            "radius": own[0] / pairs[0],
            "doubling": pairs[0] / every[0],
            "proportions": self.proportions,
            "thresholds": every[0] / self.proportions,
        }


@dataclass
class Evidence:
    """Evidence by which the claims are judged; any field may be empty."""

    panels: list[Place] = field(default_factory=list)
    """Every data set at its own confidence scale, over delta."""
    scales: list[Place] = field(default_factory=list)
    """The paper's data sets, with other confidence scales, too."""
    studies: list[Place] = field(default_factory=list)
    """One delta, many bases and periods."""
    gaps: list[Place] = field(default_factory=list)
    """The synthetic instance with its gaps multiplied."""
    checked: list[Cell] = field(default_factory=list)
    """The lines of `fastfed check` on the panels."""
    good_event: list[Cell] = field(default_factory=list)
    tightness: list[Cell] = field(default_factory=list)
    radii: list[Place] = field(default_factory=list)
    """FedElim and FedElim0 under every radius."""
    doubling: Doubling | None = None
    improvements: list[Cell] = field(default_factory=list)
    """T* over 2 M times Theorem 3."""
    limits: list[Cell] = field(default_factory=list)
    """FedElim0 over T* as delta -> 0."""
    optimum: list[Place] = field(default_factory=list)
    """FedElim and FedElim0 beside the least pulls."""


def read_evidence(stores: Mapping[str, Store]) -> Evidence:
    """Read the evidence of the finished sweeps, which are by the names of their specs."""
    found = Evidence()
    for name in ("panels", "twin"):
        if name in stores:
            places = _checked_places(stores[name])
            found.panels += [place for place, _ in places]
            lines = [line for place, one in places for line in one.lines(place.whole)]
            found.checked += judge(lines).lines
            found.good_event += _good_event(stores[name])
    found.scales = [place for place in found.panels if place.instance != TWIN]
    for name, store in stores.items():
        if name == "scales":
            found.scales += places_of(store)
        elif name == "gaps":
            found.gaps = places_of(store)
        elif name.startswith("study-"):
            found.studies += places_of(store)
        elif name.startswith("optimum"):
            found.optimum += optimum_places(store)
    if {"panels", "radii"} <= stores.keys():
        found.radii = radius_places(stores["panels"], stores["radii"])
    if any(place.instance == "synthetic" for place in found.panels):
        record = stores["panels"].record()
        trials = min(2 * record.spec.trials, TRIALS_DOUBLED)
        found.doubling, found.tightness = doubling(trials, record.seed), tightness()
        found.improvements, found.limits = improvements(), limits()
    return found


def places_of(trials: Trials) -> list[Place]:
    """Make the cells of a sweep, with the sums over their trials."""
    return [place for place, _ in _checked_places(trials)]


def _checked_places(trials: Trials) -> list[tuple[Place, CellCheck]]:
    """Read every cell once: for the claims, and for the theorems."""
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
            COSTS,
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


def radius_places(panels: Trials, others: Trials) -> list[Place]:
    """Make a place of each schedule, at which the sums are those of all radii.

    All radii meet the same rewards, because the seed alone decides the walks. One sweep has the
    paper's radius, the other sweep has the other radii.
    """
    return [
        Place(*where, _sums(runs, RADII, lambda _, radius: radius, schedule), schedule=schedule)
        for where, runs in _by_radius(others, panels).items()
        for schedule in PRICES
    ]


def optimum_places(trials: Trials) -> list[Place]:
    """Make a place of each instance and delta, at which the sums are those of `RUNS`."""
    found = []
    by_name = {
        name: characteristic_time(one, Best()).lower for name, one in trials.instances.items()
    }
    for (name, delta, sigma), runs in _by_radius(trials).items():
        instance, least = trials.instances[name], by_name[name]
        assert least is not None
        found.append(
            Place(
                name,
                delta,
                sigma,
                _sums(runs, tuple(RUNS.values()), lambda *run: RUNS[run], *PRICES),
                least=least * float(error_information(delta)),
                proportions=limit_of_fedelim0(instance, LIMITS[PAIRS] * sigma**2) / least,
            )
        )
    return found


def _by_radius(first: Trials, *more: Trials) -> dict[tuple[str, float, float], dict[str, Any]]:
    """Map instance, delta and scale of the first sweep to its radii, and those of the others."""
    found: dict[tuple[str, float, float], dict[str, Any]] = {}
    for trials in (first, *more):
        for cell in trials.held():
            where = (cell.instance, cell.delta, cell.sigma)
            if trials is first or where in found:
                found.setdefault(where, {})[cell.radius] = (trials, cell)
    return found


def _sums(runs: Mapping[str, Any], names: Sequence[str], name_of: Any, *schedules: str) -> Halves:
    """Add up paired trials of some schedules with several radii."""
    halves = Halves(names, names)
    batch = {
        name_of(schedule, radius): samples(trials.batches(cell, [schedule]), schedule)
        for radius, (trials, cell) in runs.items()
        for schedule in schedules
    }
    collect([batch], names, halves)
    return halves


def in_words(schedule: str) -> str:
    """Write a schedule as H = 100, as lambda = 1.5, or by its name."""
    one = Schedule.parse(schedule)
    symbol = {"periodic": "H", "exponential": "lambda", "fedelim": "lambda"}.get(one.family)
    return schedule if symbol is None or one.value is None else f"{symbol} = {one.value:g}"
