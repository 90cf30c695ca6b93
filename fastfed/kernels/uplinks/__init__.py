"""The uplinks, by which messages of clients reach the server.

`hooks` lists what a pass asks of an uplink; each family of uplinks has a file.
"""

from fastfed.kernels.uplinks import exact, lattice

__all__ = ["exact", "lattice"]
