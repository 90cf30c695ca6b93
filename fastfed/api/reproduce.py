"""`reproduce`: the paper's experiments, its panels and its claims, from one call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fastfed import console
from fastfed.analysis.verdicts import Claim
from fastfed.api.progress import watch
from fastfed.files import checked_folder
from fastfed.paper.experiments import DATA_SETS, plan, write
from fastfed.paper.true_errors import read_or_measure
from fastfed.sweeps.run import iterate
from fastfed.validation import checked_seed, checked_threads, checked_trials


@dataclass(frozen=True)
class Reproduction:
    """Claims of the paper with their verdicts, and the files that show them."""

    folder: Path
    claims: list[Claim]
    outlook: str
    """How many claims have a verdict, and what more trials would decide."""
    files: list[Path]

    def __str__(self) -> str:
        return "\n".join(
            [self.outlook, *(f"{claim.key}: {claim.sentence}" for claim in self.claims)]
        )


def reproduce(
    out: str | Path = "paper",
    *,
    trials: int | None = None,
    only: str | None = None,
    quick: bool = False,
    seed: int = 0,
    threads: int | None = None,
    progress: bool = True,
) -> Reproduction:
    """Run the paper's experiments again: `fastfed reproduce` in Python.

    Parameters
    ----------
    out
        The folder for everything. What its sweeps hold already is not computed again.
    trials
        Trials of each cell, of all three data sets alike; None: 10,000, or 200 if ``quick``.
    only
        One data set: "synthetic", "bernoulli" or "movielens"; None: all three.
    quick
        Few trials, also for the true errors: about a minute on two idle cores.
    seed
        The same seed gives the same rows.
    threads
        None: all cores.
    progress
        Say on stderr how far it is.

    Returns
    -------
    fastfed.api.reproduce.Reproduction
        Its ``claims``, each with a ``key``, a ``verdict`` and a ``sentence``, and the ``files``
        that were written. Its ``outlook`` says what more trials would decide.

    Examples
    --------
    >>> import fastfed as ff
    >>> done = ff.reproduce("paper", quick=True)  # doctest: +SKIP
    >>> ff.reproduce("paper", only="films")
    Traceback (most recent call last):
        ...
    fastfed.errors.InputError: only 'films': must be one of synthetic, bernoulli, movielens
    """
    folder = checked_folder(out)
    count = None if threads is None else checked_threads(threads)
    number = checked_seed(seed)
    grids = plan(
        trials=None if trials is None else checked_trials(trials),
        only=only,
        quick=quick,
        seed=number,
    )
    say = console.say if progress else lambda _: None
    for name, grid in grids.items():
        say(f"{name}: {grid.spec.trials:,} trials of each cell")
        watch(iterate(grid, folder / name, threads=count), progress).refuse_failures()
    data_sets = DATA_SETS if only is None else (only,)
    measured = read_or_measure(folder, data_sets, quick, number, count, say)
    claims, outlook, files = write(folder, measured, say)
    return Reproduction(folder, claims, outlook, files)
