"""Goals: what clients and server want to know. One file a goal; here they get their names."""

from __future__ import annotations

from fastfed.choices import parse_named, parse_several
from fastfed.goals.base import Goal
from fastfed.goals.best import Best

__all__ = ["FAMILIES", "Best", "Goal", "parse", "parse_all"]

FAMILIES: dict[str, type[Goal]] = {one.family: one for one in (Best,)}


def parse(goal: object) -> Goal:
    """A goal from its name, or as it is."""
    return parse_named("goal", FAMILIES, goal)


def parse_all(goals: object) -> list[Goal]:
    """One goal or several, each once, in the order given."""
    return parse_several("goal", FAMILIES, goals)
