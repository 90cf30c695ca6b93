"""Cells, each a measured value against a limit, and the verdict that they add up to.

A cell more than two standard errors from its limit is decided, any other is open; the verdict on
a claim follows from its decided cells, and says where the others are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

Cell = dict[str, Any]
"""instance, delta, whatever else says where it lies, value, sem, limit, holds, text."""

FIRM = 2.0  # standard errors
_NAMES = {"delta": "delta", "cost": "C", "sigma": "scale", "schedule": "", "what": ""}


@dataclass(frozen=True)
class Claim:
    """One claim and what became of it."""

    key: str
    claim: str
    where: str
    criterion: str
    verdict: str
    """Begins with "holds", "holds only for", "does not hold" or "undecided"."""
    measured: list[str]
    """For each data set the cell that comes closest to its limit, or is furthest beyond it."""
    value: float
    """That of all data sets, with its standard error and the limit."""
    sem: float | None
    limit: float
    firmness: float | None
    """How many standard errors the least firm of the decided cells lies from its limit; None
    where nothing is random."""
    cells: list[Cell]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def conclude(key: str, text: str, where: str, criterion: str, cells: list[Cell]) -> Claim | None:
    if not cells:
        return None
    decided = [cell for cell in cells if cell["holds"] is not None]
    by_instance: dict[str, list[Cell]] = {}
    for cell in cells:
        by_instance.setdefault(cell["instance"], []).append(cell)
    closest = {name: max(group, key=_nearness) for name, group in by_instance.items()}
    worst = max(closest.values(), key=_nearness)
    firm = [abs(cell["value"] - cell["limit"]) / cell["sem"] for cell in decided if cell["sem"]]
    return Claim(key, text, where, criterion, _verdict(cells),
                 [f"{_place(cell)}: {cell['text']}" for cell in closest.values()],
                 worst["value"], worst["sem"], worst["limit"], min(firm, default=None), cells)


def _nearness(cell: Cell) -> float:
    """1 at the limit, more beyond it."""
    return float(cell["value"] / cell["limit"])


def _verdict(cells: Sequence[Cell]) -> str:
    open_cells = [cell for cell in cells if cell["holds"] is None]
    good = [cell for cell in cells if cell["holds"]]
    bad = [cell for cell in cells if cell["holds"] is False]
    if not good and not bad:
        return "undecided: more trials are needed"
    undecided = f"; undecided for {places(open_cells, cells)}" if open_cells else ""
    if not bad:
        return "holds" + undecided
    if not good:
        return "does not hold" + undecided
    if len(bad) < len(good):
        return f"holds only for all but {places(bad, cells)}{undecided}"
    return f"holds only for {places(good, cells)}{undecided}"


def places(chosen: Sequence[Cell], among: Sequence[Cell]) -> str:
    """Where the chosen cells lie, as briefly as the rest allows: what does not matter is left
    out, deltas in a row become a range."""
    parts = []
    for instance in dict.fromkeys(cell["instance"] for cell in chosen):
        mine = [cell for cell in chosen if cell["instance"] == instance]
        every = [cell for cell in among if cell["instance"] == instance]
        if len(mine) == len(every):
            parts.append(instance)
            continue
        keys = [key for key in _NAMES if key != "delta" and key in every[0]]
        ranges: dict[str, list[str]] = {}
        for where, deltas in _by_place(mine, keys).items():
            span = _range(deltas, _by_place(every, keys)[where])
            ranges.setdefault(span, []).append(" ".join(
                _coordinate(key, value) for key, value in zip(keys, where, strict=True)))
        parts.append(f"{instance} (" + "; ".join(
            " at ".join(filter(None, [_listed(group), span])) for span, group in ranges.items())
            + ")")
    return ", ".join(parts)


def _listed(texts: Sequence[str]) -> str:
    """"C = 0", "C = 10" as "C = 0, 10"."""
    heads = {text.rpartition(" = ")[0] for text in texts}
    tails = [text.rpartition(" = ")[2] for text in texts]
    if len(heads) == 1 and "" not in heads and not any(" " in tail for tail in tails):
        return f"{heads.pop()} = " + ", ".join(tails)
    return ", ".join(filter(None, texts))


def _by_place(cells: Sequence[Cell], keys: list[str]) -> dict[tuple[Any, ...], list[float]]:
    """The deltas at each combination of the other coordinates."""
    deltas: dict[tuple[Any, ...], list[float]] = {}
    for cell in cells:
        deltas.setdefault(tuple(cell[key] for key in keys), []).append(cell["delta"])
    return deltas


def _range(chosen: list[float], every: list[float]) -> str:
    inside, order = set(chosen), sorted(set(every))
    if len(inside) == len(order):
        return ""
    if len(inside) > 1 and inside == set(order[:len(inside)]):
        return f"delta <= {max(inside):g}"
    if len(inside) > 1 and inside == set(order[-len(inside):]):
        return f"delta >= {min(inside):g}"
    return "delta = " + ", ".join(f"{delta:g}" for delta in sorted(inside, reverse=True))


def _coordinate(key: str, value: Any) -> str:
    if key == "schedule":
        return _in_words(value)
    return f"{_NAMES[key]} = {value:g}" if _NAMES[key] else str(value)


def _in_words(schedule: str) -> str:
    kind, _, value = schedule.partition(":")
    return f"H = {value}" if kind == "periodic" else schedule


def _place(cell: Cell) -> str:
    return ", ".join([cell["instance"], *(
        _coordinate(key, cell[key]) for key in _NAMES if key in cell)])


def measure(row: Cell, tested: float, limit: float, sem: float | None, *, text: str = "",
          note: str = "", value: float | None = None, strict: bool = False, **where: Any
            ) -> Cell:
    """``tested`` against its limit, which it may reach unless ``strict``; ``value`` is what is
    shown, if it is something else."""
    if sem is not None and not math.isfinite(sem):
        holds = None
    else:
        below = tested < limit if strict else tested <= limit
        holds = None if sem and abs(tested - limit) < FIRM * sem else bool(below)
    text = text or number(tested, sem)
    return {"instance": row["instance"], "delta": row["delta"], **where,
            "value": tested if value is None else value, "sem": sem, "limit": limit,
            "holds": holds, "text": f"{text} ({note})" if note else text}


def number(value: float, sem: float | None) -> str:
    """With as many digits as the error allows."""
    if sem is None or not math.isfinite(sem) or sem == 0:
        return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
    digits = max(0, 1 - math.floor(math.log10(sem)))
    return f"{value:,.{digits}f} ± {sem:,.{digits}f}"
