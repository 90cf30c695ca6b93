"""How often FedElim really errs, against the delta that it is allowed: figure, table and rows.

The paper shows that a wrong answer has probability at most delta. Simulation by counting cannot
say more than "no error seen"; `error_probability` can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fastfed.engine.rows import VERSION
from fastfed.files import make_folder, replacing
from fastfed.problem.instance import Instance
from fastfed.results.figures import FORMATS, Line, draw, save, style
from fastfed.theory.error_probability import error_frame, error_probability

INSTANCES = ("synthetic", "bernoulli", "movielens")
DELTAS = (0.1, 0.03, 0.01, 0.003, 0.001)
TRIALS, QUICK_TRIALS = 2_000, 100  # for each answer: MovieLens has 39
_SCHEDULE = "fedelim"
_ASKED = "fastfed"


def measure(instances: Sequence[str] = INSTANCES, deltas: Sequence[float] = DELTAS, *,
            trials: int = TRIALS, seed: int = 0, threads: int | None = None,
            report: Callable[[str], object] = lambda _: None) -> pl.DataFrame:
    """One row per instance, delta and answer; see `ErrorProbability.frame`."""
    found = []
    for name in instances:
        instance = Instance.load(name)
        for delta in deltas:
            report(f"{name}: true errors at delta {delta:g}")
            found.append(error_probability(instance, _SCHEDULE, delta=delta, trials=trials,
                                           seed=seed, threads=threads))
    return error_frame(found)


def write(out: Path, *, instances: Sequence[str] = INSTANCES, deltas: Sequence[float] = DELTAS,
          trials: int = TRIALS, seed: int = 0, threads: int | None = None,
          report: Callable[[str], object] = lambda _: None) -> list[Path]:
    """Measure, and write ``true-errors`` as a figure, as Markdown and as Parquet. What a folder
    already has of the same instances, deltas, trials and seed is not measured again."""
    make_folder(out / "figures")
    path, asked = out / "true-errors.parquet", repr((VERSION, instances, deltas, trials, seed))
    frame = _kept(path, asked)
    if frame is None:
        frame = measure(instances, deltas, trials=trials, seed=seed, threads=threads,
                        report=report)
        with replacing(path) as file:
            frame.write_parquet(file, metadata={_ASKED: asked})
    with replacing(out / "true-errors.md") as file:
        file.write(as_text(frame).encode())
    return [out / "true-errors.parquet", out / "true-errors.md",
            *draw_figure(frame, out / "figures" / "true-errors")]


def _kept(path: Path, asked: str) -> pl.DataFrame | None:
    """The rows in a file, if they are those that are asked for."""
    try:
        if pl.read_parquet_metadata(path).get(_ASKED) == asked:
            return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):  # none is there, or none that can be read
        pass
    return None


def draw_figure(frame: pl.DataFrame, stem: Path) -> list[Path]:
    """One panel an instance: any answer, the server's, the worst client's, and delta itself."""
    names = frame["instance"].unique(maintain_order=True).to_list()
    with style() as plt:
        figure, axes = plt.subplots(1, len(names), squeeze=False, layout="constrained",
                                    figsize=(3.3 * len(names), 3.4))
        for name, ax in zip(names, axes[0], strict=True):
            _panel(ax, frame.filter(pl.col("instance") == name))
        return save(figure, stem, FORMATS)


def _panel(ax: Any, rows: pl.DataFrame) -> None:
    deltas = rows["delta"].unique().sort(descending=True).to_list()
    lines = [Line("δ, what is allowed", deltas, deltas, plain=True, colour="#222222")]
    for label, answers in (("any answer wrong", ["any"]), ("the server's answer wrong", ["server"]),
                           ("the worst client's answer wrong", _clients(rows))):
        worst = (rows.filter(pl.col("answer").is_in(answers)).sort("log10", descending=True)
                 .group_by("delta").first().sort("delta", descending=True)
                 .filter(pl.col("estimate") > 0))
        lines.append(Line(f"{label} (δ^{_slope(worst):.1f})", worst["delta"].to_list(),
                          worst["estimate"].to_list(),
                          (1.96 * worst["standard_error"]).to_list()))
    draw(ax, lines, x_label="error probability δ that the radii allow",
         y_label="probability of a wrong answer", small_to_the_right=True,
         title=f"{rows['instance'][0]}, FedElim\nestimates with 95 % intervals")
    ax.legend(loc="upper left", bbox_to_anchor=(-0.1, -0.2), handlelength=2.8, borderpad=0)


def as_text(frame: pl.DataFrame) -> str:
    """Markdown: what was found, with the exponent of delta between the ends of its range."""
    lines = ["# True errors of FedElim", "",
             "Probabilities of a wrong answer by importance sampling, with standard errors; the "
             "exponent is the slope of ln p in ln δ. `at step`: by then half of the errors have "
             "happened.", "",
             "| instance | δ | any answer | server | worst client | at step | exponent |",
             "|---|---|---|---|---|---|---|"]
    for (name,), rows in frame.group_by(["instance"], maintain_order=True):
        anything = rows.filter(pl.col("answer") == "any").sort("delta", descending=True)
        for line in anything.iter_rows(named=True):
            here = rows.filter(pl.col("delta") == line["delta"])
            server = here.filter(pl.col("answer") == "server").row(0, named=True)
            worst = (here.filter(pl.col("answer").is_in(_clients(here)))
                     .sort("log10", descending=True).row(0, named=True))
            lines.append(f"| {name} | {line['delta']:g} | {_shown(line)} | {_shown(server)} | "
                         f"{_shown(worst)} | {line['step']} | |")
        lines.append(f"| {name} | all | | | | | {_slope(anything):.2f} |")
    doubted = frame.filter(pl.col("warning").is_not_null())
    for line in doubted.iter_rows(named=True):
        lines.append(f"\nNot to be trusted: {line['instance']}, δ = {line['delta']:g}, "
                     f"{line['answer']}: {line['warning']}.")
    return "\n".join(lines) + "\n"


def _clients(rows: pl.DataFrame) -> list[str]:
    return [name for name in rows["answer"].unique() if name.startswith("client ")]


def _shown(line: dict[str, Any]) -> str:
    if not line["errors"]:
        return "0"
    return f"{line['estimate']:.3g} ± {line['standard_error']:.1g}"


def _slope(rows: pl.DataFrame) -> float:
    """Least squares of log10 p on log10 delta."""
    seen = rows.filter(pl.col("log10").is_finite())
    if seen["delta"].n_unique() < 2:
        return math.nan
    return float(np.polyfit(np.log10(seen["delta"].to_numpy()), seen["log10"].to_numpy(), 1)[0])
