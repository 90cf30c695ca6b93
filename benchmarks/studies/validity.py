"""Frequency with which a centred Gaussian walk ever leaves each radius, beside the budget a.

    python -m benchmarks.studies.validity [TRIALS] [STEPS]

A client has two arms whose means differ by 1e-12. It follows the walk S_0 - S_1, of variance 2 in
each step, and declares an arm where the walk leaves g. With a confidence scale of 1 (radii for
pairs) or 1 / sqrt(2) (radii for arms) this is a walk of variance 1 against sqrt(2 n L(n)). The walk
may leave on either side for arms, and on one side for pairs. The engine skips. The last columns are
a negative control: the tight radii, shrunk by 20 %, must exceed the budget.
"""

from __future__ import annotations

import math
import sys

import fastfed as ff
from fastfed.analysis.intervals import clopper_pearson
from fastfed.model.radii import Radius
from fastfed.simulation.job import Job

CHUNK = 50_000  # walks at a time
INSTANCE = ff.Instance([[1e-12], [0.0]], name="centred")


def frequency(name: str, a: float, trials: int, steps: int, shrunk: float = 1.0) -> int:
    """Count the walks that leave the radius with budget a within the given steps."""
    pairs = Radius.parse(name).pairs
    job = Job.of(
        INSTANCE,
        ["at:1"],
        delta=a * (2 if pairs else 4),
        radius=name,
        engine="skip",
        sigma=shrunk * (1.0 if pairs else math.sqrt(0.5)),
        max_steps=steps,
    )
    left = 0
    for first in range(0, trials, CHUNK):
        block = job.run(first, min(CHUNK, trials - first), keep_departures=True)
        assert block.departures is not None
        winners = block.departures.local_arms[:, 0]
        left += int((winners == 1).sum() if pairs else (winners >= 0).sum())
    return left


def main() -> None:
    trials = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 2**20
    print(f"{trials:,} walks of {steps:,} steps; exact 95 % intervals")
    print(f"{'radius':<16} {'a':>6} {'ever left':>10} {'interval':>21}   shrunk by 20 %")
    for name in Radius.families:
        for a in (0.1, 0.01, 0.001):
            left = frequency(name, a, trials, steps)
            low, high = clopper_pearson(left, trials)
            few = trials // 10
            control = frequency(name, a, few, steps, 0.8)
            least = clopper_pearson(control, few)[0]
            print(
                f"{name:<16} {a:>6g} {left / trials:>10.3g} {low:>10.3g} {high:>10.3g}   "
                f"{control / few:>8.3g} {'refuted' if least > a else ''}",
                flush=True,
            )


if __name__ == "__main__":
    main()
