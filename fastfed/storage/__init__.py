"""Folders of sweeps: parts, records, locks, merging and saving."""
