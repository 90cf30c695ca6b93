"""Instances: the means of all arms at all clients, their rewards, and the weights of clients.

An `Instance` is checked when it is made, and never again: its means are a K x M matrix, its rewards
fit them, and its weights are one row of M numbers for each question of the server
(`fastfed.model.weights`). A mean is finite, or NaN where a client does not have the arm. Every
client has an arm, and every arm a client. Means may tie. Whether that matters depends on the goal,
which refuses it when a run begins (`fastfed.model.goals`). Best arms and the paper's gaps are those
of the goal `best`, and an instance whose best arm is not unique has none.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.model.arrays import frozen, refuse_cells
from fastfed.model.goals.base import MOST, ties
from fastfed.model.goals.best import Best
from fastfed.model.rewards import Gaussian, Rewards
from fastfed.model.weights import Questions, personalised_rows
from fastfed.text import printable
from fastfed.validation import numbers, refuse_many_cells, shown

_BEST = Best()


class Instance:
    """K arms at M clients: ``means[k, m]`` is what arm k pays at client m, on average.

    Parameters
    ----------
    means
        K x M, row = arm, column = client; left out where they follow from the rewards. NaN where a
        client does not have an arm.
    rewards
        The law: `Gaussian` (the default, with sigma 1), `Bernoulli`, `Finite` or `Poisson`.
    weights
        A weight for each client, as in [5, 3, 2]: the server's value of an arm is the weighted
        mean over clients. They are normalised; None: all clients count alike. Several rows are
        several questions, which the server answers all.
    local
        Whether each client asks for its own best arm as well.
    own
        Whether each client asks for the best of its own arms by their averages over all clients
        that have them, in place of all other questions: see the method `own`.
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
    available: npt.NDArray[np.bool_]
    """(K, M): whether a client has an arm; its mean is NaN otherwise."""
    rewards: Rewards
    arms: tuple[str, ...]
    clients: tuple[str, ...]
    name: str
    description: str
    questions: Questions
    """The weights of clients in each question of the server, and whether clients ask, too."""
    values: npt.NDArray[np.float64]
    """(Q, K): the server's value of each arm in each of its questions; NaN for no candidate."""
    local_ties: npt.NDArray[np.int64]
    """(K, M): arms with equal numbers tie at a client; better arms have larger numbers. An arm that
    the client does not have has -1."""
    server_ties: npt.NDArray[np.int64]
    """(Q, K): the same in each question of the server."""

    def __init__(
        self,
        means: npt.ArrayLike | None = None,
        rewards: Rewards | None = None,
        *,
        weights: npt.ArrayLike | None = None,
        local: bool = True,
        own: bool = False,
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
        found = self.rewards.own_means
        if found is not None and means is not None:
            raise InputError("means: follow from the weights of Finite rewards; leave them out")
        if found is None and means is None:
            raise InputError("means: missing; give a K x M matrix, row = arm, column = client")
        self.means = _checked_means(means if found is None else found)  # type: ignore[arg-type]
        self.available = frozen(~np.isnan(self.means))
        self.rewards.check(self.means)
        self.arms = _names("arm", arms, self.means.shape[0])
        self.clients = _names("client", clients, self.means.shape[1])
        self.name = name
        self.description = description
        self._refuse_bare()

        self.questions = Questions(weights, self.available, local, own)
        self.values = frozen(self.questions.values(self.means))
        self.local_ties = frozen(ties(self.means))
        self.server_ties = frozen(np.stack([ties(row) for row in self.values]))

    def _refuse_bare(self) -> None:
        """Refuse an arm that no client has, and a client without arms."""
        for kind, names, held, by in (
            ("arm", self.arms, self.available.any(axis=1), "no client has it"),
            ("client", self.clients, self.available.any(axis=0), "it has no arm"),
        ):
            for place in np.flatnonzero(~held)[:1].tolist():
                name = "" if names[place] == str(place) else f" ({names[place]})"
                raise InputError(f"{kind} {place}{name}: {by} (all its means are missing); drop it")

    @classmethod
    def personalised(
        cls,
        means: npt.ArrayLike | None = None,
        rewards: Rewards | None = None,
        *,
        alpha: float = 0.5,
        local: bool = False,
        arms: Sequence[str] | None = None,
        clients: Sequence[str] | None = None,
        name: str = "personalised",
        description: str = "",
    ) -> Instance:
        """Make an instance in which each client asks for the best arm of its own mixture.

        Parameters
        ----------
        means, rewards, arms, clients, name, description
            As for `Instance`.
        alpha
            The question of client m has the weights alpha e_m + (1 - alpha) / M: 1 is its own
            problem, 0 the mean over clients.
        local
            Whether each client asks for the best arm at itself as well.

        Returns
        -------
        Instance
            With M questions.

        Examples
        --------
        >>> import fastfed as ff
        >>> mixed = ff.Instance.personalised([[0.9, 0.1], [0.5, 0.6]], alpha=0.5)
        >>> mixed.weights.tolist(), mixed.server_best.tolist()
        ([[0.75, 0.25], [0.25, 0.75]], [0, 1])
        """
        alike = cls(means, rewards, arms=arms, clients=clients, name=name, description=description)
        rows = personalised_rows(alike.shape[1], alpha)
        return changed(alike, weights=rows, local=local)

    def weighted(self, weights: npt.ArrayLike, local: bool | None = None) -> Instance:
        """Return the same instance with other weights of clients.

        Parameters
        ----------
        weights
            A weight for each client, or a row of weights for each question.
        local
            Whether each client asks for its own best arm as well; None: as in this instance.

        Returns
        -------
        Instance
            Its name says that it is weighted, unless all weights are equal.

        Examples
        --------
        >>> import fastfed as ff
        >>> ff.Instance.load("synthetic").weighted([5, 3, 2]).name
        'synthetic weighted 5,3,2'
        """
        made = changed(
            self, weights=weights, local=self.questions.local if local is None else local
        )
        if made.digest != self.digest:
            made.name = f"{self.name} {made.questions.label}"
        return made

    def own(self) -> Instance:
        """Return the same means with one question for each client: its own arms, averaged.

        The candidates of question m are the arms of client m. The value of an arm is its mean over
        all clients that have it, weighted as in this instance. There are no local questions. These
        are the questions of Chen, Karthik, Tan and Chee (arXiv 2210.07780).

        Returns
        -------
        Instance
            With M questions.

        Examples
        --------
        >>> import fastfed as ff
        >>> nan = float("nan")
        >>> chain = ff.Instance([[1.0, nan], [0.5, 0.5], [nan, 0.0]]).own()
        >>> chain.server_best.tolist()
        [0, 1]
        """
        return changed(self, own=True, name=f"{self.name} own")

    @property
    def weights(self) -> npt.NDArray[np.float64] | None:
        """(M,), or (Q, M) for several questions, with sum 1; None if all clients count alike."""
        questions = self.questions
        if questions.plain or (questions.own and (questions.given == questions.given[0, 0]).all()):
            return None
        return questions.rows[0] if len(questions.given) == 1 else questions.rows

    @property
    def averages(self) -> npt.NDArray[np.float64]:
        """(K,): the server's value of each arm, of several questions in the first."""
        return np.asarray(self.values[0])

    @property
    def global_ties(self) -> npt.NDArray[np.int64]:
        """(K,): arms with equal numbers tie in `averages`."""
        return np.asarray(self.server_ties[0])

    @cached_property
    def local_best(self) -> npt.NDArray[np.int64]:
        """(M,): each client's best arm."""
        _BEST.check(self)
        return frozen(np.nanargmax(self.means, axis=0))

    @cached_property
    def server_best(self) -> npt.NDArray[np.int64]:
        """(Q,): the best arm in each question of the server."""
        _BEST.check(self)
        return frozen(np.nanargmax(self.values, axis=1))

    @property
    def global_best(self) -> int:
        """The best arm of the server, of several questions in the first."""
        return int(self.server_best[0])

    @cached_property
    def local_gaps(self) -> npt.NDArray[np.float64]:
        """Gaps to the best arm of each client, (K, M); the best arm has the smallest other gap.

        The gap of an arm that a client does not have is infinite, and so is that of a lone arm.
        """
        _BEST.check(self)
        return frozen(_BEST.local_gaps(self))

    @cached_property
    def server_gaps(self) -> npt.NDArray[np.float64]:
        """(Q, K): the same in each question of the server."""
        _BEST.check(self)
        return frozen(_BEST.server_gaps(self))

    @property
    def global_gaps(self) -> npt.NDArray[np.float64]:
        """Gaps of the arms at the server, (K,); with several questions, those of the first."""
        return np.asarray(self.server_gaps[0])

    @property
    def rewards_text(self) -> str:
        """The reward distribution, and the questions if they are not the paper's, for tables."""
        asked = "" if self.questions.plain else f", {self.questions.summary}"
        cells = f", {self.available.sum():,} of {self.available.size:,} cells"
        return f"{self.rewards!r}{asked}{'' if self.questions.full else cells}"

    @property
    def shape(self) -> tuple[int, int]:
        """(K, M)."""
        return self.means.shape[0], self.means.shape[1]

    @property
    def default_sigma(self) -> float:
        """The default confidence scale of a run.

        It is the noise of Gaussian rewards, and 1 for bounded rewards, as in the paper.
        """
        return self.rewards.default_sigma

    @property
    def proxy_sigma(self) -> float:
        """The confidence scale with which the radii are proved to hold.

        It is half the range of bounded rewards, by Hoeffding's lemma.
        """
        return self.rewards.proxy_sigma

    @property
    def most_steps(self) -> int:
        """The last step that a trial may reach: beyond it an int64 could not count the pulls."""
        arms, clients = self.shape
        return int(min(self.rewards.most_steps, (2**63 - 1) // (arms * clients)))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the rewards depend on: equal digests give equal rows."""
        text = f"{self.rewards.family} {self.shape} "
        content = text.encode() + self.rewards.fingerprint(self.means)
        return hashlib.sha256(content + self.questions.fingerprint()).hexdigest()

    @staticmethod
    def load(
        source: str | Path,
        rewards: Rewards | str | None = None,
        *,
        empty: float | str | None = None,
        columns: Mapping[str, str] | None = None,
        drop_missing: bool = False,
        weights: npt.ArrayLike | None = None,
    ) -> Instance:
        """Load an instance by name, or from a file.

        Parameters
        ----------
        source
            A built-in's name, a family member (``random:K,M,SEED``, ``scaled:NAME,FACTOR``), or
            a file (``.toml``, ``.csv``, ``.parquet``).
        rewards
            The law for a file that has means and names no law, as an object or as the command
            line writes it ("bernoulli", "gaussian:0.5"); None: Gaussian, sigma 1.
        empty
            Of observed rewards: the reward where none was observed, or "absent" if the client does
            not have the arm there; None: refuse such a file.
        columns
            Of observed rewards: the names of columns, as in {"arm": "drug", "client": "hospital",
            "reward": "outcome"}; None: arm, client, reward and perhaps count.
        drop_missing
            Of observed rewards: leave rows without a value out, with a warning that counts them;
            otherwise such a file is refused.
        weights
            Weights of clients in place of the file's, as for `weighted`; None: the file's.

        Returns
        -------
        Instance

        Examples
        --------
        >>> import fastfed as ff
        >>> ff.Instance.load("random:3,2,1").shape
        (3, 2)
        """
        from fastfed.model.instance_files.load import load
        from fastfed.model.instance_files.reading import Reading

        return load(source, rewards, Reading.of(empty, columns, drop_missing), weights)

    @staticmethod
    def of(
        source: Instance | str | Path | npt.ArrayLike, rewards: Rewards | str | None = None
    ) -> Instance:
        """Make an instance from any form in which functions take one.

        Parameters
        ----------
        source
            An `Instance`, a built-in's name or a file, or a K x M array of means.
        rewards
            The reward distribution of means that have none; None: Gaussian, sigma 1.

        Returns
        -------
        Instance
            The same; or the one of that name or file; or one of these means.
        """
        if isinstance(source, Instance):
            if rewards is not None:
                raise InputError(
                    f"rewards {rewards}: {source.name} says itself what its rewards are; leave "
                    "them out"
                )
            return source
        if isinstance(source, str | Path):
            return Instance.load(source, rewards)
        if source is None or isinstance(source, bool | int | float | dict | set):
            raise InputError(
                f"instance {shown(source)}: must be a fastfed.Instance, a name, a "
                "file, or a K x M array of means"
            )
        return Instance(source, None if rewards is None else Rewards.parse(rewards))

    def resample(self, rng: np.random.Generator) -> Instance:
        """Draw observed rewards again, with replacement: the bootstrap.

        Parameters
        ----------
        rng
            NumPy's generator of random numbers.

        Returns
        -------
        Instance
            With as many rewards of each arm at each client as were observed. An instance whose
            rewards were not observed is refused.

        Examples
        --------
        >>> import numpy as np
        >>> import fastfed as ff
        >>> seen = ff.Instance(rewards=ff.Finite([0.0, 1.0], [[[10, 30]], [[25, 15]]]))
        >>> seen.resample(np.random.default_rng(0)).means.round(3).tolist()
        [[0.725], [0.325]]
        """
        from fastfed.model.observed import resample

        return resample(self, rng)

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
        from fastfed.model.instance_files.load import save

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
        return (
            f"<Instance {printable(self.name)}: {arms} arms x {clients} clients, "
            f"{self.rewards_text}>"
        )

    def _repr_html_(self) -> str:
        from fastfed.display.instance_table import instance_table

        return instance_table(self).html()

    def client_text(self, m: int) -> str:
        """Name a client by number and name, for messages.

        Parameters
        ----------
        m
            Its number.

        Returns
        -------
        str
        """
        return str(m) if self.clients[m] == str(m) else f"{m} ({self.clients[m]})"


def changed(instance: Instance, **arguments: Any) -> Instance:
    """Return the same instance with other arguments of `Instance`."""
    rewards = arguments.get("rewards", instance.rewards)
    same = {
        "means": None if rewards.own_means is not None else instance.means,
        "rewards": rewards,
        "weights": None if instance.weights is None else instance.questions.given,
        "local": instance.questions.local,
        "own": instance.questions.own,
        **{name: getattr(instance, name) for name in ("arms", "clients", "name", "description")},
    }
    return type(instance)(**same | arguments)


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
    refuse_cells("means", matrix, np.isinf(matrix), "every mean must be finite")
    matrix[np.isnan(matrix)] = np.nan  # one bit pattern for all
    size = np.abs(np.nan_to_num(matrix))
    if size.max() > MOST:
        k, m = np.unravel_index(int(np.argmax(size)), matrix.shape)
        raise InputError(
            f"means[{k}, {m}] = {matrix[k, m]:g}: too large, at most {MOST:g}; "
            "change the unit of the rewards"
        )
    return frozen(np.ascontiguousarray(matrix))


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
