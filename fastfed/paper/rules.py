"""Rules by which the claims of `claims.toml` are judged.

A claim is a row: a rule, the field of the evidence that it is judged by (``cells``), and the keys
of the rule. A rule turns both into cells: measured values that should lie below a limit.
`fastfed.analysis.verdicts` turns cells into a verdict. No limit is typed but in the rows.

    compare    mean cost of one schedule over another's, or over the cheapest of several
    errors     share of trials with a wrong answer, at most delta
    checked    lines of `fastfed check`
    line       distance of mean costs from a line in ln(1/delta)
    exponent   exponent of 1/gap^2 in mean costs
    growth     growth of uplinks beside ln T
    split      factors of FedElim's distance from the least pulls
    as-is      cells that were computed or counted elsewhere
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from fastfed.analysis.prices import PULLS, UPLINKS, Prices
from fastfed.analysis.verdicts import (
    DOES_NOT_APPLY,
    Cell,
    Claim,
    comparison,
    computed,
    conclude,
    does_not_apply,
    error_share,
    normal,
)
from fastfed.model.schedules import Schedule
from fastfed.paper.evidence import COST, PAIRS, PAPER, PRICES, Evidence, Place, in_words, named
from fastfed.text import number

Row = Mapping[str, Any]
"""A claim of `claims.toml`."""


@cache
def claims() -> list[Row]:
    """Read the claims."""
    text = files(__package__).joinpath("claims.toml").read_text(encoding="utf-8")
    rows: list[Row] = [{"limit": 1.0, **row} for row in tomllib.loads(text)["claim"]]
    return rows


def judge(evidence: Evidence) -> list[Claim]:
    """Judge every claim for which there are cells."""
    found = (judge_claim(row, evidence.get(row["cells"], ())) for row in claims())
    return [one for one in found if one is not None]


def judge_claim(row: Row, given: Sequence[Any]) -> Claim | None:
    """Judge one claim by its evidence; None without cells."""
    criterion = row["criterion"].format(limit=row["limit"])
    cells = list(RULES[row["rule"]](row, given))
    return conclude(row["key"], row["claim"], row["where"], criterion, cells)


def _compare(row: Row, places: Sequence[Place]) -> Iterator[Cell]:
    """Compare schedules trial by trial: each of ``pairs``, at each of ``costs``.

    Keys of a pair that are missing are the row's. A list in ``one`` or ``other`` makes a cell of
    each name. ``best_one`` and ``best_other`` choose the cheapest of several, by half of the
    trials, and the other half judges.
    """
    for place in places:
        if place.instance in row.get("instances", [place.instance]):
            for cost in _costs(row, place):
                for pair in row.get("pairs", [{}]):
                    yield from _pair({**row, **pair}, place, cost)


def _costs(row: Row, place: Place) -> list[float | None]:
    """List the costs of an uplink; None is that of the paper's panels, which no cell names."""
    asked, condition = row.get("costs"), row.get("condition", "applies")
    if asked is None:
        return [None]
    chosen = [
        cost
        for cost in place.condition
        if asked == "all" or (cost > 0 if asked == "positive" else cost in asked)
    ]
    if condition == "applies":
        return [*chosen]
    return [cost for cost in chosen if place.condition[cost] == (condition == "met")]


def _pair(row: Row, place: Place, cost: float | None) -> Iterator[Cell]:
    price = COST if cost is None else cost
    prices, against = (
        {"pulls": PULLS, "uplinks": UPLINKS}.get(name) or Prices.total(price)
        for name in (row["price"], row.get("other_price", row["price"]))
    )
    best = [place.cheapest(_names(row[key], place), price) for key in _CHOSEN if key in row]
    ones = best[:1] if "best_one" in row else _names(row["one"], place)
    others = best[-1:] if "best_other" in row else _names(row["other"], place)
    for one in ones:
        for other in others:
            if one is None or other is None:
                continue
            where: Cell = {} if cost is None else {"cost": cost}
            where |= {"sigma": place.sigma} if row["cells"] == "scales" else {}
            for key, name in (("one", one), ("other", other)):
                where |= named(name) if isinstance(row.get(key), list) else {}
            where |= {"what": row["what"]} if "what" in row else {}
            note = ", ".join(
                f"{'best ' if key in row else ''}{in_words(name)}"
                for key, name in (("best_one", one), ("best_other", other))
                if key in row or row.get(key.removeprefix("best_")) == "H_opt"
            )
            note += ", chosen by the other half of the trials" if best else ""
            limit = _limit(row["limit"], price, one)
            judge = place.halves.odd if best else None
            found = comparison(
                place.whole, (one, other), (prices, against), place.delta, limit, note, judge
            )
            cell = {**place.head, **where, **found}
            unmet = cost is not None and "condition" in row and row["condition"] == "applies"
            if unmet and not place.condition[price]:
                cell = does_not_apply(cell, "C ln T_k > T_k for some arm")
            yield cell


_CHOSEN = ("best_one", "best_other")
_FAMILIES = {"periods": "periodic:", "bases": "exponential:"}


def _names(given: str | Sequence[str], place: Place) -> list[str]:
    """List the schedules of a place that a name, or a list of names, stands for."""
    found: list[str] = []
    for name in [given] if isinstance(given, str) else given:
        if name in _FAMILIES:
            found += (one for one in place.schedules if one.startswith(_FAMILIES[name]))
        elif name == "powers":  # those of the paper's panels (c): H = 1, 10, 100, ...
            found += (one for one in place.schedules if one.rstrip("0") == "periodic:1")
        else:
            found.append(f"periodic:{place.best_period}" if name == "H_opt" else name)
    return [name for name in found if name in place.schedules]


