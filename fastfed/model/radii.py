"""Confidence radii: the built-in ones by name, and a user's own.

`fastfed.confidence` has the formulas, the guarantee that each one keeps, and their sources.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from fastfed.capital import BETS, MOST_BETS
from fastfed.confidence import (
    BETTING,
    MAX_STEPS,
    MIXTURE,
    MIXTURE_ONE_SIDED,
    OWN,
    PAPER,
    STITCHED,
    TUNED_AT,
    Confidence,
    Exponent,
    constants,
    grid,
    local_log,
)
from fastfed.errors import InputError
from fastfed.model.part import Part
from fastfed.model.part_options import option
from fastfed.validation import shown

if TYPE_CHECKING:
    from fastfed.model.setting import Setting

_BENT = 2.0**-44  # how much of g rounding may bend it the wrong way: the kernels allow for more


class Radius(Part):
    """A confidence radius of your own: ``Radius(function)``, with L(n) = function(n, a).

    The guarantee that it must keep is yours to prove: a centred sigma-sub-Gaussian walk stays
    within sigma sqrt(2 n L(n)) for all n together with probability at least 1 - a. What the engine
    relies on is checked when a run begins: L is finite and above 0, and sqrt(n L(n)) is concave.

    Parameters
    ----------
    function
        Takes two floats, the step n >= 1 and the error budget a, and returns L(n). The budget
        differs between clients and server and follows from delta, K and M. Numba must be able to
        compile the function: use `math`.
    pairs
        Whether the guarantee is one-sided, for the difference of two arms.
    name
        What rows and tables call the radius.

    Examples
    --------
    >>> import math
    >>> import fastfed as ff
    >>> def union(n, a):
    ...     return math.log(4 / a) + 2 * math.log(n)
    >>> own = ff.Radius(union, name="union")
    >>> mine = ff.simulate("synthetic", delta=0.1, trials=5, radius=own)
    >>> usual = ff.simulate("synthetic", delta=0.1, trials=5, radius="paper")
    >>> mine.frame["pulls"].equals(usual.frame["pulls"])
    True
    """

    kind = "radius"
    plural = "radii"
    formula: ClassVar[int] = OWN
    """Number of the formula in `fastfed.confidence`."""
    pairs: bool = False
    """Whether the guarantee is one-sided, for the difference of two arms."""
    tuned_at: int = TUNED_AT
    function: Exponent | None
    """L(n) of a user's own radius; None for a formula that the kernels know."""

    @classmethod
    def known(cls) -> str:
        return f"{super().known()}, or fastfed.Radius(function)"

    covered = True  # if the function is delta-PAC, as it promises

    def __init__(self, function: Exponent, *, pairs: bool = False, name: str = "own") -> None:
        if not callable(function):
            raise InputError(
                f"radius {shown(function)}: must be a function of (n, a), or one of "
                f"{super().known()}"
            )
        if not isinstance(name, str) or not name.isprintable() or not name.strip() or "," in name:
            raise InputError(
                f"name {shown(name)} of a radius: must be printable text without commas"
            )
        if self.families.get(name.partition(":")[0], type(self)) is not type(self):
            raise InputError(
                f"name {shown(name)} of a radius: taken by a built-in one; choose another"
            )
        self._name, self.pairs, self.function = name, bool(pairs), function

    @property
    def name(self) -> str:
        return super().name if self.function is None else self._name

    @property
    def key(self) -> object:
        return self.name, self.function

    def at_client(
        self, arms: int, clients: int, delta: float, sigma: float, pairs: int | None = None
    ) -> Confidence:
        """Make the radius of an arm, or of a pair of arms, at one client."""
        return self._confidence(1.0, sigma, *self._numbers(arms, clients, delta, pairs))

    def at_server(
        self, arms: int, walks: float, delta: float, sigma: float, pairs: int | None = None
    ) -> Confidence:
        """Make the radius of the server's value of an arm, or of a pair of arms.

        ``walks`` is the effective number of clients: M if they count alike.
        """
        return self._confidence(float(walks), sigma, *self._numbers(arms, 1, delta, pairs))

    def kernel(self, setting: Setting) -> Any:
        """Make the radius at a client, and those that the server compares sums with."""
        from fastfed.kernels.radii import make_boundaries

        radii = setting.radii
        return make_boundaries([radii.client]), make_boundaries(radii.sums)

    def refuse(self, setting: Setting) -> None:
        """Raise an InputError if the radius has no guarantee in a setting."""

    def _numbers(
        self, arms: int, clients: int, delta: float, pairs: int | None
    ) -> tuple[float, float, float]:
        """Return the error budget of each walk, and the constants that are derived from it.

        The budget is shared among the arms, or the pairs whose order matters: those with the best
        arm, unless the goal names others. A lone arm counts as 1.
        """
        rivals = max(arms - 1, 1) if pairs is None else pairs
        budget = delta / (2.0 * (rivals if self.pairs else arms) * clients)
        return budget, *constants(self.formula, budget, self.pairs, self.tuned_at)

    def _confidence(
        self, walks: float, sigma: float, budget: float, constant: float, shift: float
    ) -> Confidence:
        """Make the radius of a sum of this number of walks."""
        if self.function is not None:
            _refuse_odd_exponent(self.name, self.function, budget)
        return Confidence(
            self.formula, walks, sigma, self.pairs, budget, constant, shift, self.function
        )


