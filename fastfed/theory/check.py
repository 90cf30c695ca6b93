"""The theorems against a sweep: one line, and one verdict, per claim, cell and schedule.

A claim about single trials holds with probability 1 - delta (the right answers; pulls, uplinks
and total cost within their bounds), so it is tested by the share of trials that break it, with
its exact (Clopper-Pearson) 95 % interval, against delta. A claim about means (the lower bound,
the ratios to FedElim0) is tested by Student's 95 % interval of the mean.

    holds              the whole interval lies on the claim's side
    violated           the whole interval lies on the other side
    not enough trials  the interval has both, or too many trials were truncated to tell
    does not apply     no theorem says so; ``reason`` says why, and the numbers stand all the same

A line is judged by itself: a claim that held with equality, nowhere to spare, would be called
violated in 1 of 40 sweeps. ``tightness`` is the measured mean over its bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError, printable
from fastfed.problem import schedule as schedules
from fastfed.problem.instance import Instance
from fastfed.problem.instance_files import from_toml
from fastfed.problem.rewards import Gaussian
from fastfed.problem.schedule import Exponential, Periodic, Schedule, SuperExponential
from fastfed.results.tables import short
from fastfed.statistics.summary import EVERY_STEP, checked_costs, clopper_pearson, ratio_of_means
from fastfed.sweeps.grid import Cell
from fastfed.sweeps.spec import make_spec
from fastfed.sweeps.store import Store
from fastfed.theory.bounds import Bounds, Scheme, bounds

if TYPE_CHECKING:
    import polars as pl

HOLDS, VIOLATED = "holds", "violated"
DOES_NOT_APPLY, NOT_ENOUGH_TRIALS = "does not apply", "not enough trials"
VERDICTS = (HOLDS, VIOLATED, NOT_ENOUGH_TRIALS, DOES_NOT_APPLY)
_SLACK = 1 + 1e-12  # pulls + C x uplinks, and its bound, are rounded

_Floats = npt.NDArray[np.float64]
_Line = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Check:
    """What `check` returns; as text, its table."""

    frame: pl.DataFrame
    """One row per line: ``instance``, ``delta``, ``sigma``, ``schedule``, ``trials``, ``claim``,
    ``cost`` (where the claim has one), measured ``mean``, ``bound``, ``tightness``, the share of
    trials ``outside`` the bound (of claims about trials), the interval ``low``, ``high`` of that
    share or else of the mean, ``verdict``, ``reason``."""

    @property
    def violated(self) -> bool:
        return self.counts()[VIOLATED] > 0

    def counts(self) -> dict[str, int]:
        """How many lines have each verdict."""
        found = self.frame["verdict"].to_list()
        return {verdict: found.count(verdict) for verdict in VERDICTS}

    def __str__(self) -> str:
        return _check_text(self)


def check(folder: str | Path | Store, costs: Sequence[float] | None = None) -> Check:
    """Hold every cell and schedule in a sweep's folder against the theorems.

    Bounds are those of the cell's confidence scale. ``costs`` are the uplink costs (None: those
    of the sweep). Only stored rows are read, one schedule at a time.
    """
    import polars as pl

    store = Store.of(folder)
    wanted = checked_costs(store.record().spec.cost if costs is None else costs)
    held = store.held()
    if not held:
        raise InputError(f"{store.folder}: nothing to check, the sweep has no rows yet")
    known = instances_of(store)
    lines: list[_Line] = []
    for cell, names in held.items():
        lines += _Checker(store, cell, known[cell.instance], wanted).lines(names)
    texts = ("instance", "schedule", "claim", "verdict", "reason")
    types = {name: pl.String if name in texts else pl.Int64 if name == "trials" else pl.Float64
             for name in lines[0]}
    return Check(pl.DataFrame(lines, schema=types))


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
            raise InputError(f"{store.folder}: its instance {name!r} cannot be had any more "
                             f"({problems[0]}); go where the sweep was started, or put it back")
    return found


@dataclass(frozen=True, eq=False)
class _Trials:
    """One schedule's trials. A truncated trial has given no answer and could have cost more."""

    trial: npt.NDArray[np.int64]
    pulls: _Floats
    uplinks: _Floats
    wrong: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]


