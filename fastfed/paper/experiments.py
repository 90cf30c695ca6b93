"""The paper's experiments: which sweeps, in which folders, and what is made of their rows.

    paper/synthetic, bernoulli, movielens   the panels: every delta and schedule, a sweep each
    paper/studies/...                       one delta, many bases and periods, a sweep each
    paper/gaps                              the synthetic instance with its gaps scaled
    paper/movielens-gaussian                Gaussian rewards around MovieLens's means
    paper/radii/...                         the radii that are not the paper's, a sweep each
    paper/report.html                       all that follows as one page
    paper/figures, contact-sheet.png, table.*, radii.*, claims.*, minimum.parquet

Everything below the sweeps is computed from their rows, and the same rows give the same files.
The price of an uplink never costs a simulation. Each folder is an ordinary sweep: `fastfed sweep
--spec paper/movielens/sweep.json --out paper/movielens --trials 5000` adds trials, and the next
`reproduce` uses them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fastfed.engine.rows import VERSION
from fastfed.errors import InputError, nearest
from fastfed.files import replacing
from fastfed.paper import radii
from fastfed.paper.claims import COST, GROWTH, judge, slips
from fastfed.paper.claims_text import METHOD, OURS, claims_text
from fastfed.paper.doubling import TRIALS as TRIALS_DOUBLED
from fastfed.paper.doubling import Doubling, doubling
from fastfed.paper.evidence import Evidence, Place
from fastfed.paper.good_event import good_event
from fastfed.paper.markdown import table_row
from fastfed.paper.panels import Frames
from fastfed.problem.instance import Instance
from fastfed.results.figures import require_matplotlib
from fastfed.results.series import with_gaps
from fastfed.statistics.moments import Halves
from fastfed.statistics.numbers import number
from fastfed.statistics.summary import not_ended_text
from fastfed.statistics.verdicts import Claim, computed
from fastfed.sweeps.run import Run, iterate
from fastfed.sweeps.spec import Spec
from fastfed.sweeps.store import Part, Store
from fastfed.sweeps.summary_file import stored_summary
from fastfed.theory.bounds import Bounds, bounds
from fastfed.theory.check import check, instances_of
from fastfed.version import __version__

DATA_SETS = ("synthetic", "bernoulli", "movielens")
DELTAS = (0.5, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)
TWIN_DELTAS = (0.1, 0.01, 1e-3, 1e-4, 1e-6)  # of MovieLens's Gaussian twin, which has no panel
COSTS = (0.0, 1.0, 10.0, 100.0, 1_000.0, 10_000.0)
PERIODS = (1, 5, 10, 100, 1_000, 10_000, 100_000)
SCHEDULES = ("fedelim", "fedelim0", *(f"periodic:{h}" for h in PERIODS), "superexponential")
BASES = (
    1.05,
    1.1,
    1.15,
    1.2,
    1.3,
    1.4,
    1.5,
    1.6,
    1.8,
    2.2,
    2.5,
    2.8,
    3.2,
    3.6,
    4,
    4.5,
    5,
    6,
    7,
    8,
    9,
    10,
)
STUDY_DELTA = 0.01  # that of the studies, the table, and the panels against H
# Confidence scales of the map: the paper's and, where rewards in [0, 1] make it valid, half of it.
# Not on MovieLens: there it is too narrow, best arms are lost, and two that are equal never part.
SCALES = {"bernoulli": (None, 0.5)}
FACTORS = (2, 1, 0.5, 0.25, 0.125)  # of the gaps
TRIALS = 10_000  # of every cell
QUICK_TRIALS = 50  # of every cell: about a minute in all
# The good event is followed step by step, at up to a microsecond for a step of one walk: so there
# are limits to its runs, and to the walks (arms x clients) of all of them together.
MOST_RUNS = 1_000
MOST_WALKS = 40_000


@dataclass(frozen=True)
class Plan:
    """One sweep of the run."""

    name: str
    folder: Path
    spec: Spec

    def parts(self, threads: int | None = None) -> Iterator[tuple[Run, Part | None]]:
        """`fastfed.sweeps.run.iterate` on this plan: what its folder lacks is run."""
        return iterate(self.spec, self.folder, threads=threads)


def plan(
    out: Path,
    *,
    trials: int | None = None,
    only: str | None = None,
    quick: bool = False,
    seed: int = 0,
) -> list[Plan]:
    """The sweeps, in the order in which they run. ``trials`` None: 10,000, or few if ``quick``."""
    require_matplotlib()  # which the figures need: said now, and not when all sweeps are done
    if trials is None:
        trials = QUICK_TRIALS if quick else TRIALS
    if only is not None and only not in DATA_SETS:
        raise InputError(
            f"only {only!r}{nearest(only, DATA_SETS)}: must be one of {', '.join(DATA_SETS)}"
        )
    plans: list[Plan] = []
    for name in DATA_SETS if only is None else (only,):
        base = Spec(
            instances=(name,),
            deltas=DELTAS,
            costs=COSTS,
            schedules=SCHEDULES,
            trials=trials,
            seed=seed,
        )
        study = replace(base, deltas=(STUDY_DELTA,), schedules=_study_schedules(name))
        plans += [
            Plan(name, out / name, replace(base, sigmas=SCALES.get(name, (None,)))),
            Plan(f"studies of {name}", out / "studies" / name, study),
        ]
        plans.append(
            Plan(
                f"radii of {name}",
                out / "radii" / name,
                replace(
                    base,
                    deltas=tuple(delta for delta in radii.DELTAS if delta in DELTAS),
                    schedules=tuple(radii.SCHEDULES),
                    radii=radii.OTHERS,
                ),
            )
        )
        if name == "synthetic":
            scaled = tuple(f"scaled:synthetic,{factor:g}" for factor in FACTORS)
            plans.append(
                Plan(
                    "gaps",
                    out / "gaps",
                    replace(
                        study,
                        instances=scaled,
                        schedules=("fedelim", "fedelim0", "superexponential"),
                    ),
                )
            )
        if name == "movielens":
            plans.append(
                Plan(
                    "movielens-gaussian",
                    out / "movielens-gaussian",
                    replace(
                        base,
                        instances=(_gaussian(),),
                        deltas=tuple(delta for delta in TWIN_DELTAS if delta in DELTAS),
                    ),
                )
            )
    return plans


def reproduce(
    out: str | Path = "paper", *, threads: int | None = None, **options: Any
) -> list[Claim]:
    """`fastfed reproduce` in Python: takes the arguments of `plan`, returns the claims."""
    folder = Path(out)
    for one in plan(folder, **options):
        for run, _ in one.parts(threads):
            if run.failures:
                raise RuntimeError(str(run.failures[0]))
    true_errors(
        folder, threads=threads, **{key: value for key, value in options.items() if key != "trials"}
    )
    return write(folder)[0]


def true_errors(
    out: Path,
    *,
    only: str | None = None,
    quick: bool = False,
    seed: int = 0,
    threads: int | None = None,
    report: Callable[[str], object] = lambda _: None,
) -> list[Path]:
    """How often FedElim really errs on the data sets; what was written."""
    from fastfed.paper import true_errors as measured

    trials = measured.QUICK_TRIALS if quick else measured.TRIALS
    deltas = measured.QUICK_DELTAS if quick else measured.DELTAS
    names = DATA_SETS if only is None else (only,)
    return measured.write(
        out,
        instances=names,
        deltas=deltas,
        trials=trials,
        seed=seed,
        threads=threads,
        report=report,
    )


def write(out: Path) -> tuple[list[Claim], list[Path]]:
    """Figures, tables, claims and the page from the finished sweeps in ``out``; what was
    written."""
    from fastfed.paper import panels as drawn
    from fastfed.paper import true_errors as errors
    from fastfed.paper.page import write_page

    frames, evidence = read(out)
    claims = judge(evidence)
    minimum = next((one for one in claims if one.key == "minimum-map"), None)
    paths = drawn.write(frames, [] if minimum is None else minimum.cells, out)
    table, saved = scheme_table(frames.studies), radii.radii_table(evidence.radii)
    trials = frames.panels.group_by("instance", maintain_order=True).agg(pl.col("trials").min())
    counts = dict(trials.iter_rows())
    warning = not_ended_text(frames.panels)
    for name, text in (
        ("table.md", _table_text(table)),
        ("table.json", _json(table)),
        ("radii.md", radii.radii_text(saved)),
        ("radii.json", _json(saved)),
        ("claims.md", claims_text(claims, counts, warning, slips(evidence))),
        (
            "claims.json",
            _json(
                {
                    "trials": counts,
                    "claims": [one.to_dict() for one in claims],
                    "slips": slips(evidence),
                }
            ),
        ),
    ):
        with replacing(out / name) as file:
            file.write(text.encode())
        paths.append(out / name)
    if minimum is not None:
        with replacing(out / "minimum.parquet") as file:
            pl.DataFrame(minimum.cells).write_parquet(file)
        paths.append(out / "minimum.parquet")
    measured = errors.kept(out)
    charts = drawn.charts(frames) | ({} if measured is None else errors.charts(measured))
    about = {
        "trials of each cell": ", ".join(f"{name} {count:,}" for name, count in counts.items()),
        "deltas": ", ".join(f"{delta:g}" for delta in DELTAS),
        "costs C": ", ".join(f"{cost:g}" for cost in COSTS),
        "seed": Store(out / next(iter(counts))).record().seed,
        "version of the rows": VERSION,
        "fastfed": __version__,
    }
    paths.append(
        write_page(
            out / "report.html",
            charts,
            claims,
            about,
            [*([warning] if warning else []), METHOD, OURS],
            slips(evidence),
        )
    )
    return claims, paths


def read(out: Path) -> tuple[Frames, Evidence]:
    """Summaries and evidence of every data set whose sweeps are finished."""
    summaries, studied = [], []
    panels: list[Place] = []
    scales: list[Place] = []
    studies: list[Place] = []
    checked: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    under_radii: list[radii.RadiusPlace] = []
    with_radii: list[pl.DataFrame] = []
    for name in (*DATA_SETS, "movielens-gaussian"):
        if _finished(out / name):
            frame, places = stored_summary(out / name, COSTS), places_of(out / name)
            own = frame["sigma"][0]  # cells stand in the spec's order: the paper's scale first
            summaries.append(frame.filter(pl.col("sigma") == own))
            panels += [place for place in places if place.sigma == own]
            checked += [line for line in check(out / name, COSTS).lines if line["sigma"] == own]
            if name in DATA_SETS:
                scales += places
            if name != "movielens":  # its Gaussian twin stands in: those walks are faster to follow
                runs += _good_event(out / name, name, frame)
            if _finished(out / "radii" / name):
                under_radii += radii.radius_places(out / name, out / "radii" / name)
                with_radii.append(stored_summary(out / "radii" / name, COSTS))
        if _finished(out / "studies" / name):
            studies += places_of(out / "studies" / name)
            studied.append(_study_frame(out / "studies" / name, name))
    if not summaries:
        raise InputError(f"{out}: no finished sweep of the paper's in it")
    gaps = places_of(out / "gaps") if _finished(out / "gaps") else []
    synthetic = any(place.instance == "synthetic" for place in panels)
    every = pl.concat(summaries)
    clients = tightness() if synthetic else []
    return (
        Frames(
            every,
            pl.concat(studied) if studied else pl.DataFrame(),
            radii.radii_frame(every, with_radii),
            _gap_frame(out / "gaps"),
            clients,
        ),
        Evidence(
            panels,
            scales,
            studies,
            gaps,
            checked,
            runs,
            clients,
            under_radii,
            _doubling(out / "synthetic") if synthetic else None,
        ),
    )


def _good_event(folder: Path, name: str, frame: pl.DataFrame) -> list[dict[str, Any]]:
    """The share of runs on the good event, at the deltas of a data set's panels, with their seed
    and with at most as many runs as they have trials."""
    instance = instances_of(folder)[name]
    trials = int(frame["trials"].min())  # type: ignore[arg-type]
    return good_event(
        instance,
        tuple(frame["delta"].unique(maintain_order=True)),
        min(trials, MOST_RUNS, MOST_WALKS // instance.means.size),
        seed=Store(folder).record().seed,
    )


def _study_frame(folder: Path, name: str) -> pl.DataFrame:
    """The summary of a data set's studies, with the period and the base whose bounds are least."""
    b = _bounds(name)
    return stored_summary(folder, COSTS).with_columns(
        period_opt=pl.lit(float(b.period_opt)), base_opt=pl.lit(float(b.base_opt))
    )