class _BuiltIn(Radius):
    """A radius whose formula `fastfed.confidence` and the kernels know."""

    function = None

    def __init__(self) -> None:
        pass


class Paper(_BuiltIn):
    """The paper's radius: a union bound over all steps."""

    family = "paper"
    covered = True
    rank = 0
    formula = PAPER

    def _numbers(
        self, arms: int, clients: int, delta: float, pairs: int | None
    ) -> tuple[float, float, float]:
        """Return the constant of the paper's logarithm: ln(8 K M / delta), at the server M = 1."""
        return 0.0, local_log(arms, clients, delta), 0.0


class Stitched(_BuiltIn):
    """A stitched law of the iterated logarithm, for each arm."""

    family = "stitched"
    covered = True
    rank = 1
    formula = STITCHED


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(_BuiltIn):
    """A mixture of exponential martingales, for each arm; tightest near the step ``tuned_at``."""

    tuned_at: int = field(default=TUNED_AT, metadata=option("N", 1, MAX_STEPS, whole=True))

    family = "mixture"
    covered = True
    example = "mixture:5000"
    rank = 2
    formula = MIXTURE


class StitchedPairs(Stitched):
    """A stitched law of the iterated logarithm, for each pair of arms."""

    family = "stitched-pairs"
    covered = True
    rank = 3
    pairs = True


class MixturePairs(Mixture):
    """A mixture of exponential martingales, for each pair of arms."""

    family = "mixture-pairs"
    covered = True
    example = "mixture-pairs:5000"
    rank = 4
    formula = MIXTURE_ONE_SIDED
    pairs = True


@dataclass(frozen=True, eq=False, repr=False)
class Betting(_BuiltIn):
    """Capitals that bet on pairs of arms, for rewards from a known interval; no radius as such."""

    bets: int = field(default=BETS, metadata=option("G", 1, MOST_BETS, whole=True))

    family = "betting"
    example = f"betting:{BETS}"
    rank = 5
    formula = BETTING
    pairs = True

    def refuse(self, setting: Setting) -> None:
        from fastfed.model import betting

        betting.refuse(setting)

    def no_theorem(self) -> str | None:
        return f"no theorem bounds the cost of the radius {self}"

    def refuse_endless(self, setting: Setting) -> None:
        """Refuse gaps that are too small for the bets."""
        from fastfed.model import betting

        betting.refuse_endless(setting, self.bets)

    def kernel(self, setting: Setting) -> Any:
        from fastfed.model import betting

        return betting.kernel(setting, self.bets), ()


def _refuse_odd_exponent(name: str, function: Exponent, a: float) -> None:
    """Refuse a radius sqrt(L(n) / n) unless L is positive on the grid, and sqrt(n L(n)) fits.

    That must be concave and must never fall.
    """
    nodes = grid()
    g: list[float] = []
    for n in nodes:
        try:
            value = float(function(n, a))
        except Exception as error:
            raise InputError(
                f"radius {name}: L({n:g}) with a = {a:.3g} fails "
                f"({type(error).__name__}: {shown(str(error))})"
            ) from None
        if not 0.0 < value < math.inf:
            raise InputError(
                f"radius {name}: L({n:g}) = {value:g} with a = {a:.3g}; it must be "
                "finite and above 0 for every n >= 1"
            )
        g.append(math.sqrt(n * value))
    _refuse_bent(name, nodes, g, a)


def _refuse_bent(name: str, nodes: Sequence[float], g: Sequence[float], a: float) -> None:
    for here, there, n in zip(g, g[1:], nodes[1:], strict=False):
        if there < here * (1.0 - _BENT):
            raise InputError(
                f"radius {name}: sqrt(n L(n)) falls to {there!r} at n = {n:g}, from {here!r}, "
                f"with a = {a:.3g}, and skipping rests on that it never does"
            )
    for i in range(1, len(nodes) - 1):
        left, right = nodes[i] - nodes[i - 1], nodes[i + 1] - nodes[i]
        chord = (g[i - 1] * right + g[i + 1] * left) / (left + right)
        if g[i] < chord * (1.0 - _BENT):
            raise InputError(
                f"radius {name}: sqrt(n L(n)) is not concave at n = {nodes[i]:g} with "
                f"a = {a:.3g} ({g[i]:.9g} lies below its chord, {chord:.9g}), and "
                "skipping rests on that"
            )
