"""Pulls, uplinks, rounds and errors of all algorithms: the table of docs/explanation/algorithms.md.

    python -m benchmarks.studies.algorithms [TRIALS] [DELTA]

The instances are the paper's three and random ones. Within an instance all algorithms run on the
same walks. The program prints the table as Markdown, the process time of a trial on one thread, and
the process time of the first call of an algorithm of one's own, which Numba compiles.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import fastfed as ff
from fastfed.paper.algorithms import DELTA, RADIUS, RANDOM, SCHEDULES, algorithms_table, markdown
from fastfed.paper.markdown import table_row
from fastfed.simulation.job import Job

INSTANCES = ("synthetic", "bernoulli", "movielens", *RANDOM)
ROUNDS = 5


class Best(ff.Algorithm):
    """Pull every arm 100 times, and declare the leaders: for the time that compiling takes."""

    family = "best-of-hundred"

    @staticmethod
    def decide(seen: Any, answer: Any) -> None:
        answer.targets[:] = 100
        if seen.round > 0:
            arms, clients = seen.counts.shape
            totals = np.zeros(arms)
            for m in range(clients):
                answer.local_arms[m] = np.argmax(seen.sums[:, m])
                for k in range(arms):
                    totals[k] += seen.weights[m] * seen.received_sums[k, m]
            answer.global_arm[0] = np.argmax(totals)


def process_time(job: Job, trials: int) -> float:
    """Measure the process time of the trials of a job, on one thread."""
    start = time.process_time()
    job.run(0, trials)
    return time.process_time() - start


def microseconds(delta: float, least_trials: int = 5) -> list[list[str]]:
    """Measure a trial of each algorithm on each instance: the least of some alternating runs."""
    lines = []
    for name in INSTANCES:
        instance = ff.Instance.load(name)
        jobs = [Job.of(instance, [one], delta=delta, radius=RADIUS) for one in SCHEDULES]
        counts = []
        for job in jobs:
            process_time(job, 1)  # compiles, or loads what was compiled
            counts.append(max(least_trials, int(0.05 / max(1e-6, process_time(job, 1)))))
        spent = [
            [process_time(job, count) / count for job, count in zip(jobs, counts, strict=True)]
            for _ in range(ROUNDS)
        ]
        lines.append([name, *(f"{1e6 * one:,.0f}" for one in np.min(spent, axis=0))])
    return lines


def first_call(algorithm: ff.Algorithm) -> float:
    """Measure by how much the first run of an algorithm takes longer than the second."""
    job = Job.of(ff.Instance.load("synthetic"), [algorithm], delta=DELTA)
    return process_time(job, 1) - process_time(job, 1)


def main(trials: int = 200, delta: float = DELTA) -> None:
    """Print the table, and the times."""
    rows: list[dict[str, Any]] = []
    for name in INSTANCES:
        rows += algorithms_table(
            ff.simulate(name, list(SCHEDULES), delta=delta, radius=RADIUS, trials=trials)
        )
    print(markdown(rows), flush=True)
    print(f"\nmicroseconds of process time a trial, delta {delta:g}, radius {RADIUS}")
    print(table_row(["instance", *SCHEDULES]))
    print(table_row(["---", *["---:"] * len(SCHEDULES)]))
    for line in microseconds(delta):
        print(table_row(line))
    print(f"\nfirst call of an algorithm of one's own: {first_call(Best()):.1f} s of process time")


if __name__ == "__main__":
    main(*(int(one) for one in sys.argv[1:2]), *(float(one) for one in sys.argv[2:3]))
