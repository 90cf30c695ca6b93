"""`fastfed reproduce`: the paper's experiments, its panels and its claims, from one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fastfed import console
from fastfed.commands.options import Text
from fastfed.files import checked_folder


def reproduce(
    out: Annotated[
        Path, typer.Option(help="Folder for everything.", metavar="DIR", parser=checked_folder)
    ] = Path("paper"),
    trials: Annotated[
        Text,
        typer.Option(
            metavar="NUMBER", help="Trials of each cell, of all three data sets alike [10000]."
        ),
    ] = None,
    only: Annotated[
        Text, typer.Option(metavar="NAME", help="synthetic, bernoulli or movielens [all three].")
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="50 trials of each cell, and fewer for "
            "the true errors: about a minute on two idle "
            "cores.",
        ),
    ] = False,
    threads: Annotated[Text, typer.Option(metavar="NUMBER", help="Threads [all cores].")] = None,
    seed: Annotated[Text, typer.Option(metavar="NUMBER", help="Seed [0].")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no verdicts.")] = False,
) -> None:
    """Run the paper's experiments again: nine panels, tables, a verdict on every claim, a page.

    \b
    Examples:
      fastfed reproduce --quick
      fastfed reproduce --only movielens --out paper
    """
    from fastfed.api.progress import watch
    from fastfed.paper.experiments import plan, true_errors, write
    from fastfed.validation import checked_seed, checked_threads, checked_trials

    count = None if threads is None else checked_threads(threads)
    plans = plan(
        out,
        trials=None if trials is None else checked_trials(trials),
        only=only,
        quick=quick,
        seed=checked_seed(seed or 0),
    )
    for one in plans:
        if not quiet:
            console.say(f"{one.name}: {one.spec.trials:,} trials of each cell")
        run = watch(one.parts(count), not quiet)
        for failure in run.failures:
            console.say(str(failure))
        if run.failures:
            raise typer.Exit(1)
    found = true_errors(
        out,
        only=only,
        quick=quick,
        seed=checked_seed(seed or 0),
        threads=count,
        report=(lambda _: None) if quiet else console.say,
    )
    claims, paths = write(out)
    paths += found
    if not quiet:
        for claim in claims:
            console.show(f"{claim.key}: {claim.verdict}")
        console.show(
            f"{len(paths)} files: {out}/report.html has it all; {out}/claims.md, "
            f"{out}/table.md, {out}/radii.md, {out}/contact-sheet.png, {out}/figures/"
        )
