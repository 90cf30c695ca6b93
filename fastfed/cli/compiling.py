"""`fastfed compile`: kernels compiled ahead of their first use."""

from __future__ import annotations

from fastfed import console
from fastfed.cli import options
from fastfed.cli.options import Values


@options.takes(
    how={
        "all": options.flag("all", "Compile all rewards, radii, goals and uplinks."),
        "threads": options.text("NUMBER", "Number of parallel processes [all cores]."),
    }
)
def compile(how: Values) -> None:
    """Compile the simulator now, so that later runs start faster.

    Without --all, it compiles only the goal best and exact uplinks.

    \b
    Examples:
      fastfed compile
      fastfed compile --all --threads 4
    """
    from fastfed.simulation.precompile import combinations, compile_kernels
    from fastfed.validation import checked_threads

    every, threads = how["all"], checked_threads(how["threads"])
    count = len(combinations(every))
    for number, one in enumerate(compile_kernels(every, threads), start=1):
        console.say(f"compiled {number} of {count}: {one}")
    console.show(f"{count} kernels are compiled")
