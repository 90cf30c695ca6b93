"""Separation of the cheapest schedule from all others, valid under repeated looks.

A sweep that stops as soon as the cheapest schedule is separated looks at its trials several times.
A test of level 5 % at each look would name a false winner more often than in 5 % of sweeps. Here
look number j has the level a_j = 0.05 / (j (j + 1)). These levels add up to 0.05, whatever the
number of looks.

*Claim.* With a probability of at least 95 %, no look of a cell finds a schedule separated from the
truly cheapest one and cheaper, at any of the given costs.

*Proof.* Let b be truly the cheapest at a cost, among S schedules and c costs. A false separation at
look j means that for some other schedule w the paired test decides that b costs more than w. By the
choice of b the mean of cost(b) - cost(w) is not positive, so that the test, whose two-sided level
is a_j / (c (S - 1)), errs with a probability of at most a_j / (2 c (S - 1)). There are S - 1 such w
and c costs, so look j errs with a probability of at most a_j / 2. The sum over all looks is at most
0.05 / 2. Nothing is assumed about the dependence of tests or looks, nor about the way in which w
was chosen. QED

The looks are at the first 1,000, 2,000, 4,000, ... trials of a cell, whoever ran them and in
whatever order, so an interrupted sweep that goes on makes no further looks. The test is that of
`fastfed.analysis.intervals`, whose own assumption (no unseen trial costs much more than the dearest
one seen) stays the only one. Schedules that did the same as the cheapest in every trial count as
equal to it, and schedules that leave more trials unended than delta allows are excluded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fastfed.analysis.cheapest import differences, known_mean
from fastfed.analysis.comparable import comparable
from fastfed.analysis.cost_ranges import holds
from fastfed.analysis.moments import Cost, Moments
from fastfed.analysis.trials import Batch, collect

LEVEL = 0.05


def level_of_look(look: int) -> float:
    """Return the error probability that is spent at a look; looks count from 1."""
    return LEVEL / (look * (look + 1))


def separated(
    batches: Callable[[], Iterable[Batch]],
    schedules: Sequence[str],
    delta: float,
    costs: Sequence[Cost],
    look: int,
) -> bool:
    """Tell whether at every cost the cheapest schedule is separated from all others."""
    first = Moments(schedules)
    collect(batches(), schedules, first)
    chosen = comparable(first, delta)
    if not chosen.trials or not all(map(first.trials, schedules)):
        return False
    cheapest = {}
    for cost, unit in costs:
        means = {
            name: known_mean(chosen.moments, name, unit.total(cost))
            for name in chosen.schedules
            if chosen.moments.has_cost(name, unit.alone)
        }
        if means:
            cheapest[cost, unit] = min(means, key=means.__getitem__)
    moments = Moments(schedules, list(cheapest.values()))
    collect(batches(), schedules, moments)
    shared = moments.common(chosen.schedules)
    comparisons = len(costs) * max(1, len(chosen.schedules) - 1)
    level = 1 - level_of_look(look) / comparisons
    for (cost, unit), winner in cheapest.items():
        others = [
            name
            for name in chosen.schedules
            if name != winner and shared.has_cost(name, unit.alone)
        ]
        for behind in differences(shared, others, winner, unit).values():
            if behind.differ and holds(cost, behind.not_above(level)):
                return False
    return True
