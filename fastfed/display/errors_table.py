"""The table of true error probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastfed.display.legends import ERRORS
from fastfed.display.table import MOST, Column, Table
from fastfed.display.tables import key_columns, shared_text, usual_values
from fastfed.text import digits, listed, printable, tidy

if TYPE_CHECKING:
    from fastfed.theory.error_estimates import ErrorProbability, Estimate


def errors_table(
    found: Sequence[ErrorProbability], most: int | None = MOST, rest: str = "--format csv"
) -> Table:
    """Make a row for each answer: any of all answers, the server's, and those of the clients."""
    from fastfed.theory.error_estimates import error_frame  # NumPy, which help need not wait for

    lines = [(one, estimate) for one in found for estimate in (one.joint, one.server, *one.local)]
    cells = [{"delta": one.delta, "sigma": one.sigma, "radius": one.radius} for one, _ in lines]
    usual = usual_values({found[0].instance.name: found[0].instance})
    shared, columns = key_columns(cells, cells[0], usual=usual)
    estimates = [estimate for _, estimate in lines]
    columns += [
        Column("answer", [printable(one.answer) for one in estimates], left=True, name=True),
        Column("probability", [_power(one.estimate, one.log10) for one in estimates]),
        Column(
            "std. error", [f"{one.relative_error:.1%}" if one.errors else "" for one in estimates]
        ),
        Column("95 % interval", [_interval(one) for one in estimates]),
        Column("effective", [f"{one.effective_sample_size:,.0f}" for one in estimates]),
        Column("at step", ["" if one.step is None else digits(one.step) for one in estimates]),
        Column("at most", [_power(one.bound, one.log10_bound) for one in estimates]),
    ]
    warned: dict[str, list[str]] = {}
    for one in estimates:
        for text in one.warnings:
            warned.setdefault(text, []).append(one.answer)
    first = found[0]
    above = [
        f"rewards: {first.instance.rewards_text}",
        f"Probability of a wrong answer: {printable(first.instance.name)}, {first.schedule}",
        shared_text(shared),
    ]
    warnings = [
        f"warning: {printable(listed(list(dict.fromkeys(of)), 4))}: {text}"
        for text, of in warned.items()
    ]
    notes = [*ERRORS, *warnings]
    table = Table(columns, [*filter(None, above)], notes, error_frame(found))
    return table.first(most, rest)


def _interval(one: Estimate) -> str:
    if one.estimate == 0.0 and one.errors:  # too small for a double
        return ""
    return f"[{_power(one.low, one.log10)}, {_power(one.high, one.log10)}]"


def _power(value: float, log10: float) -> str:
    """Write three digits, also of numbers that are too small for a double."""
    if value > 1e-300 or math.isinf(log10):
        return tidy(f"{value:.3g}")
    whole = math.floor(log10)
    return f"{10 ** (log10 - whole):.2f}e{whole}"
