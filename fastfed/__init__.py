"""fastfed: exact simulation of federated best-arm identification.

A trial of FedElim pulls arms at many clients until every client knows its own best arm and the
server knows the best arm overall. fastfed runs such trials by the thousand, exactly distributed
as the step-by-step algorithm, at a cost that grows with the logarithm of the number of pulls.

The package is a stack of layers. Each layer imports only the layers below it:

* `cli`: the command line;
* `api`: `simulate` and its result, `sweep` and its folder;
* `paper`: the paper's experiments, claims and panels;
* `display`: tables, figures, notebooks and the report;
* `sweeps`: grids of settings, run on threads or with Dask;
* `storage`: the folder of a sweep on disk;
* `analysis`: summaries, intervals, the cheapest schedule, checks against the theorems;
* `theory`: the theorems as numbers, and true error probabilities;
* `simulation`: one job, its rows, the replay of a trial, and the algorithm as printed;
* `model`: instances, rewards, schedules, radii, goals and uplinks;
* `kernels`: compiled code: random numbers, walks, elimination that skips steps;
* `errors`, `text`, `validation`, `files`, `confidence`, `timegrid`, `console` and `version`: the
  base.
"""

from __future__ import annotations

from fastfed.version import __version__

TYPE_CHECKING = False  # as in typing, which need not be imported for it
if TYPE_CHECKING:
    from fastfed.analysis.cheapest import Cheapest
    from fastfed.analysis.check import Check
    from fastfed.analysis.compare import Comparison
    from fastfed.api.reproduce import reproduce
    from fastfed.api.simulate import Result, simulate
    from fastfed.api.sweep import Sweep, check, merge, open_sweep, sweep, sweep_parts
    from fastfed.errors import InputError
    from fastfed.model.goals import Best, Eps, Goal, Threshold, Top
    from fastfed.model.instance import Instance
    from fastfed.model.radii import Radius
    from fastfed.model.rewards import Bernoulli, Finite, Gaussian, Poisson
    from fastfed.model.schedules import (
        Adaptive,
        Algorithm,
        At,
        Exponential,
        FedElim,
        FedElim0,
        Periodic,
        Schedule,
        SuperExponential,
    )
    from fastfed.model.schedules.algorithm import alpha
    from fastfed.model.uplinks import Dither, Exact, Round, Uplink
    from fastfed.simulation.replay import Replay, replay
    from fastfed.theory.bounds import Bounds, bounds
    from fastfed.theory.error_estimates import ErrorProbability
    from fastfed.theory.error_probability import error_probability

# Loaded when first used, so that `fastfed --help` need not wait for Numba.
_HOME = {
    name: f"fastfed.{module}"
    for module, names in {
        "api.reproduce": ("reproduce",),
        "api.simulate": ("Result", "simulate"),
        "api.sweep": ("Sweep", "check", "merge", "open_sweep", "sweep", "sweep_parts"),
        "simulation.replay": ("Replay", "replay"),
        "errors": ("InputError",),
        "model.goals": ("Best", "Eps", "Goal", "Threshold", "Top"),
        "model.instance": ("Instance",),
        "model.rewards": ("Bernoulli", "Finite", "Gaussian", "Poisson"),
        "model.schedules": (
            "Adaptive",
            "Algorithm",
            "At",
            "Exponential",
            "FedElim",
            "FedElim0",
            "Periodic",
            "Schedule",
            "SuperExponential",
        ),
        "model.schedules.algorithm": ("alpha",),
        "model.radii": ("Radius",),
        "theory.bounds": ("Bounds", "bounds"),
        "analysis.cheapest": ("Cheapest",),
        "analysis.check": ("Check",),
        "analysis.compare": ("Comparison",),
        "theory.error_estimates": ("ErrorProbability",),
        "theory.error_probability": ("error_probability",),
        "model.uplinks": ("Dither", "Exact", "Round", "Uplink"),
    }.items()
    for name in names
}

__all__ = [
    "Adaptive",
    "Algorithm",
    "At",
    "Bernoulli",
    "Best",
    "Bounds",
    "Cheapest",
    "Check",
    "Comparison",
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
    "alpha",
    "bounds",
    "check",
    "error_probability",
    "merge",
    "open_sweep",
    "replay",
    "reproduce",
    "simulate",
    "sweep",
    "sweep_parts",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'fastfed' has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
