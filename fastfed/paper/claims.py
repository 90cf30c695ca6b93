"""The paper's claims, judged by frames.

A claim is a set of cells, each a measured value that should lie below a limit: one cell for each
data set, delta, cost or whatever the claim speaks of. A cell more than two standard errors from
its limit is decided, any other is open; the verdict follows from the decided ones. No figure is
written here but the limits, and each of them is in the claim's ``criterion``.

Frames are summaries (`fastfed.summary`), one row per instance, schedule, delta, sigma and cost,
with four more pairs of columns from the paired trials (`fastfed.reproduce.compared`):

    over_fedelim    mean total cost over FedElim's at the same C
    over_pulls0     mean total cost over the mean pulls of FedElim0
    more_pulls      mean pulls over FedElim's
    more_uplinks    mean uplinks over FedElim's
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from fastfed.statistics.verdicts import Cell, Claim, conclude, measure, number

COST = 10.0  # the C of the paper's panels (b) and (c)
PAPER_COSTS = (0.0, 10.0, 100.0)
ALMOST = 1.5  # "almost as well as the best", where the paper gives no number
STRAIGHT = 0.05  # a line is straight if no point is further off, relative to the line
POWER = 0.15  # an exponent is 1 if it is no further off: the bounds have a logarithm, too


@dataclass(frozen=True)
class Frames:
    """What the claims are computed from; any of it may be empty."""

    panels: pl.DataFrame
    """Every data set at its own confidence scale, over delta."""
    studies: pl.DataFrame
    """One delta, many bases and periods; columns period_opt and base_opt."""
    gaps: pl.DataFrame
    """The synthetic instance with its gaps multiplied; column gap."""
    scales: pl.DataFrame
    """As ``panels``, with whatever other confidence scales there are."""


def judge(frames: Frames) -> list[Claim]:
    """Every claim for which there are rows."""
    found: list[Claim | None] = []
    for frame, claims in (
        (frames.panels, PANELS), (frames.scales, (minimum_everywhere,)),
        (frames.gaps, (inverse_square,)), (frames.studies, STUDIES),
    ):
        if len(frame):
            found += [claim(frame) for claim in claims]
    return [claim for claim in found if claim is not None]


def delta_pac(panels: pl.DataFrame) -> Claim | None:
    rows = _rows(panels, ["fedelim", "fedelim0"], cost=COST)
    cells = [measure(row, row["error_low"], row["delta"], None, value=row["error_rate"],
                   text=f"{row['error_rate'] * row['trials']:.0f} wrong in {row['trials']:,} "
                        f"trials (95 % interval {row['error_low']:.2g} to {row['error_high']:.2g})",
                   schedule=row["schedule"]) for row in rows]
    return conclude(
        "delta-pac", "All local best arms and the global one are found with probability at least "
        "1 - delta, by FedElim and by FedElim0.", "Theorem 1",
        "the exact 95 % interval of the error rate begins at or below delta", cells)


def total_three(panels: pl.DataFrame) -> Claim | None:
    return conclude(
        "total-three", "FedElim's total cost is at most 3 times what FedElim0 pulls, for C = 0, "
        "10 and 100.", "Abstract; Theorem 4; Figures 2(a), 3(a), 4(a)", "ratio of the means "
        "at most 3", [_over_pulls0(row, 3.0) for cost in PAPER_COSTS
                    for row in _rows(panels, ["fedelim"], cost=cost)])


def total_any_cost(panels: pl.DataFrame) -> Claim | None:
    return conclude(
        "total-three-any-cost", "The factor 3 does not depend on C.",
        "Remark 4; 'regardless of the value of C', text to Figure 2(a)",
        "ratio of the means at most 3 for every C that was looked at",
        [_over_pulls0(row, 3.0) for row in _rows(panels, ["fedelim"])])


def pulls_two(panels: pl.DataFrame) -> Claim | None:
    return conclude(
        "pulls-two", "FedElim pulls at most twice as often as FedElim0.", "Abstract; Theorem 4",
        "ratio of the means at most 2",
        [_over_pulls0(row, 2.0) for row in _rows(panels, ["fedelim"], cost=0.0)])


def fedelim0_cheaper(panels: pl.DataFrame) -> Claim | None:
    cells = [measure(row, row["over_fedelim"], 1.0, row["over_fedelim_sem"], strict=True)
             for row in _rows(panels, ["fedelim0"], cost=0.0)]
    return conclude(
        "fedelim0-cheaper", "Where talking is free (C = 0), FedElim0 is cheaper than FedElim.",
        "Captions of Figures 2(a), 4(a)", "FedElim0's mean total over FedElim's below 1", cells)


def communication(panels: pl.DataFrame) -> Claim | None:
    cells = []
    for (_, _), rows in _groups(panels.filter(pl.col("cost") == COST)):
        by = _by_schedule(rows)
        for name in ("periodic:1", "periodic:5", "periodic:10"):
            if name in by and "fedelim" in by:
                cells.append(_ratio(by["fedelim"], by[name], "communication", schedule=name))
    return conclude(
        "communication", "FedElim spends less on communication than periodic schemes with H = 1, "
        "5 and 10.", "Figures 2(b), 3(b), 4(b) and their text",
        "FedElim's mean communication cost over the periodic one's below 1", cells)


def communication_falls(panels: pl.DataFrame) -> Claim | None:
    cells = []
    for (_, _), rows in _groups(panels.filter(pl.col("cost") == COST)):
        by = _by_period(rows)
        for short, long in ((1, 5), (5, 10)):
            if short in by and long in by:
                cells.append(_ratio(by[long], by[short], "communication",
                                    what=f"H = {long} against {short}"))
    return conclude(
        "communication-falls", "A longer period (H = 1, 5, 10) never spends more on "
        "communication than a shorter one.", "Text to Figure 2(b)",
        "mean communication cost over that of the next shorter period at most 1", cells)


def sweet_spot(panels: pl.DataFrame) -> Claim | None:
    cells = []
    for (_, _), rows in _groups(panels.filter(pl.col("cost") == COST)):
        by = _powers(rows)
        if len(by) > 2:
            ends = _least([by[min(by)], by[max(by)]])
            inner = _least([row for period, row in by.items() if min(by) < period < max(by)])
            cells.append(_ratio(inner, ends, note=f"best H = {_period(inner):,} of those between"))
    return conclude(
        "sweet-spot", "Over the period H, the total cost falls, has a least value, and rises.",
        "Remark 2; supplement, optimal period",
        "the least mean total over H = 10 ... 10^4 lies below those of H = 1 and H = 10^5", cells)


def spot_at_100(panels: pl.DataFrame) -> Claim | None:
    cells = []
    synthetic = panels.filter(pl.col("cost") == COST, pl.col("instance") == "synthetic")
    for (_, _), rows in _groups(synthetic):
        by = _powers(rows)
        others = [row for period, row in by.items() if period != 100]
        if 100 in by and others:
            rival = _least(others)
            cells.append(_ratio(by[100], rival, note=f"next best H = {_period(rival):,}"))
    return conclude(
        "spot-at-100", "On the synthetic data the best of the periods is around H = 100.",
        "Text to Figure 2(c)",
        "the mean total at H = 100 over the least of the other powers of ten below 1", cells)


def periodic_beats(panels: pl.DataFrame) -> Claim | None:
    synthetic = panels.filter(pl.col("instance") == "synthetic")
    cells = [measure(row, row["over_fedelim"], 1.0, row["over_fedelim_sem"],
                   schedule=row["schedule"])
             for row in _rows(synthetic, ["periodic:100", "periodic:1000"], cost=COST)]
    return conclude(
        "periodic-beats", "On the synthetic data, periods H = 100 and H = 1000 are cheaper than "
        "FedElim at C = 10.", "Supplement, optimal period",
        "mean total over FedElim's below 1", cells)


def almost_best(panels: pl.DataFrame) -> Claim | None:
    return conclude(
        "almost-best", "Without knowing C, FedElim does almost as well as the best period.",
        "Captions of Figures 2(c), 4(c); Remark 2",
        f"FedElim's mean total over the least periodic one below {ALMOST:g} ('almost' has no "
        "number in the paper)",
        [_against_best(rows, ALMOST) for _, rows in _groups(panels.filter(pl.col("cost") == COST))
         if _powers(rows)])


def minimum_movielens(panels: pl.DataFrame) -> Claim | None:
    return _absolute_minimum(panels, "movielens", "Figure 3(c) and its text")


def minimum_bernoulli(panels: pl.DataFrame) -> Claim | None:
    return _absolute_minimum(panels, "bernoulli", "supplement, Bernoulli")


def _absolute_minimum(panels: pl.DataFrame, instance: str, place: str) -> Claim | None:
    chosen = panels.filter(pl.col("cost") == COST, pl.col("instance").str.starts_with(instance))
    return conclude(
        f"minimum-{instance}", f"On {instance}, no periodic scheme is cheaper than FedElim "
        "(H = 10^0 ... 10^5, C = 10).", place,
        "FedElim's mean total over the least periodic one at most 1",
        [_against_best(rows, 1.0) for _, rows in _groups(chosen) if _powers(rows)])


def minimum_any_period(panels: pl.DataFrame) -> Claim | None:
    """H = 5 is in the paper's panels (b), not in its panels (c)."""
    chosen = panels.filter(pl.col("cost") == COST, pl.col("instance").str.starts_with("movielens"))
    return conclude(
        "minimum-any-period", "On movielens, no periodic scheme is cheaper than FedElim, H = 5 "
        "among them (C = 10).", "'among all schemes that communicate periodically', text to "
        "Figure 3(c)", "FedElim's mean total over the least periodic one at most 1",
        [_against_best(rows, 1.0, _by_period(rows)) for _, rows in _groups(chosen)
         if _by_period(rows)])


