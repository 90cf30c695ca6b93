"""The problem: how much every arm pays at every client, and what follows from that.

An `Instance` is checked when it is made, and never again: whatever receives one may trust that
the means are a finite K x M matrix and that rewards fit it. Means may tie: whether that matters
hangs on the goal, which says so when a run begins (`fastfed.goals`). Best arms and the paper's gaps
are those of the goal `best`, and an instance whose best arm is not unique has none.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.faces import Faced
from fastfed.goals.base import MOST, ties
from fastfed.goals.best import Best
from fastfed.problem.rewards import Gaussian, Rewards
from fastfed.validation import numbers, refuse_many_cells, shown

_T = TypeVar("_T", bound=np.generic)

_BEST = Best()


class Instance(Faced):
    """K arms at M clients: ``means[k, m]`` is what arm k pays at client m, on average.

    Parameters
    ----------
    means
        K x M, row = arm, column = client; left out where they follow from the rewards.
    rewards
        The law: `Gaussian` (the default, with sigma 1), `Bernoulli`, `Finite` or `Poisson`.
    arms, clients
        Names to show.
    name, description
        What tables call the instance, and what it is.

    Examples
    --------
    >>> import fastfed as ff
    >>> inst = ff.Instance(means=[[0.9, 0.1], [0.5, 0.6]], name="two towns")
    >>> inst.local_best.tolist(), inst.global_best
    ([0, 1], 1)
    """

    means: npt.NDArray[np.float64]
    rewards: Rewards
    arms: tuple[str, ...]
    clients: tuple[str, ...]
    name: str
    description: str
    averages: npt.NDArray[np.float64]
    """(K,): the mean over clients of what each arm pays."""
    local_ties: npt.NDArray[np.int64]
    """(K, M): arms with equal numbers tie at a client; better arms have larger numbers."""
    global_ties: npt.NDArray[np.int64]
    """(K,): the same in the mean over clients."""

    def __init__(
        self,
        means: npt.ArrayLike | None = None,
        rewards: Rewards | None = None,
        *,
        arms: Sequence[str] | None = None,
        clients: Sequence[str] | None = None,
        name: str = "custom",
        description: str = "",
    ) -> None:
        self.rewards = Gaussian() if rewards is None else rewards
        if not isinstance(self.rewards, Rewards):
            raise InputError(
                f"rewards = {rewards!r}: must be fastfed.Gaussian(sigma), "
                "fastfed.Bernoulli(), fastfed.Finite(values, weights) or "
                "fastfed.Poisson(sigma)"
            )
        own = self.rewards.own_means
        if own is not None and means is not None:
            raise InputError("means: follow from the weights of Finite rewards; leave them out")
        if own is None and means is None:
            raise InputError("means: missing; give a K x M matrix, row = arm, column = client")
        self.means = _checked_means(means if own is None else own)  # type: ignore[arg-type]
        self.rewards.check(self.means)
        self.arms = _names("arm", arms, self.means.shape[0])
        self.clients = _names("client", clients, self.means.shape[1])
        self.name = name
        self.description = description

        # fsum: the mean over clients must not depend on their order, or ties would hide
        self.averages = _frozen(np.array([math.fsum(row) / len(row) for row in self.means]))
        self.local_ties = _frozen(np.stack([ties(column) for column in self.means.T], axis=1))
        self.global_ties = _frozen(ties(self.averages))

    @cached_property
    def local_best(self) -> npt.NDArray[np.int64]:
        """(M,): each client's best arm."""
        _BEST.check(self)
        return _frozen(np.argmax(self.means, axis=0))

    @cached_property
    def global_best(self) -> int:
        """The best arm in the mean over clients."""
        _BEST.check(self)
        return int(np.argmax(self.averages))

    @cached_property
    def local_gaps(self) -> npt.NDArray[np.float64]:
        """(K, M): how far each arm is behind the best; the best arm's own is the smallest other."""
        _BEST.check(self)
        return _frozen(_BEST.local_gaps(self))

    @cached_property
    def global_gaps(self) -> npt.NDArray[np.float64]:
        """(K,): the same in the mean over clients."""
        _BEST.check(self)
        return _frozen(_BEST.global_gaps(self))

    @property
    def shape(self) -> tuple[int, int]:
        """(K, M)."""
        return self.means.shape[0], self.means.shape[1]

    @property
    def default_sigma(self) -> float:
        """The confidence scale that a run takes if it is not told otherwise: the noise of Gaussian
        rewards; 1 for bounded ones, as the paper uses its radii unchanged."""
        return self.rewards.default_sigma

    @property
    def proxy_sigma(self) -> float:
        """The scale for which the radii are sure to hold: half the range of bounded rewards
        (Hoeffding's lemma)."""
        return self.rewards.proxy_sigma

    @property
    def digest(self) -> str:
        """SHA-256 of what the rewards depend on: equal digests give equal rows."""
        text = f"{self.rewards.kind} {self.shape} "
        return hashlib.sha256(text.encode() + self.rewards.fingerprint(self.means)).hexdigest()

    @staticmethod
    def load(source: str | Path, rewards: Rewards | str | None = None) -> Instance:
        """An instance by name, or from a file.

        Parameters
        ----------
        source
            A built-in's name, a family member (``random:K,M,SEED``, ``scaled:NAME,FACTOR``), or
            a file (``.toml``, ``.csv``, ``.parquet``).
        rewards
            The law for a file that has means and names no law, as an object or as the command
            line writes it ("bernoulli", "gaussian:0.5"); None: Gaussian, sigma 1.

        Returns
        -------
        Instance

        Examples
        --------
        >>> import fastfed as ff
        >>> ff.Instance.load("random:3,2,1").shape
        (3, 2)
        """
        from fastfed.problem.instance_files import load

        return load(source, rewards)

    @staticmethod
    def of(source: Instance | str | Path | npt.ArrayLike) -> Instance:
        """What is meant by an instance, in all the ways that functions take one.

        Parameters
        ----------
        source
            An `Instance`, a built-in's name or a file, or a K x M array of means.

        Returns
        -------
        Instance
            The same; or the one of that name or file; or one of these means, Gaussian.
        """
        if isinstance(source, Instance):
            return source
        if isinstance(source, str | Path):
            return Instance.load(source)
        if source is None or isinstance(source, bool | int | float | dict | set):
            raise InputError(
                f"instance {shown(source)}: must be a fastfed.Instance, a name, a "
                "file, or a K x M array of means"
            )
        return Instance(source)

    def save(self, path: str | Path) -> None:
        """Write the instance to a file.

        Parameters
        ----------
        path
            By its suffix: ``.toml`` (everything), ``.csv`` (means and names) or ``.parquet`` (a
            histogram of rewards with finite support).

        Returns
        -------
        None
        """
        from fastfed.problem.instance_files import save

        save(self, Path(path))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Instance):
            return NotImplemented
        return (
            self.digest == other.digest
            and self.arms == other.arms
            and self.clients == other.clients
        )

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        arms, clients = self.shape
        return f"<Instance {self.name}: {arms} arms x {clients} clients, {self.rewards}>"

    def client_text(self, m: int) -> str:
        """A client by number and name, for messages.

        Parameters
        ----------
        m
            Its number.

        Returns
        -------
        str
        """
        return str(m) if self.clients[m] == str(m) else f"{m} ({self.clients[m]})"


