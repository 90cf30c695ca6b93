"""Pulls, uplinks, rounds and errors of all algorithms: the table of docs/explanation/algorithms.md.

    python -m benchmarks.studies.algorithms [TRIALS] [DELTA]

The instances are the paper's three and random ones. Within an instance all algorithms run on the
same walks. The program prints the table as Markdown, and the process time of a trial.
"""

from __future__ import annotations

import sys
import time

import fastfed as ff
from fastfed.paper.algorithms import SCHEDULES, compare_algorithms, markdown
from fastfed.simulation.job import Job

INSTANCES = ("synthetic", "bernoulli", "movielens", "random:5,4,1", "random:10,10,2")


def microseconds(instance: str, schedule: str, trials: int) -> float:
    """Measure the process time of a trial on one thread; the least of three runs."""
    job = Job.of(ff.Instance.load(instance), [schedule], delta=0.01)
    job.run(0, 1)
    spent = []
    for _ in range(3):
        start = time.process_time()
        job.run(0, trials)
        spent.append(time.process_time() - start)
    return 1e6 * min(spent) / trials


def main(trials: int = 200, delta: float = 0.01) -> None:
    """Print the table, and the times of a trial of `synthetic`."""
    print(markdown(compare_algorithms(INSTANCES, SCHEDULES, delta=delta, trials=trials)))
    print()
    for schedule in SCHEDULES:
        print(f"{schedule}: {microseconds('synthetic', schedule, trials):.0f} us a trial")


if __name__ == "__main__":
    main(*(int(one) for one in sys.argv[1:2]), *(float(one) for one in sys.argv[2:3]))
