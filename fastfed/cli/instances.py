"""`fastfed instances` and `fastfed movielens build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fastfed import console


def instances() -> None:
    """List the built-in instances, with their sizes and gaps.

    \b
    Examples:
      fastfed instances
      fastfed sweep --instance movielens --trials 100
    """
    from fastfed.model.instance_files import FAMILIES, builtin_names, load

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
    print("weights: --weights 5,3,2 lets clients of any of them count for more or less")


movielens = typer.Typer(help="The MovieLens instance.", no_args_is_help=True, rich_markup_mode=None)


@movielens.callback()
def _movielens() -> None:
    pass


@movielens.command("build")
def movielens_build(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Where the original files are: "
            "user_ratedmovies.dat (or -timestamps), "
            "movie_countries.dat, movie_genres.dat.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Where to write the instance [movielens.parquet].",
        ),
    ] = Path("movielens.parquet"),
    rule: Annotated[
        str,
        typer.Option(metavar="NAME", show_default=False, help="Clean-up: paper or ties [paper]."),
    ] = "paper",
    empty: Annotated[
        str,
        typer.Option(
            metavar="NAME", show_default=False, help="Empty cells: zero or drop-country [zero]."
        ),
    ] = "zero",
) -> None:
    """Make the instance from the original data files, and compare its counts with the paper's.

    \b
    Examples:
      fastfed movielens build hetrec2011
      fastfed movielens build hetrec2011 --rule ties --out ties.parquet
    """
    from fastfed.model.movielens import build_instance

    instance, report = build_instance(folder, rule, empty)
    instance.save(out)
    console.show(report)
    console.show(
        f"{instance.shape[0]} arms x {instance.shape[1]} clients written to {out}; "
        f"use it as --instance {out}"
    )
