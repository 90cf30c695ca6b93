"""`fastfed instances` and `fastfed movielens build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fastfed import console
from fastfed.cli import options
from fastfed.cli.options import Values


def instances() -> None:
    """List the built-in instances, with their sizes and gaps.

    \b
    Examples:
      fastfed instances
      fastfed sweep --instance movielens --trials 100
    """
    from fastfed.model.instance_files import FAMILIES, builtin_names, load

    print("Gaps are the smallest ones: between two arms of one client, and at the server.")
    print(
        f"{'name':<12} {'arms':>4} {'clients':>7} {'local gap':>9} {'global gap':>10}  description"
    )
    for name in builtin_names():
        one = load(name)
        arms, clients = one.shape
        print(
            f"{name:<12} {arms:>4} {clients:>7} {one.local_gaps.min():>9.4g} "
            f"{one.global_gaps.min():>10.4g}  {one.description}"
        )
    print("families: " + "; ".join(FAMILIES.values()))
    print("files: .toml, .csv, .parquet")
    print("weights: with --weights 5,3,2 clients count differently in the server's average")


movielens = typer.Typer(
    help="Build the MovieLens instance from the original data files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@movielens.callback()
def _movielens() -> None:
    pass


@movielens.command("build")
@options.takes(
    how={
        "out": options.file("File for the instance [movielens.parquet]."),
        "rule": options.text("NAME", "Rule for dropping countries: paper or ties [paper]."),
        "empty": options.text(
            "NAME",
            "Genres without a rating in a country: zero (mean 0) or drop-country [zero].",
        ),
    }
)
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
      fastfed movielens build hetrec2011 --rule ties --out ties.parquet
    """
    from fastfed.model.movielens import build_instance

    asked = {"out": Path("movielens.parquet"), **options.given(how)}
    out = asked.pop("out")
    instance, report = build_instance(folder, **asked)
    instance.save(out)
    console.show(report)
    console.show(
        f"{instance.shape[0]} arms x {instance.shape[1]} clients written to {out}; "
        f"use it as --instance {out}"
    )
