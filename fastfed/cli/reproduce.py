"""`fastfed reproduce`: the paper's experiments, its panels and its claims, from one command."""

from __future__ import annotations

from pathlib import Path

import typer

from fastfed import console
from fastfed.cli import options
from fastfed.cli.options import Values


@options.takes(
    where={"out": options.folder("Folder for all results.", Path("paper"))},
    run={
        "trials": options.text(
            "NUMBER", "Number of trials of each cell, for all instances [10000]."
        ),
        "only": options.text("NAME", "Run only synthetic, bernoulli or movielens [all three]."),
        "quick": options.flag(
            "quick",
            "Run 200 trials of each cell, and fewer for the true errors. It takes about a minute "
            "on two idle cores.",
        ),
        **options.THREADS,
        "seed": options.text("NUMBER", "Seed [0]."),
    },
)
def reproduce(where: Values, run: Values) -> None:
    """Run the paper's experiments and judge each of its claims.

    It writes nine panels, tables, the true error probabilities, and one page with all of them.

    \b
    Examples:
      fastfed reproduce --quick
      fastfed reproduce --only movielens --out paper
    """
    from fastfed.api.reproduce import reproduce as run_again
    from fastfed.sweeps.run import Unfinished

    out = where["out"]
    run["seed"] = 0 if run["seed"] is None else run["seed"]
    try:
        done = run_again(
            out,
            **run,
        )
    except Unfinished as error:
        for failure in error.failures:
            console.say(str(failure))
        raise typer.Exit(1) from None
    console.show(done)
    console.show(
        f"{len(done.files)} files: {out}/report.html has it all; {out}/claims.md, "
        f"{out}/tables.md, {out}/contact-sheet.png, {out}/figures/"
    )
