"""Adaptive communication on random cells: its defaults, and what it saves.

    python -m benchmarks.studies.adaptive [CELLS] [TRIALS] [FOLDER]

A cell is a random instance (K from 2 to 30, M from 1 to 60, gaps of six shapes, clients that differ
by more or less), a delta from 0.1 to 1e-6 and a radius, `paper` or `mixture-pairs`. All schedules
of a cell run on the same walks, so ratios are of paired trials.

The program prints a table of options against FedElim and a table of total costs over that of the
best fixed schedule in hindsight, and draws the second into FOLDER [docs/figures].
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import fastfed as ff
from fastfed.display.figures import write_chart
from fastfed.display.series import Chart, Line
from fastfed.display.styles import label_of, styles
from fastfed.simulation.job import Job

Floats = npt.NDArray[np.float64]

COSTS = (0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0)
RADII = ("paper", "mixture-pairs")
SHAPES = ("uniform", "linear", "equal", "one rival", "square", "geometric")
OPTIONS = [
    "adaptive",
    "adaptive:4,1.4,2,0",
    "adaptive:4,1.1,2,0",
    "adaptive:4,1.1,2,0.15",
    "adaptive:4,1.1,2,0.5",
    "adaptive:4,1.1,2,1",
    "adaptive:2",
    "adaptive:3",
    "adaptive:8",
    "adaptive:4,1.02",
    "adaptive:4,1.25",
    "adaptive:4,1.1,1",
    "adaptive:4,1.1,0.5",
    "adaptive:4,1.1,4",
]
"""HI, LO, FIRST, SHARE. The second is the rule that aims at the nearest arm."""
BASES = [f"exponential:{base}" for base in (1.05, 1.1, 1.2, 1.5, 3, 5, 9)]
FIXED = ["fedelim", *BASES]


@dataclass(frozen=True)
class Cell:
    """A random instance, and how it is run."""

    instance: ff.Instance
    shape: str
    delta: float
    radius: str

    @property
    def periods(self) -> list[str]:
        """H_opt of each cost, as a schedule."""
        found = [
            ff.bounds(self.instance, self.delta, cost, radius=self.radius).periodic.parameter
            for cost in COSTS
        ]
        return [f"periodic:{max(1, round(float(period)))}" for period in found]


def averages(shape: str, arms: int, rng: np.random.Generator) -> Floats:
    """Draw the server's means, from 0 for the best arm down to about -1."""
    k = np.arange(arms)
    if shape == "uniform":
        return np.where(k > 0, -0.1 / arms - rng.uniform(0, 1, arms), 0.0)
    if shape == "linear":
        return -k / (arms - 1)
    if shape == "equal":
        return np.where(k > 0, -1.0, 0.0)
    if shape == "one rival":
        return np.select([k == 0, k == 1], [0.0, -0.2], -1.0)
    if shape == "square":
        return np.where(k > 0, -0.02 - (k / (arms - 1)) ** 2, 0.0)
    return np.where(k > 0, -(0.85 ** (arms - 1.0 - k)), 0.0)