def _doubling(folder: Path) -> Doubling:
    """With twice as many trials as a cell of the panels has, and at most `doubling.TRIALS`."""
    record = Store(folder).record()
    return doubling(min(2 * record.spec.trials, TRIALS_DOUBLED), record.seed)


def _gap_frame(folder: Path) -> pl.DataFrame:
    if not _finished(folder):
        return pl.DataFrame()
    return with_gaps(stored_summary(folder, COSTS), instances_of(folder))


def places_of(folder: Path) -> list[Place]:
    """The cells of a sweep, with the exact sums over their trials."""
    store = Store(folder)
    known = instances_of(store)
    places = []
    for cell, names in store.held().items():
        halves = Halves.of(store.batches(cell, names), names, names)
        b = bounds(known[cell.instance], cell.delta, np.array(COSTS), cell.sigma)
        at_cost = COSTS.index(COST)
        places.append(
            Place(
                cell.instance,
                cell.delta,
                cell.sigma,
                halves,
                COSTS,
                {cost: bool(b.condition[index].all()) for index, cost in enumerate(COSTS)},
                T=float(b.T[0]),
                gap=float(b.local_gaps.min()),
                best_period=int(b.periodic.parameter[at_cost]),  # type: ignore[index]
                base_opt=float(b.base_opt[at_cost]),
            )
        )
    return places


