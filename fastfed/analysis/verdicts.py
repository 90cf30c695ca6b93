"""One way from measurements to verdicts, for `fastfed check` and for the paper's claims.

A *cell* is one measured value that should be at most (or below) a limit: one instance, delta and
schedule, say. It carries two p-values: ``p_below``, how probable so small a value would be if the
truth lay at the limit, and ``p_above``, how probable so large a one. A claim is judged over all
its cells together:

    holds                     the evidence says that the value lies on the claim's side
    violated                  the evidence says that it lies on the other side
    not refuted (power ...)   a claim of probability: too few trials to confirm it, and nothing
                              speaks against it. The power is the probability that so many trials
                              refute it, in a single test, if the true rate is twice the limit:
                              near 0, that nothing was found means nothing
    not enough trials         the evidence decides neither way; or trials that did not end, of
                              which nothing is known, could tip it either way
    does not apply            nobody claims it here; ``reason`` says why

With several hundred cells some differ from their limit by chance. Therefore what counts as
evidence is decided by the procedure of Benjamini and Yekutieli over a claim's cells, on two-sided
p-values and at the level `LEVEL`: of the cells that are decided, the expected share of wrong
decisions (a wrong side counts as wrong) is at most 5 %. Benjamini and Hochberg's procedure, which
decides a few more, assumes independent or positively dependent cells; ours share trials and
schedules in every way (a schedule that stands above the line in one cell stands below it in
another), and Benjamini and Yekutieli's holds whatever the dependence. A claim with one cell is an
ordinary two-sided test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fastfed.analysis.comparable import excluded
from fastfed.analysis.intervals import (
    LEAST_DIFFERING,
    clopper_pearson,
    mean_tails,
    share_power,
    share_tails,
)
from fastfed.analysis.moments import Moments
from fastfed.analysis.paired import Paired
from fastfed.analysis.prices import Prices
from fastfed.analysis.verdict_words import (
    DOES_NOT_APPLY,
    HOLDS,
    NOT_ENOUGH_TRIALS,
    NOT_REFUTED,
    VERDICTS,
    VIOLATED,
    sentence,
    status,
)
from fastfed.model.schedules import Schedule
from fastfed.text import number

LEVEL = 0.05

__all__ = ["DOES_NOT_APPLY", "HOLDS", "NOT_ENOUGH_TRIALS", "NOT_REFUTED", "VERDICTS", "VIOLATED"]

Cell = dict[str, Any]
"""instance, delta, whatever else says where it lies; value, sem, limit, p_below, p_above, power
(None unless the claim is one of probability), text; `decide` adds verdict and ``holds``, which is
True, False, or None for what is not decided."""

_NAMES = {"delta": "delta", "cost": "C", "sigma": "scale", "schedule": "", "radius": "", "what": ""}


@dataclass(frozen=True)
class Claim:
    """One claim and what became of it."""

    key: str
    claim: str
    where: str
    criterion: str
    verdict: str
    """One of `fastfed.analysis.verdict_words.STATUSES`."""
    sentence: str
    """The verdict in plain words: where the claim holds, and where it does not."""
    measured: list[str]
    """For each data set the cell that comes closest to its limit, or is furthest beyond it."""
    value: float
    """That of all data sets, with its standard error and the limit."""
    sem: float | None
    limit: float
    doubt: float | None
    """The largest adjusted p-value among the decided cells; None if none is decided."""
    cells: list[Cell]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def cell_of(
    value: float,
    limit: float,
    below: float = 1.0,
    above: float = 1.0,
    text: str = "",
    sem: float | None = None,
) -> Cell:
    """Make a cell without a statistical power; p-values of 1, the defaults, decide nothing."""
    return {
        "value": value,
        "sem": sem,
        "limit": limit,
        "p_below": below,
        "p_above": above,
        "power": None,
        "text": text,
    }


def share(broken: int, unknown: int, trials: int, limit: float) -> Cell:
    """Make the cell of a share of trials that should be at most ``limit``.

    Trials of which nothing is known count as keeping the limit in the test that refutes the claim,
    and as breaking it in the test that confirms the claim. The power is that of the other trials.
    """
    low, high = clopper_pearson(broken, trials)[0], clopper_pearson(broken + unknown, trials)[1]
    cut = f", and {unknown:,} did not end" if unknown else ""
    return {
        "value": broken / trials,
        "sem": None,
        "limit": limit,
        "low": low,
        "high": high,
        "at_most": (broken + unknown) / trials,
        "p_below": share_tails(broken + unknown, trials, limit)[0],
        "p_above": share_tails(broken, trials, limit)[1],
        "power": share_power(trials - unknown, limit) if unknown < trials else 0.0,
        "reason": "some trials did not end" if unknown else "",
        "text": f"{broken:,} of {trials:,} trials{cut} (95 % interval {low:.2g} to {high:.2g})",
    }


def error_share(moments: Moments, schedule: str, limit: float) -> Cell:
    """Make the cell of the share of trials with a wrong answer, at most ``limit`` if it holds.

    Theorem 1 is about answers, and a trial that did not end has not given all of its own: it may
    have been cut off by ``max_steps``, or given up where the arms left over tie. So it neither
    refutes the theorem nor helps to confirm it (summaries, which promise nothing, count it as
    wrong), and the text says how many there are.
    """
    cut = moments.trials(schedule) - moments.ended(schedule)
    return share(moments.errors(schedule) - cut, cut, moments.trials(schedule), limit)


def comparison(
    moments: Moments,
    schedules: tuple[str, str],
    prices: tuple[Prices, Prices],
    delta: float,
    limit: float = 1.0,
    note: str = "",
    judge: Moments | None = None,
) -> Cell:
    """Compare two schedules: the ratio of mean costs, which should be at most ``limit``.

    It is over the trials that both ended (of ``judge``, if given), and does not apply where one of
    the two fails in more trials than ``delta`` allows: see `fastfed.analysis.comparable`.
    """
    judge = moments if judge is None else judge
    pair = judge.pair(*schedules, *prices)
    most = max(map(judge.trials, schedules))
    ended = f"over the {pair.pairs:,} trials that both ended" if pair.pairs < most else ""
    out = excluded(moments, schedules, delta)
    shares = [f"{name}: {why}" for name, why in out.items()]
    cell = ratio(pair, limit, "; ".join(filter(None, [note, ended, *shares])))
    return does_not_apply(cell, "fails in more trials than delta allows") if out else cell


def ratio(pairs: Paired, limit: float, note: str = "") -> Cell:
    """Make the cell of a ratio of two mean costs of paired trials, at most ``limit``."""
    value, sem = pairs.ratio, pairs.ratio_sem
    if value is None:
        return cell_of(math.nan, limit, text="nothing to compare with")
    text = number(value, sem)
    if limit == 1 and abs(value - 1) < NEAR:
        text += f"; {_difference_text(pairs)}"
    text = f"{text} ({note})" if note else text
    excess = pairs.values(limit - 1)
    return cell_of(value, limit, *mean_tails(*excess), text, sem) | {"excess": excess}


NEAR = 0.01  # a ratio closer to 1 shows the difference, too


def _difference_text(pairs: Paired) -> str:
    value, sem = pairs.u, pairs.sem()
    trials = f"{pairs.differ:,} of {pairs.pairs:,} trials differ"
    if 0 < pairs.differ < LEAST_DIFFERING:
        trials += f", {LEAST_DIFFERING} are needed"
    if not pairs.differ:
        high = clopper_pearson(0, pairs.pairs)[1]
        return f"equal in all {pairs.pairs:,} trials, at most {high:.2g} of all differ"
    error = "" if sem is None else f" ± {sem:.2g}"
    return f"difference {value:+.3g}{error}, {trials}"


def normal(value: float, limit: float, sem: float | None, text: str = "") -> Cell:
    """Make the cell of a value with a normal error that should be at most ``limit``."""
    from scipy.special import ndtr

    if sem is None or not math.isfinite(sem):
        below, above = 1.0, 1.0
    elif sem == 0:
        below, above = (0.0, 1.0) if value <= limit else (1.0, 0.0)
    else:
        below, above = (float(ndtr(sign * (value - limit) / sem)) for sign in (1, -1))
    return cell_of(value, limit, below, above, text or number(value, sem), sem)


def computed(value: float, limit: float, text: str = "") -> Cell:
    """Make the cell of a value that was computed without randomness."""
    return normal(value, limit, 0.0, text) | {"sem": None}


def does_not_apply(cell: Cell, reason: str) -> Cell:
    """Mark a cell as one to which the claim does not apply."""
    return {**cell, "verdict": DOES_NOT_APPLY, "reason": reason}


def decide(cells: Sequence[Cell]) -> list[Cell]:
    """Give every cell of a claim its verdict.

    Cells that have a verdict (`does_not_apply`) keep it.
    """
    open_cells = [cell for cell in cells if "verdict" not in cell]
    two_sided = [min(1.0, 2 * min(cell["p_below"], cell["p_above"])) for cell in open_cells]
    adjusted = iter(_adjusted(two_sided))
    decided = []
    for cell in cells:
        if "verdict" in cell:
            decided.append({"adjusted_p": None, **cell, "holds": None})
            continue
        p = next(adjusted)
        if p <= LEVEL:
            verdict = HOLDS if cell["p_below"] < cell["p_above"] else VIOLATED
        elif cell["power"] is not None and cell.get("at_most", cell["value"]) <= cell["limit"]:
            verdict = NOT_REFUTED
        else:
            verdict = NOT_ENOUGH_TRIALS
        holds = {HOLDS: True, VIOLATED: False}.get(verdict)
        decided.append({**cell, "adjusted_p": p, "verdict": verdict, "holds": holds})
    return decided


def _adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by the procedure of Benjamini and Yekutieli.

    `scipy.stats.false_discovery_control` gives the same, but takes half a second to import.
    """
    import numpy as np

    count = len(p_values)
    ranks = np.arange(1, count + 1)
    order = np.argsort(p_values)
    scaled = np.asarray(p_values)[order] * (count / ranks) * np.sum(1 / ranks)
    adjusted = np.empty(count)
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return np.minimum(adjusted, 1.0).tolist()  # type: ignore[no-any-return]


