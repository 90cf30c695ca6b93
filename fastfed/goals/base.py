"""What a goal is."""

from __future__ import annotations

from fastfed.choices import Named


class Goal(Named):
    """A question that every client answers for itself and the server for all of them."""
