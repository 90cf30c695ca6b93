"""`fastfed bounds` and `fastfed errors`: numbers for an instance, without a sweep."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from fastfed import console
from fastfed.cli import lists, options
from fastfed.cli.options import InstanceName, Values
from fastfed.display.table import MOST
from fastfed.errors import InputError


@options.takes(
    grid={
        **options.choices({"delta": "0.01", "radius": "paper", "goal": "best"}),
        "cost": options.prices("10")["cost"],
    },
    scheme={
        "schedule": options.several(
            "LIST",
            "Also bound these: periodic:H (in place of H_opt), exponential:LAMBDA, adaptive "
            "[none].",
            lists.schedules,
        ),
        **options.single({"sigma": options.SIGMA}),
    },
    how=options.SHOWN,
)
def bounds(instance: InstanceName, grid: Values, scheme: Values, how: Values) -> None:
    """Print the theorems' bounds on pulls and costs for an instance.

    It prints lower bounds on the pulls of any algorithm, the paper's T, and upper bounds on the
    costs of each schedule. H_opt and lambda_opt are the period and the base with the smallest
    bound.

    \b
    Examples:
      fastfed bounds synthetic --delta 0.1,0.01 --cost 10
      fastfed bounds movielens --sigma proxy --format json
    """
    from fastfed.display.bounds_tables import bounds_table, bounds_text
    from fastfed.model.instance import Instance
    from fastfed.theory.bounds import bounds as bounds_of

    one = Instance.load(instance)
    scheme |= _parameters(scheme.pop("schedule") or [])
    found = [
        bounds_of(one, d, c, radius=r, goal=g, **scheme)
        for g in grid["goal"] or ["best"]
        for r in grid["radius"] or ["paper"]
        for d in grid["delta"] or ["0.01"]
        for c in grid["cost"] or [10.0]
    ]
    if how["format"] == "json":
        from json import dumps

        print(dumps([b.to_dict() for b in found], allow_nan=False))
    elif how["format"] == "text" and how["all"]:
        console.show(bounds_text(found))
    else:
        import polars as pl

        table = replace(bounds_table(found), frame=pl.concat([b.to_frame() for b in found]))
        console.show(table.written(how["format"]))


@options.takes(
    grid=options.choices({"delta": "0.01", "radius": "paper"}),
    run={
        **options.single({"schedule": "fedelim", "sigma": options.SIGMA}),
        "trials": options.text(
            "NUMBER",
            "Number of trials for each answer: of every client, of the server, of any [10000].",
        ),
    },
    how=options.FORMAT,
)
def errors(instance: InstanceName, grid: Values, run: Values, how: Values) -> None:
    """Estimate true error probabilities, down to 1e-100.

    It estimates by importance sampling how often each client and the server name a wrong arm. The
    goal is the best arm.

    \b
    Examples:
      fastfed errors synthetic --delta 0.01
      fastfed errors bernoulli --delta 0.1:1e-6:log --schedule periodic:100
    """
    from fastfed.display.errors_table import errors_table
    from fastfed.model.instance import Instance
    from fastfed.theory.error_probability import error_probability

    one = Instance.load(instance)
    progress = _counting if sys.stderr.isatty() else None
    given: dict[str, Any] = options.given(run)
    found = [
        error_probability(one, delta=d, radius=r, progress=progress, **given)
        for r in grid["radius"] or ["paper"]
        for d in grid["delta"] or ["0.01"]
    ]
    most = MOST if how["format"] == "text" else None
    console.show(errors_table(found, most).written(how["format"]))


def _parameters(schedules: list[str]) -> dict[str, Any]:
    """Return the parameters of `fastfed.bounds` for schedules."""
    from fastfed.model.schedules import Adaptive, Exponential, Periodic, Schedule

    found: dict[str, Any] = {}
    for name in schedules:
        one = Schedule.parse(name)
        own: dict[str, Any] = {}
        if isinstance(one, Periodic):
            own["period"] = one.period
        elif isinstance(one, Exponential):
            own["base"] = one.base
        elif isinstance(one, Adaptive):
            own["adaptive"] = one
        if not own or own.keys() & found:
            raise InputError(
                f"--schedule {name}: must be one periodic:H, one exponential:LAMBDA or one "
                "adaptive; fedelim and superexponential are shown in any case"
            )
        found |= own
    return found


def _counting(done: int, total: int) -> None:
    """Show progress on one line of a terminal, and erase the line at the end."""
    text = f"\r{done} of {total} answers" if 0 < done < total else "\r\033[K"
    print(text, end="", flush=True, file=sys.stderr)
