"""Savings of each radius: pulls over those with the paper's radius, and the time of a trial.

    python -m benchmarks.studies.radii [TRIALS] [DELTA]

All radii see the same walks. Ratios are of mean pulls over paired trials, with the standard error
of a ratio of paired means. All radii of an instance are timed in turn on one thread, and the least
of three times counts.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

import fastfed as ff
from fastfed.model.radii import Radius
from fastfed.simulation.job import Job

SCHEDULES = ["fedelim0", "fedelim"]
SHARES = {"synthetic": 1.0, "bernoulli": 0.1, "movielens": 0.01}  # of the trials


def main() -> None:
    trials = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000
    delta = float(sys.argv[2]) if len(sys.argv) > 2 else 0.01
    print(f"delta {delta:g}; ratio of pulls to the paper's radius (standard error)")
    print(
        f"{'instance':<10} {'trials':>7} {'radius':<15} {'fedelim0':>18} {'fedelim':>18} "
        f"{'wrong':>6} {'us a trial':>11}"
    )
    for name, share in SHARES.items():
        count = max(2, int(share * trials))
        instance = ff.Instance.load(name)
        jobs = {
            radius: Job.of(instance, SCHEDULES, delta=delta, radius=radius)
            for radius in Radius.families
        }
        blocks = {radius: job.run(0, count) for radius, job in jobs.items()}
        least = dict.fromkeys(Radius.families, math.inf)
        for _ in range(3):
            for radius, job in jobs.items():
                start = time.process_time()
                job.run(0, max(1, count // 10))
                took = (time.process_time() - start) / max(1, count // 10)
                least[radius] = min(least[radius], took)
        base = blocks["paper"].column("pulls").astype(float)
        for radius, block in blocks.items():
            pulls = block.column("pulls").astype(float)
            ratio = pulls.mean(axis=1) / base.mean(axis=1)
            spread = (pulls - ratio[:, None] * base).std(axis=1, ddof=1) / math.sqrt(count)
            texts = [
                f"{r:.4f} ({e:.4f})" for r, e in zip(ratio, spread / base.mean(axis=1), strict=True)
            ]
            wrong = int((~block.column("correct").astype(np.bool_)).any(axis=0).sum())
            print(
                f"{name:<10} {count:>7} {radius:<15} {texts[0]:>18} {texts[1]:>18} {wrong:>6} "
                f"{1e6 * least[radius]:>11.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
