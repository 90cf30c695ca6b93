"""The uplinks, by which messages of clients reach the server.

`hooks` lists what a pass asks of an uplink; each family of uplinks has a file.
"""

from fastfed.kernels.uplinks import exact, laplace, lattice

__all__ = ["exact", "laplace", "lattice"]
