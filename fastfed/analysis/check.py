"""The theorems against a sweep: one line, and one verdict, per claim, cell and schedule.

A claim about single trials holds with probability 1 - delta (the right answers; pulls, uplinks
and total cost within their bounds), so it is tested by the share of trials that break it, with
its exact (Clopper-Pearson) 95 % interval, against delta. A claim about means (the lower bound,
the ratios to FedElim0) is tested by the mean over the trials that ended, with Student's 95 %
interval. The verdicts are those of `fastfed.analysis.verdicts`, decided over all lines of a
claim together; the interval is that of the line alone.

What this shows, and what it does not: the theorems leave a fourfold slack. On the
synthetic instance measured pulls lie at about a quarter of the sharpest bound (a sixth of T), so
a simulator that is wrong by a factor of two would still pass. A sweep that holds agrees with the
theorems; that the simulator does what the algorithm says is shown by the tests that compare it
with the algorithm as printed, not here.

A line can be violated without contradicting anything: where the confidence scale is too small for
the rewards, say, no theorem promises delta. ``applies`` tells the two apart, ``reason`` says which
condition is missing, and only a contradiction makes `fastfed check` end with status 1.

``tightness`` is the measured mean over its bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastfed.analysis.columns import column_types
from fastfed.analysis.intervals import finite, mean_tails, student
from fastfed.analysis.moments import Moments
from fastfed.analysis.prices import PULLS, UPLINKS, Prices
from fastfed.analysis.summary import paired_moments, yardstick_of
from fastfed.analysis.trials import Aligned, Trials, collect, columns_with
from fastfed.analysis.verdicts import (
    DOES_NOT_APPLY,
    VERDICTS,
    VIOLATED,
    cell_of,
    comparison,
    computed,
    decide,
    does_not_apply,
    error_share,
    share,
)
from fastfed.errors import InputError
from fastfed.model.cell import Cell
from fastfed.model.choices import DEFAULTS, no_theorem, parts_of
from fastfed.model.goals import Best, Goal
from fastfed.model.radii import Radius
from fastfed.model.schedules import Adaptive, Exponential, Periodic, Schedule
from fastfed.text import short
from fastfed.theory.bounds import bounds
from fastfed.theory.lower_bounds import no_theorem_3, not_delta_pac
from fastfed.theory.schemes import Scheme
from fastfed.validation import checked_costs

if TYPE_CHECKING:
    import polars as pl

_SLACK = 1 + 1e-12  # pulls + C x uplinks, and its bound, are rounded
_COUNTS = ("pulls", "uplinks")
_NO_PROMISE = "a fixed budget promises nothing about delta"
CHECK_COLUMNS = (
    "instance",
    "delta",
    "sigma",
    *DEFAULTS,
    "schedule",
    "trials",
    "ended",
    "claim",
    "cost",
    "mean",
    "bound",
    "tightness",
    "outside",
    "low",
    "high",
    "verdict",
    "applies",
    "power",
    "reason",
)

_Line = dict[str, Any]
"""A line of a check; ``missing`` is the condition of its theorem that the run does not meet."""

CONTRADICTS = "contradicts a theorem that applies"
_MEASURED = "Theorem 4 compares with FedElim0's bound T, and here with its measured mean"


@dataclass(frozen=True, eq=False, repr=False)
class Check:
    """The result of `check`; its text is a table.

    Examples
    --------
    >>> import fastfed as ff
    >>> found = ff.simulate([[0.9], [0.1]], delta=0.1, trials=200).check(costs=[10])
    >>> found.violated, found.counts()["violated"]
    (False, 0)
    """

    frame: pl.DataFrame
    """One row per line: ``instance``, ``delta``, ``sigma``, ``radius``, ``goal``, ``uplink``,
    ``schedule``, ``trials``, ``ended``, ``claim``, ``cost`` (where the claim has one), measured
    ``mean`` over the trials that ended, ``bound``, ``tightness``, the share of trials ``outside``
    the bound (of claims about trials), the interval ``low``, ``high`` of that share or else of
    the mean, ``verdict``, ``applies`` (whether a theorem claims the line under the conditions of
    the run), ``power`` (of claims about trials), ``reason``."""
    lines: list[_Line]
    """The same with what the verdicts were decided by."""

    @property
    def violated(self) -> bool:
        """Tell whether any line is violated, for whatever reason."""
        return self.counts()[VIOLATED] > 0

    @property
    def contradicted(self) -> bool:
        """Tell whether a violated line contradicts a theorem that applies to the run.

        Then `fastfed check` ends with status 1.
        """
        lines = self.frame.filter(self.frame["verdict"] == VIOLATED)
        return bool(lines["applies"].any())

    def counts(self) -> dict[str, int]:
        """Count the lines with each verdict.

        Returns
        -------
        dict
            From the verdict to the number.
        """
        found = self.frame["verdict"].to_list()
        return {verdict: found.count(verdict) for verdict in VERDICTS}

    def __str__(self) -> str:
        from fastfed.display.tables import check_table

        return check_table(self, rest=".frame").text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from fastfed.display.tables import check_table

        return check_table(self, rest=".frame").html()


def check(trials: Trials, costs: Sequence[float] | None = None) -> Check:
    """Compare every cell and schedule with the theorems; ``costs`` None: those of the trials."""
    wanted = checked_costs(trials.costs if costs is None else costs)
    held = trials.held()
    if not held:
        raise InputError(f"{trials.source}: nothing to check, the sweep has no rows yet")
    lines: list[_Line] = []
    for cell, schedules in held.items():
        checked = CellCheck(trials, cell, schedules, wanted)
        moments = paired_moments(schedules, _COUNTS, _COUNTS)
        batches = trials.batches(cell, moments.schedules, columns_with(_COUNTS))
        collect(batches, moments.schedules, moments, checked)
        lines += checked.lines(moments)
    return judge(lines)


def judge(lines: Sequence[_Line]) -> Check:
    """Decide the verdicts over the lines of each claim together, in the order of the lines."""
    import polars as pl

    of_claim: dict[str, list[_Line]] = {}
    for line in lines:
        of_claim.setdefault(line["claim"], []).append(line)
    judged = {claim: iter(decide(some)) for claim, some in of_claim.items()}
    found = [_explained(next(judged[line["claim"]])) for line in lines]
    columns = {name: [line.get(name) for line in found] for name in CHECK_COLUMNS}
    return Check(pl.DataFrame(columns, schema=column_types(CHECK_COLUMNS)), found)


def _explained(line: _Line) -> _Line:
    """Say whether a theorem claims the line, and why it is violated if it is."""
    missing = line.get("missing")
    applies = missing is None and line["verdict"] != DOES_NOT_APPLY
    if line["verdict"] != VIOLATED:
        return {**line, "applies": applies}
    why = CONTRADICTS if applies else f"no theorem applies: {missing}"
    return {**line, "applies": applies, "reason": "; ".join(filter(None, [why, line["reason"]]))}


class _Rule(NamedTuple):
    """A bound on what single trials cost."""

    claim: str
    prices: Prices
    bound: float
    cost: float | None = None
    reason: str = ""
    """Why it does not apply, if it does not."""


class CellCheck:
    """The theorems against one cell: a collector of its trials, and the lines that follow."""

    def __init__(
        self, trials: Trials, cell: Cell, schedules: Sequence[Schedule], costs: list[float]
    ) -> None:
        self.cell, self.schedules, self.costs = cell, schedules, costs
        self.instance = trials.instances[cell.instance]
        choices = trials.choices(cell)
        self._uncovered = no_theorem(choices)
        # bounds are shown beside what no theorem covers, as those of the paper's choice
        parts = parts_of(choices)
        known: dict[str, Any] = {
            k: DEFAULTS[k] if parts[k].no_theorem() else choices[k] for k in DEFAULTS
        }
        self.bounds = bounds(self.instance, cell.delta, np.array(costs), cell.sigma, **known)
        self.radius, self.goal = Radius.parse(choices["radius"]), Goal.parse(choices["goal"])
        self._missing = not_delta_pac(self.instance, cell.sigma, self.radius)
        self._rules = {str(one): self._rules_of(one) for one in schedules}
        self._outside = {
            name: np.zeros((len(rules), 2), np.int64) for name, rules in self._rules.items()
        }

    def add(self, trials: Aligned) -> None:
        """Count the trials of a batch that break each bound."""
        for row, name in enumerate(trials.schedules):
            self._outside[name] += _outside(trials, row, self._rules[name])

    def lines(self, moments: Moments) -> Iterator[_Line]:
        """Make the lines of the cell, once all its trials are added up."""
        yardstick = yardstick_of(self.schedules)
        for schedule in self.schedules:
            name = str(schedule)
            rules = self._rules[name]
            lines = [self._error(moments, schedule)]
            lines += [
                self._within(moments, name, rule, *map(int, counts))
                for rule, counts in zip(rules, self._outside[name], strict=True)
            ]
            if not rules:
                lines += self._unbounded(moments, schedule)
            lines += self._least(moments, schedule)
            if _doubles(schedule):
                lines += self._ratios(moments, name, yardstick)
            yield from (self._whole(line, name, moments) for line in lines)
        yield from (self._whole(line, "periodic", None) for line in self._best_period(moments))

    def _whole(self, line: _Line, schedule: str, moments: Moments | None) -> _Line:
        mean, bound = line["mean"], line["bound"]
        return {
            "reason": "",
            **line,
            **self.cell.names,
            "schedule": schedule,
            "trials": None if moments is None else moments.trials(schedule),
            "ended": None if moments is None else moments.ended(schedule),
            "tightness": mean / bound if mean is not None and bound else None,
        }

    def _error(self, moments: Moments, schedule: Schedule) -> _Line:
        """Make the line of Theorem 1, the error rate: see `error_share`."""
        found, delta = error_share(moments, str(schedule), self.cell.delta), self.cell.delta
        reason = _NO_PROMISE if schedule.fixed_budget else ""
        return self._of_share(found, "error rate <= delta", found["value"], delta, reason)

    def _of_share(
        self, found: _Line, claim: str, mean: float | None, bound: float, reason: str
    ) -> _Line:
        """Make the line of a share of trials; ``reason``: why the claim does not apply."""
        line = {
            "missing": self._missing,
            "claim": claim,
            "mean": mean,
            "bound": bound,
            "outside": found["value"],
            **found,
        }
        return does_not_apply(line, reason) if reason else line

    def _rules_of(self, schedule: Schedule) -> list[_Rule]:
        """Return upper bounds on the costs of a trial: Theorems 2 and 4, and their analogues."""
        found = self._scheme(schedule)
        if found is None:
            return []
        scheme, name, pulls = found
        # uplinks from the corrected sums: the paper's forget the first one
        rules = [
            _Rule(f"pulls <= {name}", PULLS, float(pulls)),
            _Rule("pulls <= sharp", PULLS, float(scheme.sharp.pulls[0])),
            _Rule("uplinks <= summed", UPLINKS, float(scheme.summed.uplinks[0])),
            _Rule("uplinks <= sharp", UPLINKS, float(scheme.sharp.uplinks[0])),
        ]
        three = _doubles(schedule)
        claim = "total <= 3T" if three else "total <= summed"
        totals = scheme.as_stated.total if three else scheme.summed.total
        for cost, total in zip(self.costs, totals, strict=True):
            reason = self._no_three_T(cost) if three else ""
            rules.append(_Rule(claim, Prices.total(cost), float(total), cost, reason))
        return [one._replace(reason=self._uncovered or one.reason) for one in rules]

    def _no_three_T(self, cost: float) -> str:
        """Say why FedElim's total <= 3T is not claimed at a cost; empty if it is."""
        follows = self.bounds.three_T_follows[self.costs.index(cost)]
        return "" if follows else "3T does not follow at this cost"

    def _scheme(self, schedule: Schedule) -> tuple[Scheme, str, float] | None:
        """Find the bounds of a schedule, with the name and value of the paper's on pulls."""
        scheme = self.bounds.scheme(schedule)
        if scheme is None:
            return None
        pulls = scheme.as_stated.pulls[0]
        if schedule.period == 1:
            return scheme, "T", self.bounds.T[0]
        if isinstance(schedule, Periodic):
            return scheme, "T + HMK", pulls
        if isinstance(schedule, Exponential):
            return scheme, f"{schedule.base:g}T", pulls
        if isinstance(schedule, Adaptive):
            return scheme, f"{schedule.growth:g}T + n_1 MK", pulls
        return scheme, "T^2", pulls

    def _within(self, moments: Moments, name: str, rule: _Rule, broken: int, unknown: int) -> _Line:
        # a radius per pair spends delta on each side of a pair: see `fastfed.theory.bounds`
        allowed = min(1.0, (2.0 if self.radius.pairs else 1.0) * self.cell.delta)
        found = share(broken, unknown, moments.trials(name), allowed) | {"cost": rule.cost}
        mean = moments.mean(name, rule.prices)
        return self._of_share(found, rule.claim, mean, rule.bound, rule.reason)

    def _unbounded(self, moments: Moments, schedule: Schedule) -> Iterator[_Line]:
        cost = "listed times" if schedule.eliminates else "an algorithm of its own rules"
        for claim, prices in (("pulls <= bound", PULLS), ("uplinks <= bound", UPLINKS)):
            yield does_not_apply(
                {"claim": claim, "mean": moments.mean(str(schedule), prices), "bound": None},
                f"no theorem bounds the cost of {cost}",
            )

    def _least(self, moments: Moments, schedule: Schedule) -> Iterator[_Line]:
        """Make the lines of the lower bounds on mean pulls, Theorem 3 and T*."""
        b, name = self.bounds, str(schedule)
        refused = _NO_PROMISE if schedule.fixed_budget else self._missing
        stated = None if b.lower is None else float(b.lower[0])
        least = None if b.least_pulls is None else float(b.least_pulls[0])
        for claim, bound, reason in (
            ("mean pulls >= Theorem 3", stated, no_theorem_3(self.instance, self.goal)),
            ("mean pulls >= T* kl", least, None if least is not None else b.notes[-1]),
        ):
            line = {"claim": claim, "mean": moments.mean(name, PULLS), "bound": bound}
            if bound is None or refused:
                yield does_not_apply(line, reason or refused or "")
            else:
                yield self._at_least(moments, name, line, bound)

    def _at_least(self, moments: Moments, name: str, line: _Line, bound: float) -> _Line:
        """Compare mean pulls with a lower bound.

        Trials that did not end would have raised the mean. So if there are such trials, the line
        may hold but cannot be violated.
        """
        mean = line["mean"]
        count, cut = moments.ended(name), moments.trials(name) - moments.ended(name)
        if mean is None:
            return {**line, **cell_of(math.nan, 1.0, text="none ended"), "reason": "no trial ended"}
        low, high = student(mean, moments.sem(name, PULLS), count)
        if bound == 0:  # what no trial can be below
            return {**line, **computed(0.0, 1.0, "the bound is 0"), "low": low, "high": high}
        small, large = mean_tails(*moments.excess(name, PULLS, bound))
        text = f"mean pulls {short(mean)}, the bound {short(bound)}"
        return {
            **line,
            **cell_of(bound / mean if mean else math.inf, 1.0, large, 1.0 if cut else small, text),
            "low": finite(low),
            "high": None if cut else finite(high),
            "reason": "some trials did not end" if cut else "",
        }

    def _ratios(self, moments: Moments, name: str, yardstick: str | None) -> Iterator[_Line]:
        """Check that FedElim pulls at most 2 times, and costs at most 3 times, what FedElim0 pulls.

        This is the paper's takeaway. Theorem 4 proves it with T, a bound on FedElim0's pulls, in
        place of the pulls themselves. Here both sides are measured, as means over the trials that
        both schedules ended.
        """
        for cost in (None, *self.costs):
            limit = 2.0 if cost is None else 3.0
            line: _Line = {
                "claim": f"{'pulls' if cost is None else 'total'} / FedElim0 <= {limit:g}",
                "cost": cost,
                "mean": None,
                "bound": limit,
                "missing": _MEASURED,
            }
            if not isinstance(self.goal, Best):
                yield does_not_apply(line, "the paper claims it only for the best arm")
                continue
            if yardstick is None:
                yield does_not_apply(line, "the sweep has no fedelim0")
                continue
            prices = (Prices.total(cost or 0.0), PULLS)
            pair = moments.pair(name, yardstick, *prices)
            if pair.ratio is None:
                yield does_not_apply(line, "no pulls of fedelim0 in the same trials")
                continue
            low, high = student(pair.ratio, pair.ratio_sem, pair.pairs)
            line |= {
                **comparison(moments, (name, yardstick), prices, self.cell.delta, limit),
                "mean": pair.ratio,
                "low": finite(low),
                "high": finite(high),
            }
            reason = "" if cost is None else self._no_three_T(cost)
            yield does_not_apply(line, reason) if reason else line

    def _best_period(self, moments: Moments) -> Iterator[_Line]:
        for index, cost in enumerate(self.costs):
            means = {
                one.period: mean
                for one in self.schedules
                if one.period is not None
                and (mean := moments.mean(str(one), Prices.total(cost))) is not None
            }
            if len(means) < 2:
                continue
            best = min(means, key=means.__getitem__)
            yield does_not_apply(
                {
                    "claim": "best H, H_opt",
                    "cost": cost,
                    "mean": float(best or 0),
                    "bound": float(self.bounds.period_opt[index]),
                },
                "H_opt minimises a bound, not the mean cost; shown for information",
            )


def _outside(trials: Aligned, row: int, rules: Sequence[_Rule]) -> Any:
    """Count the trials that break each rule, and the trials of which that is not known.

    It is not known of a trial that did not end and had not broken the rule by then.
    """
    counts = np.zeros((len(rules), 2), np.int64)
    cut = trials.present[row] & ~trials.ended[row]
    for index, rule in enumerate(rules):
        counts_of = trials.values(rule.prices.names)[row]
        spent = rule.prices.spent(dict(zip(rule.prices.names, counts_of, strict=True)))
        broken = trials.present[row] & (spent > rule.bound * _SLACK)
        counts[index] = broken.sum(), (cut & ~broken).sum()
    return counts


def _doubles(schedule: Schedule) -> bool:
    """Tell whether a schedule is FedElim, under any of its names."""
    return isinstance(schedule, Exponential) and schedule.base == 2