class _Checker:
    """The lines of one cell."""

    def __init__(self, store: Store, cell: Cell, instance: Instance, costs: list[float]) -> None:
        self.store, self.cell, self.instance, self.costs = store, cell, instance, costs
        self.bounds = self._bounds()

    def lines(self, names: list[str]) -> Iterator[_Line]:
        every_step = next((name for name in EVERY_STEP if name in names), None)
        yardstick = None if every_step is None else self._read(every_step)
        totals: dict[int, list[float]] = {}  # period: mean total at each cost
        for name in names:
            schedule = schedules.parse(name)
            trials = self._read(name)
            lines = [self._error(trials), *self._within(trials, schedule), self._lower(trials)]
            if _doubles(schedule):
                lines += self._ratios(trials, yardstick)
            yield from (self._whole(line, name, len(trials.trial)) for line in lines)
            if schedule.period is not None and not trials.truncated.any():
                totals[schedule.period] = [float(np.mean(trials.pulls + cost * trials.uplinks))
                                           for cost in self.costs]
        if len(totals) > 1:
            yield from (self._whole(line, "periodic", None) for line in self._best_period(totals))

    def _bounds(self, period: int | None = None, base: float | None = None) -> Bounds:
        return bounds(self.instance, self.cell.delta, np.array(self.costs), self.cell.sigma,
                      period, base)

    def _read(self, name: str) -> _Trials:
        columns = self.store.samples(self.cell, name)
        correct, truncated = (columns[one].astype(bool) for one in ("correct", "truncated"))
        return _Trials(columns["trial"], columns["pulls"].astype(np.float64),
                       columns["uplinks"].astype(np.float64), ~correct & ~truncated, truncated)

    def _whole(self, line: _Line, schedule: str, trials: int | None) -> _Line:
        cell, mean, bound = self.cell, line["mean"], line["bound"]
        tightness = mean / bound if mean is not None and bound else None
        return {"instance": cell.instance, "delta": cell.delta, "sigma": cell.sigma,
                "schedule": schedule, "trials": trials, "claim": line["claim"],
                "cost": line.get("cost"), "mean": mean, "bound": bound, "tightness": tightness,
                **{name: line.get(name) for name in ("outside", "low", "high")},
                "verdict": line["verdict"], "reason": line.get("reason", "")}

    def _error(self, trials: _Trials) -> _Line:
        """Theorem 1."""
        line = self._share(trials.wrong, trials.truncated)
        return {"claim": "error rate <= delta", "mean": line["outside"], "bound": self.cell.delta,
                **line}

    def _within(self, trials: _Trials, schedule: Schedule) -> Iterator[_Line]:
        """Theorems 2 and 4 and their analogues: what a trial costs on the good event."""
        found = self._scheme(schedule)
        if found is None:
            for claim in ("pulls <= bound", "uplinks <= bound"):
                mean = float(np.mean(getattr(trials, claim.split()[0])))
                yield {"claim": claim, "mean": mean, "bound": None, "verdict": DOES_NOT_APPLY,
                       "reason": "no theorem bounds the cost of listed times"}
            return
        scheme, name, pulls = found
        # uplinks from the corrected sums: the paper's forget the first one
        for what, text, bound in (
            ("pulls", name, pulls), ("pulls", "sharp", scheme.sharp.pulls[0]),
            ("uplinks", "sum", scheme.summed.uplinks[0]),
            ("uplinks", "sharp", scheme.sharp.uplinks[0]),
        ):
            yield self._at_most(f"{what} <= {text}", getattr(trials, what), bound, trials)
        for index, cost in enumerate(self.costs):
            total = trials.pulls + cost * trials.uplinks
            three = _doubles(schedule)
            line = self._at_most(
                "total <= 3T" if three else "total <= sum", total,
                (scheme.as_stated if three else scheme.summed).total[index], trials)
            if three and not self.bounds.three_T_follows[index]:
                line |= {"verdict": DOES_NOT_APPLY, "reason": "3T does not follow at this cost"}
            yield {**line, "cost": cost}

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

    def _at_most(self, claim: str, values: _Floats, bound: float, trials: _Trials) -> _Line:
        outside = values > bound * _SLACK
        return {"claim": claim, "mean": float(np.mean(values)), "bound": float(bound),
                **self._share(outside, trials.truncated & ~outside)}

    def _share(self, broken: npt.NDArray[np.bool_], unknown: npt.NDArray[np.bool_]) -> _Line:
        """The share of trials that break a claim of probability 1 - delta. Those of which nothing
        is known count for the low limit as if they kept it, for the high one as if they broke
        it."""
        trials, surely = len(broken), int(broken.sum())
        low = clopper_pearson(surely, trials)[0]
        high = clopper_pearson(surely + int(unknown.sum()), trials)[1]
        return {"outside": surely / trials, "low": low, "high": high,
                **_judged(low, high, self.cell.delta, int(unknown.sum()))}

    def _lower(self, trials: _Trials) -> _Line:
        """Theorem 3. Truncated trials only bring the mean down: what holds, holds."""
        mean, bound = float(np.mean(trials.pulls)), float(self.bounds.lower[0])
        line: _Line = {"claim": "mean pulls >= lower", "mean": mean, "bound": bound}
        rewards = self.instance.rewards
        if not isinstance(rewards, Gaussian):
            return {**line, **_does_not_apply("Theorem 3 is about Gaussian rewards")}
        if self.cell.sigma < rewards.sigma:
            return {**line, **_does_not_apply("radii below the noise: the algorithm is not "
                                              "delta-PAC")}
        count = len(trials.pulls)
        sem = float(np.std(trials.pulls, ddof=1)) / math.sqrt(count) if count > 1 else math.inf
        low, high = _interval(mean, sem, count)
        if trials.truncated.any():
            high = math.inf
        return {**line, **_judged(-high, -low, -bound, int(trials.truncated.sum())),
                "low": _finite(low), "high": _finite(high)}

    def _ratios(self, trials: _Trials, yardstick: _Trials | None) -> Iterator[_Line]:
        """The paper's takeaway: FedElim's pulls are at most 2 times, its total cost at most 3
        times what FedElim0 pulls. Theorem 4 proves it of T, FedElim0's bound, in place of what
        FedElim0 measures; here both are measured, as means over the same trials."""
        for cost in (None, *self.costs):
            limit = 2.0 if cost is None else 3.0
            line: _Line = {"claim": f"{'pulls' if cost is None else 'total'} / FE0 <= {limit:g}",
                           "cost": cost, "mean": None, "bound": limit}
            if yardstick is None:
                yield {**line, **_does_not_apply("no fedelim0 in the sweep")}
                continue
            _, here, there = np.intersect1d(trials.trial, yardstick.trial, assume_unique=True,
                                            return_indices=True)
            if trials.truncated[here].any() or yardstick.truncated[there].any():
                yield {**line, **_does_not_apply("truncated trials")}
                continue
            spent = trials.pulls[here] + (cost or 0.0) * trials.uplinks[here]
            ratio, sem = (ratio_of_means(spent, yardstick.pulls[there]) if len(here) else
                          (math.nan, math.nan))
            if math.isnan(ratio):
                yield {**line, **_does_not_apply("no pulls of fedelim0 in the same trials")}
                continue
            low, high = _interval(ratio, math.inf if math.isnan(sem) else sem, len(here))
            line |= {"mean": ratio, "low": _finite(low), "high": _finite(high),
                     **_judged(low, high, limit)}
            if cost is not None and not self.bounds.three_T_follows[self.costs.index(cost)]:
                line |= _does_not_apply("3T does not follow at this cost")
            yield line

    def _best_period(self, totals: dict[int, list[float]]) -> Iterator[_Line]:
        for index, cost in enumerate(self.costs):
            best = min(totals, key=lambda period: totals[period][index])
            yield {"claim": "best H, H_opt", "cost": cost, "mean": float(best),
                   "bound": float(self.bounds.period_opt[index]),
                   **_does_not_apply("for information: H_opt minimises a bound, not the mean")}


