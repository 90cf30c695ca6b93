"""What a `Result` in memory and a `Sweep` in a folder both answer.

Each of them says what it holds and how to get at its rows; everything a person asks of them
follows from that, in one place, so that the same question has the same answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from fastfed.engine.rows import CELL
from fastfed.errors import InputError, nearest
from fastfed.faces import Faced
from fastfed.goals import parse as parse_goal
from fastfed.problem.instance import Instance
from fastfed.problem.schedule import Schedule, parse
from fastfed.radius import parse as parse_radius
from fastfed.statistics.best import Best, envelope_of
from fastfed.statistics.moments import Batch
from fastfed.statistics.summary import wanted_costs
from fastfed.sweeps.grid import Cell
from fastfed.uplinks import parse as parse_uplink
from fastfed.validation import checked_delta, checked_sigma, checked_trial

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from fastfed.engine.replay import Replay
    from fastfed.theory.check import Check


class Answers(Faced, ABC):
    """Rows of trials, and the questions that they answer."""

    # What a holder of rows has to say

    @abstractmethod
    def scan(self) -> pl.LazyFrame:
        """The rows of all trials as a Polars LazyFrame: nothing is read before it is needed."""

    @abstractmethod
    def summary(
        self, costs: Sequence[float] | None = None, bit_costs: Sequence[float] | None = None
    ) -> pl.DataFrame:
        """Means with their errors, quantiles, error rates and ratios, for any costs."""

    @abstractmethod
    def check(self, costs: Sequence[float] | None = None) -> Check:
        """Compare the rows with the theorems: a verdict per claim."""

    @abstractmethod
    def save(self, folder: str | Path) -> Any:
        """Write the rows into a sweep's folder."""

    @property
    @abstractmethod
    def instances(self) -> dict[str, Instance]:
        """The instances of the rows, by name."""

    @property
    @abstractmethod
    def costs(self) -> list[float]:
        """The costs of an uplink that are taken where none are given."""

    @abstractmethod
    def _held(self) -> dict[Cell, list[str]]:
        """The cells that have rows, and the schedules of each."""

    @abstractmethod
    def _batches(self, cell: Cell, schedules: Sequence[str]) -> Iterator[Batch]:
        """The trials of a cell, in order."""

    @abstractmethod
    def _ranges(self, cell: Cell, schedule: str) -> list[tuple[int, int]]:
        """The trials [first, end) that there are."""

    @abstractmethod
    def _about(self) -> Mapping[str, object]:
        """What was run, in a few words, for a report."""

    # What follows from it

    @property
    def frame(self) -> pl.DataFrame:
        """The rows of all trials, one for each trial and schedule, in memory."""
        return self.scan().collect()

    def wrong(
        self,
        schedule: str | Schedule | None = None,
        delta: float | None = None,
        *,
        instance: str | None = None,
        sigma: float | None = None,
        radius: str | None = None,
        goal: str | None = None,
        uplink: str | None = None,
    ) -> pl.DataFrame:
        """The rows of the trials in which an answer was wrong or missing.

        Parameters
        ----------
        schedule, delta, instance, sigma, radius, goal, uplink
            Which rows; None: all.

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

        cells = self._cells(
            {
                "instance": instance,
                "delta": delta,
                "sigma": sigma,
                "radius": radius,
                "goal": goal,
                "uplink": uplink,
            }
        )
        wanted = pl.DataFrame([cell.names for cell in cells])
        rows = (
            self.scan()
            .filter(~pl.col("correct"))
            .collect()
            .join(wanted, on=wanted.columns, how="semi", maintain_order="left")
        )
        if schedule is None:
            return rows
        known = list(dict.fromkeys(name for cell in cells for name in self._held()[cell]))
        return rows.filter(pl.col("schedule") == _chosen_schedule(known, schedule))

    @overload
    def best(self, costs: None = None, bit_costs: None = None) -> Best: ...
    @overload
    def best(
        self, costs: Sequence[float], bit_costs: Sequence[float] | None = None
    ) -> pl.DataFrame: ...
    @overload
    def best(self, costs: None = None, *, bit_costs: Sequence[float]) -> pl.DataFrame: ...

    def best(
        self, costs: Sequence[float] | None = None, bit_costs: Sequence[float] | None = None
    ) -> Best | pl.DataFrame:
        """Find the cheapest schedule, and how certain that is.

        Parameters
        ----------
        costs
            Costs C of an uplink.
        bit_costs
            Costs c of a bit, for pulls + c x bits. With neither: all C >= 0 at once.

        Returns
        -------
        fastfed.statistics.best.Best or polars.DataFrame
            Without costs, for each cell the ranges of C with one winner each, the C at which it
            changes with a 95 % interval from the paired trials, and the schedules that cannot be
            separated from the winner; print it, or take its ``frame``. With costs, one row for
            each cell and cost: the winner, its margin over the next best and the paired standard
            error.

        Examples
        --------
        >>> import fastfed as ff
        >>> res = ff.simulate([[0.9, 0.1], [0.1, 0.4]], ["fedelim", "fedelim0"], delta=0.1,
        ...                   trials=50)
        >>> res.best(costs=[0, 100])["winner"].to_list()
        ['fedelim0', 'fedelim']
        """
        found = Best(
            tuple(
                envelope_of(self._batches(cell, names), names, cell.names)
                for cell, names in self._held().items()
            )
        )
        if costs is None and bit_costs is None:
            return found
        return found.at(*wanted_costs(costs, bit_costs, ()))

    def plot(
        self,
        x: str = "delta",
        y: str = "total",
        group: str | None = None,
        cost: float | None = None,
        errors: str = "sem",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the summary of these rows.

        Parameters
        ----------
        x
            "delta", "period", "cost", "schedule", "radius", "goal", "uplink" or "gap" (the
            smallest gap of an instance).
        y
            "total", "pulls", "communication", "error_rate" or "steps".
        group
            The column that has a line for each of its values: as a rule "schedule".
        cost
            The cost C of an uplink, any one: it need not be a cost of the sweep.
        errors
            "sem", "std" or "quantiles": what the bars are.
        ax
            Axes to draw into; without them a figure is made.

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
        from fastfed.results.figures import plot

        frame = self.plot_frame(x, y, None if cost is None else [cost])
        return plot(frame, x=x, y=y, group=group, cost=cost, errors=errors, ax=ax)

    def plot_frame(
        self, x: str = "delta", y: str = "total", costs: Sequence[float] | None = None
    ) -> pl.DataFrame:
        """The summary that `plot` draws: with steps or gaps where they are asked for.

        Parameters
        ----------
        x, y
            As of `plot`.
        costs
            Costs C of an uplink; None: the usual ones.

        Returns
        -------
        polars.DataFrame
        """
        from fastfed.results.series import with_gaps

        frame = self.summary(self.costs if costs is None else costs)
        if x == "gap":
            frame = with_gaps(frame, self.instances)
        return self._with_steps(frame) if y == "steps" else frame

    def _with_steps(self, frame: pl.DataFrame) -> pl.DataFrame:
        import polars as pl

        ended = pl.col("steps").filter(~pl.col("truncated"))
        every = pl.col("steps").cast(pl.Float64)
        keys = [name for name in (*CELL, "schedule") if name in frame.columns]
        sums = (
            self.scan()
            .group_by(keys)
            .agg(
                steps_mean=ended.mean(),
                steps_std=ended.std(),
                steps_sem=ended.std() / ended.count().sqrt(),
                **{
                    f"steps_{name}": every.quantile(share, "linear")
                    for name, share in (("q05", 0.05), ("q50", 0.5), ("q95", 0.95))
                },
            )
        )
        return frame.join(sums.collect(), on=keys, how="left", maintain_order="left")

    def replay(
        self,
        trial: int,
        schedule: str | Schedule | None = None,
        delta: float | None = None,
        *,
        instance: str | None = None,
        sigma: float | None = None,
        radius: str | None = None,
        goal: str | None = None,
        uplink: str | None = None,
    ) -> Replay:
        """Tell the trial of one of these rows event by event.

        Parameters
        ----------
        trial
            The number of the trial.
        schedule, delta, instance, sigma, radius, goal, uplink
            Which row of that trial; needed where there are several.

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
        from fastfed.engine.replay import replay

        number = checked_trial(trial)
        cells = self._cells(
            {
                "instance": instance,
                "delta": delta,
                "sigma": sigma,
                "radius": radius,
                "goal": goal,
                "uplink": uplink,
            }
        )
        if len(cells) > 1:
            raise InputError(
                f"{len(cells)} cells have such rows ({cells[0]}; {cells[1]}; ...): "
                "say which by delta, instance, sigma, radius, goal or uplink"
            )
        cell = cells[0]
        name = _chosen_schedule(self._held()[cell], schedule)
        held = self._ranges(cell, name)
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
            **self._choices(cell),
        )

    def report(self, path: str | Path = "report.html") -> Path:
        """Write one self-contained, interactive page of HTML.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        pathlib.Path
            The same. The page needs no network, and its size does not depend on the number of
            trials.
        """
        return self._write_report(Path(path))

    def _write_report(self, path: Path) -> Path:
        from fastfed.results.report import Rows, write_report

        cells = (
            Rows(cell.names, names, self._batches(cell, names))
            for cell, names in self._held().items()
        )
        instances, checked = self._theory()
        return write_report(
            path, cells, self._about(), self.costs, instances=instances, checked=checked
        )

    def _choices(self, cell: Cell) -> dict[str, Any]:
        """Radius, goal and uplink of a cell, as `replay` takes them."""
        return dict(cell.choices)

    def _theory(self) -> tuple[dict[str, Instance] | None, Check | None]:
        """What a report needs for bounds and verdicts."""
        return self.instances, self.check()

    def _cells(self, which: Mapping[str, Any]) -> list[Cell]:
        """The cells that have these names, where one is given; at least one."""
        read: dict[str, Callable[[Any], object]] = {
            "delta": checked_delta,
            "sigma": checked_sigma,
            "radius": lambda name: str(parse_radius(name)),
            "goal": lambda name: str(parse_goal(name)),
            "uplink": lambda name: str(parse_uplink(name)),
        }
        cells = list(self._held())
        for key, value in which.items():
            if value is not None:
                cells = _narrowed(cells, key, read.get(key, str)(value))
        return cells

    def __str__(self) -> str:
        from fastfed.results.tables import summary_text

        return summary_text(self.summary(), self.instances)


def _narrowed(cells: list[Cell], key: str, value: Any) -> list[Cell]:
    left = [cell for cell in cells if getattr(cell, key) == value]
    if not left:
        known = dict.fromkeys(str(getattr(cell, key)) for cell in cells)
        raise InputError(
            f"{key} {value}{nearest(str(value), known)}: the rows have {key} {', '.join(known)}"
        )
    return left


def _chosen_schedule(known: Sequence[str], wanted: str | Schedule | None) -> str:
    if wanted is None:
        if len(known) > 1:
            raise InputError(
                f"the trial has several rows: say which by schedule, one of {', '.join(known)}"
            )
        return known[0]
    name = str(parse(wanted) if isinstance(wanted, str) else wanted)
    if name not in known:
        raise InputError(f"schedule {name}{nearest(name, known)}: the rows have {', '.join(known)}")
    return name