def minimum_everywhere(scales: pl.DataFrame) -> Claim | None:
    """The same over delta, C and confidence scale: the cells are the map."""
    cells = [_against_best(rows, 1.0, cost=cost, sigma=sigma)
             for (_, _, sigma, cost), rows in scales.filter(pl.col("cost") > 0).group_by(
                 ["instance", "delta", "sigma", "cost"], maintain_order=True) if _powers(rows)]
    return conclude(
        "minimum-map", "No periodic scheme (H = 10^0 ... 10^5) is cheaper than FedElim, whatever "
        "delta, C > 0 and the scale of the confidence radii.",
        "Figure 3(c), supplement, Bernoulli; extended here",
        "FedElim's mean total over the least periodic one at most 1", cells)


def linear_in_log(panels: pl.DataFrame) -> Claim | None:
    cells = []
    for name, cost in (("fedelim", COST), ("fedelim0", 0.0)):
        chosen = panels.filter(pl.col("schedule") == name, pl.col("cost") == cost)
        for _, rows in chosen.group_by(["instance"], maintain_order=True):
            if len(rows) < 3:
                continue
            x, y = np.log(1 / rows["delta"].to_numpy()), rows["total_mean"].to_numpy()
            slope, offset = np.polyfit(x, y, 1)
            off = np.abs(y / (slope * x + offset) - 1)
            worst = int(off.argmax())
            row = rows.row(worst, named=True)
            cells.append(measure(row, float(off[worst]), STRAIGHT,
                               (row["total_sem"] or math.nan) / row["total_mean"], schedule=name,
                               note=f"{slope:,.0f} for each unit of ln(1/delta)"))
    return conclude(
        "linear-in-log", "The total cost grows linearly in ln(1/delta).",
        "Contributions; Theorem 4",
        f"no delta's mean is more than {STRAIGHT:.0%} off the line fitted through all", cells)


