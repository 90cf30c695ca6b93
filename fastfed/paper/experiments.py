"""The paper's experiments: which sweeps, in which folders, and what is made of their rows.

    paper/synthetic, bernoulli, movielens   the panels: every delta and schedule, a sweep each
    paper/studies/...                       one delta, many bases and periods, a sweep each
    paper/gaps                              the synthetic instance with its gaps scaled
    paper/movielens-gaussian                Gaussian rewards around MovieLens's means
    paper/figures, contact-sheet.png, table.*, claims.*, minimum.parquet

Everything below the sweeps is computed from their rows, and the same rows give the same files.
The price of an uplink never costs a simulation. Each folder is an ordinary sweep: `fastfed sweep
--spec paper/movielens/sweep.json --out paper/movielens --trials 5000` adds trials, and the next
`reproduce` uses them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fastfed.errors import InputError, nearest
from fastfed.files import replacing
from fastfed.paper.claims import COST, Frames, judge
from fastfed.problem.instance import Instance
from fastfed.statistics.summary import ratio_of_means
from fastfed.statistics.verdicts import Claim, number
from fastfed.sweeps.run import Run, iterate
from fastfed.sweeps.spec import Spec
from fastfed.sweeps.store import Part, Store
from fastfed.sweeps.summary_file import stored_summary
from fastfed.theory.bounds import Bounds, bounds

DATA_SETS = ("synthetic", "bernoulli", "movielens")
DELTAS = (0.5, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)
COSTS = (0.0, 1.0, 10.0, 100.0, 1_000.0, 10_000.0)
PERIODS = (1, 5, 10, 100, 1_000, 10_000, 100_000)
SCHEDULES = ("fedelim", "fedelim0", *(f"periodic:{h}" for h in PERIODS), "superexponential")
BASES = (1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.2, 2.5, 2.8, 3.2, 3.6, 4, 4.5, 5, 6, 7, 8,
         9, 10)
STUDY_DELTA = 0.01  # that of the studies, the table, and the panels against H
# Confidence scales of the map: the paper's and, where rewards in [0, 1] make it valid, half of it.
# Not on MovieLens: there it is too narrow, best arms are lost, and two that are equal never part.
SCALES = {"bernoulli": (None, 0.5)}
FACTORS = (2, 1, 0.5, 0.25, 0.125)  # of the gaps
QUICK_TRIALS = 200
MOST_MOVIELENS = 300  # trials: 760 walks each of finite support, a twentieth of a second a cell
MOST_GAUSSIAN = 1_000  # of the same means with Gaussian rewards, ten times as fast
QUICK_MOVIELENS = 20


@dataclass(frozen=True)
class Plan:
    """One sweep of the run."""

    name: str
    folder: Path
    spec: Spec

    def parts(self, threads: int | None = None) -> Iterator[tuple[Run, Part | None]]:
        """`fastfed.sweep.iterate` on this plan: does what is missing."""
        return iterate(self.spec, self.folder, threads=threads)


def plan(out: Path, *, trials: int = 10_000, only: str | None = None, quick: bool = False,
         seed: int = 0) -> list[Plan]:
    """The sweeps, in the order in which they run."""
    if only is not None and only not in DATA_SETS:
        raise InputError(f"only {only!r}{nearest(only, DATA_SETS)}: must be one of "
                         f"{', '.join(DATA_SETS)}")
    plans: list[Plan] = []
    for name in DATA_SETS if only is None else (only,):
        most = QUICK_TRIALS if quick else trials
        if name == "movielens":
            most = min(most, QUICK_MOVIELENS if quick else MOST_MOVIELENS)
        base = Spec(instances=(name,), deltas=DELTAS, costs=COSTS, schedules=SCHEDULES,
                    trials=min(trials, most), seed=seed)
        study = replace(base, deltas=(STUDY_DELTA,), schedules=_study_schedules(name))
        plans += [Plan(name, out / name, replace(base, sigmas=SCALES.get(name, (None,)))),
                  Plan(f"studies of {name}", out / "studies" / name, study)]
        if name == "synthetic":
            scaled = tuple(f"scaled:synthetic,{factor:g}" for factor in FACTORS)
            plans.append(Plan("gaps", out / "gaps", replace(
                study, instances=scaled, schedules=("fedelim", "fedelim0"))))
        if name == "movielens":
            plans.append(Plan("movielens-gaussian", out / "movielens-gaussian",
                              replace(base, instances=(_gaussian(),), trials=min(
                                  trials, QUICK_TRIALS if quick else MOST_GAUSSIAN))))
    return plans


def reproduce(out: str | Path = "paper", *, threads: int | None = None, **options: Any
              ) -> list[Claim]:
    """`fastfed reproduce` in Python: takes the arguments of `plan`, returns the claims."""
    folder = Path(out)
    for one in plan(folder, **options):
        for run, _ in one.parts(threads):
            if run.failures:
                raise RuntimeError(str(run.failures[0]))
    return write(folder)[0]


def write(out: Path) -> tuple[list[Claim], list[Path]]:
    """Figures, table and claims from the finished sweeps in ``out``; what was written."""
    from fastfed.paper import panels as drawn

    frames = read(out)
    claims = judge(frames)
    paths = drawn.write(frames, out)
    table = scheme_table(frames.studies)
    trials = frames.panels.group_by("instance", maintain_order=True).agg(pl.col("trials").min())
    counts = dict(trials.iter_rows())
    for name, text in (
        ("table.md", _table_text(table)), ("table.json", _json(table)),
        ("claims.md", _claims_text(claims, counts)),
        ("claims.json", _json({"trials": counts, "claims": [one.to_dict() for one in claims]})),
    ):
        with replacing(out / name) as file:
            file.write(text.encode())
        paths.append(out / name)
    minimum = next((one for one in claims if one.key == "minimum-map"), None)
    if minimum is not None:
        with replacing(out / "minimum.parquet") as file:
            pl.DataFrame(minimum.cells).write_parquet(file)
        paths.append(out / "minimum.parquet")
    return claims, paths


def read(out: Path) -> Frames:
    """The frames of every data set whose sweeps are finished."""
    panels, scales, studies = [], [], []
    for name in (*DATA_SETS, "movielens-gaussian"):
        if _finished(out / name):
            frame = compared(out / name)
            own = frame["sigma"][0]  # cells stand in the spec's order: the paper's scale first
            panels.append(frame.filter(pl.col("sigma") == own))
            if name in DATA_SETS:
                scales.append(frame)
        if _finished(out / "studies" / name):
            b = _bounds(name)
            studies.append(compared(out / "studies" / name).with_columns(
                pl.lit(float(b.period_opt)).alias("period_opt"),
                pl.lit(_whole_period(b)).alias("best_period"),
                pl.lit(float(b.base_opt)).alias("base_opt")))
    gaps = pl.DataFrame()
    if _finished(out / "gaps"):
        gaps = compared(out / "gaps")
        smallest = {name: float(Instance.load(name).local_gaps.min())
                    for name in gaps["instance"].unique()}
        gaps = gaps.with_columns(pl.col("instance").replace_strict(smallest).alias("gap"))
    if not panels:
        raise InputError(f"{out}: no finished sweep of the paper's in it")
    return Frames(pl.concat(panels), _together(studies), gaps, _together(scales))


def _together(frames: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(frames) if frames else pl.DataFrame()


def compared(folder: Path) -> pl.DataFrame:
    """The summary of a sweep, with the ratios of `fastfed.claims` from its paired trials."""
    store = Store(folder)
    rows = []
    for cell, schedules in store.held().items():
        fedelim, every_step = (store.samples(cell, name) for name in ("fedelim", "fedelim0"))
        for name in schedules:
            mine = store.samples(cell, name)
            for cost in COSTS:
                rows.append({
                    "instance": cell.instance, "schedule": name, "delta": cell.delta,
                    "sigma": cell.sigma, "cost": cost,
                    **_paired("over_fedelim", mine, (1, cost), fedelim, (1, cost)),
                    **_paired("over_pulls0", mine, (1, cost), every_step, (1, 0)),
                    **_paired("more_pulls", mine, (1, 0), fedelim, (1, 0)),
                    **_paired("more_uplinks", mine, (0, 1), fedelim, (0, 1)),
                })
    keys = ["instance", "schedule", "delta", "sigma", "cost"]
    return stored_summary(store, COSTS).join(pl.DataFrame(rows), on=keys, how="left",
                                              maintain_order="left")


def _paired(name: str, mine: dict[str, Any], prices: tuple[float, float], other: dict[str, Any],
            others: tuple[float, float]) -> dict[str, float]:
    """The ratio of two mean costs; prices are those of a pull and of an uplink."""
    _, here, there = np.intersect1d(mine["trial"], other["trial"], return_indices=True)
    above = (prices[0] * mine["pulls"] + prices[1] * mine["uplinks"])[here]
    below = (others[0] * other["pulls"] + others[1] * other["uplinks"])[there]
    ratio, sem = ratio_of_means(above, below) if len(here) else (math.nan, math.nan)
    return {name: ratio, f"{name}_sem": sem}


def scheme_table(studies: pl.DataFrame) -> list[dict[str, Any]]:
    """The three schemes, measured and bounded: a row per data set and scheme."""
    rows = []
    for (instance, delta), frame in _groups(studies):
        b = _bounds(str(instance))
        for scheme, name in ((b.periodic, f"periodic:{_whole_period(b)}"), (b.fedelim, "fedelim"),
                             (b.superexponential, "superexponential")):
            found = frame.filter(pl.col("schedule") == name).row(0, named=True)
            rows.append({
                "instance": instance, "delta": delta, "cost": COST, "scheme": name,
                "trials": found["trials"], **{
                    f"{short}_{kind}": found[f"{long}_{kind}"]
                    for short, long in (("pulls", "pulls"), ("comm", "communication"),
                                        ("total", "total")) for kind in ("mean", "sem")},
                **{f"{quantity}_{variant}": float(getattr(getattr(scheme, variant), quantity))
                   for quantity in ("pulls", "comm", "total")
                   for variant in ("as_stated", "summed", "sharp")},
            })
    return rows


def _groups(studies: pl.DataFrame) -> Any:
    if not len(studies):
        return ()
    return studies.filter(pl.col("cost") == COST).group_by(["instance", "delta"],
                                                           maintain_order=True)


def _table_text(table: Sequence[dict[str, Any]]) -> str:
    lines = ["# Periodic, exponential and super-exponential communication",
             "",
             f"Means ± one standard error beside the bounds; C = {COST:g}. The periodic scheme has "
             "the whole H nearest H_opt. *Stated*: the paper's closed form, its O() worked out; "
             "*summed*: summed over arms, with the paper's slips corrected; *sharp*: from the "
             "steps at which the radii settle each arm.", ""]
    head = ["data", "delta", "scheme", "trials", "quantity", "measured", "sharp", "summed",
            "stated"]
    lines += [_row(head), _row(["---"] * 3 + ["---:"] + ["---"] + ["---:"] * 4)]
    for row in table:
        for quantity, words in (("pulls", "pulls"), ("comm", "communication cost"),
                                ("total", "total cost")):
            lines.append(_row([
                row["instance"], f"{row['delta']:g}", row["scheme"], f"{row['trials']:,}", words,
                number(row[f"{quantity}_mean"], row[f"{quantity}_sem"]),
                *(_large(row[f"{quantity}_{variant}"])
                  for variant in ("sharp", "summed", "as_stated"))]))
    return "\n".join(lines) + "\n"


def _claims_text(claims: Sequence[Claim], trials: dict[str, int]) -> str:
    counts = ", ".join(f"{name} {count:,}" for name, count in trials.items())
    lines = ["# The paper's claims", "",
             f"Trials of each cell: {counts}. A cell closer to its limit than two standard errors "
             "is left undecided. ± is one standard error.", "",
             _row(["claim", "in the paper", "verdict"]), _row(["---"] * 3)]
    lines += [_row([one.claim, one.where, f"**{one.verdict}**"]) for one in claims
              if one.key != "minimum-map"]
    for one in claims:
        lines += ["", f"## {one.key}", "", one.claim, "", f"- in the paper: {one.where}",
                  f"- criterion: {one.criterion}", f"- verdict: **{one.verdict}**"]
        if one.firmness is not None:
            lines.append(f"- firmness: the least firm decided cell is {one.firmness:.3g} standard "
                         "errors from the limit")
        lines += ["- closest to the limit, or furthest beyond it:",
                  *(f"  - {text}" for text in one.measured)]
        if one.key == "minimum-map":
            lines += ["", *_map_text(one)]
    return "\n".join(lines) + "\n"


def _map_text(claim: Claim) -> list[str]:
    """FedElim's cost over the best period's, by delta (down) and C (across)."""
    lines = ["FedElim's mean total cost over that of the best period, in bold where no period "
             "is cheaper, with ? where that is undecided."]
    frame = pl.DataFrame(claim.cells)
    for (instance, sigma), rows in frame.group_by(["instance", "sigma"], maintain_order=True):
        costs = rows["cost"].unique().sort().to_list()
        lines += ["", f"{instance}, confidence scale {sigma:g}", "",
                  _row(["delta", *(f"C = {cost:g}" for cost in costs)]),
                  _row(["---:"] * (1 + len(costs)))]
        for (delta,), some in rows.group_by(["delta"], maintain_order=True):
            shown = [{True: "**{:.4f}**", False: "{:.4f}", None: "{:.4f} ?"}[one["holds"]].format(
                one["value"]) for one in some.sort("cost").iter_rows(named=True)]
            lines.append(_row([f"{delta:g}", *shown]))
    return lines


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _large(value: float) -> str:
    return f"{value:,.0f}" if value < 1e9 else f"{value:.3g}"


def _json(content: Any) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        if isinstance(value, list):
            return [plain(one) for one in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps(plain(content), indent=1, allow_nan=False) + "\n"


def _study_schedules(name: str) -> tuple[str, ...]:
    """Periods ten to the decade around H_opt, bases, lambda_opt among them."""
    b = _bounds(name)
    around = float(b.period_opt) * 10.0 ** (np.arange(-15, 11) / 10)
    periods = sorted({10, _whole_period(b), *(max(1, round(h)) for h in around.tolist())})
    bases = sorted({*BASES, round(float(b.base_opt), 4)})
    return ("fedelim", "fedelim0", *(f"periodic:{h}" for h in periods),
            *(f"exponential:{base:g}" for base in bases), "superexponential")


def _bounds(name: str) -> Bounds:
    return bounds(Instance.load(name), STUDY_DELTA, COST)


def _whole_period(b: Bounds) -> int:
    """The whole H whose bound is least."""
    assert b.periodic.parameter is not None
    return int(b.periodic.parameter)


def _gaussian() -> Instance:
    real = Instance.load("movielens")
    return Instance(real.means, arms=real.arms, clients=real.clients, name="movielens-gaussian",
                    description="Gaussian rewards around MovieLens's means")


def _finished(folder: Path) -> bool:
    return Store(folder).summary_path.exists()
