"""The numbers of the radius `betting`: how much is bet, and when a capital is large enough.

docs/explanation/betting.md has the rule and its proof. Rewards are scaled to [0, 1]. A capital
starts at 1, and a reward y multiplies it by 1 + bet (y - centre). An arm beats another when the
mean of the capitals of all bets reaches 1 / a, a being the error budget of the pair.
"""

from __future__ import annotations

import math

BETS = 16
"""Number of bets, if nothing else is said."""
MOST_BETS = 64
LARGEST, RATIO = 0.95, 0.63
"""The first bet, and the factor from each bet to the next."""
MOST_STAKE = 0.98
"""Largest share of a capital that one reward may take: bets are cut down to it."""


def bets(count: int) -> list[float]:
    """List the bets, the largest first."""
    return [LARGEST * RATIO**g for g in range(count)]


def log_capital(bet: float, centre: float, total: float, pulls: float) -> float:
    """Return a lower bound on the logarithm of the capital of one bet, from a sum of rewards.

    Each reward y, from 0 to 1, multiplies the capital by 1 + bet (y - centre). The logarithm of
    that is concave in y, so its chord from y = 0 to y = 1 lies below it. The bound is exact for
    rewards that are 0 or 1.

    Parameters
    ----------
    bet
        Above 0 to bet that rewards exceed the centre, below 0 for the opposite. Its size times the
        larger of the centre and 1 - centre must be below 1.
    centre
        A number that was fixed before the first of these rewards was seen.
    total
        The sum of the rewards, after scaling to [0, 1].
    pulls
        The number of the rewards.

    Returns
    -------
    float

    Examples
    --------
    >>> import math
    >>> import fastfed as ff
    >>> round(math.exp(ff.log_capital(0.5, 0.5, total=10, pulls=10)), 6)
    9.313226
    """
    return total * math.log1p(bet * (1.0 - centre)) + (pulls - total) * math.log1p(-bet * centre)
