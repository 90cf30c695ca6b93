"""What messages of a few bits cost and save: tables and figure of docs/explanation/uplinks.md.

    python benchmarks/uplinks.py [TRIALS] [FIGURE]

prints the tables and writes the figure. All uplinks see the same walks: ratios are of mean pulls
over paired trials, with the standard error of a ratio of paired means.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fastfed as ff
from fastfed.engine.job import Job

DELTA = 0.01
KAPPAS = [0.25, 0.5, 1.0, 2.0, 4.0]
SHARES = [0.05, 0.1, 0.25, 0.5]
PART = {"synthetic": 1.0, "bernoulli": 0.2, "movielens": 0.01}  # of the trials
FEW = {"synthetic": 0.1, "bernoulli": 0.002, "movielens": 0.002}  # with FedElim0, which talks often
BASES = [1.2, 1.5, 2.0, 4.0]
GRID = [round(2.0 ** (power / 2), 4) for power in range(-10, 7)]
COSTS = np.geomspace(1e-2, 1e4, 61)

_Floats = npt.NDArray[np.float64]


def main() -> None:
    trials = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000
    figure = Path(sys.argv[2] if len(sys.argv) > 2 else "docs/figures/uplinks.png")
    for name in PART:
        table(name, ["fedelim", "periodic:100"], max(20, int(PART[name] * trials)))
        table(name, ["fedelim0"], max(20, int(FEW[name] * trials)))
    draw(study(trials), figure)


def table(name: str, schedules: list[str], trials: int) -> None:
    """Pulls against exact messages, and bits a message."""
    instance = ff.Instance.load(name)
    base = Job(instance, schedules, delta=DELTA).run(0, trials).column("pulls").astype(float)
    print(f"\n{name}, delta {DELTA:g}, {trials:,} trials\n")
    print("| uplink | " + " | ".join(f"{one}: pulls | bits a message" for one in schedules)
          + " | wrong |")
    print("|---|" + "---|---|" * len(schedules) + "---|")
    for uplink in [*(f"dither:{kappa:g}" for kappa in KAPPAS), *(f"round:{c:g}" for c in SHARES)]:
        block = Job(instance, schedules, delta=DELTA, uplink=uplink).run(0, trials)
        pulls = block.column("pulls").astype(float)
        cells = []
        for i in range(len(schedules)):
            ratio = pulls[i].mean() / base[i].mean()
            error = (pulls[i] - ratio * base[i]).std(ddof=1) / math.sqrt(trials) / base[i].mean()
            counted = (block.column("bits")[i] >= 0).all()
            bits = block.column("bits")[i].sum() / block.column("uplinks")[i].sum()
            cells += [f"{ratio:.4f} ({error:.4f})", f"{bits:.2f}" if counted else "not counted"]
        wrong = int((~block.column("correct").astype(np.bool_)).any(axis=0).sum())
        print(f"| {uplink} | {' | '.join(cells)} | {wrong} |", flush=True)


def study(trials: int) -> dict[str, Any]:
    """Mean pulls, bits and messages for every base and KAPPA; exact messages come last."""
    instance = ff.Instance.load("synthetic")
    schedules = [f"exponential:{base:g}" for base in BASES]
    found = {name: np.zeros((len(GRID) + 1, len(BASES))) for name in ("pulls", "bits", "uplinks")}
    for i, kappa in enumerate([*GRID, None]):
        uplink = "exact" if kappa is None else f"dither:{kappa:g}"
        block = Job(instance, schedules, delta=DELTA, uplink=uplink).run(0, trials)
        for name, values in found.items():
            values[i] = block.column(name).mean(axis=1)
    report(found)
    return found


def best_kappa(pulls: _Floats, bits: _Floats, cost: float) -> float:
    """Where pulls + cost x bits is least, on a parabola through the best point of the grid."""
    total = pulls + cost * bits
    i = int(total.argmin())
    if i in (0, len(total) - 1):
        return math.nan
    left, here, right = total[i - 1:i + 2]
    shift = 0.5 * (left - right) / (left - 2 * here + right)
    return float(2 ** (math.log2(GRID[i]) + 0.5 * shift))


def rule(found: dict[str, Any], j: int, cost: float, factor: float) -> float:
    """sqrt(factor C U / (T ln 2)), with the messages U and pulls T of exact messages."""
    return math.sqrt(factor * cost * found["uplinks"][-1, j] / (found["pulls"][-1, j]
                                                                * math.log(2)))


def report(found: dict[str, Any]) -> None:
    """The best KAPPA at some costs, and what it saves, for FedElim and for the best base."""
    two = BASES.index(2.0)
    print("\n| cost of a bit | best KAPPA | sqrt(6 C U / (T ln 2)) | sqrt(12 C U / (T ln 2)) "
          "| total of exact | of the best KAPPA | best base of all | and KAPPA | total |")
    print("|---" * 9 + "|")
    for cost in (0.1, 1.0, 10.0, 100.0, 1000.0):
        total = found["pulls"] + cost * found["bits"]
        i, j = np.unravel_index(total[:-1].argmin(), total[:-1].shape)
        best = best_kappa(found["pulls"][:-1, two], found["bits"][:-1, two], cost)
        print(f"| {cost:g} | {best:.2f} | {rule(found, two, cost, 6):.2f} "
              f"| {rule(found, two, cost, 12):.2f} | {total[-1, two]:,.0f} "
              f"| {total[:-1, two].min():,.0f} | {BASES[j]:g} | {GRID[i]:g} | {total[i, j]:,.0f} |",
              flush=True)


def draw(found: dict[str, Any], path: Path) -> None:
    """Pulls against bits for every base; the best KAPPA against the cost of a bit."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    marked = [GRID.index(kappa) for kappa in (0.0625, 0.25, 1.0, 2.0, 4.0)]
    shown = slice(0, marked[-1] + 1)
    for j, base in enumerate(BASES):
        line, = left.plot(found["bits"][shown, j], found["pulls"][shown, j], lw=1.2,
                          label=f"λ = {base:g}")
        left.plot(found["bits"][marked, j], found["pulls"][marked, j], "o", ms=4,
                  color=line.get_color())
        left.plot(found["bits"][-1, j], found["pulls"][-1, j], "x", color=line.get_color())
    for i in marked:
        left.annotate(f"κ = {GRID[i]:g}", (found["bits"][i, 0], found["pulls"][i, 0]),
                      textcoords="offset points", xytext=(-4, -12), fontsize=8)
    left.set(xscale="log", yscale="log", ylim=(3.8e4, 2.5e5), xlabel="bits a trial",
             ylabel="pulls a trial",
             title="Dither κ, schedule ⌈λᵗ⌉ (crosses: 64 bits a message)")
    left.legend(fontsize=8)
    for base in (1.2, 2.0):
        j = BASES.index(base)
        best = [best_kappa(found["pulls"][:-1, j], found["bits"][:-1, j], c) for c in COSTS]
        line, = right.plot(COSTS, best, "o", ms=3, label=f"measured, λ = {base:g}")
        for factor, style in ((6, ":"), (12, "-")):
            right.plot(COSTS, [rule(found, j, c, factor) for c in COSTS], style, lw=1,
                       color=line.get_color(), label=f"√({factor} C U / (T ln 2)), λ = {base:g}")
    right.set(xscale="log", yscale="log", ylim=(GRID[0], GRID[-1]), ylabel="best κ",
              xlabel="cost C of a bit, in pulls", title="The best step against the cost of a bit")
    right.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
