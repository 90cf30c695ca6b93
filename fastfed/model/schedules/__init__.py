"""Schedules: when the clients communicate with the server."""

from __future__ import annotations

from fastfed.model.schedules.adaptive import Adaptive
from fastfed.model.schedules.algorithm import Algorithm
from fastfed.model.schedules.base import Schedule
from fastfed.model.schedules.fixed import (
    At,
    Exponential,
    FedElim,
    FedElim0,
    Periodic,
    SuperExponential,
)
from fastfed.model.schedules.halving import Halving
from fastfed.model.schedules.oracle import Oracle
from fastfed.model.schedules.phases import Phases
from fastfed.model.schedules.private import PrivateElimination
from fastfed.model.schedules.rounds import Rounds

__all__ = [
    "Adaptive",
    "Algorithm",
    "At",
    "Exponential",
    "FedElim",
    "FedElim0",
    "Halving",
    "Oracle",
    "Periodic",
    "Phases",
    "PrivateElimination",
    "Rounds",
    "Schedule",
    "SuperExponential",
]