def _limit(limit: float | str, cost: float, schedule: str) -> float:
    if limit == "1 + C / H":
        return 1 + cost / (Schedule.parse(schedule).period or math.inf)
    return float(limit)


def _errors(row: Row, places: Sequence[Place]) -> Iterator[Cell]:
    for place in places:
        for name in _names(row["one"], place):
            share = error_share(place.whole, name, place.delta)
            yield {**place.head, **named(name), **share}


def _checked(row: Row, lines: Sequence[Cell]) -> Iterator[Cell]:
    """Yield the lines of a check as cells, to be decided anew over this claim's data sets."""
    for line in lines:
        if (line["claim"], line["schedule"]) == (row["line"], row["one"]) and "value" in line:
            cell = {key: line[key] for key in _OF_CELLS if key in line}
            if cell.get("cost", 0) is None:
                del cell["cost"]
            yield cell | ({"verdict": DOES_NOT_APPLY} if line["verdict"] == DOES_NOT_APPLY else {})


_OF_CELLS = [
    *("instance", "delta", "cost", "value", "sem", "limit"),
    *("at_most", "p_below", "p_above", "power", "text", "reason"),
]


def _line(row: Row, places: Sequence[Place]) -> Iterator[Cell]:
    for name, prices in PRICES.items():
        for instance in dict.fromkeys(place.instance for place in places):
            some = [one for one in places if one.instance == instance and name in one.schedules]
            if len(some) < 3:
                continue
            x = np.log([1 / place.delta for place in some])
            y = np.array([place.whole.mean(name, prices) for place in some])
            slope, offset = np.polyfit(x, y, 1)
            off = np.abs(y / (slope * x + offset) - 1)
            worst = int(off.argmax())
            value, error = float(off[worst]), some[worst].relative_error(name, prices)
            text = f"{number(value, error)} ({slope:,.0f} for each unit of ln(1/delta))"
            yield {**some[worst].head, "schedule": name, **normal(value, row["limit"], error, text)}


def _exponent(row: Row, places: Sequence[Place]) -> Iterator[Cell]:
    for name, prices in PRICES.items():
        some = [place for place in places if name in place.schedules]
        if len(some) < 3:
            continue
        x = -2 * np.log([place.gap for place in some])
        weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        means = [place.whole.mean(name, prices) or math.nan for place in some]
        value = float(weights @ np.log(means))
        error = math.hypot(*(weights * [place.relative_error(name, prices) for place in some]))
        found = normal(abs(value - 1), row["limit"], error, f"exponent {number(value, error)}")
        yield _of_gaps(some[0], name, found)


def _growth(row: Row, places: Sequence[Place]) -> Iterator[Cell]:
    for name, times in row["logarithms"].items():
        some = sorted((one for one in places if name in one.schedules), key=lambda one: one.T)
        if len(some) < 2:
            continue
        ends, scaled = (some[0], some[-1]), []
        for place in ends:
            slow = place.T
            for _ in range(times):
                slow = math.log(slow)
            scaled.append((place.whole.mean(name, UPLINKS) or math.nan) / slow)
        value = scaled[1] / scaled[0]
        error = value * math.hypot(*(place.relative_error(name, UPLINKS) for place in ends))
        text = (
            f"uplinks over {'ln ' * times}T grow {number(value, error)}-fold from "
            f"T = {ends[0].T:,.0f} to {ends[1].T:,.0f}"
        )
        yield _of_gaps(some[0], name, normal(value, row["limit"], error, text))


def _of_gaps(place: Place, schedule: str, found: Cell) -> Cell:
    """Make the cell of a comparison over all scaled gaps of the synthetic instance."""
    return {"instance": "synthetic", "delta": place.delta, "schedule": schedule, **found}


def _split(row: Row, places: Sequence[Place]) -> Iterator[Cell]:
    """Compare what the radius explains of FedElim's factor with all the rest together.

    The rest is G / L and the radius F / G, with F and G the mean pulls of FedElim with the paper's
    radius and with `mixture-pairs`, and L the least pulls. The error of ln(rest / radius) is at
    most that of ln(G / F) plus that of ln G.
    """
    own, pairs = f"fedelim {PAPER}", f"fedelim {PAIRS}"
    for place in places:
        split = place.split()
        if split is None:
            continue
        paired = place.whole.pair(pairs, own, PULLS)
        value = split["doubling"] * split["proportions"] * split["thresholds"] / split["radius"]
        error = None
        if paired.ratio is not None and paired.ratio_sem is not None:
            error = value * (paired.ratio_sem / paired.ratio + place.relative_error(pairs, PULLS))
        factors = " x ".join(f"{name} {one:.2f}" for name, one in split.items())
        total = math.prod(split.values())
        text = f"{number(value, error)}; {total:.3g} x the least pulls = {factors}"
        yield {**place.head, **normal(value, row["limit"], error, text)}


def _as_is(row: Row, cells: Sequence[Cell]) -> Iterator[Cell]:
    for cell in cells:
        known = "limit" in cell
        yield cell if known else cell | computed(cell["value"], row["limit"], cell["text"])


RULES: dict[str, Callable[[Row, Sequence[Any]], Iterator[Cell]]] = {
    "compare": _compare,
    "errors": _errors,
    "checked": _checked,
    "line": _line,
    "exponent": _exponent,
    "growth": _growth,
    "split": _split,
    "as-is": _as_is,
}
