"""Uplinks: how clients send their means to the server. One file an uplink."""

from __future__ import annotations

from fastfed.model.uplinks.base import Uplink
from fastfed.model.uplinks.dither import Dither
from fastfed.model.uplinks.exact import Exact
from fastfed.model.uplinks.laplace import Laplace
from fastfed.model.uplinks.lattice import Lattice
from fastfed.model.uplinks.round import Round

__all__ = ["Dither", "Exact", "Laplace", "Lattice", "Round", "Uplink"]
