"""The theorems against a sweep: one line, and one verdict, per claim, cell and schedule.

A claim about single trials holds with probability 1 - delta (the right answers; pulls, uplinks
and total cost within their bounds), so it is tested by the share of trials that break it, with
its exact (Clopper-Pearson) 95 % interval, against delta. A claim about means (the lower bound,
the ratios to FedElim0) is tested by the mean over the trials that ended, with Student's 95 %
interval. The verdicts are those of `fastfed.statistics.verdicts`, decided over all lines of a
claim together; the interval is that of the line alone.

What this shows, and what it does not: the theorems leave a fourfold slack. On the
synthetic instance measured pulls lie at about a quarter of the sharpest bound (a sixth of T), so
a simulator that is wrong by a factor of two would still pass. A sweep that holds agrees with the
theorems; that the simulator does what the algorithm says is shown by the tests that compare it
with the algorithm as printed, not here.

``tightness`` is the measured mean over its bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastfed.choices import USUAL
from fastfed.errors import InputError
from fastfed.faces import TEXT, Faced
from fastfed.goals import Best
from fastfed.goals import parse as parse_goal
from fastfed.problem.instance import Instance
from fastfed.problem.instance_files import from_toml
from fastfed.problem.schedule import Exponential, Periodic, Schedule, SuperExponential, parse
from fastfed.radius import parse as parse_radius
from fastfed.statistics.intervals import mean_tails, student
from fastfed.statistics.moments import PULLS, UPLINKS, Moments, Prices, Trials
from fastfed.statistics.numbers import short
from fastfed.statistics.summary import yardstick_of
from fastfed.statistics.verdicts import (
    VERDICTS,
    VIOLATED,
    computed,
    decide,
    does_not_apply,
    error_share,
    ratio,
    share,
)
from fastfed.sweeps.grid import Cell
from fastfed.sweeps.spec import make_spec
from fastfed.sweeps.store import Store
from fastfed.theory.bounds import Bounds, Scheme, bounds
from fastfed.validation import checked_costs

if TYPE_CHECKING:
    import polars as pl

_SLACK = 1 + 1e-12  # pulls + C x uplinks, and its bound, are rounded
_COLUMNS = (
    "instance",
    "delta",
    "sigma",
    *USUAL,
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
    "power",
    "reason",
)

_Line = dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Check(Faced):
    """What `check` returns; as text, its table.

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
    the mean, ``verdict``, ``power`` (of claims about trials), ``reason``."""
    lines: list[_Line]
    """The same with what the verdicts were decided by."""

    @property
    def violated(self) -> bool:
        """Whether any line is violated: then `fastfed check` ends with status 1."""
        return self.counts()[VIOLATED] > 0

    def counts(self) -> dict[str, int]:
        """How many lines have each verdict.

        Returns
        -------
        dict
            From the verdict to the number.
        """
        found = self.frame["verdict"].to_list()
        return {verdict: found.count(verdict) for verdict in VERDICTS}

    def __str__(self) -> str:
        face = TEXT.get("Check")
        return str(self.frame) if face is None else face(self)

    __repr__ = __str__


def check(folder: str | Path | Store, costs: Sequence[float] | None = None) -> Check:
    """Hold every cell and schedule in a sweep's folder against the theorems.

    Bounds are those of the cell's confidence scale, radius and goal. Only stored rows are read,
    batch by batch. See the module's text for what a verdict means, and what it does not: the
    theorems leave a fourfold slack.

    Parameters
    ----------
    folder
        A sweep's folder.
    costs
        Costs C of an uplink; None: those of the sweep.

    Returns
    -------
    Check
        Print it, or take its ``frame``.

    Examples
    --------
    >>> import tempfile
    >>> import fastfed as ff
    >>> done = ff.simulate([[0.9], [0.1]], delta=0.1, trials=200).save(tempfile.mkdtemp())
    >>> ff.check(done.folder, costs=[10]).violated
    False
    """
    import polars as pl

    store = Store.of(folder)
    wanted = checked_costs(store.record().spec.cost if costs is None else costs)
    held = store.held()
    if not held:
        raise InputError(f"{store.folder}: nothing to check, the sweep has no rows yet")
    known = instances_of(store)
    found: list[_Line] = []
    for cell, names in held.items():
        found += _Checker(store, cell, known[cell.instance], wanted).lines(names)
    lines = _judged(found)
    texts = ("instance", *USUAL, "schedule", "claim", "verdict", "reason")
    types = {
        name: pl.String
        if name in texts
        else pl.Int64
        if name in ("trials", "ended")
        else pl.Float64
        for name in _COLUMNS
    }
    return Check(
        pl.DataFrame([{name: line.get(name) for name in _COLUMNS} for line in lines], schema=types),
        lines,
    )


def _judged(lines: list[_Line]) -> list[_Line]:
    """The verdicts, decided over the lines of each claim together, in the lines' order."""
    of_claim: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        of_claim.setdefault(line["claim"], []).append(index)
    judged: dict[int, _Line] = {}
    for indices in of_claim.values():
        judged.update(zip(indices, decide([lines[index] for index in indices]), strict=True))
    return [judged[index] for index in range(len(lines))]


