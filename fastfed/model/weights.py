"""Weights of clients: the values that the server asks about.

A *question* is a row p of weights over the M clients. A client may lack some arms. The value of arm
k is the sum over the clients that have it of W_km mu_km, where W_km = p_m / sum of p over these
clients: a weighted mean. The paper asks one question, with equal weights, of clients that have all
arms: W_km = 1/M. With several questions the server answers each of them. The *candidates* of a
question are the arms that a client with a weight has; in each client's *own* question they are the
arms of that client.

The empirical value of arm k has the variance sigma^2 sum_m W_km^2 / n, where the paper has
sigma^2 / (M n). So 1 / sum_m W_km^2, the *effective number of clients* of the arm, takes the place
of M in radii and bounds. Let E be the largest of these numbers among the candidates of a question,
and s_k = sqrt(E sum_m W_km^2) >= 1 the *scale* of arm k. The difference of arms i and j has the
variance proxy (sigma^2 / (E n)) (s_i^2 + s_j^2). So with alpha the radius of E clients that count
alike, arm i eliminates arm j if its value is ahead by 2 alpha times `ArmScales.pair`.

Kernels compare sums over clients of w_km X_km with a boundary g times the same scale, where g is
the boundary of M clients that count alike and w_km = W_km sqrt(M E). For equal weights of clients
that have all arms both w_km and all scales are 1.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.model.arrays import frozen
from fastfed.validation import MOST_CELLS, numbers, shown

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_MOST = 1_000_000  # weights of all questions
_LEAST = 1e-9  # of the largest weight in a row: below it a weight may as well be 0
_RULE = (
    "weights: must be a number for each client, none negative, as in [5, 3, 2]; several "
    "questions are several such rows, all equally long"
)


class ArmScales(NamedTuple):
    """Scales s_k of the arms in a question, by which the server's radius is wider."""

    arms: Floats | None = None
    """(K,); None: all 1, as at a client."""
    pairs: bool = False
    """Whether the radius is one for each pair of arms, and not one for each arm."""

    def pair(self, i: int, j: int) -> float:
        """Return the factor of the lead at which arm i eliminates arm j, or j arm i."""
        if self.arms is None:
            return 1.0
        one, other = float(self.arms[i]), float(self.arms[j])
        return math.sqrt(0.5 * (one * one + other * other)) if self.pairs else 0.5 * (one + other)

    def arm(self, k: int) -> float:
        """Return the factor of the radius of arm k by itself."""
        return 1.0 if self.arms is None else float(self.arms[k])


ALIKE = ArmScales()
"""The scales of arms that all clients have."""


