"""Versions: of the package, which the build reads from here, and of the rows."""

__version__ = "0.1.0"

ROWS = 8
"""Version of the rows. It changes when the same job and seed would give other rows than before."""

OLDEST_ROWS = 4
"""The oldest version of the rows that is still read: same columns, with the same meaning."""