def _doubles(schedule: Schedule) -> bool:
    """FedElim, under any name."""
    return isinstance(schedule, Exponential) and schedule.base == 2


def _judged(low: float, high: float, limit: float, truncated: int = 0) -> _Line:
    """The verdict on "at most limit"."""
    if low > limit:
        return {"verdict": VIOLATED}
    if high <= limit:
        return {"verdict": HOLDS}
    return {"verdict": NOT_ENOUGH_TRIALS,
            "reason": f"{truncated} trials truncated" if truncated else ""}


def _does_not_apply(reason: str) -> _Line:
    return {"verdict": DOES_NOT_APPLY, "reason": reason}


def _interval(mean: float, sem: float, count: int) -> tuple[float, float]:
    """Student's 95 % interval; everything, where one trial says nothing of the spread."""
    from scipy.special import stdtrit

    if math.isinf(sem):
        return -math.inf, math.inf
    reach = float(stdtrit(count - 1, 0.975)) * sem
    return mean - reach, mean + reach


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _check_text(found: Check) -> str:
    """The lines by cell, then how many have which verdict and why: in 100 columns, if the costs
    are not too long."""
    text: list[str] = []
    head = (f"{'schedule':<16} {'claim':<23} {'mean':>9} {'bound':>9} {'/bound':>6} "
            f"{'95 % interval':>13} verdict")
    for (instance, delta, sigma), lines in found.frame.group_by(["instance", "delta", "sigma"],
                                                                maintain_order=True):
        counts = sorted({count for count in lines["trials"] if count is not None})
        span = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
        text += [f"{printable(str(instance))}, delta {delta:g}, sigma {sigma:g}, {span} trials",
                 head]
        text += [_line_text(line) for line in lines.iter_rows(named=True)]
        text.append("")
    text += [f"{verdict}: {count}" for verdict, count in found.counts().items()]
    reasons = found.frame.filter(found.frame["reason"] != "")
    for (verdict, reason), lines in reasons.group_by(["verdict", "reason"], maintain_order=True):
        text.append(f"  {verdict}, {len(lines)}: {reason}")
    return "\n".join(text)


def _line_text(line: _Line) -> str:
    name, claim, mean, low, high = (line[key] for key in
                                    ("schedule", "claim", "mean", "low", "high"))
    name = name if len(name) <= 16 else f"{name[:13]}..."
    claim += "" if line["cost"] is None else f", C {line['cost']:g}"
    if low is None or high is None:
        interval = ""
    elif line["outside"] is None:
        interval = f"±{_brief((high - low) / 2)}"
    elif line["verdict"] == NOT_ENOUGH_TRIALS:
        interval = f"{low:.2g}-{high:.2g}"
    else:  # the limit that decides
        interval = f">= {low:.2g}" if line["verdict"] == VIOLATED else f"<= {high:.2g}"
    tight = "" if line["tightness"] is None else _brief(line["tightness"])
    return (f"{name:<16} {claim:<23} {short(mean):>9} {short(line['bound']):>9} {tight:>6} "
            f"{interval:>13} {line['verdict']}")


def _brief(number: float) -> str:
    """In six columns."""
    if 1e-3 <= number < 1e3:
        return f"{number:.3g}"
    return f"{number:,.0f}" if 1e3 <= number < 1e5 else f"{number:.1g}"
