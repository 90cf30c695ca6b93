"""Options of the commands: each is written once, in a group, and a command takes groups.

An `Option` has what Typer shows and the function that reads the text. A group is a dict of options
by name. `takes` turns the options of a group into options of a command, and hands the command the
values that were read, by name. The choices of a run (instance, schedule, delta, ...) are one table,
`_CHOICES`, from which the options of sweep, bounds, errors and replay and all filters are made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Optional

import typer
from typer.core import TyperCommand

from fastfed.cli import completion, lists
from fastfed.display.table import FORMATS, checked_format
from fastfed.files import checked_folder
from fastfed.model.choices import CHOICES
from fastfed.model.counts import COUNTS

# Typer reads these at run time, so they stay in the form that Python 3.11 evaluates.
Texts = Optional[list[str]]  # noqa: UP045
Text = Optional[str]  # noqa: UP045

Values = dict[str, Any]
"""Values of the options of a group, by name."""

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="A sweep's folder.", parser=checked_folder)
]
InstanceName = Annotated[
    str,
    typer.Argument(
        metavar="INSTANCE",
        help="Built-in name, file, random:K,M,SEED or scaled:NAME,FACTOR.",
        autocompletion=completion.instances,
    ),
]


@dataclass(frozen=True)
class Option:
    """An option of a command, as Typer takes it, with the reader of what is given."""

    kind: Any
    shown: Any
    read: Callable[[Any], Any] = lambda text: text
    default: Any = None

    def parameter(self, name: str) -> inspect.Parameter:
        """Make the parameter that Typer turns into the option."""
        return inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=self.default,
            annotation=Annotated[self.kind, self.shown],
        )


Group = Mapping[str, Option]
_FILTERS = "Filters (LIST): only the rows with these values"


def takes(**groups: Group) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of groups.

    The command has a parameter for each group, by the keyword given here. It is called with a dict
    of the values that were read.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(command, eval_str=True)
        named = [one for name, one in own.parameters.items() if name not in groups]
        options = {name: one for group in groups.values() for name, one in group.items()}
        added = [one.parameter(name) for name, one in options.items()]

        @wraps(command)
        def call(*arguments: Any, **given: Any) -> Any:
            for key, group in groups.items():
                texts = {name: given.pop(name) for name in group}
                given[key] = {
                    name: None if text is None else group[name].read(text)
                    for name, text in texts.items()
                }
            return command(*arguments, **given)

        signature = own.replace(parameters=[*named, *added])
        call.__signature__ = signature  # type: ignore[attr-defined]
        call.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
        return call

    return decorate


class Command(TyperCommand):
    """A command whose help shows options that mean the same as those of sweep in one entry."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options with their help, then the names of the others."""
        panels: dict[str, list[str]] = {}
        for one in self.params:
            if panel := getattr(one, "rich_help_panel", None):
                panels.setdefault(panel, []).append(one.opts[0])
                one.hidden = True  # type: ignore[attr-defined]
        super().format_options(ctx, formatter)
        for panel, names in panels.items():
            with formatter.section(panel):
                formatter.write_text(", ".join(names))


def epilog(command: Callable[..., Any]) -> str | None:
    """Explain LIST below the options of a command that has an option of that kind."""
    options = (getattr(one, "__metadata__", [None])[0] for one in command.__annotations__.values())
    return lists.LISTS if any(getattr(one, "metavar", "") == "LIST" for one in options) else None


def given(values: Values) -> Values:
    """Leave out the options that were not given."""
    return {name: value for name, value in values.items() if value is not None}


Complete = Callable[[str], list[str]]


def text(
    metavar: str, help: str, complete: Complete | None = None, panel: str | None = None
) -> Option:
    """Make an option with one value."""
    shown = typer.Option(metavar=metavar, help=help, autocompletion=complete, rich_help_panel=panel)
    return Option(Text, shown)


