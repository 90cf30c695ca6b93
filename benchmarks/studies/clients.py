"""Growth with the number of clients: time and peak memory of a trial of FedElim, three arms.

    python benchmarks/studies/clients.py docs/figures/clients.png
    python benchmarks/studies/clients.py --schedules

The second command measures schedules where the server's question is hard. Each size and schedule
runs in a process of its own, because a process never gives its peak back.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import fastfed as ff
from fastfed.simulation.job import Job

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SCHEDULES = ("fedelim", "superexponential", "adaptive", "periodic:100", "periodic:1", "fedelim0")


def federation(clients: int) -> ff.Instance:
    """Three arms whose means scatter from client to client."""
    scatter = np.random.default_rng(1).uniform(-0.15, 0.15, (3, clients))
    return ff.Instance(np.array([[0.9], [0.5], [0.1]]) + scatter, name=f"{clients} clients")


def disputed(clients: int, gap: float) -> ff.Instance:
    """Three arms in an order of each client's own, with this gap between them at the server."""
    rng = np.random.default_rng(1)
    means = rng.permuted(np.repeat([[0.9], [0.5], [0.1]], clients, axis=1), axis=0)
    means += rng.uniform(-0.15, 0.15, means.shape)
    wanted = np.array([0.5 + gap, 0.5, 0.5 - gap])
    return ff.Instance(means + (wanted - means.mean(axis=1))[:, None], name="disputed")


def measure_schedule(schedule: str) -> str:
    """Run a trial of a million clients who disagree; return a row of the table."""
    Job.of(disputed(10, 0.2), [schedule], delta=0.01).run(0, 1)
    job = Job.of(disputed(1_000_000, 1e-4), [schedule], delta=0.01)
    begin = time.process_time()
    step = job.run(0, 1).column("global_steps")[0, 0]
    seconds = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"| `{schedule}` | {step:,} | {seconds:.1f} s | {peak:,.0f} MiB |"


def measure(clients: int) -> dict[str, float]:
    """Run a trial; return its seconds of CPU, and the megabytes at the process's peak."""
    Job.of(federation(10), ["fedelim"], delta=0.01).run(0, 1)
    job = Job.of(federation(clients), ["fedelim"], delta=0.01)
    begin = time.process_time()
    block = job.run(0, 1)
    seconds = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pulls = float(block.column("pulls")[0, 0])
    return {"seconds": seconds, "peak": peak, "pulls": pulls}


def main() -> None:
    """Measure every size, print a table, and plot it."""
    found = []
    for clients in SIZES:
        command = [sys.executable, __file__, "--one", str(clients)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    print("| clients | pulls | CPU | peak memory |")
    print("| --- | --- | --- | --- |")
    for clients, one in zip(SIZES, found, strict=True):
        spent = f"{1e3 * one['seconds']:.3g} ms | {one['peak']:.0f} MiB"
        print(f"| {clients:,} | {one['pulls']:.2e} | {spent} |")
    plot(found, Path(sys.argv[1]))


def plot(found: list[dict[str, float]], path: Path) -> None:
    """Plot time and peak memory against the number of clients."""
    from fastfed.display.figures import save, style

    with style() as plt:
        figure, axes = plt.subplots(1, 2, figsize=(6.4, 2.8), layout="constrained")
        for ax, key, label in zip(
            axes, ("seconds", "peak"), ("seconds of CPU", "MiB at the peak"), strict=True
        ):
            ax.plot(SIZES, [one[key] for one in found], marker="o")
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xlabel("clients")
            ax.set_ylabel(label)
        figure.suptitle("One trial of FedElim with three arms, one thread")
        save(figure, path.with_suffix(""), [path.suffix[1:]])


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        print(json.dumps(measure(int(sys.argv[2]))))
    elif sys.argv[1] == "--schedules":
        for name in sys.argv[2:] or SCHEDULES:
            if sys.argv[2:]:
                print(measure_schedule(name))
            else:
                subprocess.run([sys.executable, __file__, "--schedules", name], check=True)
    else:
        main()
