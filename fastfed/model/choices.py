"""Choices of a run beside its rewards and schedules: radius, goal, uplink, participation.

This file has all that is written once for each choice. A new choice is an entry of `CHOICES` and a
line in each class below, a module of the model that is named by its plural, and kernels. Settings,
cells, spec files, columns, filters, options of Python and of the command line follow from here.

Nothing heavy is imported: `fastfed --help` and completion in a shell read this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from fastfed.model.part import KINDS, Part

if TYPE_CHECKING:
    from fastfed.model.goals import Goal
    from fastfed.model.participations import Participation
    from fastfed.model.radii import Radius
    from fastfed.model.uplinks import Uplink


class Choice(NamedTuple):
    """A choice, as the command line, spec files and figures show it."""

    default: str
    """What the paper does."""
    plural: str
    """The option of a sweep, and the module of `fastfed.model`."""
    text: str
    """The help of the option."""
    axis: str
    """The title of an axis."""
    grammars: tuple[str, ...]
    """Names of all families, as `Part.grammar` has them."""
    kernels: tuple[str, ...]
    """A name for each kernel that is compiled for the choice."""


CHOICES = {
    "radius": Choice(
        "paper",
        "radii",
        "paper, stitched, mixture, stitched-pairs, mixture-pairs; betting (bounded rewards)",
        "confidence radius",
        ("paper", "stitched", "mixture[:N]", "stitched-pairs", "mixture-pairs[:N]", "betting[:G]"),
        ("paper",),
    ),
    "goal": Choice(
        "best",
        "goals",
        "best (arm), top:N, eps:E (within E of the best), threshold:TAU[,E] (arms above TAU)",
        "goal",
        ("best", "top:N", "eps:E", "threshold:TAU[,E]"),
        ("best",),
    ),
    "uplink": Choice(
        "exact",
        "uplinks",
        "exact (64 bits), dither:KAPPA or round:C0 (rounded), laplace:EPS (private)",
        "uplink",
        ("exact", "dither:KAPPA", "round:C0", "laplace:EPS"),
        ("exact", "dither:0.5"),
    ),
    "participation": Choice(
        "full",
        "participations",
        "full, or each client reports with probability P: wait:P (for all), random:P",
        "participation",
        ("full", "wait:P", "random:P"),
        ("full",),
    ),
}

DEFAULTS = {kind: one.default for kind, one in CHOICES.items()}


class Choices(TypedDict, total=False):
    """Choices of one run, by name or as objects."""

    radius: str | Radius
    goal: str | Goal
    uplink: str | Uplink
    participation: str | Participation


class GridChoices(TypedDict, total=False):
    """Choices of a sweep, one or several of each, by their plurals."""

    radii: Sequence[str] | str
    goals: Sequence[str | Goal] | str | Goal
    uplinks: Sequence[str | Uplink] | str | Uplink
    participations: Sequence[str | Participation] | str | Participation


class ChoiceFilters(TypedDict, total=False):
    """Choices that rows are filtered by, one or several of each; None: all."""

    radius: str | Radius | Sequence[str | Radius] | None
    goal: str | Goal | Sequence[str | Goal] | None
    uplink: str | Uplink | Sequence[str | Uplink] | None
    participation: str | Participation | Sequence[str | Participation] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenNames:
    """The choices of a cell, by name."""

    radius: str = DEFAULTS["radius"]
    goal: str = DEFAULTS["goal"]
    uplink: str = DEFAULTS["uplink"]
    participation: str = DEFAULTS["participation"]


def base_of(kind: str) -> type[Part]:
    """Return the base class of a choice, as `Goal` for "goal"."""
    if kind not in KINDS:
        import_module(f"fastfed.model.{CHOICES[kind].plural}")
    return KINDS[kind]


def _of_the_paper(kind: str) -> Any:
    return base_of(kind).parse(DEFAULTS[kind])


@dataclass(frozen=True, kw_only=True)
class ChosenParts:
    """The choices of a setting, as objects."""

    radius: Radius = field(default_factory=lambda: _of_the_paper("radius"))
    goal: Goal = field(default_factory=lambda: _of_the_paper("goal"))
    uplink: Uplink = field(default_factory=lambda: _of_the_paper("uplink"))
    participation: Participation = field(default_factory=lambda: _of_the_paper("participation"))


def parts_of(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Make the parts that the names or objects of choices stand for."""
    return {kind: base_of(kind).parse(choices[kind]) for kind in DEFAULTS}


def no_theorem(choices: Mapping[str, Any]) -> str:
    """Say why no theorem bounds the costs of a run with these choices; empty if theorems do."""
    reasons = (base_of(kind).parse(choices[kind]).no_theorem() for kind in DEFAULTS)
    return next(filter(None, reasons), "")


def not_default(choices: Mapping[str, object]) -> dict[str, str]:
    """Select the choices that differ from the paper's; an absent one is the paper's."""
    return {
        kind: str(choices[kind])
        for kind, default in DEFAULTS.items()
        if kind in choices and str(choices[kind]) != default
    }


def choices_text(choices: Mapping[str, object]) -> str:
    """Write ", radius mixture, goal top:3" for what differs from the paper; nothing otherwise."""
    return "".join(f", {kind} {name}" for kind, name in not_default(choices).items())
