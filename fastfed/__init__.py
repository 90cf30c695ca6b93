"""fastfed: exact simulation of federated best-arm identification.

A trial of FedElim pulls arms at many clients until every client knows its own best arm and the
server knows the best arm overall. fastfed runs such trials by the thousand, exactly distributed
as the step-by-step algorithm, at a cost that grows with the logarithm of the number of pulls.

Why each part exists, from the ground up:

* `confidence` has the paper's radii, in one place for everyone;
* `instance` (with `rewards`, `instance_files`) is the problem, checked once;
* `schedule` says when clients talk to the server;
* `kernels` is the compiled engine: a counter-based generator, walks that can be entered anywhere,
  elimination that skips what cannot matter;
* `reference` is the same algorithm as printed, to judge the engine by;
* `simulate` and `replay` turn the engine into rows and stories, `summary` rows into figures;
* `bounds` (with `bounds_table`) has the theorems as numbers, `check` holds sweeps against them;
* `spec` says what a sweep shall do, `sweep` lays out grids, `executors` runs their tasks, `store`
  keeps their Parquet, `merge` joins folders;
* `figures` and `panels` draw, `tables` prints, `claims` (with `verdicts`) judges what the paper
  says, `reproduce` redoes its experiments, `movielens` has its data;
* `cli` is the command line.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING

from fastfed.version import __version__

if TYPE_CHECKING:
    from fastfed.bounds import Bounds, bounds
    from fastfed.check import Check, check
    from fastfed.errors import InputError
    from fastfed.instance import Instance
    from fastfed.replay import Replay, replay
    from fastfed.rewards import Bernoulli, Finite, Gaussian
    from fastfed.schedule import (
        At,
        Exponential,
        FedElim,
        FedElim0,
        Periodic,
        Schedule,
        SuperExponential,
    )
    from fastfed.simulate import Result, simulate
    from fastfed.sweep import sweep, sweep_parts

# Loaded when first used, so that `fastfed --help` need not wait for Numba.
_HOME = {
    "Bounds": "bounds",
    "bounds": "bounds",
    "Check": "check",
    "check": "check",
    "InputError": "errors",
    "Instance": "instance",
    **dict.fromkeys(("Bernoulli", "Finite", "Gaussian"), "rewards"),
    "Replay": "replay",
    "replay": "replay",
    "Result": "simulate",
    "simulate": "simulate",
    "sweep": "sweep",
    "sweep_parts": "sweep",
    **dict.fromkeys(
        ("At", "Exponential", "FedElim", "FedElim0", "Periodic", "Schedule", "SuperExponential"),
        "schedule",
    ),
}

__all__ = [
    "At",
    "Bernoulli",
    "Bounds",
    "Check",
    "Exponential",
    "FedElim",
    "FedElim0",
    "Finite",
    "Gaussian",
    "InputError",
    "Instance",
    "Periodic",
    "Replay",
    "Result",
    "Schedule",
    "SuperExponential",
    "__version__",
    "bounds",
    "check",
    "replay",
    "simulate",
    "sweep",
    "sweep_parts",
]


class _Package(types.ModuleType):
    """The import system binds each submodule to its name here, and some public functions bear the
    name of their module (`simulate`, `replay`): the functions win."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'fastfed' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"fastfed.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
