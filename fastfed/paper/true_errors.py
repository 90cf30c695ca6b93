"""True error probability of FedElim against the allowed delta: chart, table and rows.

The paper shows that a wrong answer has probability at most delta. Simulation by counting cannot say
more than "no error seen". `error_probability` can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fastfed.display.series import Chart, Line
from fastfed.files import make_folder, replacing
from fastfed.model.instance import Instance
from fastfed.theory.error_estimates import error_frame
from fastfed.theory.error_probability import error_probability
from fastfed.version import ROWS

DELTAS = (0.1, 0.03, 0.01, 0.003, 0.001)
QUICK_DELTAS = (0.1, 0.001)
TRIALS, QUICK_TRIALS = 20_000, 4_000  # for all estimates of an instance: MovieLens has 40
_LEAST = 100  # for one estimate
_SCHEDULE = "fedelim"
_ASKED = "fastfed"
FILE = "true-errors.parquet"


def measure(
    instances: Sequence[str],
    deltas: Sequence[float],
    trials: int,
    seed: int = 0,
    threads: int | None = None,
    report: Callable[[str], object] = lambda _: None,
) -> pl.DataFrame:
    """Estimate the error probabilities: a row for each instance, delta and answer.

    The columns are those of `ErrorProbability.frame`. The estimates of an instance share its
    ``trials``: one for each client, one for the server, and one for any answer. ``report`` is
    called for each delta.
    """
    found = []
    for name in instances:
        instance = Instance.load(name)
        for delta in deltas:
            report(f"{name}: true errors at delta {delta:g}")
            found.append(
                error_probability(
                    instance,
                    _SCHEDULE,
                    delta=delta,
                    trials=max(_LEAST, trials // (instance.shape[1] + 2)),
                    seed=seed,
                    threads=threads,
                )
            )
    return error_frame(found)


def read_or_measure(
    out: Path,
    instances: Sequence[str],
    deltas: Sequence[float],
    trials: int,
    seed: int = 0,
    **options: Any,
) -> pl.DataFrame:
    """Measure, and write true-errors.parquet, unless the folder has these estimates already.

    The options are the threads and the report of `measure`.
    """
    path, asked = out / FILE, repr((ROWS, tuple(instances), tuple(deltas), trials, seed))
    try:
        if pl.read_parquet_metadata(path).get(_ASKED) == asked:
            return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):  # none is there, or none that can be read
        pass
    frame = measure(instances, deltas, trials, seed, **options)
    make_folder(out)
    with replacing(path) as file:
        frame.write_parquet(file, metadata={_ASKED: asked})
    return frame


def charts(frame: pl.DataFrame) -> dict[str, Chart]:
    """Chart the errors of each instance, "synthetic-errors" and so on.

    The lines are any answer, the server's, the worst client's, and delta itself.
    """
    return {
        f"{name}-errors": _chart(rows)
        for (name,), rows in frame.group_by(["instance"], maintain_order=True)
    }


def _chart(rows: pl.DataFrame) -> Chart:
    deltas = rows["delta"].unique().sort(descending=True).to_list()
    lines = [Line("delta, which is allowed", deltas, deltas, plain=True)]
    for label, answers in (
        ("any answer", ["any"]),
        ("the server's", ["server"]),
        ("the worst client's", _clients(rows)),
    ):
        worst = (
            rows.filter(pl.col("answer").is_in(answers))
            .sort("log10", descending=True)
            .group_by("delta")
            .first()
            .sort("delta", descending=True)
            .filter(pl.col("estimate") > 0)
        )
        if len(worst):
            lines.append(
                Line(
                    f"{label} (delta^{_slope(worst):.1f})",
                    worst["delta"].to_list(),
                    worst["estimate"].to_list(),
                    (1.96 * worst["standard_error"]).to_list(),
                )
            )
    return Chart(
        lines,
        "error probability delta that the radii allow",
        "probability of a wrong answer",
        [
            f"{rows['instance'][0]}, FedElim: how often it really errs",
            "estimates with 95 % intervals",
        ],
        small_to_the_right=True,
        log_y=True,
    )


def as_text(frame: pl.DataFrame) -> str:
    """Write the true errors as Markdown, with the exponent of delta over its range."""
    lines = [
        "## True errors of FedElim",
        "",
        "Probabilities of a wrong answer by importance sampling, with standard errors; the "
        "exponent is the slope of ln p in ln δ. `at step`: by then half of the errors have "
        f"happened. Trials for each estimate: {_trials(frame)}.",
        "",
        "| instance | δ | any answer | server | worst client | at step | exponent |",
        "|---|---|---|---|---|---|---|",
    ]
    for (name,), rows in frame.group_by(["instance"], maintain_order=True):
        anything = rows.filter(pl.col("answer") == "any").sort("delta", descending=True)
        for line in anything.iter_rows(named=True):
            here = rows.filter(pl.col("delta") == line["delta"])
            server = here.filter(pl.col("answer") == "server").row(0, named=True)
            worst = (
                here.filter(pl.col("answer").is_in(_clients(here)))
                .sort("log10", descending=True)
                .row(0, named=True)
            )
            lines.append(
                f"| {name} | {line['delta']:g} | {_shown(line)} | {_shown(server)} | "
                f"{_shown(worst)} | {line['step']} | |"
            )
        lines.append(f"| {name} | all | | | | | {_slope(anything):.2f} |")
    doubted = frame.filter(pl.col("warning").is_not_null())
    for (name, answer, warning), some in doubted.group_by(
        ["instance", "answer", "warning"], maintain_order=True
    ):
        deltas = ", ".join(f"{delta:g}" for delta in some["delta"])
        lines.append(f"\nNot to be trusted: {name}, {answer}, δ = {deltas}: {warning}.")
    return "\n".join(lines) + "\n"


def _trials(frame: pl.DataFrame) -> str:
    servers = frame.filter(pl.col("answer") == "server")  # clients that cannot err have none
    least = servers.group_by("instance", maintain_order=True).agg(pl.col("trials").min())
    return ", ".join(f"{name} {count:,}" for name, count in least.iter_rows())


def _clients(rows: pl.DataFrame) -> list[str]:
    return [name for name in rows["answer"].unique() if name.startswith("client ")]


def _shown(line: dict[str, Any]) -> str:
    if not line["errors"]:
        return "0"
    return f"{line['estimate']:.3g} ± {line['standard_error']:.1g}"


def _slope(rows: pl.DataFrame) -> float:
    """Fit log10 p to log10 delta by least squares; return the slope."""
    seen = rows.filter(pl.col("log10").is_finite())
    if seen["delta"].n_unique() < 2:
        return math.nan
    return float(np.polyfit(np.log10(seen["delta"].to_numpy()), seen["log10"].to_numpy(), 1)[0])
