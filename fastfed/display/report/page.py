"""One self-contained file of HTML from the numbers of a report.

Nothing is loaded from anywhere: the page's own security policy forbids every request, and lets
only those scripts run whose hashes it lists. Names are data, never markup: they reach the page as
JSON and are written into it as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from typing import Any, NamedTuple

from fastfed.text import printable

_VEGA = ("vendor/vega.min.js", "vendor/vega-lite.min.js", "vendor/vega-embed.min.js")


class Layout(NamedTuple):
    """The layout of a kind of page: its elements, and the scripts that fill them."""

    body: str
    scripts: tuple[str, ...]


SWEEP = Layout(
    "page.html",
    (*_VEGA, "dom.js", "model.js", "prices.js", "compare.js", "verdicts.js", "page.js"),
)
CLAIMS = Layout("claims.html", ("dom.js", "claims.js"))


def page(data: dict[str, Any], title: str = "fastfed report", layout: Layout = SWEEP) -> str:
    """Make the whole page, as text to write into a file."""
    scripts = [_read(name).replace("</script", "<\\/script") for name in layout.scripts]
    style = _read("page.css")
    # a "<" inside JSON could end the element that holds it
    encoded = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    # Vega and its tooltips write styles of their own; images are drawn from data, to be saved
    policy = (
        "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src "
        + " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    )
    parts = {
        "POLICY": policy,
        "TITLE": html.escape(printable(title)),
        "STYLE": style,
        "DATA": encoded,
        "SCRIPTS": "\n".join(f"<script>{script}</script>" for script in scripts),
        "BODY": _read(layout.body),
    }
    pieces = _read("frame.html").split("@")
    # every second piece is the name of a part: filled in one pass, whatever the parts contain
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