def tightness() -> list[dict[str, Any]]:
    """T over the lower bound as the clients of the synthetic instance are repeated, relative to
    the first number of clients from which on Delta_km <= sqrt(M) Delta_k."""
    means = Instance.load("synthetic").means
    found: dict[int, float] = {}
    for times in (16, 64, 256, 1024):
        many = Instance(np.tile(means, times))
        wide = np.sqrt(many.shape[1]) * many.global_gaps
        assert (many.local_gaps <= wide[:, None]).all()
        b = bounds(many, STUDY_DELTA)
        found[many.shape[1]] = float(b.T / b.lower)
    first = next(iter(found.values()))
    return [
        {
            "instance": "synthetic",
            "delta": STUDY_DELTA,
            "what": f"M = {clients:,}",
            "clients": clients,
            **computed(
                value / first, GROWTH, f"{value / first:.3f}, T over the lower bound {value:,.0f}"
            ),
        }
        for clients, value in found.items()
    ]


def scheme_table(studies: pl.DataFrame) -> list[dict[str, Any]]:
    """The three schemes, measured and bounded: a row per data set and scheme."""
    rows = []
    for (instance, delta), frame in _groups(studies):
        b = _bounds(str(instance))
        for scheme, name in (
            (b.periodic, f"periodic:{_whole_period(b)}"),
            (b.fedelim, "fedelim"),
            (b.superexponential, "superexponential"),
        ):
            found = frame.filter(pl.col("schedule") == name).row(0, named=True)
            rows.append(
                {
                    "instance": instance,
                    "delta": delta,
                    "cost": COST,
                    "scheme": name,
                    "trials": found["trials"],
                    **{
                        f"{short}_{kind}": found[f"{long}_{kind}"]
                        for short, long in (
                            ("pulls", "pulls"),
                            ("comm", "communication"),
                            ("total", "total"),
                        )
                        for kind in ("mean", "sem")
                    },
                    **{
                        f"{quantity}_{variant}": float(getattr(getattr(scheme, variant), quantity))
                        for quantity in ("pulls", "comm", "total")
                        for variant in ("as_stated", "summed", "sharp")
                    },
                }
            )
    return rows


