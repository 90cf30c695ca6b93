"""Mean pulls of every radius on instances with bounded rewards, beside the least of any algorithm.

    python -m benchmarks.studies.betting [TRIALS]

TRIALS is the number on `bernoulli`; `movielens` has a fiftieth. The tables of
docs/explanation/betting.md are written anew, and docs/figures/betting.png drawn.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import fastfed as ff
from benchmarks.report import write_between
from fastfed.simulation.job import Job

RADII = (
    ("paper", 1.0),
    ("stitched", 1.0),
    ("mixture", 1.0),
    ("mixture-pairs", 1.0),
    ("mixture-pairs", "proxy"),
    ("betting", None),
)
ROWS = (
    ("bernoulli", "fedelim", 1),
    ("bernoulli", "fedelim0", 1),
    ("movielens", "fedelim", 50),
    ("movielens-available", "fedelim", 50),
)
DELTA = 0.01
GAPS = (0.1, 0.01, 0.001, 0.0001)
DOCS = Path(__file__).parents[2] / "docs"


def measured(name: str, schedule: str, trials: int) -> list[tuple[float, float]]:
    """Return mean pulls and their standard error, for each radius."""
    found = []
    for radius, sigma in RADII:
        options = {"delta": DELTA, "trials": trials, "radius": radius, "sigma": sigma}
        pulls = ff.simulate(ff.Instance.load(name), schedule, **options).frame["pulls"]
        found.append((pulls.mean(), pulls.std() / math.sqrt(trials)))
    return found


def heads() -> list[str]:
    """Name the radii with their scales."""
    return [f"{name}" + ("" if sigma is None else f", σ {sigma}") for name, sigma in RADII]


def row(name: str, schedule: str, trials: int, found: list[tuple[float, float]]) -> str:
    """Write a row of the table."""
    least = ff.bounds(name, delta=DELTA).least_pulls
    cells = [
        f"{mean:,.0f} ± {error:,.0f}" + ("" if least is None else f" ({mean / float(least):.2f})")
        for mean, error in found
    ]
    return f"| {name}, {schedule} | {trials:,} | {' | '.join(cells)} |"


def intervals(clients: int, gap: float) -> list[float]:
    """Return mean steps, and the intervals that a client, FedElim0 and FedElim look at."""
    middles = [0.5] if clients == 1 else [0.7, 0.35, 0.5]
    means = [[one + side * gap / 2 for one in middles] for side in (1, -1)]
    instance = ff.Instance(means, ff.Bernoulli())
    blocks = [
        # with one round only the clients look at intervals
        Job.of(instance, schedule, delta=DELTA, radius="betting:24", max_steps=2**45).run(0, 40)
        for schedule in ("at:1", "fedelim0", "fedelim")
    ]
    local, *both = [one.work[:, 0].mean() for one in blocks]
    steps = blocks[1].column("global_steps").mean()
    return [steps, local / clients, *(looks - local for looks in both)]


def law() -> str:
    """Write the table of the intervals in trials that become longer and longer."""
    lines = [
        "| clients | gap | steps of the server | intervals, a client | FedElim0 | FedElim |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for clients in (1, 3):
        for gap in GAPS:
            cells = " | ".join(f"{one:,.0f}" for one in intervals(clients, gap))
            lines.append(f"| {clients} | {gap:g} | {cells} |")
    return "\n".join(lines)


def draw(found: dict[str, list[tuple[float, float]]]) -> None:
    """Draw the mean pulls of each row as bars."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, len(found), figsize=(9.6, 3.2), constrained_layout=True)
    for one, (title, bars) in zip(axes, found.items(), strict=True):
        names = heads()[::-1]
        means, errors = zip(*bars[::-1], strict=True)
        one.barh(names, means, xerr=errors, color=["C1", *["C0"] * (len(names) - 1)])
        one.set_xscale("log")
        one.set_title(title, fontsize=9)
        one.set_xlabel("mean pulls")
        one.label_outer()
    plt.savefig(DOCS / "figures" / "betting.png", dpi=120)


def main() -> None:
    """Write the table into the page, and draw the figure."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    top = [
        f"| instance, schedule | trials | {' | '.join(heads())} |",
        "|---|---:|" + "---:|" * len(RADII),
    ]
    found, rows = {}, []
    for name, schedule, share in ROWS:
        count = max(4, trials // share)
        found[f"{name}, {schedule}"] = bars = measured(name, schedule, count)
        rows.append(row(name, schedule, count, bars))
    page = DOCS / "explanation" / "betting.md"
    write_between(page, "betting", "\n".join([*top, *rows]))
    write_between(page, "intervals", law())
    draw(found)


if __name__ == "__main__":
    main()
