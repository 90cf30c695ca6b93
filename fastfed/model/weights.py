"""Weights of clients: the values that the server asks about.

A *question* is a row p of weights over the M clients, with sum 1. The value of arm k in it is the
sum over clients of p_m mu_km. The paper asks one question, with p = 1/M. With several questions the
server answers each of them.

The empirical value has the variance sigma^2 sum p_m^2 / n, where the paper has sigma^2 / (M n). So
1 / sum p_m^2, the *effective number of clients*, takes the place of M in radii and bounds.

Kernels compare sums over clients of w_m X_km with one boundary g for all questions, the one of M
clients that count alike. With w_m = p_m sqrt(M / sum p^2) the sum of the w_m^2 is M, so that sums
have the variance rate of equal weights, and their thresholds are g. For equal weights w_m is 1.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.model.arrays import frozen
from fastfed.validation import numbers, shown

Floats = npt.NDArray[np.float64]

_MOST = 1_000_000  # weights of all questions
_LEAST = 1e-9  # of the largest weight in a row: below it a weight may as well be 0
_RULE = (
    "weights: must be a number for each client, none negative, as in [5, 3, 2]; several "
    "questions are several such rows, all equally long"
)


class Questions:
    """The questions of the server, and whether clients ask for their own answers as well.

    Parameters
    ----------
    weights
        A weight for each client, or a row of weights for each question. None: equal weights.
    clients
        M.
    local
        Whether each client asks for the answer at itself, too.
    """

    given: Floats
    """(Q, M): the weights as they were given, for files."""
    rows: Floats
    """(Q, M): the same with sum 1."""
    effective: Floats
    """(Q,): the effective number of clients, 1 / sum p^2; M for equal weights."""
    factors: Floats
    """(Q, M): w of the module's text."""
    local: bool

    def __init__(self, weights: npt.ArrayLike | None, clients: int, local: bool = True) -> None:
        if not isinstance(local, bool | np.bool_):
            raise InputError(f"local = {shown(local)}: must be true or false")
        self.local = bool(local)
        self.given = np.ones((1, clients)) if weights is None else _checked(weights, clients)
        equal = self.given.min(axis=1) == self.given.max(axis=1)
        # a power of two loses no digit, and keeps sums finite
        scaled = np.ldexp(self.given, -np.frexp(self.given.max(axis=1, keepdims=True))[1])
        totals = np.array([math.fsum(row) for row in scaled])
        squares = np.array([math.fsum(row**2) for row in scaled]) / totals**2
        self.rows = np.where(equal[:, None], 1.0 / clients, scaled / totals[:, None])
        self.effective = np.where(equal, float(clients), 1.0 / squares)
        self.factors = np.where(
            equal[:, None], 1.0, self.rows * np.sqrt(clients * self.effective)[:, None]
        )
        self._equal = equal
        for array in (self.given, self.rows, self.effective, self.factors):
            frozen(array)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def plain(self) -> bool:
        """Tell whether these are the paper's questions: equal weights, and every client's own."""
        return len(self) == 1 and self.local and bool(self._equal[0])

    @property
    def asked(self) -> npt.NDArray[np.bool_]:
        """Boolean matrix (Q, M): true where a client has a weight in a question."""
        return self.rows > 0.0

    @property
    def factor_sums(self) -> Floats:
        """(Q,): the sum of the factors w over clients, by which values enter sums."""
        return np.asarray(np.sqrt(self.rows.shape[1] * self.effective))

    @property
    def inverse(self) -> Floats:
        """(Q, M): 1 / p, by how much a client's mean must change for a value to change by 1."""
        with np.errstate(divide="ignore"):
            return np.where(self._equal[:, None], float(self.rows.shape[1]), 1.0 / self.rows)

    def latest(self, by_question: Floats) -> Floats:
        """Spread steps of questions, (..., Q, K), over the clients that they need, (..., K, M).

        Arm k of client m is needed until the last question that has a weight on m. A client without
        a weight has 0.
        """
        clients = self.rows.shape[1]
        found = np.zeros((*by_question.shape[:-2], by_question.shape[-1], clients))
        for question, asked in enumerate(self.asked):
            np.maximum(found, by_question[..., question, :, None] * asked, out=found)
        return found

    def values(self, means: Floats) -> Floats:
        """Return the value of each arm in each question, (Q, K).

        Sums are exact until the last rounding, so they do not depend on the order of clients.
        Otherwise rounding could hide ties.
        """
        found = [
            [
                math.fsum(arm) / len(arm) if equal else math.fsum((row * arm).tolist())
                for arm in means
            ]
            for row, equal in zip(self.rows, self._equal, strict=True)
        ]
        return np.array(found)

    def value(self, question: int, means: Mapping[int, float]) -> float:
        """Return the value of an arm in a question, from its mean at each client with a weight."""
        if self._equal[question]:
            return sum(means.values()) / len(means)
        return float(sum(self.rows[question, m] * mean for m, mean in means.items()))

    @property
    def server_share(self) -> float:
        """Factor that turns delta into the delta of one question of a server as in the paper.

        Radii give half of their delta to the clients and half to the server's one question
        (`fastfed.confidence`). Q questions have a Q-th of the server's half each. Without the
        clients' own questions the server has all of delta, which is twice its half. By the union
        bound over all answers, M + Q or Q of them, one is wrong with probability delta at most.
        """
        return (1.0 if self.local else 2.0) / len(self)

    def fingerprint(self) -> bytes:
        """Return what rows depend on; nothing for the paper's questions."""
        if self.plain:
            return b""
        return f" weights {self.rows.shape} {self.local} ".encode() + self.rows.tobytes()

    @property
    def label(self) -> str:
        """A short text for names: the weights as they were given, if a line bears them."""
        if len(self) > 1:
            text = f"{len(self)} questions {self._code}"
        else:
            text = ",".join(f"{weight:.6g}" for weight in self.given[0].tolist())
            exact = [float(one) for one in text.split(",")] == self.given[0].tolist()
            text = f"weighted {text if exact and len(text) <= 40 else self._code}"
        return text if self.local else f"{text} without local"

    @property
    def _code(self) -> str:
        return hashlib.sha256(self.rows.tobytes()).hexdigest()[:6]

    @property
    def summary(self) -> str:
        """Describe in a few words which weighted means the server asks about."""
        weights = "equal weights" if self._equal[0] else "weighted clients"
        asked = f"{len(self)} questions" if len(self) > 1 else weights
        return asked if self.local else f"{asked}, no local question"

    def text(self, question: int) -> str:
        """Name the values of a question, for messages."""
        if len(self) > 1:
            return f"question {question} of the server"
        return "the mean over clients" if self._equal[0] else "the weighted mean over clients"


