"""Cost of goals other than the best arm: the study of docs/explanation/goals.md.

    python -m benchmarks.studies.goals [TRIALS] [FOLDER]

The program draws one figure for each goal (`goal-top.png`, `goal-eps.png`, `goal-threshold.png`)
into FOLDER [docs/figures]. It prints mean pulls with FedElim0 and FedElim at delta = 0.01, with
standard errors, and the time of a trial relative to `best`.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import fastfed as ff
from fastfed.display.figures import write_chart
from fastfed.display.series import Chart, Line
from fastfed.display.styles import distinct, label_of, style_of
from fastfed.simulation.job import Job

SCHEDULES = ["fedelim0", "fedelim"]
DELTA = 0.01
Point = tuple[float, str]
"""What stands on the x axis, and the goal."""

TOP: list[Point] = [(place, f"top:{n}") for place, n in enumerate((1, 2, 3))]
EPS: list[Point] = [(e, f"eps:{e:g}") for e in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)]
TAUS = (0.2, 0.35, 0.45, 0.55, 0.65, 0.75, 0.83, 0.95)


def measure(instance: ff.Instance, goal: str, trials: int) -> dict[str, tuple[float, float]]:
    """Mean pulls and their standard error, by schedule."""
    result = ff.simulate(instance, SCHEDULES, delta=DELTA, trials=trials, goal=goal)
    rows = result.summary([0.0]).to_dicts()
    return {row["schedule"]: (row["pulls_mean"], row["pulls_sem"]) for row in rows}


def microseconds(instance: ff.Instance, goal: str, trials: int) -> float:
    """Measure the process time of a trial of FedElim on one thread; the least of three runs."""
    job = Job.of(instance, ["fedelim"], delta=DELTA, goal=goal)
    space = job.space()
    job.run(0, 1, space=space)
    spent = []
    for _ in range(3):
        start = time.process_time()
        job.run(0, trials, space=space)
        spent.append(time.process_time() - start)
    return 1e6 * min(spent) / trials


def countries_with_a_top() -> ff.Instance:
    """Load MovieLens without the countries whose three best genres are not unique.

    In some countries few genres were rated at all, and the other genres tie.
    """
    whole = ff.Instance.load("movielens")
    assert isinstance(whole.rewards, ff.Finite)
    kept = []
    for m, column in enumerate(whole.means.T):
        first = np.sort(column)[::-1][:4]
        if (first[:-1] - first[1:] > 0.01).all():
            kept.append(m)
    rewards = ff.Finite(whole.rewards.values, whole.rewards.weights[:, kept])
    return ff.Instance(
        rewards=rewards,
        arms=whole.arms,
        clients=[whole.clients[m] for m in kept],
        name=f"movielens, {len(kept)} countries",
    )


def study(
    instance: ff.Instance, lines: dict[str, list[Point]], trials: int
) -> dict[str, list[list[float]]]:
    """For each line, x, and mean pulls and standard error of each schedule at each point."""
    reference = measure(instance, "best", trials)
    print(
        f"\n{instance.name}, {trials:,} trials: best "
        + ", ".join(f"{one} {mean:,.0f} ± {sem:,.0f}" for one, (mean, sem) in reference.items())
    )
    found: dict[str, list[list[float]]] = {}
    for line, points in lines.items():
        found[line] = []
        for x, goal in points:
            seen = measure(instance, goal, trials)
            found[line].append([x, *(number for one in SCHEDULES for number in seen[one])])
            print(
                f"{goal:<20} "
                + ", ".join(
                    f"{one} {mean:,.0f} ± {sem:,.0f} ({mean / reference[one][0]:.3g} of best)"
                    for one, (mean, sem) in seen.items()
                ),
                flush=True,
            )
    found["best"] = [[0.0, *(number for one in SCHEDULES for number in reference[one])]]
    return found


def draw(path: Path, found: dict[str, list[list[float]]], title: str, axis: Chart) -> None:
    """Draw mean pulls against x in each schedule's own style, and a level line for the best arm.

    ``axis`` has the scale and the words along x.
    """
    studied = [(line, schedule) for line in found if line != "best" for schedule in SCHEDULES]
    styles = distinct([style_of(schedule) for _, schedule in studied])
    lines = []
    for (line, schedule), look in zip(studied, styles, strict=True):
        x, mean, sem = _columns(found[line], schedule)
        label = ", ".join(filter(None, [label_of(schedule), line]))
        lines.append(Line(label, x, mean, spread=sem, style=look))
    places = [x for line in lines for x in line.x]
    ends = [-0.4, max(places) + 0.4] if axis.categories else [min(places), max(places)]
    for schedule in SCHEDULES:
        _, (mean,), _ = _columns(found["best"], schedule)
        lines.append(Line(f"best arm, {label_of(schedule)}", ends, [mean] * 2, plain=True))
    write_chart(
        replace(
            axis,
            lines=lines,
            y_label="pulls",
            log_y=True,
            title=[title, "mean ± one standard error"],
        ),
        path,
        ["png"],
    )


def _columns(points: list[list[float]], schedule: str) -> tuple[list[float], ...]:
    """x, mean pulls and standard errors of a schedule."""
    at = 1 + 2 * SCHEDULES.index(schedule)
    return tuple([one[place] for one in points] for place in (0, at, at + 1))


def axis(label: str, **how: Any) -> Chart:
    return Chart([], label, "", [], **how)


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else "docs/figures")
    some = max(10, trials // 20)  # a trial on movielens is as dear as fifty on synthetic
    countries = countries_with_a_top()
    draw(
        folder / "goal-top",
        study(countries, {"": TOP}, some),
        f"{countries.name}, delta {DELTA:g}, {some:,} trials",
        axis("goal: the N best arms", categories=[goal for _, goal in TOP]),
    )
    draw(
        folder / "goal-eps",
        study(ff.Instance.load("synthetic"), {"": EPS}, trials),
        f"synthetic, delta {DELTA:g}, {trials:,} trials",
        axis("goal: an arm at most E worse than the best"),
    )
    lines = {f"E = {e:g}": [(tau, f"threshold:{tau:g},{e:g}") for tau in TAUS] for e in (0.02, 0.1)}
    draw(
        folder / "goal-threshold",
        study(ff.Instance.load("bernoulli"), lines, some),
        f"bernoulli, delta {DELTA:g}, {some:,} trials",
        axis("goal: the arms above this threshold, with a slack of E", linear_x=True),
    )
    print("\nmicroseconds a trial, means x 1, 0.1, 0.01")
    for goal in ("best", "top:1", "eps:{:g}", "threshold:{:g}"):
        spent = [
            microseconds(
                ff.Instance.load(f"scaled:synthetic,{factor}"), goal.format(0.13 * factor), 200
            )
            for factor in (1, 0.1, 0.01)
        ]
        print(f"{goal.partition(':')[0]:<12} " + " ".join(f"{one:>8.0f}" for one in spent))


if __name__ == "__main__":
    main()
