"""fastfed: exact simulation of federated best-arm identification.

A trial of FedElim pulls arms at many clients until every client knows its own best arm and the
server knows the best arm overall. fastfed runs such trials by the thousand, exactly distributed
as the step-by-step algorithm, at a cost that grows with the logarithm of the number of pulls.

The package is a stack of rooms, each of which imports only what stands below it:

* `cli` is the command line, and `commands` has those of its commands that take more than a few
  lines;
* `api` is what a user holds: `simulate` and its result, `sweep` and its folder;
* `paper` has the paper's experiments, claims and panels;
* `results` is what a person sees: tables, figures, notebook faces, the page;
* `theory` has the theorems as numbers, compares sweeps with them, and estimates true error
  probabilities;
* `sweeps` runs grids of cells, on threads or with Dask, and keeps their rows in folders;
* `statistics` turns rows into numbers: summaries, quantiles, intervals, verdicts;
* `engine` runs one cell: a job, its rows, a replay, and the algorithm as printed to judge it by;
* `problem` is what is simulated: instances, reward laws, schedules, and the files they come from;
* `goals` and `uplinks` are what one wants to know, and how means reach the server;
* `kernels` is compiled: random numbers, walks that can be entered anywhere, elimination that
  skips what cannot matter;
* `errors`, `validation`, `files`, `console`, `faces`, `choices`, `radius` and `version` are the
  ground they stand on.
"""

from __future__ import annotations

from fastfed.version import __version__

TYPE_CHECKING = False  # as in typing, which need not be imported for it
if TYPE_CHECKING:
    from fastfed.api.simulate import Result, simulate
    from fastfed.api.sweep import Sweep, open_sweep, sweep, sweep_parts
    from fastfed.engine.replay import Replay, replay
    from fastfed.errors import InputError
    from fastfed.goals import Best, Eps, Goal, Threshold, Top
    from fastfed.problem.instance import Instance
    from fastfed.problem.rewards import Bernoulli, Finite, Gaussian, Poisson
    from fastfed.problem.schedule import (
        At,
        Exponential,
        FedElim,
        FedElim0,
        Periodic,
        Schedule,
        SuperExponential,
    )
    from fastfed.radius import Radius
    from fastfed.theory.bounds import Bounds, bounds
    from fastfed.theory.check import Check, check
    from fastfed.theory.error_probability import ErrorProbability, error_probability
    from fastfed.uplinks import Dither, Exact, Round, Uplink

# Loaded when first used, so that `fastfed --help` need not wait for Numba.
_HOME = {
    name: f"fastfed.{module}"
    for module, names in {
        "api.simulate": ("Result", "simulate"),
        "api.sweep": ("Sweep", "open_sweep", "sweep", "sweep_parts"),
        "engine.replay": ("Replay", "replay"),
        "errors": ("InputError",),
        "goals": ("Best", "Eps", "Goal", "Threshold", "Top"),
        "problem.instance": ("Instance",),
        "problem.rewards": ("Bernoulli", "Finite", "Gaussian", "Poisson"),
        "problem.schedule": (
            "At",
            "Exponential",
            "FedElim",
            "FedElim0",
            "Periodic",
            "Schedule",
            "SuperExponential",
        ),
        "radius": ("Radius",),
        "theory.bounds": ("Bounds", "bounds"),
        "theory.check": ("Check", "check"),
        "theory.error_probability": ("ErrorProbability", "error_probability"),
        "uplinks": ("Dither", "Exact", "Round", "Uplink"),
    }.items()
    for name in names
}

__all__ = [
    "At",
    "Bernoulli",
    "Best",
    "Bounds",
    "Check",
    "Dither",
    "Eps",
    "ErrorProbability",
    "Exact",
    "Exponential",
    "FedElim",
    "FedElim0",
    "Finite",
    "Gaussian",
    "Goal",
    "InputError",
    "Instance",
    "Periodic",
    "Poisson",
    "Radius",
    "Replay",
    "Result",
    "Round",
    "Schedule",
    "SuperExponential",
    "Sweep",
    "Threshold",
    "Top",
    "Uplink",
    "__version__",
    "bounds",
    "check",
    "error_probability",
    "open_sweep",
    "replay",
    "simulate",
    "sweep",
    "sweep_parts",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'fastfed' has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(_HOME[name]), name)
    if name != "InputError":  # which whoever handles errors wants, and nothing else
        importlib.import_module("fastfed.results.html")  # enters what notebooks show
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
