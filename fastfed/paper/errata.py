"""Slips in the paper: places where its text and its proofs differ, or a proof has a gap."""

from __future__ import annotations

from fastfed.paper.evidence import Evidence

SLIPS = (
    "The proof of Theorem 1 takes the arm that is declared for the one that eliminated the best "
    "arm. It may be another arm; the same inequality holds for any arm, so nothing else changes.",
    "Algorithm 1's termination rule looks at the sets S_m that were formed when the step began. So "
    "it ends one step after the last declaration, and in that step nothing is pulled.",
    "The main text's condition alpha(n) <= Delta^2 / 4 is Delta / 4 in the proof of Theorem 2.",
    "The proof of Theorem 2 writes 102 = 64 e / (e - 1), which is 101.2...: rounded up, not equal.",
    "For very wide gaps the closed forms of T_km and T_k fall below the one pull that is always "
    "made.",
    "Theorem 3 is stated without the factor 2 with which its proof ends.",
    "Theorem 4 counts log2 of the last step as the uplinks of an arm, one too few: n = 1 is one, "
    "too.",
    "Theorem 4's total <= 3T does not follow from C ln T_k <= T_k: the proof adds C ceil(log2 "
    "T_k), which that condition bounds only by C + T_k / ln 2.",
    "The proof of Theorem 2 takes the larger of two solutions of alpha(x) = Delta / 4 in (1, inf): "
    "alpha falls there, so there is one or none.",
    "The proof of Theorem 2 writes W_-1(y) > e / (e - 1) ln(-y): at y = -e^(1 - e) both are -e.",
    "In the proof of Theorem 3 the equation for the best local arm lacks the factor 2 and has the "
    "index k for k*_m.",
    "The contributions bound FedElim's total cost by 3 times what FedElim0 pulls, and the text on "
    "the figures says that Theorem 4 bounds it by 3 times that at C = 0. Theorem 4 has 3T, and T "
    "is an upper bound on the pulls of FedElim0.",
    "A set of answers is once [K]^(m+1) for [K]^(M+1).",
    "Bases are lambda > 0 in the main text and lambda >= 1 in the supplement; with lambda = 1 the "
    "times ceil(lambda^t) are all 1.",
    "The proof of Theorem 4 says that an arm leaves FedElim's server before twice the step at "
    "which it leaves FedElim0's (T_k^(2),C < 2 T_k^(2)). That is false path by path: an arm that "
    "could leave at one step need not at the next power of two. What holds on the good event, and "
    "is all that the theorem needs, is T_k^(2),C < 2 n_k.",
)
"""Where the paper's text and its proofs differ, or a proof has a gap; the bounds are corrected."""


def slips(evidence: Evidence) -> list[str]:
    """List the paper's slips, the last one with its measurement."""
    if evidence.doubling is None:
        return list(SLIPS)
    return [*SLIPS[:-1], f"{SLIPS[-1]} {evidence.doubling}"]