def several(
    metavar: str,
    help: str,
    read: Callable[[list[str]], Any],
    complete: Complete | None = None,
    panel: str | None = None,
) -> Option:
    """Make an option with several values, which may be repeated."""
    shown = typer.Option(metavar=metavar, help=help, autocompletion=complete, rich_help_panel=panel)
    return Option(Texts, shown, read)


def flag(name: str, help: str) -> Option:
    """Make an option without a value."""
    return Option(bool, typer.Option(f"--{name}", help=help), default=False)


def folder(help: str, default: Path | None = None) -> Option:
    """Make an option that names a folder to write into."""
    shown = typer.Option(metavar="DIR", help=help, parser=checked_folder)
    return Option(Optional[Path], shown, default=default)  # noqa: UP045


def file(help: str) -> Option:
    """Make an option that names a file."""
    return Option(Optional[Path], typer.Option(metavar="FILE", help=help))  # noqa: UP045


class _Choice(NamedTuple):
    """The help text and the reader of one choice of a run (instance, schedule, delta, ...)."""

    what: str
    read: Callable[[list[str]], Any]
    complete: Complete | None = None


_CHOICES = {
    "instance": _Choice(
        "Names, files or patterns of files",
        lists.instances,
        completion.instances,
    ),
    "schedule": _Choice(
        "fedelim, fedelim0 (every step), periodic:100, exponential:1.5, superexponential, "
        "at:1,5,25, adaptive, phases, rounds:2, halving:BUDGET, dp-se:EPS, oracle",
        lists.schedules,
        completion.schedules,
    ),
    "delta": _Choice("Allowed error probability", partial(lists.numbers, "delta")),
    "sigma": _Choice(
        "Scale of the radius, or proxy (half the range)",
        partial(lists.numbers, "sigma"),
    ),
    **{
        kind: _Choice(one.text, lists.choices(kind), completion.choice(kind))
        for kind, one in CHOICES.items()
    },
}


def choices(defaults: Mapping[str, str]) -> dict[str, Option]:
    """Make options of choices that take several values; ``defaults`` names what is the default."""
    return {
        name: several("LIST", f"{one.what} [{default}].", one.read, one.complete)
        for name, default in defaults.items()
        if (one := _CHOICES[name])
    }


def single(defaults: Mapping[str, str], panel: str | None = None) -> dict[str, Option]:
    """Make options of choices that take one value."""
    return {
        name: text("NAME", f"{_CHOICES[name].what} [{default}].", _CHOICES[name].complete, panel)
        for name, default in defaults.items()
    }


FILTERS: Group = {
    name: several(
        "LIST",
        f"Only rows with this {name}.",
        lists.names if name == "instance" else one.read,
        None if name == "instance" else one.complete,
        _FILTERS,
    )
    for name, one in _CHOICES.items()
}
"""Rows that a question is about."""


def prices(default: str, bits: str = "none") -> dict[str, Option]:
    """Make the options of costs; ``default`` names those of an uplink that are the default."""
    return {
        "cost": several(
            "LIST",
            f"Costs C: total = pulls + C x uplinks [{default}].",
            lists.costs,
        ),
        "bit_cost": several(
            "LIST",
            f"Costs c of a bit: total = pulls + c x bits [{bits}].",
            lambda given: lists.costs(given, "bit-cost"),
        ),
        "price": several(
            "LIST",
            f"Prices, as rounds=50, of {', '.join(COUNTS)} [pulls=1].",
            lists.prices,
        ),
    }


SIGMA = "the rewards' if Gaussian, else 1"
THREADS: Group = {"threads": text("NUMBER", "Number of threads [all cores].")}
FORMAT: Group = {
    "format": Option(
        str,
        typer.Option(
            metavar="NAME",
            help=f"Notation: {', '.join(FORMATS[:-1])} or {FORMATS[-1]} [text].",
            autocompletion=lambda incomplete: [n for n in FORMATS if n.startswith(incomplete)],
            show_default=False,
        ),
        checked_format,
        "text",
    )
}
"""The notation of a table."""
SHOWN: Group = {
    "all": flag("all", "Print all rows; without it the text fits on one screen."),
    **FORMAT,
}
"""How much of a table is shown, and how."""