def _groups(studies: pl.DataFrame) -> Any:
    if not len(studies):
        return ()
    return studies.filter(pl.col("cost") == COST).group_by(
        ["instance", "delta"], maintain_order=True
    )


def _table_text(table: Sequence[dict[str, Any]]) -> str:
    lines = [
        "# Periodic, exponential and super-exponential communication",
        "",
        f"Means ± one standard error beside the bounds; C = {COST:g}. The periodic scheme has "
        "the whole H nearest H_opt. *Stated*: the paper's closed form, its O() worked out; "
        "*summed*: summed over arms, with the paper's slips corrected; *sharp*: from the "
        "steps at which the radii settle each arm.",
        "",
    ]
    head = [
        "data",
        "delta",
        "scheme",
        "trials",
        "quantity",
        "measured",
        "sharp",
        "summed",
        "stated",
    ]
    lines += [table_row(head), table_row(["---"] * 3 + ["---:"] + ["---"] + ["---:"] * 4)]
    for row in table:
        for quantity, words in (
            ("pulls", "pulls"),
            ("comm", "communication cost"),
            ("total", "total cost"),
        ):
            lines.append(
                table_row(
                    [
                        row["instance"],
                        f"{row['delta']:g}",
                        row["scheme"],
                        f"{row['trials']:,}",
                        words,
                        number(row[f"{quantity}_mean"], row[f"{quantity}_sem"]),
                        *(
                            _large(row[f"{quantity}_{variant}"])
                            for variant in ("sharp", "summed", "as_stated")
                        ),
                    ]
                )
            )
    return "\n".join(lines) + "\n"


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
    return (
        "fedelim",
        "fedelim0",
        *(f"periodic:{h}" for h in periods),
        *(f"exponential:{base:g}" for base in bases),
        "superexponential",
    )


def _bounds(name: str) -> Bounds:
    return bounds(Instance.load(name), STUDY_DELTA, COST)


def _whole_period(b: Bounds) -> int:
    """The whole H whose bound is least."""
    assert b.periodic.parameter is not None
    return int(b.periodic.parameter)


def _gaussian() -> Instance:
    real = Instance.load("movielens")
    return Instance(
        real.means,
        arms=real.arms,
        clients=real.clients,
        name="movielens-gaussian",
        description="Gaussian rewards around MovieLens's means",
    )


def _finished(folder: Path) -> bool:
    return Store(folder).summary_path.exists()
