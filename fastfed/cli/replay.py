"""`fastfed replay`: one trial event by event, of a sweep's folder or of an instance."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastfed import console
from fastfed.cli import completion, options
from fastfed.cli.answers import name_problems
from fastfed.cli.options import Values
from fastfed.display.tables import laws_text
from fastfed.errors import InputError
from fastfed.model.choices import DEFAULTS

if TYPE_CHECKING:
    import polars as pl

_MOST_WRONG = 50  # rows that --wrong prints
_HELD = "in a folder with only one, that one"


@options.takes(
    which=options.single(
        {
            "schedule": f"fedelim; {_HELD}",
            "delta": f"0.01; {_HELD}",
            "sigma": f"{options.SIGMA}; {_HELD}",
            **{kind: f"{default}; {_HELD}" for kind, default in DEFAULTS.items()},
        }
    ),
    run={
        "seed": options.text("NUMBER", "Seed of the run [0]."),
        "max_steps": options.text("NUMBER", "Cut the trial off at this step [never]."),
    },
    of_file=options.OF_FILE,
    of_folder={
        "instance": options.text("NAME", f"Instance of the trial [{_HELD}]."),
        "wrong": options.flag("wrong", "List the trials of a folder that have a wrong answer."),
    },
    form=options.JSON,
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
    which: Values,
    run: Values,
    of_file: Values,
    of_folder: Values,
    form: Values,
    trial: Annotated[
        options.Text, typer.Option(metavar="NUMBER", help="Number of the trial [0].")
    ] = None,
) -> None:
    """Run one trial again and print each of its events.

    \b
    Examples:
      fastfed replay synthetic --schedule periodic:100 --trial 7312
      fastfed replay results --wrong
    """
    json = form["json"]
    if Path(what).is_dir():
        for name, value in options.given(of_file).items():
            raise InputError(
                f"--{name} {value}: the rows in {what} say what their rewards are; leave it out"
            )
        which |= {"instance": of_folder["instance"]}
        _replay_folder(Path(what), which, trial, of_folder["wrong"], json)
        return
    if of_folder["wrong"] or of_folder["instance"] is not None:
        raise InputError(f"{what}: no such folder; --wrong and --instance ask a sweep's folder")
    from fastfed.model.instance import Instance
    from fastfed.simulation.replay import replay as tell

    # an empty text is a slip, which is named, and not the default
    instance = Instance.load(what, **of_file)
    asked = {"schedule": "fedelim", "delta": "0.01", **options.given({**which, **run})}
    if trial is not None:
        asked["trial"] = trial
    _show_story(tell(instance, **asked), json)


def _replay_folder(
    folder: Path, which: dict[str, Any], trial: str | None, wrong: bool, json: bool
) -> None:
    from fastfed.api.sweep import open_sweep

    sweep = open_sweep(folder)
    if wrong:
        if not json:
            console.show("\n".join(laws_text(sweep.instances)))
        _show_wrong(sweep.wrong(**which), folder, json)
    else:
        _show_story(sweep.replay(trial or 0, **which), json)  # type: ignore[arg-type]
    name_problems(sweep)


def _show_story(story: Any, json: bool) -> None:
    if json:
        console.show_json(story.frame)
    else:
        console.show(story)


def _show_wrong(rows: pl.DataFrame, folder: Path, json: bool) -> None:
    from fastfed.display.tables import Column, table_text
    from fastfed.model.choices import DEFAULTS

    if json:
        console.show_json(rows)
        return
    if not len(rows):
        console.show("no trial erred")
        return
    shown = rows.head(_MOST_WRONG).to_dicts()
    differing = [name for name in DEFAULTS if rows[name].n_unique() > 1]
    console.show(
        "\n".join(
            table_text(
                [
                    *(
                        Column(name, [str(row[name]) for row in shown], left=True, name=True)
                        for name in ("instance", "schedule", *differing)
                    ),
                    *(
                        Column(name, [f"{row[name]:g}" for row in shown])
                        for name in ("delta", "sigma")
                    ),
                    *(
                        Column(name, [f"{row[name]:,}" for row in shown])
                        for name in ("trial", "pulls")
                    ),
                    Column(
                        "global answer",
                        [
                            str(row["global_arm"])
                            if row["global_answer"] is None
                            else " ".join(map(str, row["global_answer"])) or "none"
                            for row in shown
                        ],
                    ),
                    Column("local errors", [str(row["local_errors"]) for row in shown]),
                    Column("ended", ["no" if row["truncated"] else "yes" for row in shown]),
                ]
            )
        )
    )
    if len(rows) > len(shown):
        console.show(f"... {len(rows) - len(shown):,} more: --json has all")
    first = shown[0]
    again = shlex.join(
        [
            "fastfed",
            "replay",
            str(folder),
            "--trial",
            str(first["trial"]),
            "--schedule",
            first["schedule"],
            "--delta",
            repr(first["delta"]),
            "--instance",
            first["instance"],
            "--sigma",
            repr(first["sigma"]),
            *(part for name in DEFAULTS for part in (f"--{name}", first[name])),
        ]
    )
    console.show(f"{len(rows):,} rows erred; the first one's story: {again}")
