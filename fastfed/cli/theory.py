"""`fastfed bounds` and `fastfed errors`: numbers for an instance, without a sweep."""

from __future__ import annotations

import sys
from typing import Any

from fastfed import console
from fastfed.cli import options
from fastfed.cli.options import InstanceName, Values


@options.takes(
    grid={
        **options.choices({"delta": "0.01", "radius": "paper", "goal": "best"}),
        "cost": options.prices("10")["cost"],
    },
    scheme={
        "period": options.text("NUMBER", "Period H of the periodic schedule [H_opt]."),
        "base": options.text(
            "NUMBER", "Also bound exponential:LAMBDA, for this base LAMBDA [none]."
        ),
        "adaptive": options.text(
            "NAME", "Also bound this adaptive schedule, as in adaptive:8 [none]."
        ),
        **options.single({"sigma": options.SIGMA}),
    },
    of_file=options.OF_FILE,
    form={
        "json": options.flag(
            "json",
            "Print everything as a JSON list: one item for each goal, radius, delta and cost.",
        )
    },
)
def bounds(
    instance: InstanceName, grid: Values, scheme: Values, of_file: Values, form: Values
) -> None:
    """Print the theorems' bounds on pulls and costs for an instance.

    It prints lower bounds on the pulls of any algorithm, the paper's T, and upper bounds on the
    costs of each schedule. H_opt and lambda_opt are the period and the base with the smallest
    bound.

    \b
    Examples:
      fastfed bounds synthetic --delta 0.1,0.01 --cost 10
      fastfed bounds movielens --sigma proxy --json
    """
    from fastfed.display.tables import bounds_text
    from fastfed.model.instance import Instance
    from fastfed.theory.bounds import bounds as bounds_of

    one = Instance.load(instance, **of_file)
    found = [
        bounds_of(one, d, c, radius=r, goal=g, **scheme)
        for g in grid["goal"] or ["best"]
        for r in grid["radius"] or ["paper"]
        for d in grid["delta"] or ["0.01"]
        for c in grid["cost"] or [10.0]
    ]
    if form["json"]:
        from json import dumps

        print(dumps([b.to_dict() for b in found], allow_nan=False))
    else:
        console.show(bounds_text(found))


@options.takes(
    grid=options.choices({"delta": "0.01", "radius": "paper"}),
    run={
        **options.single({"schedule": "fedelim", "sigma": options.SIGMA}),
        "trials": options.text(
            "NUMBER",
            "Number of trials for each answer: of every client, of the server, of any [10000].",
        ),
        "seed": options.text("NUMBER", "Seed [0]."),
        **options.THREADS,
    },
    of_file=options.OF_FILE,
    form=options.JSON,
)
def errors(
    instance: InstanceName, grid: Values, run: Values, of_file: Values, form: Values
) -> None:
    """Estimate true error probabilities, down to 1e-100.

    It estimates by importance sampling how often each client and the server name a wrong arm. The
    goal is the best arm.

    \b
    Examples:
      fastfed errors synthetic --delta 0.01
      fastfed errors bernoulli --delta 0.1:1e-6:log --schedule periodic:100
    """
    from fastfed.model.instance import Instance
    from fastfed.theory.error_estimates import error_frame
    from fastfed.theory.error_probability import error_probability

    one = Instance.load(instance, **of_file)
    progress = _counting if sys.stderr.isatty() else None
    given: dict[str, Any] = options.given(run)
    found = [
        error_probability(one, delta=d, radius=r, progress=progress, **given)
        for r in grid["radius"] or ["paper"]
        for d in grid["delta"] or ["0.01"]
    ]
    if form["json"]:
        console.show_json(error_frame(found))
    else:
        console.show("\n\n".join(map(str, found)))


def _counting(done: int, total: int) -> None:
    """Show progress on one line of a terminal, and erase the line at the end."""
    text = "\r\033[K" if done == total else f"\r{done} of {total} answers"
    print(text, end="", flush=True, file=sys.stderr)
