"""Goals: what clients and server want to know. One file a goal."""

from __future__ import annotations

from fastfed.model.goals.base import Goal
from fastfed.model.goals.best import Best
from fastfed.model.goals.eps import Eps
from fastfed.model.goals.threshold import Threshold
from fastfed.model.goals.top import Top

__all__ = ["Best", "Eps", "Goal", "Threshold", "Top"]
