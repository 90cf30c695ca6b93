"""Costs of lost reports and of privacy: tables and figures of docs/explanation.

    python -m benchmarks.studies.reports [TRIALS] [FOLDER]

The program prints the tables and writes participation.png and privacy.png. All cells see the same
walks. Ratios are of mean pulls to those of full participation, or of exact numbers, over paired
trials, with the standard error of a ratio of paired means.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import fastfed as ff
from fastfed.display.figures import write_chart
from fastfed.display.series import Chart, Line
from fastfed.display.styles import label_of

DELTA = 0.01
SCHEDULES = ["fedelim", "exponential:1.2", "periodic:100"]
PROBABILITIES = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0]
EPSILONS = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
NULL = [[0.5] * 3, [0.5 + 1e-9] * 3]


def main() -> None:
    trials = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else "docs/figures")
    waiting, last = (
        [study("synthetic", trials, {"participation": f"{rule}:{p:g}"}) for p in PROBABILITIES]
        for rule in ("wait", "random")
    )
    rules = {"random": last, "wait": waiting}
    title = f"synthetic, mixture-pairs, delta {DELTA:g}, {trials:,} trials"
    draw(folder / "participation", "probability P", PROBABILITIES, rules, title)
    some = max(20, trials // 10)  # a trial with much noise takes a hundred times as long
    private = [study("bernoulli", some, {"uplink": f"laplace:{eps:g}"}) for eps in EPSILONS]
    title = f"bernoulli, mixture-pairs, delta {DELTA:g}, {some:,} trials"
    draw(folder / "privacy", "privacy parameter EPS", EPSILONS, {"": private}, title)
    null_runs(trials)


def null_runs(trials: int) -> None:
    """Print how often the server declares the worse of two arms that all but tie."""
    print("| setting | budget | wrong | undecided |\n|---|---|---|---|")
    coins = {"rewards": "bernoulli", "sigma": "proxy"}
    for options in (
        {"participation": "random:0.5", "radius": "mixture-pairs"},
        {"participation": "wait:0.5", "radius": "mixture-pairs"},
        {"uplink": "laplace:1", **coins},
        {"uplink": "laplace:0.1", **coins},
        {"participation": "random:0.5", "radius": "mixture-pairs", "sigma": 0.8},
        {"uplink": "laplace:1", **coins, "sigma": 0.4},
    ):
        given: dict[str, Any] = {"delta": 0.2, "max_steps": 2**13, **options}
        done = ff.simulate(NULL, "periodic:4", trials=trials, **given).frame
        wrong = (done["global_arm"] == 0).sum()
        undecided = (done["global_arm"] < 0).sum()
        print(f"| {options} | 0.1 | {wrong / trials:.4f} | {undecided / trials:.4f} |", flush=True)


def study(name: str, trials: int, options: dict[str, Any]) -> list[tuple[float, float]]:
    """Print and return the ratio of mean pulls and its standard error, for each schedule."""
    base, found = (
        ff.simulate(name, SCHEDULES, delta=DELTA, trials=trials, radius="mixture-pairs", **one)
        for one in ({}, options)
    )
    ratios = []
    for schedule in SCHEDULES:
        before, after = (
            one.frame.filter(one.frame["schedule"] == schedule)["pulls"].to_numpy().astype(float)
            for one in (base, found)
        )
        ratio = after.mean() / before.mean()
        error = (after - ratio * before).std(ddof=1) / math.sqrt(trials) / before.mean()
        ratios.append((ratio, error))
    told = " | ".join(f"{ratio:.4g} ({error:.2g})" for ratio, error in ratios)
    wrong = int((~found.frame["correct"]).sum())
    print(f"| {name}, {' '.join(options.values())} | {told} | {wrong} |", flush=True)
    return ratios


def has_mean(schedule: str, rule: str, p: float) -> bool:
    """Tell whether mean pulls are finite: see docs/explanation/participation.md."""
    base = {"fedelim": 2.0, "exponential:1.2": 1.2}.get(schedule, 1.0)
    return base * (1.0 - (p**3 if rule == "wait" else p)) < 1.0 - 1e-9


def draw(stem: Path, axis: str, x: list[float], found: dict[str, Any], title: str) -> None:
    """Draw the ratios of each schedule against P or EPS, where means are finite."""
    lines = []
    for rule, points in found.items():
        for j, schedule in enumerate(SCHEDULES):
            kept = [i for i, one in enumerate(x) if not rule or has_mean(schedule, rule, one)]
            lines.append(
                Line(
                    " ".join(filter(None, [label_of(schedule), rule])),
                    [x[i] for i in kept],
                    [float(points[i][j][0]) for i in kept],
                    [float(points[i][j][1]) for i in kept],
                )
            )
    label = "mean pulls, relative"
    linear = bool(found.keys() - {""})
    chart = Chart(
        lines, axis, label, [title, "mean ± one standard error"], linear_x=linear, log_y=True
    )
    write_chart(chart, stem, ["png"])


if __name__ == "__main__":
    main()
