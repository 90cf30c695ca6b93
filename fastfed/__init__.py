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


def __getattr__(name: str) -> object:
    """Load a public name when it is first used, so that `fastfed --help` need not wait for Numba.

    The stub beside this file lists the public names, and says for people, type checkers and this
    function where each is defined.
    """
    import re
    from importlib import import_module
    from pathlib import Path

    stub = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    home = {one: module for module, one in re.findall(r"from (\S+) import (\w+)", stub)}
    if name == "__all__":
        found: object = sorted(home)
    elif name in home:
        found = getattr(import_module(home[name]), name)
    else:
        raise AttributeError(f"module 'fastfed' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    from fastfed import __all__

    return __all__
