"""`fastfed compile`: kernels compiled ahead of their first use."""

from __future__ import annotations

from typing import Annotated

import typer

from fastfed import console


def compile(
    every: Annotated[
        bool, typer.Option("--all", help="Compile all rewards, radii, goals and uplinks.")
    ] = False,
    threads: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Number of parallel processes [all cores].")
    ] = None,
) -> None:
    """Compile the simulator now, so that later runs start faster.

    Without --all, it compiles only the goal best and exact uplinks.

    \b
    Examples:
      fastfed compile
      fastfed compile --all --threads 4
    """
    from fastfed.simulation.precompile import combinations, compile_kernels
    from fastfed.validation import checked_threads

    count = len(combinations(every))
    for number, one in enumerate(compile_kernels(every, checked_threads(threads)), start=1):
        console.say(f"compiled {number} of {count}: {one}")
    console.show(f"{count} kernels are compiled")