def inverse_square(gaps: pl.DataFrame) -> Claim | None:
    cells = []
    for name, cost in (("fedelim", COST), ("fedelim0", 0.0)):
        rows = gaps.filter(pl.col("schedule") == name, pl.col("cost") == cost)
        if len(rows) < 3:
            continue
        x = -2 * np.log(rows["gap"].to_numpy())
        weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        mean, sem = rows["total_mean"].to_numpy(), rows["total_sem"].fill_null(math.nan).to_numpy()
        exponent = float(weights @ np.log(mean))
        error = float(np.sqrt(((weights * sem / mean) ** 2).sum()))
        head = {"instance": "synthetic", "delta": rows["delta"][0]}
        cells.append(measure(head, abs(exponent - 1), POWER, error, schedule=name,
                           text=f"exponent {number(exponent, error)}"))
    return conclude(
        "inverse-square", "The total cost grows as 1/gap^2.", "Contributions; Theorem 4",
        f"the exponent of 1/gap^2, all gaps scaled together, is within {POWER:g} of 1 (the bounds "
        "have a logarithm of the gap, too)", cells)


def trade_off(studies: pl.DataFrame) -> Claim | None:
    cells = []
    for (_, _), rows in _groups(_at(studies, COST)):
        by = _by_schedule(rows)
        periodic = dict.fromkeys(("periodic:10", f"periodic:{_best_period(rows)}"))
        for name in periodic:
            if name in by:
                period = f"H = {_period(by[name])}"
                cells += [_ratio(by["fedelim"], by[name], "communication",
                                 what=f"FedElim talks less than {period}"),
                          _ratio(by[name], by["fedelim"], "pulls",
                                 what=f"{period} pulls less than FedElim")]
        if "superexponential" in by:
            last = by["superexponential"]
            cells += [_ratio(last, by["fedelim"], "communication",
                             what="super-exponential talks less than FedElim"),
                      _ratio(by["fedelim"], last, "pulls",
                             what="FedElim pulls less than super-exponential"),
                      _ratio(by["fedelim"], last, "total",
                             what="FedElim costs less than super-exponential")]
    return conclude(
        "trade-off", "Periodic communication pulls least and talks most, super-exponential "
        "communication talks least and pulls most, FedElim lies between.",
        "Supplement, table of the three schemes",
        "ratios of the means below 1; periodic with H = 10 and with H nearest H_opt", cells)