def instances_of(folder: str | Path | Store) -> dict[str, Instance]:
    """The instances of a folder's rows, by name: loaded as its spec says, equal to those that
    were run."""
    store = Store.of(folder)
    record = store.record()
    found: dict[str, Instance] = {}
    problems: list[str] = []
    wanted = {cell.instance: cell.digest for cell in store.held()}
    texts = record.instances
    for source in (*texts, *make_spec(record.spec.to_dict()).instances, *wanted):
        try:
            if isinstance(source, str) and source in texts:
                one = from_toml(texts[source], source)
            else:
                one = source if isinstance(source, Instance) else Instance.load(source)
        except InputError as error:
            problems.append(str(error))
            continue
        if wanted.get(one.name) == one.digest:
            found[one.name] = one
        elif one.name in wanted and one.name not in found:
            problems.append(f"{one.name} now has other means or rewards")
    for name in wanted:
        if name not in found:
            raise InputError(
                f"{store.folder}: its instance {name!r} cannot be had any more "
                f"({problems[0]}); go where the sweep was started, or put it back"
            )
    return found


class _Rule(NamedTuple):
    """A bound on what single trials cost."""

    claim: str
    prices: Prices
    bound: float
    cost: float | None = None
    reason: str = ""
    """Why it does not apply, if it does not."""


