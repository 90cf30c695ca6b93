"""`fastfed replay`: one trial event by event, of a sweep's folder or of an instance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastfed import console
from fastfed.cli import completion, options
from fastfed.cli.options import Values
from fastfed.display.replay_table import replay_table, wrong_table
from fastfed.display.tables import laws_text
from fastfed.errors import InputError
from fastfed.model.choices import DEFAULTS
from fastfed.text import command

if TYPE_CHECKING:
    from fastfed.api.sweep import Sweep

_HELD = "in a folder with only one, that one"


@options.takes(
    number={"trial": options.text("NUMBER", "Number of the trial [0].")},
    which=options.single(
        {
            "schedule": f"fedelim; {_HELD}",
            "delta": f"0.01; {_HELD}",
            "sigma": f"{options.SIGMA}; {_HELD}",
            **{kind: f"{default}; {_HELD}" for kind, default in DEFAULTS.items()},
        },
        "Choices of the trial, one value each, as of sweep",
    ),
    run={"seed": options.text("NUMBER", "Seed of the run [0].")},
    of_folder={
        "instance": options.text("NAME", f"Instance of the trial [{_HELD}]."),
        "wrong": options.flag("wrong", "List the trials of a folder that have a wrong answer."),
    },
    how=options.FORMAT,
)
def replay(
    what: Annotated[
        str,
        typer.Argument(
            metavar="INSTANCE_OR_DIR",
            help="Built-in instance, instance file, or folder of a sweep.",
            autocompletion=completion.instances,
        ),
    ],
    number: Values,
    which: Values,
    run: Values,
    of_folder: Values,
    how: Values,
) -> None:
    """Run one trial again and print each of its events.

    \b
    Examples:
      fastfed replay synthetic --schedule periodic:100 --trial 7312
      fastfed replay results --wrong
    """
    form = how["format"]
    if Path(what).is_dir():
        if run["seed"] is not None:
            raise InputError(f"--seed {run['seed']} with a folder: its rows have it")
        which |= {"instance": of_folder["instance"]}
        _replay_folder(Path(what), which, number["trial"], of_folder["wrong"], form)
        return
    if of_folder["wrong"] or of_folder["instance"] is not None:
        raise InputError(f"{what}: no such folder; --wrong and --instance ask a sweep's folder")
    from fastfed.model.instance import Instance
    from fastfed.simulation.replay import replay as tell

    # an empty text is a slip, which is named, and not the default
    instance = Instance.load(what)
    asked = {"schedule": "fedelim", "delta": "0.01", **options.given({**which, **run, **number})}
    _show_story(tell(instance, **asked), form)


def _replay_folder(
    folder: Path, which: dict[str, Any], trial: str | None, wrong: bool, form: str
) -> None:
    from fastfed.api.sweep import open_sweep

    sweep = open_sweep(folder)
    if wrong:
        _show_wrong(sweep, which, form)
    else:
        _show_story(sweep.replay(trial or 0, **which), form)  # type: ignore[arg-type]


def _show_story(story: Any, form: str) -> None:
    console.show(replay_table(story).written(form))


def _show_wrong(sweep: Sweep, which: dict[str, Any], form: str) -> None:
    import polars as pl

    rows = sweep.wrong(**which)
    table, below = wrong_table(rows), []
    if len(rows):
        keys = ("schedule", "delta", "instance", "sigma", *DEFAULTS)
        held = sweep.scan().select(pl.col(keys).n_unique()).collect().row(0, named=True)
        first = rows.row(0, named=True)
        asked = {key: first[key] for key in ("trial", *keys) if held.get(key) != 1}
        again = command("replay", sweep.folder, **asked)
        below = [f"{len(rows):,} rows erred; the first one's story:", f"  {again}"]
    above = [*laws_text(sweep.instances), *table.above]
    console.show(replace(table, above=above, below=below).written(form))
