"""What an uplink is."""

from __future__ import annotations

from fastfed.choices import Named


class Uplink(Named):
    """How a client's empirical means reach the server: as they are, or in a few bits."""