class _Checker:
    """The lines of one cell."""

    def __init__(self, store: Store, cell: Cell, instance: Instance, costs: list[float]) -> None:
        self.store, self.cell, self.instance, self.costs = store, cell, instance, costs
        self.bounds = self._bounds()
        self.pairs = parse_radius(cell.radius).pairs
        self.best = isinstance(parse_goal(cell.goal), Best)

    def lines(self, names: list[str]) -> Iterator[_Line]:
        yardstick = yardstick_of(names)
        rules = {name: self._rules(parse(name)) for name in names}
        moments = Moments(names, [yardstick] if yardstick else [])
        outside = {name: np.zeros((len(rules[name]), 2), np.int64) for name in names}
        for batch in self.store.batches(self.cell, names):
            trials = Trials.of(batch, names)
            moments.add(trials)
            for row, name in enumerate(names):
                outside[name] += _outside(trials, row, rules[name])
        for name in names:
            lines = [self._error(moments, name)]
            lines += [
                self._within(moments, name, rule, *map(int, counts))
                for rule, counts in zip(rules[name], outside[name], strict=True)
            ]
            if not rules[name]:
                lines += self._unbounded(moments, name)
            lines.append(self._lower(moments, name))
            if _doubles(parse(name)):
                lines += self._ratios(moments, name, yardstick)
            yield from (self._whole(line, name, moments) for line in lines)
        yield from (
            self._whole(line, "periodic", None) for line in self._best_period(moments, names)
        )

    def _bounds(self, period: int | None = None, base: float | None = None) -> Bounds:
        return bounds(
            self.instance,
            self.cell.delta,
            np.array(self.costs),
            self.cell.sigma,
            period,
            base,
            self.cell.radius,
            self.cell.goal,
            self.cell.uplink,
        )

    def _whole(self, line: _Line, schedule: str, moments: Moments | None) -> _Line:
        cell, mean, bound = self.cell, line["mean"], line["bound"]
        tightness = mean / bound if mean is not None and bound else None
        count, ended = (
            (None, None) if moments is None else (moments.trials(schedule), moments.ended(schedule))
        )
        return {
            "reason": "",
            **line,
            **cell.names,
            "schedule": schedule,
            "trials": count,
            "ended": ended,
            "tightness": tightness,
        }

    def _error(self, moments: Moments, name: str) -> _Line:
        """Theorem 1, by the trials that ended: see `error_share`."""
        line = error_share(moments, name, self.cell.delta)
        return {
            "claim": "error rate <= delta",
            "mean": line["value"],
            "bound": self.cell.delta,
            "outside": line["value"],
            **line,
        }

    def _rules(self, schedule: Schedule) -> list[_Rule]:
        """Theorems 2 and 4 and their analogues: what a trial costs on the good event."""
        found = self._scheme(schedule)
        if found is None:
            return []
        scheme, name, pulls = found
        # uplinks from the corrected sums: the paper's forget the first one
        rules = [
            _Rule(f"pulls <= {name}", PULLS, float(pulls)),
            _Rule("pulls <= sharp", PULLS, float(scheme.sharp.pulls[0])),
            _Rule("uplinks <= sum", UPLINKS, float(scheme.summed.uplinks[0])),
            _Rule("uplinks <= sharp", UPLINKS, float(scheme.sharp.uplinks[0])),
        ]
        three = _doubles(schedule)
        total = scheme.as_stated.total if three else scheme.summed.total
        for index, cost in enumerate(self.costs):
            follows = not three or self.bounds.three_T_follows[index]
            rules.append(
                _Rule(
                    "total <= 3T" if three else "total <= sum",
                    Prices.total(cost),
                    float(total[index]),
                    cost,
                    "" if follows else "3T does not follow at this cost",
                )
            )
        return rules

    def _scheme(self, schedule: Schedule) -> tuple[Scheme, str, float] | None:
        """The scheme's bounds, and the name and value of the paper's on pulls."""
        if isinstance(schedule, Periodic):
            b = self._bounds(period=schedule.period)
            if schedule.period == 1:
                return b.periodic, "T", b.T[0]
            return b.periodic, "T + HMK", b.periodic.as_stated.pulls[0]
        if _doubles(schedule):
            return self.bounds.fedelim, "2T", self.bounds.fedelim.as_stated.pulls[0]
        if isinstance(schedule, Exponential):
            scheme = self._bounds(base=schedule.base).exponential
            assert scheme is not None
            return scheme, f"{schedule.base:g}T", scheme.as_stated.pulls[0]
        if isinstance(schedule, SuperExponential):
            scheme = self.bounds.superexponential
            return scheme, "T^2", scheme.as_stated.pulls[0]
        return None

    def _within(self, moments: Moments, name: str, rule: _Rule, broken: int, unknown: int) -> _Line:
        # a radius per pair spends delta on each side of a pair: see `fastfed.theory.bounds`
        allowed = min(1.0, (2.0 if self.pairs else 1.0) * self.cell.delta)
        line = share(broken, unknown, moments.trials(name), allowed)
        line = {
            "claim": rule.claim,
            "mean": moments.mean(name, rule.prices),
            "bound": rule.bound,
            "cost": rule.cost,
            "outside": line["value"],
            **line,
        }
        return does_not_apply(line, rule.reason) if rule.reason else line

    def _unbounded(self, moments: Moments, name: str) -> Iterator[_Line]:
        for claim, prices in (("pulls <= bound", PULLS), ("uplinks <= bound", UPLINKS)):
            yield does_not_apply(
                {"claim": claim, "mean": moments.mean(name, prices), "bound": None},
                "no theorem bounds the cost of listed times",
            )

    def _lower(self, moments: Moments, name: str) -> _Line:
        """Theorem 3. Trials that did not end would only have raised the mean: what holds, holds,
        and nothing is violated."""
        bound, mean = float(self.bounds.lower[0]), moments.mean(name, PULLS)
        line: _Line = {"claim": "mean pulls >= lower", "mean": mean, "bound": bound}
        noise = self.instance.rewards.noise
        if not self.best:
            return does_not_apply(line, "Theorem 3 is about the best arm")
        if noise is None:
            return does_not_apply(line, "Theorem 3 is about Gaussian rewards of one variance")
        if self.cell.sigma < noise:
            return does_not_apply(line, "radii below the noise: the algorithm is not delta-PAC")
        count, cut = moments.ended(name), moments.trials(name) - moments.ended(name)
        if mean is None:
            return {
                **line,
                "value": math.nan,
                "sem": None,
                "limit": 1.0,
                "p_below": 1.0,
                "p_above": 1.0,
                "power": None,
                "reason": "no trial ended",
                "text": "none ended",
            }
        low, high = student(mean, moments.sem(name, PULLS), count)
        if bound == 0:  # what no trial can be below
            return {**line, **computed(0.0, 1.0, "the bound is 0"), "low": low, "high": high}
        small, large = mean_tails(count, mean - bound, (moments.std(name, PULLS) or 0.0) ** 2)
        return {
            **line,
            "value": bound / mean if mean else math.inf,
            "sem": None,
            "limit": 1.0,
            "p_below": large,
            "p_above": 1.0 if cut else small,
            "power": None,
            "low": _finite(low),
            "high": None if cut else _finite(high),
            "reason": f"{cut} trials did not end" if cut else "",
            "text": f"mean pulls {short(mean)}, the bound {short(bound)}",
        }

    def _ratios(self, moments: Moments, name: str, yardstick: str | None) -> Iterator[_Line]:
        """The paper's takeaway: FedElim's pulls are at most 2 times, its total cost at most 3
        times what FedElim0 pulls. Theorem 4 proves it of T, FedElim0's bound, in place of what
        FedElim0 measures; here both are measured, as means over the trials that both ended."""
        for cost in (None, *self.costs):
            limit = 2.0 if cost is None else 3.0
            line: _Line = {
                "claim": f"{'pulls' if cost is None else 'total'} / FE0 <= {limit:g}",
                "cost": cost,
                "mean": None,
                "bound": limit,
            }
            if not self.best:
                yield does_not_apply(line, "the paper says it of the best arm")
                continue
            if yardstick is None:
                yield does_not_apply(line, "no fedelim0 in the sweep")
                continue
            pair = moments.pair(name, yardstick, Prices.total(cost or 0.0), PULLS)
            if pair.ratio is None:
                yield does_not_apply(line, "no pulls of fedelim0 in the same trials")
                continue
            low, high = student(pair.ratio, pair.ratio_sem, pair.count)
            line |= {
                **ratio(pair, limit),
                "mean": pair.ratio,
                "low": _finite(low),
                "high": _finite(high),
            }
            if cost is not None and not self.bounds.three_T_follows[self.costs.index(cost)]:
                line = does_not_apply(line, "3T does not follow at this cost")
            yield line

    def _best_period(self, moments: Moments, names: list[str]) -> Iterator[_Line]:
        for index, cost in enumerate(self.costs):
            means = {
                parse(name).period: mean
                for name in names
                if parse(name).period is not None
                and (mean := moments.mean(name, Prices.total(cost))) is not None
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
                "for information: H_opt minimises a bound, not the mean",
            )


def _outside(trials: Trials, row: int, rules: Sequence[_Rule]) -> Any:
    """How many trials break each rule, and of how many that is not known: they did not end, and
    had not broken it by then."""
    counts = np.zeros((len(rules), 2), np.int64)
    cut = trials.present[row] & ~trials.ended[row]
    for index, rule in enumerate(rules):
        spent = (
            float(rule.prices.pull) * trials.pulls[row]
            + float(rule.prices.uplink) * trials.uplinks[row]
        )
        broken = trials.present[row] & (spent > rule.bound * _SLACK)
        counts[index] = broken.sum(), (cut & ~broken).sum()
    return counts


def _doubles(schedule: Schedule) -> bool:
    """FedElim, under any name."""
    return isinstance(schedule, Exponential) and schedule.base == 2


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
