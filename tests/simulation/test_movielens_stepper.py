"""MovieLens rows in law, against a stepper that shares nothing with the package.

The stepper reads the table of ratings by itself, draws every reward from NumPy's generator, has
the paper's radii written out, and goes through Algorithm 1 step by step. Both sides run other
trials, so two samples are compared by the Kolmogorov-Smirnov test: pulls, uplinks, last local and
global steps, and the step at which each arm leaves each client and the server.

Seeds are fixed. The false-alarm probability of each test is `ALARM` = 1e-6, split evenly over what
it compares. `python tests/simulation/test_movielens_stepper.py` compares more settings and prints
the least p-values, with 200 trials of the stepper in each.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from scipy import stats

import fastfed as ff
from fastfed.files import data_folder
from fastfed.simulation.job import Job

pytestmark = pytest.mark.statistical

ALARM = 1e-6
ROWS_A_TRIAL = 5  # the stepper is the slower one
LONGEST = 2**20
VALUES = np.arange(11) / 2.0  # 0 is what an arm pays where nobody rated it


class Stepped(NamedTuple):
    """Trials of the stepper; `left_client` and `left_server` hold the steps at which arms left."""

    pulls: np.ndarray  # (trials,)
    uplinks: np.ndarray
    left_client: np.ndarray  # (trials, K, M)
    left_server: np.ndarray  # (trials, K)


def cumulative(instance: ff.Instance) -> np.ndarray:
    """Read the table of ratings: P(reward <= VALUES[i]) for each arm and client."""
    arms, clients = instance.shape
    share = np.zeros((arms, clients, len(VALUES)))
    with (data_folder() / "movielens.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            k, m = instance.arms.index(row["genre"]), instance.clients.index(row["country"])
            share[k, m, 1:] = [float(row[f"h{value:.1f}"]) for value in VALUES[1:]]
    share[share.sum(axis=2) == 0, 0] = 1.0
    return np.cumsum(share, axis=2) / share.sum(axis=2, keepdims=True)


def paper_radii(arms: int, clients: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return alpha_l(n) and alpha_g(n), as printed, for n = 0 ... LONGEST (0 is not used)."""
    n = np.maximum(np.arange(LONGEST + 1.0), 1.0)
    at_client = np.sqrt(2 * np.log(8 * arms * clients * n**2 / delta) / n)
    at_server = np.sqrt(2 * np.log(8 * arms * n**2 / delta) / (clients * n))
    return at_client, at_server


@njit
def step_by_step(below, local_radius, global_radius, period, trials, rng):
    """Run Algorithm 1; a ``period`` of 0 communicates at powers of two."""
    arms, clients, values = below.shape
    pulls, uplinks = np.zeros(trials, np.int64), np.zeros(trials, np.int64)
    left_client = np.zeros((trials, arms, clients), np.int64)
    left_server = np.zeros((trials, arms), np.int64)
    for trial in range(trials):
        sums = np.zeros((arms, clients))
        local, everywhere = np.ones((arms, clients), np.bool_), np.ones(arms, np.bool_)
        undecided, candidates = np.full(clients, arms), arms  # arms of clients and server
        n = 0
        while undecided.max() + candidates > 0:
            n += 1
            for m in range(clients):
                if undecided[m] + candidates == 0:
                    continue
                best = -1.0
                for k in range(arms):
                    if not (local[k, m] or everywhere[k]):
                        continue
                    u, i = rng.random(), 0
                    while i < values - 1 and u >= below[k, m, i]:
                        i += 1
                    sums[k, m] += i / 2.0
                    pulls[trial] += 1
                    if local[k, m]:
                        best = max(best, sums[k, m] / n)
                for k in range(arms):
                    if local[k, m] and best - sums[k, m] / n >= 2 * local_radius[n]:
                        local[k, m] = False
                        left_client[trial, k, m] = n
                        undecided[m] -= 1
                if undecided[m] == 1:
                    undecided[m] = 0
                    for k in range(arms):
                        if local[k, m]:
                            local[k, m] = False
                            left_client[trial, k, m] = n
            communicates = n & (n - 1) == 0 if period == 0 else n % period == 0
            if communicates and candidates > 0:
                mean = np.zeros(arms)
                for k in range(arms):
                    for m in range(clients):
                        mean[k] += sums[k, m] / n / clients
                uplinks[trial] += clients * candidates
                best = -1.0
                for k in range(arms):
                    if everywhere[k]:
                        best = max(best, mean[k])
                for k in range(arms):
                    if everywhere[k] and best - mean[k] >= 2 * global_radius[n]:
                        everywhere[k] = False
                        left_server[trial, k] = n
                        candidates -= 1
                if candidates == 1:
                    candidates = 0
                    for k in range(arms):
                        if everywhere[k]:
                            everywhere[k] = False
                            left_server[trial, k] = n
    return pulls, uplinks, left_client, left_server


