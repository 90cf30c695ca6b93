"""Brackets of a client's eliminations from the values at its spine nodes: a file for each goal."""