def near_best_period(studies: pl.DataFrame) -> Claim | None:
    cells = []
    for (_, _), rows in _groups(_at(studies, COST)):
        by, name = _by_schedule(rows), f"periodic:{_best_period(rows)}"
        if name in by:
            best = _least(list(_by_period(rows).values()))
            note = f"H_opt = {_best_period(rows):,}; cheapest H = {_period(best):,}"
            cells += [_ratio(by["fedelim"], by[name], limit=ALMOST, note=note,
                             what="FedElim against H_opt"),
                      _ratio(by[name], best, limit=ALMOST, note=note,
                             what="H_opt against the best")]
    return conclude(
        "near-best-period", "H_opt = sqrt(C T / (M K)) is a good period, and FedElim costs about "
        "as much without knowing it.", "Supplement, optimal period",
        f"mean total over the other's below {ALMOST:g}", cells)


def base_two(studies: pl.DataFrame) -> Claim | None:
    cells = []
    for (_, _), rows in _groups(_at(studies, COST)):
        bases = rows.filter(pl.col("schedule").str.starts_with("exponential:")
                            | (pl.col("schedule") == "fedelim"))
        if len(bases) > 1:
            best = _least(list(bases.iter_rows(named=True)))
            base = best["schedule"].partition(":")[2] or "2"
            cells.append(_ratio(
                _by_schedule(rows)["fedelim"], best, limit=ALMOST,
                note=f"cheapest lambda = {base}; lambda_opt = {rows['base_opt'][0]:.4g}"))
    return conclude(
        "base-two", "The base lambda = 2 works well; nothing is gained by knowing the best.",
        "Supplement, base lambda", f"FedElim's mean total over the least of all bases below "
        f"{ALMOST:g}", cells)