def p_values(
    schedule: str, period: int, delta: float, seed: int, trials: int, radius: str = "paper"
) -> Iterator[tuple[str, float]]:
    """Compare rows with the stepper's trials, quantity by quantity."""
    instance = ff.Instance.load("movielens")
    arms, clients = instance.shape
    job = Job.of(instance, [schedule], delta=delta, seed=seed, radius=radius)
    if radius == "paper":
        local_radius, global_radius = paper_radii(arms, clients, delta)
    else:  # the formulas have tests of their own
        steps = range(1, 2**17)
        radii = job.setting.radii
        local_radius = np.array([math.nan, *map(radii.client.alpha, steps)])
        global_radius = np.array([math.nan, *map(radii.server.alpha, steps)])
    rng = np.random.default_rng(seed)
    told = Stepped(
        *step_by_step(cumulative(instance), local_radius, global_radius, period, trials, rng)
    )
    block = job.run(0, ROWS_A_TRIAL * trials, keep_departures=True)
    left = block.departures
    assert left is not None
    assert not block.column("truncated").any()
    pairs = {
        "pulls": (block.column("pulls")[0], told.pulls),
        "uplinks": (block.column("uplinks")[0], told.uplinks),
        "local_steps": (block.column("local_steps")[0], told.left_client.max(axis=(1, 2))),
        "global_steps": (block.column("global_steps")[0], told.left_server.max(axis=1)),
    }
    for k in range(arms):
        pairs[f"server, arm {k}"] = left.global_eliminated_at[:, 0, 0, k], told.left_server[:, k]
        for m in range(clients):
            pairs[f"client {m}, arm {k}"] = (
                left.local_eliminated_at[:, k, m],
                told.left_client[:, k, m],
            )
    for name, (seen, expected) in pairs.items():
        yield name, float(stats.ks_2samp(seen, expected).pvalue)


@pytest.mark.parametrize(("schedule", "period"), [("fedelim", 0), ("periodic:3", 3)])
def test_rows_are_those_of_an_independent_stepper(schedule: str, period: int) -> None:
    found = dict(p_values(schedule, period, 0.1, 41, 60))
    assert len(found) == 4 + 20 + 20 * 38
    least = min(found, key=lambda name: found[name])
    assert found[least] > ALARM / len(found), least


def main() -> None:
    """Compare all settings and print the least p-values."""
    settings = [
        (schedule, period, delta, radius)
        for radius, deltas in (("paper", (0.1, 0.01)), ("mixture-pairs", (0.1,)))
        for delta in deltas
        for schedule, period in (("fedelim", 0), ("fedelim0", 1), ("periodic:3", 3))
    ]
    for i, (schedule, period, delta, radius) in enumerate(settings):
        found = dict(p_values(schedule, period, delta, 100 + i, 200, radius))
        rows = {name: found[name] for name in list(found)[:4]}
        places = np.array([value for name, value in found.items() if name not in rows])
        print(schedule, delta, radius, {name: f"{p:.3g}" for name, p in rows.items()})
        print(f"  {len(places)} eliminations: least p {places.min():.3g}", flush=True)


if __name__ == "__main__":
    main()
