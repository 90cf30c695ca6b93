"""Legends under tables: each explains the words and columns that its table has."""

from __future__ import annotations

from collections.abc import Sequence

SUMMARY = {
    "x FE0": "x FE0: mean total cost over that of FedElim0 at the same C, in the same trials",
    "x cheapest": "x cheapest: mean total cost over that of the cheapest schedule",
    "x T*": "x T*: mean pulls over the least mean pulls of any algorithm, T* kl(delta, 1 - delta)",
}
"""By the heading of the column."""

BOUNDS = (
    "n_km, n_k: steps after which an arm is eliminated, at a client and at the server, if all",
    "confidence intervals hold. T_km, T_k: the paper's bounds on n_km and n_k. optimum: pulls of",
    "the arm at all clients, if the least pulls are allocated in the optimal way.",
    "as stated: the paper's formula. FedElim's total is stated as 3T, not as the sum of its row.",
    "FedElim's uplinks as stated leave out the first one of each arm at each client.",
    "summed: the terms of the formula, added up over arms and clients, with all uplinks.",
    "sharp: the same with n_km and n_k. H_opt, lambda_opt: the period and the base with the",
    "smallest bound on the total cost.",
)

LEAST_BOUNDS = (
    "least pulls: T* kl(delta, 1 - delta), which every delta-correct algorithm needs on average.",
    "T, sharp T: the paper's bound on the pulls of FedElim0, and the same from its exact steps.",
    "H_opt: the period with the smallest bound. Last columns: bounds on total costs.",
)

CHECK = (
    "mean: over trials; /bound: mean over bound. interval: 95 %, of the mean if it begins with ±,",
    "and otherwise of the share of trials that violate the claim, which should be at most delta.",
    "/ FedElim0: over the mean pulls of FedElim0.",
    "T, 2T, 3T, T + HMK: the paper's bounds as stated; summed, sharp, H_opt: see `fastfed bounds`.",
    "Theorem 3: its lower bound as proved. T* kl: T* kl(delta, 1 - delta), which holds for every",
    "algorithm. best H, H_opt: the cheapest period of the sweep, and that of the smallest bound.",
    "holds, violated: decided, with at most 5 % of wrong decisions expected among a claim's lines.",
    "not refuted (P%): nothing speaks against the claim, but the trials are too few to confirm it.",
    "P is the probability that so many trials refute it if trials violate it twice as often as",
    "allowed. About 6 / delta trials confirm a claim that none of them violates.",
    "not enough trials: the trials decide neither way.",
)

ERRORS = (
    "std. error: in percent of the probability. effective: number of equally weighted errors that",
    "would be as precise. at step: median step of the errors. at most: Chernoff's upper bound.",
    'Each row is estimated from trials of its own, so that "any" may come out below "server".',
)


def summary_legend(heads: Sequence[str]) -> list[str]:
    """Explain the columns of a summary that have these headings."""
    return [text for head, text in SUMMARY.items() if head in heads]
