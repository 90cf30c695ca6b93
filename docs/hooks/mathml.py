"""Formulas as MathML, made when the pages are built: readers need neither scripts nor a network.

`pymdownx.arithmatex` marks the formulas of a page, and this replaces each mark by MathML.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_MARKED = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Turn formulas into MathML; MkDocs calls this for every page."""
    return _MARKED.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    formula = html.unescape(found[2]).strip()
    inline = formula.startswith(r"\(")
    return convert(formula[2:-2].strip(), display="inline" if inline else "block")
