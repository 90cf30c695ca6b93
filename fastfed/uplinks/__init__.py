"""Uplinks: how clients send their means to the server. One file an uplink; here they get their
names."""

from __future__ import annotations

from fastfed.choices import parse_named, parse_several
from fastfed.uplinks.base import Uplink
from fastfed.uplinks.dither import Dither
from fastfed.uplinks.exact import Exact
from fastfed.uplinks.lattice import Lattice
from fastfed.uplinks.round import Round

__all__ = ["FAMILIES", "Dither", "Exact", "Lattice", "Round", "Uplink", "parse", "parse_all"]

FAMILIES: dict[str, type[Uplink]] = {one.family: one for one in (Exact, Dither, Round)}


def parse(uplink: object) -> Uplink:
    """An uplink from its name, or as it is."""
    return parse_named("uplink", FAMILIES, uplink)


def parse_all(uplinks: object) -> list[Uplink]:
    """One uplink or several, each once, in the order given."""
    return parse_several("uplink", FAMILIES, uplinks)
