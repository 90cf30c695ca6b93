"""`fastfed instance`, `fastfed instances` and `fastfed movielens build`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from fastfed import console
from fastfed.cli import completion, lists, options
from fastfed.cli.options import Values
from fastfed.display.table import MOST, Column, Table
from fastfed.errors import InputError
from fastfed.text import command
from fastfed.validation import checked_whole

_COLUMNS = "arm=drug,client=hospital,reward=outcome"


@options.takes(
    file={
        "rewards": options.text(
            "NAME",
            "Means: the reward distribution, as bernoulli, gaussian:0.5 or poisson:2 [gaussian].",
            completion.laws,
        ),
        "weights": options.several(
            "NUMBERS",
            "Weights of the clients in the server's average, as in 5,3,2. Repeat it to ask the "
            "server for several averages [the file's, or equal weights].",
            lists.weights,
        ),
        "columns": options.several(
            "NAMES",
            f"Observed rewards: names of the columns, as in {_COLUMNS} [arm, client, reward, "
            "count].",
            lambda given: lists.pairs("columns", given, _COLUMNS),
        ),
        "empty": options.text(
            "NUMBER",
            "Observed rewards: value to use where a client has no data for an arm, or absent if "
            "the client does not have the arm [refuse them].",
        ),
        "drop_missing": options.flag(
            "drop-missing", "Observed rewards: leave out the rows without a value."
        ),
    },
    samples={
        "bootstrap": options.text(
            "NUMBER",
            "Observed rewards: also write this many instances, resampled from the data with "
            "replacement [0].",
        ),
    },
    where={
        "out": options.file("File to write: .toml holds everything, also .csv or .parquet [none].")
    },
)
def instance(source: options.InstanceName, file: Values, samples: Values, where: Values) -> None:
    """Show an instance, or write it to a file for other commands.

    A file of means or observed rewards that needs options gets them here, once. The written file
    then says what was run.

    \b
    Examples:
      fastfed instance synthetic
      fastfed instance means.csv --rewards bernoulli --out inst.toml
      fastfed instance trial.csv --columns arm=drug,client=site,reward=y --out inst.toml
    """
    from fastfed.display.instance_table import instance_table
    from fastfed.model.goals import Best
    from fastfed.model.instance import Instance
    from fastfed.model.observed import with_samples

    out, count = where["out"], checked_whole("bootstrap", samples["bootstrap"] or 0, 0, 10_000)
    if count and out is None:
        raise InputError(f"--bootstrap {count}: the samples are written to files; add --out")
    one = Instance.load(source, **file)
    if out is not None:
        one.name = out.stem
    found = with_samples(one, count, 0) if count else [one]
    console.show(instance_table(one).text())
    try:
        Best().check(one)
    except InputError as error:  # now, and not when it is swept
        console.say(f"note: {error}")
    for made in found if out is not None else ():
        made.save(out.with_name(f"{made.name}{out.suffix}"))
    if out is not None:
        name = out.with_name(f"{out.stem}*{out.suffix}") if count else out
        files = f"{out} and {count:,} samples" if count else str(out)
        console.show(f"{files} written; run it: {command('sweep', instance=name)}")


def instances() -> None:
    """List the built-in instances, with their sizes and gaps.

    \b
    Examples:
      fastfed instances
      fastfed sweep --instance movielens --trials 100
    """
    import numpy as np

    from fastfed.model.instance_files.load import FAMILIES, builtin_names, load

    every = {name: load(name) for name in builtin_names()}
    briefly = [re.split("[,:;]", one.description)[0] for one in every.values()]
    table = Table(
        [
            Column("name", list(every), left=True),
            Column("arms", [str(one.shape[0]) for one in every.values()]),
            Column("clients", [str(one.shape[1]) for one in every.values()]),
            Column("local gap", [f"{np.nanmin(one.local_gaps):.4g}" for one in every.values()]),
            Column("global gap", [f"{np.nanmin(one.global_gaps):.4g}" for one in every.values()]),
            Column("description", briefly, left=True),
        ],
        ["Gaps are the smallest ones: between two arms of one client, and at the server."],
        [
            f"Families: {'; '.join(FAMILIES.values())}",
            "Files: .toml, .csv, .parquet; `fastfed instance FILE` reads them with options",
        ],
        most=MOST,
    )
    console.show(table.text())


movielens = typer.Typer(
    help="Build the MovieLens instance from the original data files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@movielens.callback()
def _movielens() -> None:
    pass


@movielens.command("build")
@options.takes(how={"out": options.file("File for the instance [movielens.parquet].")})
def movielens_build(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder with user_ratedmovies.dat (or -timestamps), movie_countries.dat and "
            "movie_genres.dat.",
        ),
    ],
    how: Values,
) -> None:
    """Build the MovieLens instance from the original data files.

    It compares the counts of ratings with the paper's.

    \b
    Examples:
      fastfed movielens build hetrec2011
      fastfed movielens build hetrec2011 --out ours.parquet
    """
    from fastfed.model.movielens import build_instance

    out = how["out"] or Path("movielens.parquet")
    instance, report = build_instance(folder)
    instance.save(out)
    console.show(report)
    console.show(
        f"{instance.shape[0]} arms x {instance.shape[1]} clients written to {out}; "
        f"use it as --instance {out}"
    )
