"""Goals: what clients and server want to know. One file a goal; here they get their names."""

from __future__ import annotations

from fastfed.choices import parse_named, parse_several
from fastfed.goals.base import Goal
from fastfed.goals.best import Best
from fastfed.goals.eps import Eps
from fastfed.goals.threshold import Threshold
from fastfed.goals.top import Top

__all__ = ["FAMILIES", "Best", "Eps", "Goal", "Threshold", "Top", "parse", "parse_all"]

FAMILIES: dict[str, type[Goal]] = {one.family: one for one in (Best, Top, Eps, Threshold)}


def parse(goal: object) -> Goal:
    """A goal from its name, or as it is."""
    return parse_named("goal", FAMILIES, goal)


def parse_all(goals: object) -> list[Goal]:
    """One goal or several, each once, in the order given."""
    return parse_several("goal", FAMILIES, goals)