def conclude(
    key: str, text: str, where: str, criterion: str, cells: Sequence[Cell]
) -> Claim | None:
    """Conclude the verdict on a claim from its cells; None without cells."""
    if not cells:
        return None
    judged = decide(cells)
    by_instance: dict[str, list[Cell]] = {}
    for cell in judged:
        by_instance.setdefault(cell["instance"], []).append(cell)
    closest = {name: max(group, key=_nearness) for name, group in by_instance.items()}
    worst = max(closest.values(), key=_nearness)
    doubts = [cell["adjusted_p"] for cell in judged if cell["holds"] is not None]
    return Claim(
        key,
        text,
        where,
        criterion,
        status(judged),
        sentence(judged),
        [f"{_place(cell)}: {cell['text']}" for cell in closest.values()],
        worst["value"],
        worst["sem"],
        worst["limit"],
        max(doubts, default=None),
        judged,
    )


def _nearness(cell: Cell) -> float:
    """Return the value over its limit; cells without a value come last."""
    near = float(cell["value"] / cell["limit"]) if cell["limit"] else math.inf
    return -math.inf if math.isnan(near) else near


def _coordinate(key: str, value: Any) -> str:
    if key == "schedule" and (one := Schedule.parse(value)).family == "periodic":
        return f"H = {one.period}"
    return f"{_NAMES[key]} = {value:g}" if _NAMES[key] else str(value)


def _place(cell: Cell) -> str:
    places = [_coordinate(key, cell[key]) for key in _NAMES if key in cell]
    return ", ".join([cell["instance"], *places])