def _checked_means(means: npt.ArrayLike) -> npt.NDArray[np.float64]:
    matrix = numbers(
        "means: must be a K x M matrix of numbers, one row per arm, all rows equally long", means
    )
    if matrix.ndim != 2:
        raise InputError(
            f"means: {matrix.ndim}-dimensional, must be K x M (row = arm, column = client)"
            + ("; for one client write [[a], [b], ...]" if matrix.ndim == 1 else "")
        )
    if matrix.size == 0:
        raise InputError(f"means: empty ({matrix.shape[0]} x {matrix.shape[1]}), at least 1 x 1")
    refuse_many_cells("means", *matrix.shape)
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        k, m = bad[0]
        raise InputError(f"means[{k}, {m}] = {matrix[k, m]}: every mean must be finite")
    if np.abs(matrix).max() > MOST:
        k, m = np.unravel_index(int(np.argmax(np.abs(matrix))), matrix.shape)
        raise InputError(
            f"means[{k}, {m}] = {matrix[k, m]:g}: too large, at most {MOST:g}; "
            "change the unit of the rewards"
        )
    return _frozen(np.ascontiguousarray(matrix))


def _names(kind: str, names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(str(i) for i in range(count))
    if (
        isinstance(names, str)
        or not isinstance(names, Iterable)
        or not all(isinstance(name, str) for name in names)
    ):
        raise InputError(f"{kind} names: must be a list of strings, one for each of {count}")
    names = [str(name) for name in names]
    if len(names) != count:
        raise InputError(f"{kind} names: {len(names)} given for {count} {kind}s")
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise InputError(f"{kind} name {shown(twice[0])} is given twice: names must differ")
    return tuple(names)


def _frozen(array: npt.NDArray[_T]) -> npt.NDArray[_T]:
    array.setflags(write=False)
    return array
