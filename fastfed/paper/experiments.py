"""The paper's experiments: which sweeps, in which folders, and what is made of their rows.

    paper/synthetic, bernoulli, movielens   the panels: every delta and schedule, a sweep each
    paper/studies/...                       one delta, many bases and periods, a sweep each
    paper/gaps                              the synthetic instance with its gaps scaled
    paper/movielens-gaussian                Gaussian rewards around MovieLens's means
    paper/radii/...                         the radii that are not the paper's, a sweep each
    paper/optimum/...                       deltas down to 1e-12, for pulls beside T*, a sweep each
    paper/algorithms/...                    all algorithms side by side, a sweep each
    paper/report.html                       all that follows as one page
    paper/claims.*                          the verdicts: Markdown, JSON, and the matrix as PNG
    paper/figures, contact-sheet.png, table.*, radii.*, optimum.*, algorithms.*, minimum.parquet

Everything below the sweeps is computed from their rows, and the same rows give the same files.
The price of an uplink never costs a simulation. Each folder is an ordinary sweep: `fastfed sweep
--spec paper/movielens/sweep.json --out paper/movielens --trials 5000` adds trials, and the next
`reproduce` uses them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fastfed.analysis.check import CellCheck, judge
from fastfed.analysis.moments import Halves
from fastfed.analysis.summary import not_ended_text
from fastfed.analysis.trials import Trials, collect
from fastfed.analysis.verdicts import Claim, computed
from fastfed.display.figures import require_matplotlib
from fastfed.display.series import with_gaps
from fastfed.errors import InputError, nearest
from fastfed.files import replacing
from fastfed.model.instance import Instance, changed
from fastfed.model.rewards import Gaussian
from fastfed.model.spec import Spec
from fastfed.paper import algorithms, optimum, radii
from fastfed.paper.ahead import Ahead
from fastfed.paper.claims.criteria import COST, GROWTH
from fastfed.paper.claims.judging import judge as judge_claims
from fastfed.paper.claims_text import METHOD, OURS, claims_text
from fastfed.paper.doubling import TRIALS as TRIALS_DOUBLED
from fastfed.paper.doubling import Doubling, doubling
from fastfed.paper.errata import slips
from fastfed.paper.evidence import Evidence, Place
from fastfed.paper.good_event import good_event
from fastfed.paper.matrix import write_matrix
from fastfed.paper.panels import Frames
from fastfed.paper.scheme_table import (
    STUDY_DELTA,
    scheme_table,
    scheme_text,
    study_bounds,
    whole_period,
)
from fastfed.storage.folder import Store
from fastfed.storage.part_file import PartFile
from fastfed.storage.summary_cache import stored_summary
from fastfed.sweeps.grid import Grid
from fastfed.sweeps.run import Run, iterate
from fastfed.theory.bounds import bounds
from fastfed.theory.bounds_table import plain
from fastfed.version import ROWS, __version__

DATA_SETS = ("synthetic", "bernoulli", "movielens")
_TWIN = "movielens-gaussian"
DELTAS = (0.5, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)
TWIN_DELTAS = (0.1, 0.01, 1e-3, 1e-4, 1e-6)  # of MovieLens's Gaussian twin, which has no panel
COSTS = (0.0, 1.0, 10.0, 100.0, 1_000.0, 10_000.0)
PERIODS = (1, 5, 10, 100, 1_000, 10_000, 100_000)
SCHEDULES = (
    "fedelim",
    "fedelim0",
    *(f"periodic:{h}" for h in PERIODS),
    "superexponential",
    "adaptive",
)
BASES = (1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.2, 2.5, 2.8, 3.2, 3.6, 4.5, *range(4, 11))
# Confidence scales of the map: the paper's and, where rewards in [0, 1] make it valid, half of it.
# Not on MovieLens: there it is too narrow, best arms are lost, and two that are equal never part.
SCALES = {"bernoulli": (1.0, 0.5)}
FACTORS = (2, 1, 0.5, 0.25, 0.125)  # of the gaps
TRIALS = 10_000  # of every cell
QUICK_TRIALS = 50  # of every cell: about a minute in all
# The good event is followed step by step, at up to a microsecond for a step of one walk: so there
# are limits to its runs, and to the walks (arms x clients) of all of them together.
MOST_RUNS = 1_000
MOST_WALKS = 40_000


@dataclass(frozen=True)
class Plan:
    """One sweep of the paper's experiments."""

    name: str
    folder: Path
    spec: Spec

    def parts(self, threads: int | None = None) -> Iterator[tuple[Run, PartFile | None]]:
        """Run the trials of a plan that its folder lacks, as `fastfed.sweeps.run.iterate` does."""
        return iterate(Grid.of(self.spec.to_dict()), self.folder, threads=threads)


