"""Values u + t v of paired trials, for every t: means, errors, tests and intervals.

Two questions about the costs x and y of two schedules in the same trials have this form:

* which costs less, for every price t of what is sent: u is the difference x - y in all that has a
  fixed price, and v the difference in what is sent;
* their ratio, for every ratio 1 + t: with u = x - y and v = -y the value is x - (1 + t) y.

For the tests see `fastfed.analysis.intervals`. The t at which a test cannot tell the mean from 0
are those at which a quadratic is not positive (Fieller).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from fastfed.analysis.cost_ranges import Interval, common, merged, where_not_positive
from fastfed.analysis.intervals import LEAST_DIFFERING, mean_tails, student_quantile


@dataclass(frozen=True)
class Paired:
    """Sums of u and v over the trials that both schedules ended."""

    pairs: int
    differ: int
    """Pairs in which u may differ from 0,"""
    support: int
    """and those in which u or v may."""
    u: float
    v: float
    """Means over all pairs."""
    uu: float
    uv: float
    vv: float
    """Sums of products of deviations from the means."""
    least: tuple[float, float]
    most: tuple[float, float]
    """Limits of u and v in a further trial, as far as the costs that were seen tell."""
    needed: int = 0
    """Pairs below which nothing is decided, whatever their values."""

    @property
    def means(self) -> tuple[float, float]:
        """mean(x) and mean(y), where the values are those of a ratio."""
        return self.u - self.v, -self.v

    @property
    def ratio(self) -> float | None:
        """mean(x) / mean(y); None if there is nothing to divide by."""
        return self.means[0] / self.means[1] if self.v else None

    @property
    def ratio_sem(self) -> float | None:
        """Its standard error, by the delta method: that of the mean of x - ratio y."""
        if not self.v or self.pairs < 2:
            return None
        scatter = self._scatter(-self.u / self.v)
        return math.sqrt(scatter / (self.pairs - 1) / self.pairs) / abs(self.v)

    def mean(self, t: float = 0.0) -> float:
        """Return the mean of u + t v over all pairs."""
        return self.u + t * self.v

    def _scatter(self, t: float) -> float:
        return max(0.0, self.uu + 2 * t * self.uv + t * t * self.vv)

    def sem(self, t: float = 0.0) -> float | None:
        """Return the standard error of that mean; None below two trials that differ."""
        if self._count(t) < 2:
            return None
        return math.sqrt(self._scatter(t) / (self.pairs - 1) / self.pairs)

    def _count(self, t: float) -> int:
        return self.differ if t == 0 else self.support

    def values(self, t: float = 0.0) -> tuple[int, float, float, float, float]:
        """Return count, mean and scatter of u + t v where it differs, and the limits of one more.

        They are the arguments of `fastfed.analysis.intervals.mean_tails`.
        """
        count, mean = self._count(t), self.mean(t)
        part, scatter = self._where(count, mean, mean, self._scatter(t))
        least, most = (one[0] + t * one[1] for one in (self.least, self.most))
        return count, part, scatter, least, most

    def _where(self, count: int, x: float, y: float, products: float) -> tuple[float, float]:
        """Restrict the mean of x and a scatter to trials outside which both values are 0."""
        if count in (0, self.pairs):
            return x, products
        share, whole = self.pairs / count, products + self.pairs * x * y
        left = whole - count * (share * x) * (share * y)
        # what is left may be rounding of what cancels
        return share * x, left if abs(left) > 1e-15 * abs(whole) else 0.0

    def tails(self, t: float = 0.0) -> tuple[float, float]:
        """Return the evidence that the mean is below 0, and that it is above: the two p-values."""
        return mean_tails(*self.values(t))

    @property
    def turned(self) -> Paired:
        """The same values with the opposite sign."""
        least, most = ((-u, -v) for u, v in (self.most, self.least))
        return replace(self, u=-self.u, v=-self.v, least=least, most=most)

    @property
    def from_0(self) -> Paired:
        """The same values by the ratio r = 1 + t instead of t."""
        (low, low_v), (high, high_v) = self.least, self.most
        return replace(
            self,
            u=self.means[0],
            uu=self.uu - 2 * self.uv + self.vv,
            uv=self.uv - self.vv,
            least=(low - low_v, low_v),
            most=(high - high_v, high_v),
        )

    def undecided(self, level: float) -> list[Interval]:
        """Return the t >= 0 at which the mean cannot be told from 0."""
        return common(self.not_above(level), self.turned.not_above(level))

    def not_above(self, level: float, further: int = 1) -> list[Interval]:
        """Return the t >= 0 at which the mean is not surely above 0.

        A verdict must survive a number of ``further`` trials, the worst that the costs seen allow.
        """
        k = self.support
        every = [(0.0, math.inf)]
        if k < LEAST_DIFFERING or self.pairs < self.needed:
            return every
        n = k + further
        (u, uu), (_, uv), (v, vv) = (
            self._where(k, *one)
            for one in (
                (self.u, self.u, max(0.0, self.uu)),
                (self.u, self.v, self.uv),
                (self.v, self.v, max(0.0, self.vv)),
            )
        )
        p, q = self.least[0] - u, self.least[1] - v
        u, v = u + further * p / n, v + further * q / n
        uu, uv, vv = (
            (one + k * further / n * product) / (n - 1)
            for one, product in ((uu, p * p), (uv, p * q), (vv, q * q))
        )
        reach = student_quantile(n - 1, level) ** 2 / n
        near = where_not_positive(v**2 - reach * vv, u * v - reach * uv, u**2 - reach * uu)
        return common(every, merged([*near, *where_not_positive(0.0, v / 2, u)]))
