"""Uplinks: how clients send their means to the server. One file an uplink; here they get their
names."""

from __future__ import annotations

from fastfed.choices import parse_named, parse_several
from fastfed.uplinks.base import Uplink
from fastfed.uplinks.exact import Exact

__all__ = ["FAMILIES", "Exact", "Uplink", "parse", "parse_all"]

FAMILIES: dict[str, type[Uplink]] = {one.family: one for one in (Exact,)}


def parse(uplink: object) -> Uplink:
    """An uplink from its name, or as it is."""
    return parse_named("uplink", FAMILIES, uplink)


def parse_all(uplinks: object) -> list[Uplink]:
    """One uplink or several, each once, in the order given."""
    return parse_several("uplink", FAMILIES, uplinks)
