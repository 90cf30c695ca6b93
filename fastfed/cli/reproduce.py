"""`fastfed reproduce`: the paper's experiments, its panels and its claims, from one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fastfed import console
from fastfed.cli.options import Text
from fastfed.files import checked_folder


def reproduce(
    out: Annotated[
        Path, typer.Option(help="Folder for all results.", metavar="DIR", parser=checked_folder)
    ] = Path("paper"),
    trials: Annotated[
        Text,
        typer.Option(
            metavar="NUMBER", help="Number of trials of each cell, for all instances [10000]."
        ),
    ] = None,
    only: Annotated[
        Text,
        typer.Option(
            metavar="NAME", help="Run only synthetic, bernoulli or movielens [all three]."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run 50 trials of each cell, and fewer for the true errors. It takes about a "
            "minute on two idle cores.",
        ),
    ] = False,
    threads: Annotated[
        Text, typer.Option(metavar="NUMBER", help="Number of threads [all cores].")
    ] = None,
    seed: Annotated[Text, typer.Option(metavar="NUMBER", help="Seed [0].")] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Show no progress and no verdicts.")
    ] = False,
) -> None:
    """Run the paper's experiments and judge each of its claims.

    It writes nine panels, tables, the true error probabilities, and one page with all of them.

    \b
    Examples:
      fastfed reproduce --quick
      fastfed reproduce --only movielens --out paper
    """
    from fastfed.api.reproduce import reproduce as run_again
    from fastfed.sweeps.run import Unfinished

    try:
        done = run_again(
            out,
            trials=trials,  # type: ignore[arg-type]
            only=only,
            quick=quick,
            seed=seed or 0,  # type: ignore[arg-type]
            threads=threads,  # type: ignore[arg-type]
            progress=not quiet,
        )
    except Unfinished as error:
        for failure in error.failures:
            console.say(str(failure))
        raise typer.Exit(1) from None
    if not quiet:
        console.show(done)
        console.show(
            f"{len(done.files)} files: {out}/report.html has it all; {out}/claims.md, "
            f"{out}/claims.png, {out}/table.md, {out}/radii.md, {out}/optimum.md, "
            f"{out}/algorithms.md, {out}/contact-sheet.png, {out}/figures/"
        )
