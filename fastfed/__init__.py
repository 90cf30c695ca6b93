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
* `model`: instances, rewards, schedules, radii, goals, uplinks and participations;
* `kernels`: compiled code: random numbers, walks, elimination that skips steps;
* `errors`, `text`, `validation`, `files`, `confidence`, `capital`, `timegrid`, `console` and
  `version`: the base.
"""

from __future__ import annotations

from fastfed.version import __version__ as __version__

TYPE_CHECKING = False  # as in typing, which need not be imported for it
if TYPE_CHECKING:
    from fastfed.analysis.cheapest import Cheapest as Cheapest
    from fastfed.analysis.check import Check as Check
    from fastfed.analysis.compare import Comparison as Comparison
    from fastfed.api.reproduce import reproduce as reproduce
    from fastfed.api.simulate import Result as Result
    from fastfed.api.simulate import simulate as simulate
    from fastfed.api.sweep import Sweep as Sweep
    from fastfed.api.sweep import check as check
    from fastfed.api.sweep import merge as merge
    from fastfed.api.sweep import open_sweep as open_sweep
    from fastfed.api.sweep import sweep as sweep
    from fastfed.api.sweep import sweep_parts as sweep_parts
    from fastfed.capital import log_capital as log_capital
    from fastfed.errors import InputError as InputError
    from fastfed.model.goals import Best as Best
    from fastfed.model.goals import Eps as Eps
    from fastfed.model.goals import Goal as Goal
    from fastfed.model.goals import Threshold as Threshold
    from fastfed.model.goals import Top as Top
    from fastfed.model.instance import Instance as Instance
    from fastfed.model.participations import Full as Full
    from fastfed.model.participations import Participation as Participation
    from fastfed.model.participations import Random as Random
    from fastfed.model.participations import Wait as Wait
    from fastfed.model.radii import Radius as Radius
    from fastfed.model.rewards import Bernoulli as Bernoulli
    from fastfed.model.rewards import Finite as Finite
    from fastfed.model.rewards import Gaussian as Gaussian
    from fastfed.model.rewards import Poisson as Poisson
    from fastfed.model.schedules import Adaptive as Adaptive
    from fastfed.model.schedules import Algorithm as Algorithm
    from fastfed.model.schedules import At as At
    from fastfed.model.schedules import Exponential as Exponential
    from fastfed.model.schedules import FedElim as FedElim
    from fastfed.model.schedules import FedElim0 as FedElim0
    from fastfed.model.schedules import Periodic as Periodic
    from fastfed.model.schedules import Schedule as Schedule
    from fastfed.model.schedules import SuperExponential as SuperExponential
    from fastfed.model.schedules.algorithm import alpha as alpha
    from fastfed.model.uplinks import Dither as Dither
    from fastfed.model.uplinks import Exact as Exact
    from fastfed.model.uplinks import Laplace as Laplace
    from fastfed.model.uplinks import Round as Round
    from fastfed.model.uplinks import Uplink as Uplink
    from fastfed.simulation.replay import Replay as Replay
    from fastfed.simulation.replay import replay as replay
    from fastfed.theory.bounds import Bounds as Bounds
    from fastfed.theory.bounds import bounds as bounds
    from fastfed.theory.error_estimates import ErrorProbability as ErrorProbability
    from fastfed.theory.error_probability import error_probability as error_probability

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
        "capital": ("log_capital",),
        "model.schedules.algorithm": ("alpha",),
        "model.participations": ("Full", "Participation", "Random", "Wait"),
        "model.radii": ("Radius",),
        "theory.bounds": ("Bounds", "bounds"),
        "analysis.cheapest": ("Cheapest",),
        "analysis.check": ("Check",),
        "analysis.compare": ("Comparison",),
        "theory.error_estimates": ("ErrorProbability",),
        "theory.error_probability": ("error_probability",),
        "model.uplinks": ("Dither", "Exact", "Laplace", "Round", "Uplink"),
    }.items()
    for name in names
}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'fastfed' has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
