"""Evidence that one arm is better than another, from rounds whose counts were chosen on the way.

A question is asked by a client about its own means, or by the server about weighted means of all
clients. For a pair of arms (i, j) and a round r let D_r be the difference of the two means over
the rewards *of that round alone*, and v_r its variance: sigma^2 (1 / n_i + 1 / n_j) at a client,
sigma^2 sum over m of (W_im^2 / n_im + W_jm^2 / n_jm) at the server, with W the weights of clients.
The n are the pulls of the round, chosen before it. Over the rounds in which all these n are
positive keep

    S = sum of D_r / v_r,     V = sum of 1 / v_r.

Given the past, D_r / v_r has mean gap / v_r and is sub-Gaussian with the variance 1 / v_r, which
is known before the round. So exp(t (S - gap V) - t^2 V / 2) is a supermartingale for every t,
however the counts were chosen, and so is its average over t > 0 (`fastfed.confidence`). By Ville's
inequality S - gap V ever reaches

    b(V) = sqrt(2 (V + rho) ln(1 + sqrt((V + rho) / rho) / (2 a)))

with probability at most a. The choice of rho > 0 is free.

*The rule.* Arm i is declared once S_ij >= b(V_ij) for all j together. If i is not the best arm,
then for the best one, j, gap_ij < 0 and S_ij - gap_ij V_ij >= b(V_ij). There are K - 1 pairs with
the best arm in each question, each with a = delta / (2 M (K - 1)) at a client and delta / (2 (K -
1)) at the server: all answers are right with probability 1 - delta at least.

Nothing is eliminated for good. As long as the best arm is pulled together with its rivals, its S
grows in the mean, so that a trial ends with probability 1, also where rivals tie.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.confidence import MIXTURE_ONE_SIDED, TUNED_AT, constants
from fastfed.model.schedules.algorithm import UNDECIDED

if TYPE_CHECKING:
    from fastfed.model.setting import Setting

Floats = npt.NDArray[np.float64]


class Boundaries(NamedTuple):
    """The boundary b at the clients, and at the server, whose number comes second."""

    constant: Floats  # -ln(2 a)
    shift: Floats  # rho


def boundaries(setting: Setting) -> Boundaries:
    """Make the boundaries of a setting: nearly the tightest after `TUNED_AT` pulls of each arm."""
    questions, (arms, clients) = setting.instance.questions, setting.instance.shape
    squares = np.sum(questions.rows[0] ** 2)  # of the weights; with lacking arms of a typical arm
    if not questions.full:
        squares = np.mean(np.sum(questions.shares[0] ** 2, axis=1))
    pairs = max(arms - 1, 1)
    variance = 2.0 * setting.sigma**2
    made = [
        constants(MIXTURE_ONE_SIDED, budget, True, TUNED_AT / each)
        for budget, each in (
            (setting.delta / (2.0 * clients * pairs), variance),
            (setting.delta / (2.0 * pairs), variance * float(squares)),
        )
    ]
    return Boundaries(*(np.array(column) for column in zip(*made, strict=True)))


def boundary(limits: Any, at_server: int, information: float) -> float:
    """Return b(V); ``at_server`` is 0 for a client and 1 for the server."""
    m = information + limits.shift[at_server]
    log_q = limits.constant[at_server] + 0.5 * math.log(m / limits.shift[at_server])
    return math.sqrt(2.0 * m * (log_q + math.log1p(math.exp(-log_q))))


def memory_length(arms: int, clients: int) -> int:
    """Return the length of the memory: counts and sums of the round before, and S and V."""
    return 2 * arms * clients + 2 * (clients + 1) * arms * arms


def split_memory(memory: Any, arms: int, clients: int) -> Any:
    """Return the counts and sums (K, M) of the round before, and S and V (M + 1, K, K)."""
    cells, pairs = arms * clients, (clients + 1) * arms * arms
    before = memory[: 2 * cells].reshape((2, arms, clients))
    evidence = memory[2 * cells : 2 * (cells + pairs)].reshape((2, clients + 1, arms, arms))
    return before, evidence


def gather(seen: Any, answer: Any) -> Any:
    """Add the last round to the evidence; return S and V, (2, M + 1, K, K), the server's last.

    The evidence of a question whose answer is declared stays as it is, because nobody reads it.
    """
    arms, clients = seen.counts.shape
    before, evidence = split_memory(seen.memory, arms, clients)
    means = np.zeros((clients + 1, arms))  # of the round alone
    variances = np.zeros((clients + 1, arms))
    for k in range(arms):
        for m in range(clients):
            new = seen.counts[k, m] - before[0, k, m]
            if new > 0.0:
                means[m, k] = (seen.sums[k, m] - before[1, k, m]) / new
                variances[m, k] = seen.sigma * seen.sigma / new
            else:
                variances[m, k] = math.inf
            before[0, k, m], before[1, k, m] = seen.counts[k, m], seen.sums[k, m]
            weight = seen.arm_weights[k, m]
            if weight > 0.0:
                means[clients, k] += weight * means[m, k]
                variances[clients, k] += weight * weight * variances[m, k]
        if variances[clients, k] == 0.0:  # no client with a weight has the arm
            variances[clients, k] = math.inf
    for asker in range(clients + 1):
        declared = answer.global_arm[0] if asker == clients else answer.local_arms[asker]
        if declared != UNDECIDED:
            continue
        for i in range(arms):
            if variances[asker, i] == math.inf:
                continue
            for j in range(i):
                v = variances[asker, i] + variances[asker, j]
                if v < math.inf:
                    lead, information = (means[asker, i] - means[asker, j]) / v, 1.0 / v
                    evidence[0, asker, i, j] += lead
                    evidence[0, asker, j, i] -= lead
                    evidence[1, asker, i, j] += information
                    evidence[1, asker, j, i] += information
    return evidence


def candidates_of(seen: Any) -> Any:
    """Return the arms among which each client and the server seek their best, (M + 1, K)."""
    arms, clients = seen.counts.shape
    found = np.zeros((clients + 1, arms), np.bool_)
    for k in range(arms):
        for m in range(clients):
            found[m, k] = seen.available[k, m]
            found[clients, k] = found[clients, k] or seen.arm_weights[k, m] > 0.0
    return found


def declare_lone(seen: Any, answer: Any) -> None:
    """Declare the arm of a client, or of the server, that has only one, before any pull."""
    clients = seen.counts.shape[1]
    candidates = candidates_of(seen)
    for asker in range(clients + 1):
        if np.sum(candidates[asker]) == 1:
            if asker == clients:
                answer.global_arm[0] = np.argmax(candidates[asker])
            else:
                answer.local_arms[asker] = np.argmax(candidates[asker])


def wanted_cell(seen: Any, answer: Any, k: int, m: int) -> Any:
    """Tell whether arm k of client m helps somebody who has not declared yet."""
    asked = answer.global_arm[0] == UNDECIDED and seen.arm_weights[k, m] > 0.0
    return asked or (answer.local_arms[m] == UNDECIDED and seen.available[k, m])


def proven_best(evidence: Any, asker: int, at_server: int, limits: Any, candidates: Any) -> int:
    """Return the candidate that is ahead of all others by b(V), if there is one."""
    arms = evidence.shape[2]
    for i in range(arms):
        ahead = candidates[i]
        for j in range(arms):
            rival = i != j and candidates[j]
            ahead = ahead and (not rival or evidence[0, asker, i, j] > 0.0)
        if ahead:  # at most one arm is
            for j in range(arms):
                if (
                    i != j
                    and candidates[j]
                    and evidence[0, asker, i, j]
                    < boundary(limits, at_server, evidence[1, asker, i, j])
                ):
                    return UNDECIDED
            return i
    return UNDECIDED


def declare(seen: Any, answer: Any, limits: Any) -> Any:
    """Gather the evidence of the last round, and declare what is proven; return the evidence."""
    clients = seen.counts.shape[1]
    evidence, candidates = gather(seen, answer), candidates_of(seen)
    for m in range(clients):
        if answer.local_arms[m] == UNDECIDED:
            answer.local_arms[m] = proven_best(evidence, m, 0, limits, candidates[m])
    if answer.global_arm[0] == UNDECIDED:
        answer.global_arm[0] = proven_best(evidence, clients, 1, limits, candidates[clients])
    return evidence