class Questions:
    """The questions of the server, and whether clients ask for their own answers as well.

    Parameters
    ----------
    weights
        A weight for each client, or a row of weights for each question. None: equal weights.
    available
        (K, M): whether a client has an arm.
    local
        Whether each client asks for the answer at itself, too.
    own
        Whether there is one question for each client, whose candidates are the client's own arms,
        in place of one question. Clients then ask no local questions.
    """

    given: Floats
    """(Q, M), or (1, M) for ``own``: the weights as they were given, for files."""
    rows: Floats
    """(Q, M): the weights with sum 1."""
    shares: Floats
    """(Q, K, M): W of the module's text; 0 for arms that are no candidates."""
    effective: Floats
    """(Q,): E, the largest effective number of clients of a candidate; M for equal weights."""
    arm_scales: Floats
    """(Q, K): s, at least 1; 1 for arms that are no candidates."""
    factors: Floats
    """(Q, K, M): w of the module's text."""
    local: bool
    own: bool
    full: bool
    """Whether every client has every arm."""

    def __init__(
        self,
        weights: npt.ArrayLike | None,
        available: Flags,
        local: bool = True,
        own: bool = False,
    ) -> None:
        for name, value in (("local", local), ("own", own)):
            if not isinstance(value, bool | np.bool_):
                raise InputError(f"{name} = {shown(value)}: must be true or false")
        clients = available.shape[1]
        self.own, self.local = bool(own), bool(local) and not own
        self.full = bool(available.all())
        self.given = np.ones((1, clients)) if weights is None else _checked(weights, clients)
        if self.own and len(self.given) > 1:
            raise InputError(
                f"weights: {len(self.given)} rows for clients' own questions; give one row, by "
                "which all questions average"
            )
        equal = self.given.min(axis=1) == self.given.max(axis=1)
        # a power of two loses no digit, and keeps sums finite
        scaled = np.ldexp(self.given, -np.frexp(self.given.max(axis=1, keepdims=True))[1])
        totals = np.array([math.fsum(row) for row in scaled])
        squares = np.array([math.fsum(row**2) for row in scaled]) / totals**2
        self.rows = np.where(equal[:, None], 1.0 / clients, scaled / totals[:, None])
        self.effective = np.where(equal, float(clients), 1.0 / squares)
        self._equal = equal
        arms = available.shape[0]
        if self.full:
            shape = (len(self.rows), arms, clients)
            self.shares = np.broadcast_to(self.rows[:, None], shape)
            factors = np.where(
                equal[:, None], 1.0, self.rows * np.sqrt(clients * self.effective)[:, None]
            )
            self.factors = np.broadcast_to(factors[:, None], shape)
            self.arm_scales = np.ones(shape[:2])
        else:
            self._share_among(scaled, available)
        if self.own:
            self._ask_each_client(available)
        for array in (self.given, self.rows, self.effective, self.arm_scales):
            frozen(array)

    def _share_among(self, scaled: Floats, available: Flags) -> None:
        """Share the weights of each arm among the clients that have it."""
        questions, (arms, clients) = len(scaled), available.shape
        _refuse_many_shares(questions * len(available) * clients)
        self.shares = np.zeros((questions, arms, clients))
        effective = np.zeros((questions, arms))  # 0: no client with a weight has the arm
        for q, weights in enumerate(scaled):
            for k, there in enumerate(available & (weights > 0.0)):
                each = weights[there]
                if not len(each):
                    continue
                if each.min() == each.max():
                    self.shares[q, k, there] = 1.0 / len(each)
                    effective[q, k] = len(each)
                else:
                    total = math.fsum(each)
                    self.shares[q, k, there] = each / total
                    effective[q, k] = total**2 / math.fsum(each**2)
        self.effective = effective.max(axis=1)
        held = effective > 0.0
        each = np.where(held, effective, self.effective[:, None])
        self.arm_scales = np.sqrt(self.effective[:, None] / each)
        self.factors = self.shares * np.sqrt(clients * self.effective)[:, None, None]

    def _ask_each_client(self, available: Flags) -> None:
        """Repeat the question for each client, with the arms of that client as candidates."""
        clients = available.shape[1]
        self.rows, self.effective = np.repeat(self.rows, clients, 0), self.effective.repeat(clients)
        self._equal = self._equal.repeat(clients)
        if self.full:
            shape = (clients, *self.shares.shape[1:])
            self.shares = np.broadcast_to(self.shares, shape)
            self.factors = np.broadcast_to(self.factors, shape)
            self.arm_scales = np.repeat(self.arm_scales, clients, 0)
            return
        _refuse_many_shares(clients * self.shares.size)
        asked = available.T[:, :, None]
        self.shares = self.shares * asked
        # E is that of the candidates of each question alone
        squares = (self.shares**2).sum(axis=2)
        held = squares > 0.0
        lost = ~held.any(axis=1)
        if lost.any():
            raise InputError(
                f"weights: client {int(np.argmax(lost))} asks about its own arms, and no client "
                "that has one of them counts; give it a weight above 0, or drop it"
            )
        scales = np.where(held, np.repeat(self.arm_scales, clients, 0), np.inf)
        least = scales.min(axis=1, keepdims=True)
        self.arm_scales = np.where(held, scales / least, 1.0)
        self.effective = self.effective / least[:, 0] ** 2
        self.factors = self.shares * np.sqrt(clients * self.effective)[:, None, None]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def plain(self) -> bool:
        """Tell whether these are the paper's questions: equal weights, and every client's own."""
        return len(self) == 1 and self.local and bool(self._equal[0])

    @property
    def asked(self) -> Flags:
        """Boolean array (Q, K, M): true where a client has a weight in the value of an arm."""
        return self.shares > 0.0

    @property
    def candidates(self) -> Flags:
        """Boolean matrix (Q, K): the arms among which each question seeks its answer."""
        if self.full:
            return np.ones(self.shares.shape[:2], np.bool_)
        return np.asarray(self.asked.any(axis=2))

    @property
    def factor_sums(self) -> Floats:
        """(Q,): the sum of the factors w over clients, by which values enter sums."""
        return np.asarray(np.sqrt(self.rows.shape[1] * self.effective))

    @property
    def inverse(self) -> Floats:
        """(Q, K, M): 1 / W, by how much a mean at a client must change for a value to change by 1.

        It is infinite where the client has no weight.
        """
        with np.errstate(divide="ignore"):
            found = 1.0 / self.shares
        if self.full:
            return np.where(self._equal[:, None, None], float(self.rows.shape[1]), found)
        return np.asarray(found)

    def scales(self, question: int, pairs: bool) -> ArmScales:
        """Return the scales of a question; ``pairs``: for a radius for each pair of arms."""
        return ALIKE if self.full else ArmScales(self.arm_scales[question], pairs)

    def latest(self, by_question: Floats) -> Floats:
        """Spread steps of questions, (..., Q, K), over the clients that they need, (..., K, M).

        Arm k of client m is needed until the last question that has a weight on it. A client
        without a weight has 0.
        """
        clients = self.rows.shape[1]
        found = np.zeros((*by_question.shape[:-2], by_question.shape[-1], clients))
        for question in range(len(self)):
            asked = self.shares[question] > 0.0
            np.maximum(found, by_question[..., question, :, None] * asked, out=found)
        return found

    def values(self, means: Floats) -> Floats:
        """Return the value of each arm in each question, (Q, K); NaN for arms without a value.

        Sums are exact until the last rounding, so they do not depend on the order of clients.
        Otherwise rounding could hide ties.
        """
        found = np.full(self.shares.shape[:2], np.nan)
        for q, k in np.argwhere(self.candidates).tolist():
            if self.full:
                held, mean = self.rows[q], means[k]
            else:
                there = self.shares[q, k] > 0.0
                held, mean = self.shares[q, k, there], means[k, there]
            found[q, k] = (
                math.fsum(mean) / len(mean)
                if held.min() == held.max()
                else math.fsum((held * mean).tolist())
            )
        return found

    def value(self, question: int, arm: int, means: Mapping[int, float]) -> float:
        """Return the value of an arm in a question, from its mean at each client with a weight."""
        held = [float(self.shares[question, arm, m]) for m in means]
        if self._equal[question] if self.full else min(held) == max(held):
            return sum(means.values()) / len(means)
        return sum(share * mean for share, mean in zip(held, means.values(), strict=True))

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
        kind = "own " if self.own else ""
        return f" weights {kind}{self.rows.shape} {self.local} ".encode() + self.rows.tobytes()

    @property
    def label(self) -> str:
        """A short text for names: the weights as they were given, if a line bears them."""
        if len(self.given) > 1:
            text = f"{len(self)} questions {self._code}"
        else:
            text = ",".join(f"{weight:.6g}" for weight in self.given[0].tolist())
            exact = [float(one) for one in text.split(",")] == self.given[0].tolist()
            text = f"weighted {text if exact and len(text) <= 40 else self._code}"
        return text if self.local or self.own else f"{text} without local"

    @property
    def _code(self) -> str:
        return hashlib.sha256(self.rows.tobytes()).hexdigest()[:6]

    @property
    def summary(self) -> str:
        """Describe in a few words which weighted means the server asks about."""
        weights = "equal weights" if self._equal[0] else "weighted clients"
        if self.own:
            return f"own arms of each client, {weights}"
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


def _refuse_many_shares(count: int) -> None:
    if count > MOST_CELLS:
        raise InputError(
            f"weights: {count:,} of all questions, arms and clients, at most {MOST_CELLS:,} fit "
            "into memory if clients lack arms; ask fewer questions"
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
    return np.ascontiguousarray(rows + 0.0)  # -0 and 0 are one weight, the latter
