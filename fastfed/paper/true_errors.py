"""True error probability of FedElim against the allowed delta: chart, table and rows.

The paper shows that a wrong answer has probability at most delta. Simulation by counting cannot say
more than "no error seen". `error_probability` can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from fastfed.display.series import Chart, Line
from fastfed.display.table import Table
from fastfed.files import make_folder, replacing
from fastfed.model.instance import Instance
from fastfed.paper.tables import Row, Show, count, shown, table
from fastfed.theory.error_estimates import error_frame
from fastfed.theory.error_probability import error_probability
from fastfed.version import ROWS

DELTAS = (0.1, 0.03, 0.01, 0.003, 0.001)
QUICK_DELTAS = (0.1, 0.001)
TRIALS, QUICK_TRIALS = 20_000, 4_000  # for all estimates of an instance: MovieLens has 40
_LEAST = 100  # for one estimate
_ASKED = "fastfed"
_ANSWERS = {"any answer": "any", "server": "server", "worst client": "client "}
"""Answers that are shown, and the beginnings of their names."""
FILE = "true-errors.parquet"


def read_or_measure(
    out: Path,
    instances: Sequence[str],
    quick: bool = False,
    seed: int = 0,
    threads: int | None = None,
    report: Callable[[str], object] = lambda _: None,
) -> pl.DataFrame:
    """Estimate the error probabilities, unless the folder has these estimates already.

    There is a row for each instance, delta and answer, with the columns of
    `ErrorProbability.frame`. The rows are written to true-errors.parquet. The estimates of an
    instance share its trials: one for each client, one for the server, and one for any answer.
    ``report`` is called for each delta.
    """
    deltas, trials = (QUICK_DELTAS, QUICK_TRIALS) if quick else (DELTAS, TRIALS)
    path, asked = out / FILE, repr((ROWS, tuple(instances), deltas, trials, seed))
    try:
        if pl.read_parquet_metadata(path).get(_ASKED) == asked:
            return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):  # none is there, or none that can be read
        pass
    found = []
    for name in instances:
        instance = Instance.load(name)
        each = max(_LEAST, trials // (instance.shape[1] + 2))
        for delta in deltas:
            report(f"{name}: true errors at delta {delta:g}")
            found.append(
                error_probability(
                    instance, "fedelim", delta=delta, trials=each, seed=seed, threads=threads
                )
            )
    frame = error_frame(found)
    make_folder(out)
    with replacing(path) as file:
        frame.write_parquet(file, metadata={_ASKED: asked})
    return frame


def _worst(frame: pl.DataFrame) -> dict[str, dict[str, pl.DataFrame]]:
    """Select the most probable error of each kind of answer, for each instance and delta."""
    found = {}
    for (name,), rows in frame.group_by(["instance"], maintain_order=True):
        falling = rows.sort("delta", "log10", descending=True)
        found[str(name)] = {
            label: falling.filter(pl.col("answer").str.starts_with(start)).unique(
                "delta", keep="first", maintain_order=True
            )
            for label, start in _ANSWERS.items()
        }
    return found


def charts(frame: pl.DataFrame) -> dict[str, Chart]:
    """Chart the errors of each instance, "synthetic-errors" and so on.

    The lines are any answer, the server's, the worst client's, and delta itself.
    """
    found = {}
    for name, kinds in _worst(frame).items():
        deltas = kinds["any answer"]["delta"].to_list()
        lines = [Line("delta, which is allowed", deltas, deltas, plain=True)]
        for label, rows in kinds.items():
            seen = rows.filter(pl.col("estimate") > 0)
            if len(seen):
                x, y = seen["delta"].to_list(), seen["estimate"].to_list()
                spread = (1.96 * seen["standard_error"]).to_list()
                lines.append(Line(f"{label} (delta^{_slope(seen):.1f})", x, y, spread))
        found[f"{name}-errors"] = Chart(
            lines,
            "error probability delta",
            "probability of a wrong answer",
            [f"{name}, FedElim: how often it really errs", "estimates with 95 % intervals"],
            small_to_the_right=True,
            log_y=True,
        )
    return found


def errors_table(frame: pl.DataFrame) -> Table:
    """Tabulate the errors of each instance and delta."""
    rows: list[Row] = []
    for kinds in _worst(frame).values():
        for lines in zip(*(one.to_dicts() for one in kinds.values()), strict=True):
            by = dict(zip(kinds, lines, strict=True))
            row = {key: by["any answer"][key] for key in ("instance", "delta", "step")}
            row["trials"] = by["server"]["trials"]  # clients that cannot err have none
            row["exponent"] = _slope(kinds["any answer"])
            row["doubts"] = ", ".join(name for name, one in by.items() if one["warning"])
            for name, one in by.items():
                row[name], row[f"{name} sem"] = one["estimate"], one["standard_error"]
            rows.append(row)
    return table(
        "True errors of FedElim",
        "Probabilities of a wrong answer by importance sampling, ± one standard error. At step: by "
        "then half of the errors have happened. The exponent is the slope of ln p in ln delta. Not "
        f"to be trusted are estimates with a warning in {FILE}, such as too few effective errors.",
        {
            "trials": count("trials"),
            **{label: _probability(label) for label in _ANSWERS},
            "at step": shown("step"),
            "exponent": count("exponent", ".2f"),
            "not to be trusted": shown("doubts"),
        },
        rows,
    )


def _probability(label: str) -> Show:
    return lambda row: f"{row[label]:.3g} ± {row[f'{label} sem']:.1g}" if row[label] else "0"


def _slope(rows: pl.DataFrame) -> float:
    """Fit log10 p to log10 delta by least squares; return the slope."""
    seen = rows.filter(pl.col("log10").is_finite())
    if seen["delta"].n_unique() < 2:
        return math.nan
    return float(np.polyfit(np.log10(seen["delta"].to_numpy()), seen["log10"].to_numpy(), 1)[0])
