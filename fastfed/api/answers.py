"""The answers that a `Result` in memory and a `Sweep` in a folder have in common.

Each of them says what it holds and how to get at its rows; everything a person asks of them
follows from that, in one place, so that the same question has the same answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from fastfed.analysis.cheapest import Cheapest, cheapest
from fastfed.analysis.selection import ALL, Held, Where, Which, every_schedule, select
from fastfed.analysis.summary import summary, wanted_costs
from fastfed.analysis.trials import Trials
from fastfed.api.progress import reporting
from fastfed.errors import InputError
from fastfed.model.counts import checked_prices
from fastfed.model.instance import Instance
from fastfed.model.options import takes
from fastfed.model.schedules import Schedule
from fastfed.model.spec import as_list
from fastfed.validation import checked_trial

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from fastfed.analysis.check import Check
    from fastfed.analysis.compare import Comparison
    from fastfed.model.cell import Cell
    from fastfed.simulation.replay import Replay


class Answers(ABC):
    """Rows of trials, and the questions that they answer."""

    # What a holder of rows has to say

    @abstractmethod
    def scan(self) -> pl.LazyFrame:
        """Return the rows of all trials as a Polars LazyFrame."""

    @abstractmethod
    def save(self, folder: str | Path) -> Any:
        """Write the rows into a sweep's folder."""

    @property
    @abstractmethod
    def _trials(self) -> Trials:
        """The rows, in the form that summaries, checks and comparisons read."""

    @property
    def _unread(self) -> Trials:
        """The same, for questions that need no rows: those of a folder are not verified."""
        return self._trials

    @abstractmethod
    def _only(self, held: Held) -> Self:
        """Keep these cells and schedules."""

    @abstractmethod
    def _about(self) -> Mapping[str, object]:
        """Describe in a few words what was run, for a report."""

    _title = "fastfed report"
    """Title of a report."""

    # What follows from it

    @property
    def instances(self) -> Mapping[str, Instance]:
        """The instances of the rows, by name, equal to those that were run."""
        return self._unread.instances

    @property
    def costs(self) -> list[float]:
        """The costs of an uplink that are taken where none are given."""
        return self._unread.costs

    def summary(
        self,
        costs: Sequence[float] | None = None,
        bit_costs: Sequence[float] | None = None,
        prices: Mapping[str, float] | None = None,
    ) -> pl.DataFrame:
        """Summarise the rows: one row per cell, schedule and cost of an uplink or a bit.

        Parameters
        ----------
        costs
            Costs C of an uplink; None: 0, 10 and 100, if no bit costs are given either.
        bit_costs
            Costs c of a bit, for pulls + c x bits. A row has one or the other.
        prices
            Fixed prices of other counts: ``{"rounds": 50, "downlinks": 1}`` adds them to the total
            cost, and ``{"pulls": 0, "busiest": 1, "rounds": 20}`` makes it a time. Names are those
            of `fastfed.model.counts.COUNTS`.

        Returns
        -------
        polars.DataFrame
            See `fastfed.analysis.summary`.

        Examples
        --------
        >>> import fastfed as ff
        >>> res = ff.simulate([[0.9], [0.1]], delta=0.1, trials=20)
        >>> res.summary(costs=[0, 10])["trials"].to_list()
        [20, 20]
        """
        wanted = wanted_costs(costs, bit_costs, self._trials.costs, self._trials.bit_costs)
        return summary(self._trials, *wanted, self._prices(prices))

    def _prices(self, prices: Mapping[str, float] | None) -> Mapping[str, float]:
        """Return the given prices, checked; None: those of the rows."""
        return self._trials.prices if prices is None else checked_prices(prices)

    def check(self, costs: Sequence[float] | None = None) -> Check:
        """Compare the rows with the theorems.

        Parameters
        ----------
        costs
            Costs C of an uplink; None: those that a sweep was asked for, else 0, 10 and 100.

        Returns
        -------
        fastfed.Check

        Examples
        --------
        >>> import fastfed as ff
        >>> ff.simulate([[0.9], [0.1]], delta=0.1, trials=200).check(costs=[10]).violated
        False
        """
        from fastfed.analysis.check import check

        return check(self._trials, costs)

    @property
    def frame(self) -> pl.DataFrame:
        """The rows of all trials, one for each trial and schedule, in memory."""
        return self.scan().collect()

    @takes(Which, ALL)
    def filter(self, **which: Unpack[Which]) -> Self:
        """Keep the rows of some cells and schedules: every question works on what is left.

        Parameters
        ----------
        instance, schedule, delta, sigma, radius, goal, uplink, participation
            One value or several of each; None: all. A value that no row has is refused.

        Returns
        -------
        Result or Sweep
            As this one, with fewer rows. It answers as if nothing else had been run: without
            fedelim0 among the schedules, for example, it has no ratios to fedelim0.

        Examples
        --------
        >>> import fastfed as ff
        >>> res = ff.simulate([[0.9], [0.1]], ["fedelim", "fedelim0"], delta=[0.1, 0.01], trials=20)
        >>> res.filter(schedule="fedelim", delta=0.1).frame.height
        20
        """
        return self._only(select(self._unread, which).held())

    @takes(Where, ALL)
    def wrong(
        self,
        schedule: str | Schedule | None = None,
        delta: float | None = None,
        **where: Unpack[Where],
    ) -> pl.DataFrame:
        """List the rows of the trials in which an answer was wrong or missing.

        Parameters
        ----------
        schedule, delta, instance, sigma, radius, goal, uplink, participation
            As of `filter`.

        Returns
        -------
        polars.DataFrame
            As `frame`, only those rows, in order of cell, schedule and trial.

        Examples
        --------
        >>> import fastfed as ff
        >>> ff.simulate([[0.9], [0.1]], delta=0.1, trials=20).wrong().height
        0
        """
        import polars as pl

        rows = self.filter(schedule=schedule, delta=delta, **where)
        return rows.scan().filter(~pl.col("correct")).collect()

    @overload
    def best(
        self,
        costs: None = None,
        bit_costs: None = None,
        prices: Mapping[str, float] | None = None,
        over: Sequence[str] | str = (),
    ) -> Cheapest: ...
    @overload
    def best(
        self,
        costs: Sequence[float],
        bit_costs: Sequence[float] | None = None,
        prices: Mapping[str, float] | None = None,
        over: Sequence[str] | str = (),
    ) -> pl.DataFrame: ...
    @overload
    def best(
        self,
        costs: None = None,
        *,
        bit_costs: Sequence[float],
        prices: Mapping[str, float] | None = None,
        over: Sequence[str] | str = (),
    ) -> pl.DataFrame: ...

    def best(
        self,
        costs: Sequence[float] | None = None,
        bit_costs: Sequence[float] | None = None,
        prices: Mapping[str, float] | None = None,
        over: Sequence[str] | str = (),
    ) -> Cheapest | pl.DataFrame:
        """Find the cheapest schedule, and how certain that is.

        Parameters
        ----------
        costs
            Costs C of an uplink.
        bit_costs
            Costs c of a bit, for pulls + c x bits. With neither: all C >= 0 at once.
        prices
            Fixed prices of other counts, as of `summary`.
        over
            Choices, such as "radius" or "uplink": one winner over all their values together.

        Returns
        -------
        fastfed.Cheapest or polars.DataFrame
            Without costs, for each cell the ranges of C with one winner each, the C at which it
            changes with a 95 % interval from the paired trials, and the schedules that cannot be
            separated from the winner; print it, or take its ``frame``. With costs, one row for
            each cell and cost: the winner, its margin over the next best and the paired standard
            error. With ``over``, columns of these choices stand beside the winner.

        Examples
        --------
        >>> import fastfed as ff
        >>> res = ff.simulate([[0.9, 0.1], [0.1, 0.4]], ["fedelim", "fedelim0"], delta=0.1,
        ...                   trials=50)
        >>> res.best(costs=[0, 100])["winner"].to_list()
        ['fedelim0', 'fedelim']
        """
        found = cheapest(self._trials, self._prices(prices), as_list(over))
        if costs is None and bit_costs is None:
            return found
        return found.at(*wanted_costs(costs, bit_costs, ()))

    def compare(
        self,
        by: str | Answers | None = None,
        cost: Sequence[float] | float | None = None,
        bit_cost: Sequence[float] | float | None = None,
        *,
        to: object = None,
        prices: Mapping[str, float] | None = None,
    ) -> Comparison:
        """Compare the values of one choice, all else equal, by paired trials.

        Parameters
        ----------
        by
            The choice: "radius", "uplink", "goal", "sigma", "delta", "schedule" or "instance". Or
            another `Result` or `Sweep`: its cells are compared with those of equal names here.
            None: the radius, goal, uplink or participation if it has several values, otherwise the
            schedule.
        cost, bit_cost
            Costs C of an uplink and c of a bit, one or several. With neither: the default costs.
        to
            The value with which the others are compared. None: fedelim0 among schedules, the
            paper's radius, goal and uplink, this one of two sweeps, else the first.
        prices
            Fixed prices of other counts, as of `summary`.

        Returns
        -------
        fastfed.Comparison
            Ratios and differences of mean total cost, pulls, uplinks and bits. The intervals of all
            ratios hold together with a probability of 95 %, and so do those of all differences.
            Print it, or take its ``frame``.

        Examples
        --------
        >>> import fastfed as ff
        >>> res = ff.simulate("synthetic", ["fedelim", "fedelim0"], delta=[0.1, 0.01], trials=300)
        >>> found = res.compare(by="delta", cost=10).frame.filter(measure="total", separated=True)
        >>> found.select("schedule", "delta", "reference").rows()
        [('fedelim', 0.01, 0.1), ('fedelim0', 0.01, 0.1)]
        """
        from fastfed.analysis.compare import FOLDER, compare, usual_choice

        costs = wanted_costs(cost, bit_cost, self._trials.costs, self._trials.bit_costs)
        fixed = self._prices(prices)
        if isinstance(by, Answers):
            mine, theirs = _names(self._trials.source, by._trials.source)
            sweeps = {mine: self._trials, theirs: by._trials}
            return compare(sweeps, FOLDER, *costs, to=to, prices=fixed)
        named = by or usual_choice(self._trials)
        return compare(self._trials, named, *costs, to=to, prices=fixed)

    def plot(
        self,
        x: str = "delta",
        y: str = "total",
        group: str | None = None,
        cost: float | None = None,
        errors: str = "sem",
        ax: Axes | None = None,
        prices: Mapping[str, float] | None = None,
    ) -> Axes:
        """Draw the summary of these rows.

        Parameters
        ----------
        x
            "delta", "period", "cost", "schedule", "radius", "goal", "uplink" or "gap" (the
            smallest gap of an instance).
        y
            "total", "pulls", "communication", "error_rate" or "steps" (errors "sem" alone).
        group
            The column that has a line for each of its values: as a rule "schedule".
        cost
            The cost C of an uplink, any one: it need not be a cost of the sweep.
        errors
            "sem", "std" or "quantiles": what the bars are.
        ax
            Axes to draw into; without them a figure is made.
        prices
            Fixed prices of other counts, as of `summary`.

        Returns
        -------
        matplotlib.axes.Axes

        Examples
        --------
        >>> import fastfed as ff
        >>> res = ff.simulate([[0.9], [0.1]], ["fedelim", "fedelim0"], delta=[0.1, 0.01],
        ...                   trials=20)
        >>> axes = res.plot(x="delta", y="total", cost=10)
        >>> axes.get_xlabel()
        'error probability delta'
        """
        from fastfed.display.figures import plot

        frame = self.plot_frame(x, None if cost is None else [cost], prices)
        how = {"errors": errors, "schedules": self.every_schedule}
        return plot(frame, ax, x=x, y=y, group=group, cost=cost, **how)

    @property
    def every_schedule(self) -> list[str]:
        """All schedules of the rows, also those that filters leave out: styles follow from them."""
        return every_schedule(self._trials)

    def plot_frame(
        self,
        x: str = "delta",
        costs: Sequence[float] | None = None,
        prices: Mapping[str, float] | None = None,
    ) -> pl.DataFrame:
        """Return the summary that `plot` draws, with gaps if they are drawn.

        Parameters
        ----------
        x
            As of `plot`.
        costs
            Costs C of an uplink; None: the usual ones.
        prices
            Fixed prices of other counts, as of `summary`.

        Returns
        -------
        polars.DataFrame
        """
        from fastfed.display.series import with_gaps

        frame = self.summary(self.costs if costs is None else costs, prices=prices)
        return with_gaps(frame, self.instances) if x == "gap" else frame

    @takes(Where, ALL)
    def replay(
        self,
        trial: int,
        schedule: str | Schedule | None = None,
        delta: float | None = None,
        **where: Unpack[Where],
    ) -> Replay:
        """Tell the trial of one of these rows event by event.

        Parameters
        ----------
        trial
            The number of the trial.
        schedule, delta, instance, sigma, radius, goal, uplink, participation
            The row of that trial; needed where there are several.

        Returns
        -------
        fastfed.Replay
            Its ``row`` equals the row that is held.

        Examples
        --------
        >>> import fastfed as ff
        >>> res = ff.simulate([[0.9], [0.1]], delta=0.1, trials=20)
        >>> story = res.replay(7)
        >>> story.row["pulls"] == res.frame["pulls"][7]
        True
        """
        from fastfed.simulation.replay import replay

        number = checked_trial(trial)
        rows = select(self._unread, {"schedule": schedule, "delta": delta, **where})
        (cell, schedules), *others = rows.held().items()
        if others:
            raise InputError(_ambiguous([cell, *(one for one, _ in others)]))
        name, *more = schedules
        if more:
            names = ", ".join(map(str, schedules))
            raise InputError(
                f"the trial has several rows: choose one with schedule= or --schedule, of {names}"
            )
        held = rows.ranges(cell, str(name))
        if not any(first <= number < end for first, end in held):
            there = ", ".join(f"{first} to {end - 1}" for first, end in held)
            raise InputError(f"trial {number}: {name} at {cell} has the trials {there}")
        return replay(
            self.instances[cell.instance],
            name,
            delta=cell.delta,
            seed=cell.seed,
            trial=number,
            engine=cell.engine,
            sigma=cell.sigma,
            max_steps=cell.max_steps,
            **rows.choices(cell),
        )

    def report(self, path: str | Path = "report.html", *, progress: bool = False) -> Path:
        """Write one self-contained, interactive page of HTML.

        Parameters
        ----------
        path
            The file.
        progress
            Say on stderr how many cells are done.

        Returns
        -------
        pathlib.Path
            The same. The page needs no network, and its size does not depend on the number of
            trials.
        """
        from fastfed.display.report import write_report

        trials = self._trials
        with reporting(progress, len(trials.held()), "cells") as done:
            return write_report(trials, Path(path), self._about(), self._title, done)

    def __str__(self) -> str:
        from fastfed.display.tables import summary_table

        return summary_table(self.summary(), self.instances, rest="summary()").text()

    def _repr_html_(self) -> str:
        from fastfed.display.tables import summary_table

        table = summary_table(self.summary(), self.instances, rest="summary()")
        return replace(table, above=[repr(self), *table.above]).html()


def _names(one: str, other: str) -> tuple[str, str]:
    """Return different names for two sources, even if their own names are equal."""
    return (one, other) if one != other else (f"{one} (first)", f"{other} (second)")


def _ambiguous(cells: Sequence[Cell]) -> str:
    """Say which choices select one of several cells."""
    values = {
        name: list(dict.fromkeys(f"{one.names[name]}" for one in cells)) for name in cells[0].names
    }
    several = {name: some for name, some in values.items() if len(some) > 1}
    found = " and ".join(
        f"{len(some)} values of {name} ({', '.join([*some[:3], *(['...'] if some[3:] else [])])})"
        for name, some in several.items()
    )
    options = " and ".join(f"{name}= or --{name}" for name in several)
    return f"the rows have {found}: choose one with {options}"