def _ratio(above: Cell, below: Cell, what_of: str = "total", *, limit: float = 1.0, note: str = "",
           **where: Any) -> Cell:
    """Mean over mean. Two bounds on its relative error: as if the two were independent (they rise
    and fall together), and the sum of both errors relative to FedElim, from paired trials."""
    a, b = above[f"{what_of}_mean"], below[f"{what_of}_mean"]
    apart = math.hypot(*(_relative(one, f"{what_of}_mean", f"{what_of}_sem")
                         for one in (above, below)))
    paired = _PAIRED[what_of]
    together = sum(_relative(one, paired, f"{paired}_sem") for one in (above, below))
    known = [error for error in (apart, together) if math.isfinite(error)]
    return measure(above, a / b, limit, a / b * min(known, default=math.nan), note=note, **where)


_PAIRED = {"total": "over_fedelim", "pulls": "more_pulls", "communication": "more_uplinks"}


def _relative(row: Cell, mean: str, sem: str) -> float:
    return math.nan if row[sem] is None or not row[mean] else float(row[sem] / row[mean])


def _against_best(rows: pl.DataFrame, limit: float, periods: dict[int, Cell] | None = None,
                  **where: Any) -> Cell:
    best = _least(list((periods or _powers(rows)).values()))
    fedelim = _by_schedule(rows)["fedelim"]
    return _ratio(fedelim, best, limit=limit, note=f"best H = {_period(best):,}", **where)


def _over_pulls0(row: Cell, limit: float) -> Cell:
    return measure(row, row["over_pulls0"], limit, row["over_pulls0_sem"], cost=row["cost"])


def _rows(frame: pl.DataFrame, schedules: list[str], cost: float | None = None) -> list[Cell]:
    chosen = frame.filter(pl.col("schedule").is_in(schedules))
    if cost is not None:
        chosen = chosen.filter(pl.col("cost") == cost)
    return list(chosen.iter_rows(named=True))


def _at(frame: pl.DataFrame, cost: float) -> pl.DataFrame:
    return frame.filter(pl.col("cost") == cost)


def _groups(frame: pl.DataFrame) -> Any:
    return frame.group_by(["instance", "delta"], maintain_order=True)


def _by_schedule(rows: pl.DataFrame) -> dict[str, Cell]:
    return {row["schedule"]: row for row in rows.iter_rows(named=True)}


def _by_period(rows: pl.DataFrame) -> dict[int, Cell]:
    periodic = {int(name.partition(":")[2]): row for name, row in _by_schedule(rows).items()
                if name.startswith("periodic:")}
    return dict(sorted(periodic.items()))


def _powers(rows: pl.DataFrame) -> dict[int, Cell]:
    """The periods of the paper's panels (c)."""
    return {period: row for period, row in _by_period(rows).items()
            if period == 10 ** round(math.log10(period))}


def _least(rows: list[Cell]) -> Cell:
    return min(rows, key=lambda row: float(row["total_mean"]))


def _period(row: Cell) -> int:
    return int(row["schedule"].partition(":")[2])


def _best_period(rows: pl.DataFrame) -> int:
    return int(rows["best_period"][0])


_Judge = Callable[[pl.DataFrame], Claim | None]
PANELS: tuple[_Judge, ...] = (
    delta_pac, total_three, total_any_cost, pulls_two, fedelim0_cheaper, communication,
    communication_falls, sweet_spot, spot_at_100, periodic_beats, almost_best, minimum_movielens,
    minimum_any_period, minimum_bernoulli, linear_in_log)
STUDIES: tuple[_Judge, ...] = (trade_off, near_best_period, base_two)