def random_cell(number: int) -> Cell:
    """Draw a cell from its own seed; of twenty draws of the clients take the easiest to tell."""
    rng = np.random.default_rng([31, number // len(RADII)])
    arms, clients = int(rng.integers(2, 31)), int(np.exp(rng.uniform(0, math.log(60.999))))
    delta = float(10.0 ** -rng.uniform(1, 6))
    shape = SHAPES[int(rng.integers(len(SHAPES)))]
    scale = 10.0 ** rng.uniform(-1.5, 0.0)
    server = averages(shape, arms, rng)
    differ = float(rng.choice([0.3, 1.0, 3.0]))
    drawn = []
    for _ in range(20):
        apart = rng.normal(0, differ, (arms, clients))
        means = server[:, None] + apart - apart.mean(axis=1, keepdims=True)
        drawn.append(ff.Instance(scale * means))
    instance = max(drawn, key=lambda one: float(one.local_gaps.min()))
    return Cell(instance, shape, delta, RADII[number % len(RADII)])


@dataclass(frozen=True)
class Measured:
    """Means of the schedules of a cell, and squares of the standard errors of ratios to FedElim."""

    pulls: dict[str, float]
    uplinks: dict[str, float]
    ratios: dict[str, tuple[float, float]]
    squares: dict[str, tuple[float, float]]

    def total(self, schedule: str, cost: float) -> float:
        """Mean pulls + C x uplinks."""
        return self.pulls[schedule] + cost * self.uplinks[schedule]


def measure(cell: Cell, trials: int) -> Measured:
    """Run all schedules of a cell on the same walks."""
    names = list(dict.fromkeys([*FIXED, *OPTIONS, *cell.periods]))
    job = Job.of(cell.instance, names, delta=cell.delta, radius=cell.radius)
    block = job.run(0, trials)
    costs = [block.column(name).astype(float) for name in ("pulls", "uplinks")]
    means = [one.mean(axis=1) for one in costs]
    ratios = [mean / mean[0] for mean in means]
    squares = [
        (one - ratio[:, None] * one[0]).var(axis=1, ddof=1) / trials / mean[0] ** 2
        for one, mean, ratio in zip(costs, means, ratios, strict=True)
    ]
    return Measured(
        dict(zip(names, means[0].tolist(), strict=True)),
        dict(zip(names, means[1].tolist(), strict=True)),
        {name: (float(ratios[0][s]), float(ratios[1][s])) for s, name in enumerate(names)},
        {name: (float(squares[0][s]), float(squares[1][s])) for s, name in enumerate(names)},
    )


def print_options(found: list[Measured]) -> None:
    """Print, for each option, ratios to FedElim and the share of cells that are no worse."""
    print("\nratio to FedElim: mean over cells (standard error; worst cell); share of cells <= 1")
    print(f"{'schedule':<24} {'pulls':>22} {'uplinks':>22} {'pulls':>6} {'uplinks':>8} {'both':>5}")
    for name in [*OPTIONS, "exponential:1.2"]:
        ratios = np.array([one.ratios[name] for one in found])
        errors = np.sqrt(np.array([one.squares[name] for one in found]).sum(axis=0)) / len(found)
        texts = [
            f"{ratios[:, i].mean():.3f} ({errors[i]:.4f}; {ratios[:, i].max():.2f})" for i in (0, 1)
        ]
        fewer = ratios <= 1.0
        print(
            f"{name:<24} {texts[0]:>22} {texts[1]:>22} {fewer[:, 0].mean():>6.0%} "
            f"{fewer[:, 1].mean():>8.0%} {fewer.all(axis=1).mean():>5.0%}"
        )


def regrets(cells: list[Cell], found: list[Measured]) -> dict[str, Floats]:
    """Return totals over the best fixed schedule of each cell and cost: (cells, costs)."""
    lines: dict[str, Floats] = {}
    for name in ("fedelim", "exponential:1.2", "periodic at H_opt", "adaptive", "adaptive:8"):
        rows = []
        for cell, one in zip(cells, found, strict=True):
            periods = cell.periods
            fixed = [*FIXED, *periods]
            rows.append(
                [
                    one.total(periods[c] if name.startswith("periodic") else name, cost)
                    / min(one.total(other, cost) for other in fixed)
                    for c, cost in enumerate(COSTS)
                ]
            )
        lines[name] = np.array(rows)
    return lines


def draw(path: Path, lines: dict[str, Floats]) -> None:
    """Draw mean totals over the best fixed schedule against the cost."""
    names = {"periodic at H_opt": "periodic:100"}
    looks = styles(names.get(name, name) for name in lines)
    drawn = [
        Line(
            name if name in names else label_of(name),
            [max(cost, 0.1) for cost in COSTS],
            rows.mean(axis=0).tolist(),
            spread=(rows.std(axis=0, ddof=1) / math.sqrt(len(rows))).tolist(),
            style=looks[names.get(name, name)],
        )
        for name, rows in lines.items()
    ]
    write_chart(
        Chart(
            drawn,
            "cost C of an uplink (0 is drawn at 0.1)",
            "total / best fixed schedule",
            ["random cells: total cost over the best fixed schedule in hindsight", "mean ± SE"],
        ),
        path,
        ["png"],
    )


def main() -> None:
    """Run the study."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 80
    trials = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    folder = Path(sys.argv[3] if len(sys.argv) > 3 else "docs/figures")
    cells = [random_cell(number) for number in range(count)]
    found = []
    for number, cell in enumerate(cells):
        found.append(measure(cell, trials))
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {count} cells", end="", file=sys.stderr, flush=True)
    print(f"{count} cells, {trials} trials each")
    print_options(found)
    lines = regrets(cells, found)
    print("\ntotal cost over the best fixed schedule in hindsight: mean over cells (worst)")
    print(f"{'schedule':<20} " + " ".join(f"{f'C = {cost:g}':>13}" for cost in COSTS))
    for name, rows in lines.items():
        texts = [f"{rows[:, c].mean():.2f} ({rows[:, c].max():.1f})" for c in range(len(COSTS))]
        print(f"{name:<20} " + " ".join(f"{text:>13}" for text in texts))
    draw(folder / "adaptive", lines)


if __name__ == "__main__":
    main()
