"""What objects look like: as HTML in a notebook, as a table on a terminal.

How a face is made is known by the rooms further up (`fastfed.results`), which nothing below may
import. So they enter their functions here, by the name of the class, and objects ask here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Face = Callable[[Any], str]

HTML: dict[str, Face] = {}
"""For a notebook, by the name of the class."""
TEXT: dict[str, Face] = {}
"""For a terminal, where the class does not know its text by itself."""


class Faced:
    """An object that a notebook shows as HTML, once its face is known."""

    def _repr_html_(self) -> str | None:
        face = HTML.get(type(self).__name__)
        return None if face is None else face(self)
