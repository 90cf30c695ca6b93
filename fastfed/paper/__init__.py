"""Reproduction of the paper: experiments, panels, tables, and a verdict on every claim."""
