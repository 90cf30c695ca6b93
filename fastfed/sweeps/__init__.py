"""Sweeps: grids of settings, planned and run on threads or on a cluster."""
