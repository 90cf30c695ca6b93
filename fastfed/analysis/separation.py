"""Separation of the cheapest schedule from all others, valid under repeated looks.

A sweep that stops as soon as the cheapest schedule is separated looks at its trials several times.
A test of level 5 % at each look would name a false winner more often than in 5 % of sweeps. Here
look number j has the level a_j = 0.05 / (j (j + 1)). These levels add up to 0.05, whatever the
number of looks.

The costs are those of trials with right answers, which all schedules that are compared answered
rightly (see `fastfed.analysis.comparable`). A schedule is the truly cheapest if its mean
cost over such trials is the least.

*Claim.* If the paired test keeps its level, then with a probability of at least 97.5 % no look of a
cell finds a schedule separated from the truly cheapest one and cheaper, at any of the given costs.
The set of schedules that are compared is given: it follows from their failures alone.

*Proof.* Let b be truly the cheapest at a cost, among S schedules and c costs. A false separation at
look j means that for some other schedule w the paired test decides that b costs more than w. By the
choice of b the mean of cost(b) - cost(w) is not positive, so that the test, whose two-sided level
is a_j / (c (S - 1)), errs with a probability of at most a_j / (2 c (S - 1)). There are S - 1 such w
and c costs, so look j errs with a probability of at most a_j / 2. The sum over all looks is at most
0.05 / 2. Nothing is assumed about the dependence of tests or looks, nor about the way in which w
was chosen. QED

No test of a mean keeps its level for every distribution: dear trials may not have been seen. Two
precautions are against that, and no proof:

1. The first look is at `first_look` = max(2,000, 3 / delta) trials. A kind of trial whose share is
   0.22 % is unseen in 2,000 with a probability of 1.2 %.
2. A separation must survive `FURTHER` = 3 further trials, the worst that the costs seen allow (one
   is enough for a test that is made once). The share of trials that are dearer than the dearest of
   n is at most 3 / n with a probability of 95 % (Clopper-Pearson), and is priced at that cost.

`fastfed.analysis.intervals` says what the test assumes, and why that holds for trials with right
answers. Further looks are at twice, four times, ... as many trials of a cell, whoever ran them and
in whatever order, so an interrupted sweep that goes on makes no further looks. Schedules that did
the same as the cheapest in every trial count as equal to it, and schedules that fail in more trials
than delta allows are excluded.

*Measured* in 2,000 sweeps of four looks, of a schedule that is 0.01 % dearer in truth than another
of constant cost: 1.7 % stopped with it as a false winner if its costs are log-normal with sigma 2,
and 0.15 % if 0.3 % of its trials cost 200 times as much as the others. With one further trial and a
first look at 1,000 it was 7.7 % and 6.1 % (`tests/analysis/test_separation.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fastfed.analysis.cheapest import envelope
from fastfed.analysis.comparable import least_trials
from fastfed.analysis.cost_ranges import holds
from fastfed.analysis.moments import Moments
from fastfed.analysis.prices import Cost, columns_of, units
from fastfed.analysis.trials import Batch, Passes

LEVEL = 0.05
FURTHER = 3
"""Further trials, the worst that the costs seen allow, which a separation must survive."""
_FIRST_LOOK = 2000


def first_look(delta: float) -> int:
    """Return the number of trials of a cell at which a sweep first looks."""
    return max(_FIRST_LOOK, least_trials(delta))


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
    unit = costs[0][1]
    prices = {"pulls": 0.0, **dict(unit.base.items)}
    columns = columns_of((0.0, one) for one in units(prices))
    rows = Passes(batches, schedules)
    rows.collect(first := Moments(schedules, (), columns))
    if not all(map(first.trials, schedules)):
        return False
    found = envelope(first, rows.collect, {"delta": delta}, prices)
    level = 1 - level_of_look(look) / len(costs) / max(1, len(found.schedules) - 1)
    return found.compared > 0 and not any(
        behind.differ and holds(cost, behind.not_above(level, FURTHER))
        for cost, unit in costs
        for behind in found.lead(cost, unit)[1].values()
    )
