"""Random variates as pure functions of an address."""