def plan(
    out: Path,
    *,
    trials: int | None = None,
    only: str | None = None,
    quick: bool = False,
    seed: int = 0,
) -> list[Plan]:
    """List the sweeps in the order in which they run.

    ``trials`` None means 10,000, or few if ``quick``.
    """
    require_matplotlib()  # which the figures need: said now, and not when all sweeps are done
    if trials is None:
        trials = QUICK_TRIALS if quick else TRIALS
    if only is not None and only not in DATA_SETS:
        raise InputError(
            f"only {only!r}{nearest(only, DATA_SETS)}: must be one of {', '.join(DATA_SETS)}"
        )
    base = {"delta": DELTAS, "cost": COSTS, "schedule": SCHEDULES, "trials": trials, "seed": seed}
    names = DATA_SETS if only is None else (only,)
    sweeps = [sweep for name in names for sweep in _sweeps_of(name)]
    if only is None:
        sweeps += _sweeps_beside("random", optimum.RANDOM, algorithms.RANDOM)
    return [Plan(name, out / folder, Spec.of(base | keys)) for name, folder, keys in sweeps]


def _sweeps_of(name: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the sweeps of a data set: name, folder, and the keys of the spec that are its own."""
    study = {"instance": name, "delta": STUDY_DELTA, "schedule": _study_schedules(name)}
    others = {
        "instance": name,
        "delta": [delta for delta in radii.DELTAS if delta in DELTAS],
        "schedule": list(radii.SCHEDULES),
        "radius": radii.OTHERS,
    }
    twin = _gaussian() if name == "movielens" else name
    yield name, name, {"instance": name, "sigma": SCALES.get(name)}
    yield f"studies of {name}", f"studies/{name}", study
    yield f"radii of {name}", f"radii/{name}", others
    yield from _sweeps_beside(name, twin, name)
    if name == "synthetic":
        scaled = [f"scaled:synthetic,{factor:g}" for factor in FACTORS]
        schedules = ["fedelim", "fedelim0", "superexponential"]
        yield "gaps", "gaps", study | {"instance": scaled, "schedule": schedules}
    if name == "movielens":
        deltas = [delta for delta in TWIN_DELTAS if delta in DELTAS]
        yield _TWIN, _TWIN, {"instance": twin, "delta": deltas}


def _sweeps_beside(
    name: str, gaussian: Any, instance: Any
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the sweep of the study of T*, and that of all algorithms."""
    best = {
        "instance": gaussian,
        "delta": optimum.DELTAS,
        "schedule": optimum.SCHEDULES,
        "radius": optimum.RADII,
        "sigma": optimum.SIGMAS.get(name),
    }
    every = {
        "instance": instance,
        "delta": algorithms.DELTA,
        "schedule": algorithms.SCHEDULES,
        "radius": algorithms.RADIUS,
    }
    yield f"optimum of {name}", f"optimum/{name}", best
    yield f"algorithms on {name}", f"algorithms/{name}", every


def true_errors(
    out: Path, *, only: str | None = None, quick: bool = False, **options: Any
) -> list[Path]:
    """Measure how often FedElim errs on the data sets; return the files written.

    The options are the seed, the threads, the report and the check of
    `fastfed.paper.true_errors.measure`.
    """
    from fastfed.paper import true_errors as measured

    return measured.write(
        out,
        DATA_SETS if only is None else (only,),
        measured.QUICK_DELTAS if quick else measured.DELTAS,
        measured.QUICK_TRIALS if quick else measured.TRIALS,
        **options,
    )


def compile_ahead(plans: Sequence[Plan], ahead: Ahead) -> None:
    """Compile, beside the first sweeps, what later ones need that are not finished."""
    later = [one for one in plans if one.folder.parent.name == "algorithms"]
    if any(_finished(one.folder) is None for one in later):
        ahead.start("compiled", partial(algorithms.compile_all, ahead.check))


def read_ahead(done: Plan, out: Path, ahead: Ahead) -> None:
    """Read and draw, beside the sweeps that follow, what the plan that is done completes."""
    from fastfed.paper import panels as drawn

    folder = done.folder.relative_to(out).as_posix()
    study, _, name = folder.rpartition("/")
    read_one = partial(_read_data_set, out, name)
    if folder == _TWIN:
        ahead.start(f"data set {name}", read_one)
    if study == "radii":  # the last sweep of a data set that its panels need
        ahead.start(f"data set {name}", read_one)

        def draw_panels() -> dict[str, drawn.Drawn]:
            one = ahead.result(f"data set {name}", read_one)
            return drawn.draw(drawn.charts(one.frames()), out, ahead.check)

        ahead.start(f"figures of {folder}", draw_panels)
    if study == "optimum":
        read_places = partial(_optimum_places, out, name)
        ahead.start(folder, read_places)

        def draw_optimum() -> dict[str, drawn.Drawn]:
            places = ahead.result(folder, read_places)
            return drawn.draw(drawn.optimum_charts(places), out, ahead.check)

        ahead.start(f"figures of {folder}", draw_optimum)


def write(out: Path, ahead: Ahead | None = None) -> tuple[list[Claim], list[Path]]:
    """Write figures, tables, claims and the page from the finished sweeps in ``out``.

    Returns the files written. What was done ``ahead`` is not done again.
    """
    from fastfed.paper import panels as drawn
    from fastfed.paper import true_errors as errors
    from fastfed.paper.page import write_page

    ahead = ahead or Ahead()
    frames, evidence = read(out, ahead)
    claims = judge_claims(evidence)
    minimum = next((one for one in claims if one.key == "minimum-map"), None)
    before: dict[str, drawn.Drawn] = {}
    for study, names in (("radii", DATA_SETS), ("optimum", (*DATA_SETS, "random"))):
        for name in names:
            before |= ahead.result(f"figures of {study}/{name}", dict)
    paths = drawn.write(frames, [] if minimum is None else minimum.cells, out, before)
    paths += write_matrix(claims, out / "claims")
    stores = _studied(out, "algorithms")
    every = [row for store in stores for row in algorithms.algorithms_table(store)]
    trials = frames.panels.group_by("instance", maintain_order=True).agg(pl.col("trials").min())
    counts, warning = dict(trials.iter_rows()), not_ended_text(frames.panels)
    texts: dict[str, str] = {}
    for name, as_text, rows in (
        ("table", scheme_text, scheme_table(frames.studies)),
        ("radii", radii.radii_text, radii.radii_table(evidence.radii)),
        ("optimum", optimum.optimum_text, optimum.optimum_table(evidence.optimum)),
        ("algorithms", algorithms.algorithms_text, every),
    ):
        texts |= {f"{name}.md": as_text(rows), f"{name}.json": _json(rows)}
    judged = [one.to_dict() for one in claims]
    texts["claims.md"] = claims_text(claims, counts, warning, slips(evidence))
    texts["claims.json"] = _json({"trials": counts, "claims": judged, "slips": slips(evidence)})
    for name, text in texts.items():
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
        "version of the rows": ROWS,
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


@dataclass(frozen=True)
class DataSet:
    """Evidence and summaries of a data set; a frame is None where its sweep is not finished."""

    evidence: Evidence
    panels: pl.DataFrame | None = None
    studies: pl.DataFrame | None = None
    radii: pl.DataFrame | None = None

    def frames(self) -> Frames:
        """Return the frames of this data set alone."""
        assert self.panels is not None
        empty = pl.DataFrame()
        with_radii = [] if self.radii is None else [self.radii]
        return Frames(
            self.panels,
            empty if self.studies is None else self.studies,
            radii.radii_frame(self.panels, with_radii),
            empty,
        )


def _read_data_set(out: Path, name: str) -> DataSet:
    """Read the summaries and evidence of the finished sweeps of a data set."""
    evidence = Evidence()
    panels, studies, with_radii = None, None, None
    panel, study, other = (
        _finished(out / where) for where in (name, f"studies/{name}", f"radii/{name}")
    )
    if panel is not None:
        frame, places = stored_summary(panel, COSTS), _checked_places(panel)
        own = frame["sigma"][0]  # cells stand in the spec's order: the paper's scale first
        panels = frame.filter(pl.col("sigma") == own)
        evidence.panels += [place for place, _ in places if place.sigma == own]
        lines = judge([line for place, one in places for line in one.lines(place.whole)]).lines
        evidence.checked += [line for line in lines if line["sigma"] == own]
        if name in DATA_SETS:
            evidence.scales += [place for place, _ in places]
        if name != "movielens":  # its Gaussian twin stands in: those walks are faster to follow
            evidence.good_event += _good_event(panel, name, frame)
        if other is not None:
            evidence.radii += radii.radius_places(panel, other)
            with_radii = stored_summary(other, COSTS)
    if study is not None:
        evidence.studies += places_of(study)
        studies = _study_frame(study, name)
    return DataSet(evidence, panels, studies, with_radii)


def _optimum_places(out: Path, name: str) -> list[optimum.OptimumPlace]:
    """Read the study of T* of a data set, or of the random instances, if its sweep is finished."""
    store = _finished(out / "optimum" / name)
    return [] if store is None else optimum.optimum_places(store)


def read(out: Path, ahead: Ahead | None = None) -> tuple[Frames, Evidence]:
    """Read the summaries and evidence of all data sets whose sweeps are finished."""
    ahead = ahead or Ahead()
    names = (*DATA_SETS, _TWIN)
    read_ones = [
        ahead.result(f"data set {name}", partial(_read_data_set, out, name)) for name in names
    ]
    evidence = Evidence()
    for one in read_ones:
        evidence.add(one.evidence)
    summaries = [one.panels for one in read_ones if one.panels is not None]
    studied = [one.studies for one in read_ones if one.studies is not None]
    with_radii = [one.radii for one in read_ones if one.radii is not None]
    if not summaries:
        raise InputError(f"{out}: no finished sweep of the paper's in it")
    for name in (*DATA_SETS, "random"):
        evidence.optimum += ahead.result(f"optimum/{name}", partial(_optimum_places, out, name))
    if any(place.instance == "synthetic" for place in evidence.panels):
        evidence.tightness, evidence.doubling = tightness(), _doubling(out / "synthetic")
        evidence.improvements, evidence.limits = optimum.improvements(), optimum.limits()
    gaps, scaled = _finished(out / "gaps"), pl.DataFrame()
    if gaps is not None:
        evidence.gaps = places_of(gaps)
        scaled = with_gaps(stored_summary(gaps, COSTS), gaps.instances)
    every = pl.concat(summaries)
    frames = Frames(
        every,
        pl.concat(studied) if studied else pl.DataFrame(),
        radii.radii_frame(every, with_radii),
        scaled,
        evidence.tightness,
        evidence.optimum,
    )
    return frames, evidence


def _good_event(store: Store, name: str, frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Measure the share of runs on the good event, at the deltas of a data set's panels.

    The seed is that of the panels. There are at most as many runs as the panels have trials.
    """
    instance = store.instances[name]
    trials = int(frame["trials"].min())  # type: ignore[arg-type]
    return good_event(
        instance,
        tuple(frame["delta"].unique(maintain_order=True)),
        min(trials, MOST_RUNS, MOST_WALKS // instance.means.size),
        seed=store.record().seed,
    )


def _study_frame(store: Store, name: str) -> pl.DataFrame:
    """Summarise a data set's studies, with the period and the base whose bounds are least."""
    b = study_bounds(name)
    return stored_summary(store, COSTS).with_columns(
        period_opt=pl.lit(float(b.period_opt)), base_opt=pl.lit(float(b.base_opt))
    )


def _doubling(folder: Path) -> Doubling:
    """Run the doubling study with twice the trials of a panel's cell, up to `doubling.TRIALS`."""
    record = Store(folder).record()
    return doubling(min(2 * record.spec.trials, TRIALS_DOUBLED), record.seed)


def places_of(trials: Trials) -> list[Place]:
    """Make the cells of a sweep, with the exact sums over their trials."""
    return [place for place, _ in _checked_places(trials)]


def _checked_places(trials: Trials) -> list[tuple[Place, CellCheck]]:
    """Read every cell once: for the claims, and for the theorems."""
    places = []
    at_cost = COSTS.index(COST)
    for cell, schedules in trials.held().items():
        names = [str(one) for one in schedules]
        halves, checked = Halves(names, names), CellCheck(trials, cell, schedules, list(COSTS))
        collect(trials.batches(cell, names), names, halves, checked)
        b = checked.bounds
        place = Place(
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
        places.append((place, checked))
    return places


def tightness() -> list[dict[str, Any]]:
    """Compute T over the lower bound as the clients of the synthetic instance are repeated.

    The ratio is relative to the first number of clients from which Delta_km <= sqrt(M) Delta_k.
    """
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


def _json(content: Any) -> str:
    return json.dumps(plain(content), indent=1, allow_nan=False) + "\n"


def _study_schedules(name: str) -> tuple[str, ...]:
    """List the schedules of the study: periods around H_opt, and bases with lambda_opt."""
    b = study_bounds(name)
    around = float(b.period_opt) * 10.0 ** (np.arange(-15, 11) / 10)
    periods = sorted({10, whole_period(b), *(max(1, round(h)) for h in around.tolist())})
    bases = sorted({*BASES, round(float(b.base_opt), 4)})
    return (
        "fedelim",
        "fedelim0",
        *(f"periodic:{h}" for h in periods),
        *(f"exponential:{base:g}" for base in bases),
        "superexponential",
    )


def _gaussian() -> Instance:
    name, description = _TWIN, "Gaussian rewards around MovieLens's means"
    real = Instance.load("movielens")
    return changed(real, rewards=Gaussian(), name=name, description=description)


def _studied(out: Path, study: str) -> Iterator[Store]:
    """Yield the finished sweeps of a study of the data sets and of random instances."""
    stores = (_finished(out / study / name) for name in (*DATA_SETS, "random"))
    return (store for store in stores if store is not None)


def _finished(folder: Path) -> Store | None:
    """Open the folder of a sweep that is finished; None if it is not."""
    store = Store(folder)
    return store if store.summary_path.exists() else None
