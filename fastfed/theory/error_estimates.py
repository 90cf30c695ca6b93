"""Estimates of error probabilities, as numbers, as a frame and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastfed.model.instance import Instance
from fastfed.model.schedules import Schedule
from fastfed.theory.tilts import Tilt

if TYPE_CHECKING:
    import polars as pl

_Z = 1.959963984540054  # 95 % of a normal


@dataclass(frozen=True)
class Estimate:
    """The probability that one answer is wrong, or (``answer`` "any") that any of them is.

    ``step`` is the median of the steps at which the errors happen (None: none was seen).
    ``effective_sample_size`` is the number of equally weighted errors that the weighted ones are
    worth. ``bound`` is Chernoff's upper bound. ``left_out`` bounds the probability of errors that
    no tilt was aimed at; it is not part of the interval. Probabilities below 1e-308 are 0 as
    numbers, but ``log10`` is finite.
    """

    answer: str
    log10: float
    relative_error: float
    effective_sample_size: float
    errors: int
    trials: int
    step: int | None
    log10_bound: float
    log10_left_out: float
    warnings: tuple[str, ...]

    @property
    def estimate(self) -> float:
        """The probability; 0 where it is too small for a double."""
        return _power(self.log10)

    @property
    def standard_error(self) -> float:
        """Standard error of the estimate; 0 where no error was seen."""
        return self.estimate * self.relative_error if self.errors else 0.0

    @property
    def low(self) -> float:
        """The lower end of the interval; 0 if no trial erred."""
        return max(0.0, self.estimate - _Z * self.standard_error)

    @property
    def high(self) -> float:
        """The interval's upper end, Chernoff's bound at most."""
        if not self.errors:
            return self.bound
        return min(self.bound, self.estimate + _Z * self.standard_error)

    @property
    def bound(self) -> float:
        """Chernoff's bound on the probability."""
        return min(1.0, _power(self.log10_bound))

    @property
    def left_out(self) -> float:
        """A bound on the probability of errors that no tilt was aimed at."""
        return min(1.0, _power(self.log10_left_out))


@dataclass(frozen=True, eq=False, repr=False)
class ErrorProbability:
    """The result of `error_probability`; as text, its table.

    Examples
    --------
    >>> import fastfed as ff
    >>> found = ff.error_probability([[0.9], [0.1]], delta=0.1, trials=200)
    >>> found.joint.estimate <= 0.1
    True
    >>> found.frame["answer"].to_list()[-1]
    'any'
    """

    instance: Instance
    schedule: Schedule
    delta: float
    sigma: float
    radius: str
    seed: int
    local: tuple[Estimate, ...]
    """One for each client."""
    server: Estimate
    joint: Estimate
    """At least one of the M + 1 answers is wrong."""
    shares: tuple[tuple[str, Tilt, float, int, int], ...]
    """For each tilt of each answer's mixture: the answer, the tilt, its share of the trials, their
    number, and how many of them erred. `tilts` has them as a frame."""

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Those of the clients, of the server, and of any answer, in this order."""
        return (*self.local, self.server, self.joint)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust estimates, each with its answer; empty if there are none."""
        return tuple(f"{one.answer}: {text}" for one in self.estimates for text in one.warnings)

    @property
    def frame(self) -> pl.DataFrame:
        """One row for each answer.

        The columns are ``estimate``, ``standard_error``, the 95 % interval ``low``, ``high``,
        ``log10``, ``effective_sample_size``, ``errors`` and ``trials``, the median ``step``,
        ``bound``, ``left_out`` and ``warning`` (null: none).
        """
        import polars as pl

        rows = [
            {
                "instance": self.instance.name,
                "schedule": str(self.schedule),
                "delta": self.delta,
                "sigma": self.sigma,
                "radius": self.radius,
                "answer": one.answer,
                "estimate": one.estimate,
                "standard_error": one.standard_error,
                "low": one.low,
                "high": one.high,
                "log10": one.log10,
                "effective_sample_size": one.effective_sample_size,
                "errors": one.errors,
                "trials": one.trials,
                "step": one.step,
                "bound": one.bound,
                "left_out": one.left_out,
                "warning": "; ".join(one.warnings) or None,
            }
            for one in self.estimates
        ]
        return pl.DataFrame(rows, schema_overrides={"warning": pl.String, "step": pl.Int64})

    @property
    def tilts(self) -> pl.DataFrame:
        """One row for each tilt of each answer's mixture.

        It has the arm that the tilt lets win, the client (null: the server) and the step, the share
        of the trials, and the number of them that erred.
        """
        import polars as pl

        rows = [
            (answer, tilt.arm, tilt.client, tilt.step, *counted)
            for answer, tilt, *counted in self.shares
        ]
        schema = {
            "answer": pl.String,
            "arm": pl.Int64,
            "client": pl.Int64,
            "step": pl.Int64,
            "share": pl.Float64,
            "trials": pl.Int64,
            "errors": pl.Int64,
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

    def __str__(self) -> str:
        from fastfed.display.errors_table import errors_table

        return errors_table([self], rest=".frame").text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from fastfed.display.errors_table import errors_table

        return errors_table([self], rest=".frame").html()


def error_frame(found: Sequence[ErrorProbability]) -> pl.DataFrame:
    """Put the frames of several results one below the other."""
    import polars as pl

    return pl.concat([one.frame for one in found])


def _power(log10: float) -> float:
    return 10.0**log10 if log10 > -320 else 0.0
