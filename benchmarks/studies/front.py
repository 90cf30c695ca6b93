"""The figure on the front page: total cost against the period of communication.

    python -m benchmarks.studies.front [TRIALS]

writes docs/figures/total-period.png: the paper's synthetic instance at delta = 0.01 and C = 10, as
``fastfed plot results --x period`` draws it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import fastfed as ff
from fastfed.display.figures import plot_files

PERIODS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000)
ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    schedules = ["fedelim", "adaptive", "phases", *map(ff.Periodic, PERIODS)]
    result = ff.simulate("synthetic", schedules, delta=0.01, trials=trials)
    plot_files(
        result.summary([10.0]),
        ROOT / "docs" / "figures" / "total-period",
        ["png"],
        x="period",
        y="total",
        errors="sem",
    )


if __name__ == "__main__":
    main()
