"""Costs on MovieLens with the reward 0 for genres that a country lacks, and without it.

    python -m benchmarks.studies.availability [TRIALS]

The table of docs/explanation/availability.md is written anew, and docs/figures/availability.png
drawn.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import fastfed as ff
from benchmarks.report import write_between

INSTANCES = ("movielens", "movielens-available")
SCHEDULES = ("fedelim", "adaptive", "phases")
COLUMNS = {"pulls": "pulls", "uplinks": "uplinks", "busiest": "time"}
DOCS = Path(__file__).parents[2] / "docs"


def main() -> None:
    """Measure, write the table, and draw the figure."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import EngFormatter

    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    rows = [
        f"| instance, schedule | {' | '.join(COLUMNS.values())} | right |",
        "|---|" + 4 * "---:|",
    ]
    _, axes = plt.subplots(
        1, len(COLUMNS), figsize=(9.6, 2.6), constrained_layout=True, sharey=True
    )
    for color, name in enumerate(INSTANCES):
        for place, schedule in enumerate(SCHEDULES):
            found = ff.simulate(name, schedule, delta=0.01, trials=trials, seed=5).frame
            cells = []
            for axis, column in zip(axes, COLUMNS, strict=True):
                mean, error = found[column].mean(), found[column].std() / math.sqrt(trials)
                cells.append(f"{mean:,.0f} ± {error:,.0f}")
                label = name if place == 0 else None
                y = place + 0.4 * color - 0.2
                axis.barh(y, mean, 0.36, xerr=error, color=f"C{color}", label=label)
            right = f"{found['correct'].sum()} of {trials}"
            rows.append(f"| {name}, {schedule} | {' | '.join(cells)} | {right} |")
    write_between(DOCS / "explanation" / "availability.md", "movielens", "\n".join(rows))
    for axis, label in zip(axes, COLUMNS.values(), strict=True):
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
        axis.set_xlabel(f"mean {label}")
    axes[0].set_yticks(range(len(SCHEDULES)), SCHEDULES)
    axes[0].invert_yaxis()
    axes[0].legend(fontsize=7)
    plt.savefig(DOCS / "figures" / "availability.png", dpi=120)


if __name__ == "__main__":
    main()