def personalised_rows(clients: int, alpha: object) -> Floats:
    """Return one question for each client: the weights alpha e_m + (1 - alpha) / M."""
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.floating):
        raise InputError(f"alpha = {shown(alpha)}: must be a number from 0 to 1")
    if not 0.0 <= alpha <= 1.0:
        raise InputError(f"alpha = {shown(alpha)}: must lie from 0 (equal weights) to 1 (its own)")
    _refuse_many(clients, clients)
    return np.asarray(float(alpha) * np.eye(clients) + (1.0 - float(alpha)) / clients)


def _refuse_many(questions: int, clients: int) -> None:
    if questions * clients > _MOST:
        raise InputError(
            f"weights: {questions:,} questions x {clients:,} clients, at most {_MOST:,} "
            "weights fit into memory"
        )


def _checked(weights: npt.ArrayLike, clients: int) -> Floats:
    rows = numbers(_RULE, weights)
    if rows.ndim not in (1, 2):
        raise InputError(f"weights: {rows.ndim}-dimensional; give one row, or a row a question")
    if rows.size == 0:
        raise InputError("weights: empty; leave them out if all clients count alike")
    single = rows.ndim == 1
    rows = np.atleast_2d(rows)
    if rows.shape[1] != clients:
        raise InputError(
            f"weights: {rows.shape[1]} in a row for {clients} client{'s' * (clients > 1)}; give "
            "one for each client"
        )
    if not single:
        _refuse_many(len(rows), clients)

    def at(q: int, m: int) -> str:
        return f"weights[{m}]" if single else f"weights[{q}, {m}]"

    for bad, rule in (
        (~np.isfinite(rows), "every weight must be finite"),
        (rows < 0.0, "no weight may be negative"),
    ):
        if bad.any():
            q, m = np.argwhere(bad)[0]
            raise InputError(f"{at(q, m)} = {rows[q, m]:g}: {rule}")
    most = rows.max(axis=1, keepdims=True)
    if not most.all():
        where = "weights" if single else f"weights[{int(np.argmin(most))}]"
        raise InputError(f"{where}: all 0; at least one client must count")
    small = (rows > 0.0) & (rows < _LEAST * most)
    if small.any():
        q, m = np.argwhere(small)[0]
        raise InputError(
            f"{at(q, m)} = {rows[q, m]:g}: below {_LEAST:g} of the largest weight; write 0 for a "
            "client that does not count"
        )
    return np.ascontiguousarray(rows)
