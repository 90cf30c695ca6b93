"""The best step of a dithered message: table and figure of docs/explanation/uplinks.md.

    python -m benchmarks.studies.uplinks [TRIALS] [FIGURE]

The program prints the table and writes the figure. All uplinks see the same walks.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fastfed as ff
from fastfed.display.figures import chart_figure, contact_sheet
from fastfed.display.series import Chart, Line
from fastfed.display.styles import label_of, style_of
from fastfed.simulation.job import Job

DELTA = 0.01
_DPI = 150
BASES = [1.2, 1.5, 2.0, 4.0]
GRID = [round(2.0 ** (power / 2), 4) for power in range(-10, 7)]
COSTS = np.geomspace(1e-2, 1e4, 61)

_Floats = npt.NDArray[np.float64]


def main() -> None:
    trials = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000
    figure = Path(sys.argv[2] if len(sys.argv) > 2 else "docs/figures/uplinks.png")
    draw(study(trials), figure, trials)


def study(trials: int) -> dict[str, Any]:
    """Mean pulls, bits and messages for every base and KAPPA; exact messages come last."""
    instance = ff.Instance.load("synthetic")
    schedules = [f"exponential:{base:g}" for base in BASES]
    found = {name: np.zeros((len(GRID) + 1, len(BASES))) for name in ("pulls", "bits", "uplinks")}
    for i, kappa in enumerate([*GRID, None]):
        uplink = "exact" if kappa is None else f"dither:{kappa:g}"
        block = Job.of(instance, schedules, delta=DELTA, uplink=uplink).run(0, trials)
        for name, values in found.items():
            values[i] = block.column(name).mean(axis=1)
    report(found)
    return found


def best_kappa(pulls: _Floats, bits: _Floats, cost: float) -> float:
    """Minimise pulls + cost x bits on a parabola through the best point of the grid."""
    total = pulls + cost * bits
    i = int(total.argmin())
    if i in (0, len(total) - 1):
        return math.nan
    left, here, right = total[i - 1 : i + 2]
    shift = 0.5 * (left - right) / (left - 2 * here + right)
    return float(2 ** (math.log2(GRID[i]) + 0.5 * shift))


def rule(found: dict[str, Any], j: int, cost: float, factor: float) -> float:
    """sqrt(factor C U / (T ln 2)), with the messages U and pulls T of exact messages."""
    return math.sqrt(
        factor * cost * found["uplinks"][-1, j] / (found["pulls"][-1, j] * math.log(2))
    )


def report(found: dict[str, Any]) -> None:
    """Print the best KAPPA and its saving at some costs, for FedElim and for the best base."""
    two = BASES.index(2.0)
    print(
        "\n| cost of a bit | best KAPPA | sqrt(6 C U / (T ln 2)) | sqrt(12 C U / (T ln 2)) "
        "| total of exact | of the best KAPPA | best base of all | and KAPPA | total |"
    )
    print("|---" * 9 + "|")
    for cost in (0.1, 1.0, 10.0, 100.0, 1000.0):
        total = found["pulls"] + cost * found["bits"]
        i, j = np.unravel_index(total[:-1].argmin(), total[:-1].shape)
        best = best_kappa(found["pulls"][:-1, two], found["bits"][:-1, two], cost)
        print(
            f"| {cost:g} | {best:.2f} | {rule(found, two, cost, 6):.2f} "
            f"| {rule(found, two, cost, 12):.2f} | {total[-1, two]:,.0f} "
            f"| {total[:-1, two].min():,.0f} | {BASES[j]:g} | {GRID[i]:g} | {total[i, j]:,.0f} |",
            flush=True,
        )


def draw(found: dict[str, Any], path: Path, trials: int) -> None:
    """Draw pulls against bits for every base, beside the best KAPPA against the cost of a bit."""
    charts = (pulls_against_bits(found, trials), best_step(found, trials))
    path.parent.mkdir(parents=True, exist_ok=True)
    contact_sheet([[chart_figure(one) for one in charts]], path.with_suffix(""), _DPI)


def pulls_against_bits(found: dict[str, Any], trials: int) -> Chart:
    """Chart a line for each schedule, from the coarsest step to 64-bit scalars.

    Further lines connect the points that have the same KAPPA.
    """
    shown = [*reversed([i for i, kappa in enumerate(GRID) if kappa <= 4]), len(GRID)]
    schedules = ["fedelim" if base == 2 else f"exponential:{base:g}" for base in BASES]
    lines = [
        Line(
            label_of(schedule),
            found["bits"][shown, j].tolist(),
            found["pulls"][shown, j].tolist(),
            style=style_of(schedule),
        )
        for j, schedule in enumerate(schedules)
    ]
    for kappa in (0.25, 1.0, 2.0, 4.0):
        i = GRID.index(kappa)
        order = np.argsort(found["bits"][i])
        lines.append(
            Line(
                f"all with κ = {kappa:g}",
                found["bits"][i, order].tolist(),
                found["pulls"][i, order].tolist(),
                plain=True,
            )
        )
    return Chart(
        lines,
        "bits a trial",
        "pulls a trial",
        [
            "synthetic, delta 0.01, dither κ from 4 (left) to 1/32, last point: 64-bit scalars",
            f"means of {trials:,} trials",
        ],
        log_y=True,
    )


def best_step(found: dict[str, Any], trials: int) -> Chart:
    """Chart the measured best KAPPA and the two rules for it, over the range of KAPPA."""
    lines, guides = [], []
    for base in (1.2, 2.0):
        j = BASES.index(base)
        schedule = "fedelim" if base == 2 else f"exponential:{base:g}"
        points = [(c, best_kappa(found["pulls"][:-1, j], found["bits"][:-1, j], c)) for c in COSTS]
        lines.append(_line(f"measured, {label_of(schedule)}", points, style=style_of(schedule)))
        for factor in (6, 12):
            points = [(c, rule(found, j, c, factor)) for c in COSTS]
            guides.append(
                _line(
                    f"√({factor}CU / (T ln 2)), {label_of(schedule)}",
                    [(c, kappa) for c, kappa in points if GRID[0] <= kappa <= GRID[-1]],
                    plain=True,
                )
            )
    return Chart(
        [*lines, *guides],
        "cost C of a bit (in pulls)",
        "best κ",
        [
            "synthetic, delta 0.01: the κ with the least pulls + C x bits",
            f"from means of {trials:,} trials",
        ],
        log_y=True,
    )


def _line(label: str, points: list[tuple[float, float]], **how: Any) -> Line:
    known = [(float(x), y) for x, y in points if math.isfinite(y)]
    return Line(label, [x for x, _ in known], [y for _, y in known], **how)


if __name__ == "__main__":
    main()
