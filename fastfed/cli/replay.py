"""`fastfed replay`: one trial event by event, of a sweep's folder or of an instance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastfed import console
from fastfed.cli import completion, options
from fastfed.cli.answers import name_problems
from fastfed.cli.options import Values
from fastfed.display.table import Column, of_frame, table_text
from fastfed.display.tables import laws_text
from fastfed.errors import InputError
from fastfed.model.choices import DEFAULTS
from fastfed.text import command

if TYPE_CHECKING:
    import polars as pl

_MOST_WRONG = 50  # rows that --wrong prints
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
    run={
        "seed": options.text("NUMBER", "Seed of the run [0]."),
        "max_steps": options.text("NUMBER", "Cut the trial off at this step [never]."),
    },
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
        if form == "text":
            console.show("\n".join(laws_text(sweep.instances)))
        _show_wrong(sweep.wrong(**which), folder, form)
    else:
        _show_story(sweep.replay(trial or 0, **which), form)  # type: ignore[arg-type]
    name_problems(sweep)


def _show_story(story: Any, form: str) -> None:
    console.show(story if form == "text" else of_frame(story.frame).written(form))


def _show_wrong(rows: pl.DataFrame, folder: Path, form: str) -> None:
    if form != "text":
        console.show(of_frame(rows).written(form))
        return
    if not len(rows):
        console.show("no trial erred")
        return
    shown = rows.head(_MOST_WRONG).to_dicts()
    differing = [name for name in DEFAULTS if rows[name].n_unique() > 1]
    names = ("instance", "schedule", *differing)
    columns = [
        *(Column(one, [str(row[one]) for row in shown], left=True, name=True) for one in names),
        *(Column(one, [f"{row[one]:g}" for row in shown]) for one in ("delta", "sigma")),
        *(Column(one, [f"{row[one]:,}" for row in shown]) for one in ("trial", "pulls")),
        Column("global answer", [_global_answer(row) for row in shown]),
        Column("local errors", [str(row["local_errors"]) for row in shown]),
        Column("ended", ["no" if row["truncated"] else "yes" for row in shown]),
    ]
    console.show("\n".join(table_text(columns)))
    if len(rows) > len(shown):
        console.show(f"... {len(rows) - len(shown):,} more: --format csv has all")
    first = shown[0]
    keys = ("trial", "schedule", "delta", "instance", "sigma", *DEFAULTS)
    again = command("replay", folder, **{key: first[key] for key in keys})
    console.show(f"{len(rows):,} rows erred; the first one's story: {again}")


def _global_answer(row: dict[str, Any]) -> str:
    if row["global_answer"] is None:
        return str(row["global_arm"])
    return " ".join(map(str, row["global_answer"])) or "none"
