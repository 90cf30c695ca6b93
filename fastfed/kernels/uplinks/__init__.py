"""How what clients send reaches the server: `hooks` says what a pass asks, one file for each
family of uplinks answers."""

from fastfed.kernels.uplinks import exact, lattice

__all__ = ["exact", "lattice"]
