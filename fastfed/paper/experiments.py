"""The paper's experiments: the sweeps of `sweeps/`, and what is made of their rows.

    paper/panels, scales, twin, ...   a folder for each spec of `fastfed/paper/sweeps`
    paper/report.html                 all that follows as one page
    paper/claims.md, claims.json      the verdicts
    paper/tables.md, tables.json      five tables
    paper/true-errors.parquet         estimates of the true error probabilities
    paper/contact-sheet.png, figures  the nine panels

Everything below the sweeps is computed from their rows, and the same rows give the same files. The
price of an uplink never costs a simulation. Each folder is an ordinary sweep: `fastfed sweep --spec
paper/twin/sweep.json --out paper/twin --trials 5000` adds trials, and the next `reproduce` uses
them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import polars as pl

from fastfed.analysis.summary import not_ended_text
from fastfed.analysis.verdicts import Claim
from fastfed.display.figures import chart_figure, contact_sheet, require_matplotlib, save
from fastfed.display.series import with_gaps
from fastfed.errors import InputError, nearest
from fastfed.files import make_folder, replacing, within
from fastfed.model.spec import read_spec
from fastfed.paper import page, panels, tables
from fastfed.paper import true_errors as errors
from fastfed.paper.evidence import COSTS, Evidence, read_evidence
from fastfed.paper.rules import judge
from fastfed.storage.folder import Store
from fastfed.storage.summary_cache import stored_summary
from fastfed.sweeps.grid import Grid
from fastfed.theory.bounds_table import plain
from fastfed.version import ROWS, __version__

DATA_SETS = ("synthetic", "bernoulli", "movielens")
QUICK_TRIALS = 200  # of every cell
_SHEET_DPI = 72  # the contact sheet stays below 300 kB


def specs() -> dict[str, dict[str, Any]]:
    """Read the specs of all sweeps, by name."""
    with as_file(files(__package__).joinpath("sweeps")) as folder:
        return {path.stem: read_spec(path) for path in sorted(folder.glob("*.toml"))}


def plan(
    *, trials: int | None = None, only: str | None = None, quick: bool = False, seed: int = 0
) -> dict[str, Grid]:
    """Make the grids of the sweeps, in the order in which they run.

    ``trials`` None means those of the specs, or few if ``quick``.
    """
    require_matplotlib()  # which the figures need: said now, and not when all sweeps are done
    if only is not None and only not in DATA_SETS:
        raise InputError(
            f"only {only!r}{nearest(only, DATA_SETS)}: must be one of {', '.join(DATA_SETS)}"
        )
    grids = {}
    for name, spec in specs().items():
        count = trials or (QUICK_TRIALS if quick else spec["trials"])
        if chosen := [one for one in spec["instance"] if only is None or only in one]:
            grids[name] = Grid.of({**spec, "instance": chosen, "seed": seed, "trials": count})
    return grids


def read(out: Path) -> tuple[dict[str, Store], dict[str, pl.DataFrame], Evidence]:
    """Open the sweeps that are finished; read their summaries, and the evidence of the claims."""
    every = {name: Store(out / name) for name in specs()}
    stores = {name: store for name, store in every.items() if store.summary_path.exists()}
    frames = {name: stored_summary(store, COSTS) for name, store in stores.items()}
    frames["studies"] = pl.concat(frames[name] for name in stores if name.startswith("study-"))
    if "gaps" in stores:
        frames["gaps"] = with_gaps(frames["gaps"], stores["gaps"].instances)
    return stores, frames, read_evidence(stores)


def write(
    out: Path, measured: pl.DataFrame, report: Callable[[str], object] = lambda _: None
) -> tuple[list[Claim], str, list[Path]]:
    """Write the panels, tables, claims and the page from the finished sweeps in ``out``.

    ``measured`` are the true errors. Returns the claims, the outlook and the files written.
    """
    report("claims, tables and figures")
    stores, frames, evidence = read(out)
    shown = frames["panels"]
    claims = judge(evidence)
    every = panels.charts(frames, evidence) | errors.charts(measured)
    rows = {
        "schemes": tables.schemes(frames["studies"]),
        "radii": tables.radii(evidence["radii"]),
        "optimum": tables.optimum(evidence["optimum"]),
        "algorithms": tables.algorithms(frames["algorithms"], stores["algorithms"].instances),
        "errors": errors.errors_table(measured),
    }
    trials = int(shown["trials"].min())  # type: ignore[arg-type]
    outlook, warning = page.outlook(claims, trials), not_ended_text(shown)
    notes = [outlook, *([warning.replace("\n", " ")] if warning else []), *page.texts("notes.md")]
    slips = page.texts("errata.md")
    judged = {"trials": trials, "outlook": outlook, "claims": [one.to_dict() for one in claims]}
    written = {
        "claims.md": page.claims_text(claims, notes, slips),
        "claims.json": _json(judged),
        "tables.md": "\n\n".join(["# Tables", *(one.markdown() for one in rows.values())]) + "\n",
        "tables.json": _json({name: json.loads(one.json()) for name, one in rows.items()}),
    }
    for name, text in written.items():
        with replacing(out / name) as file:
            file.write(text.encode())
    about = {
        "trials of each cell": f"{trials:,}",
        "deltas": ", ".join(f"{delta:g}" for delta in shown["delta"].unique().sort()),
        "costs C": ", ".join(f"{cost:g}" for cost in COSTS),
        "seed": stores["panels"].record().seed,
        "version of the rows": ROWS,
        "fastfed": __version__,
    }
    report_page = page.write_page(out / "report.html", every, claims, about, notes, slips)
    names = shown["instance"].unique(maintain_order=True).to_list()
    paths = [out / name for name in (errors.FILE, *written)]
    return claims, outlook, [*paths, report_page, *_write_panels(out, every, names)]


def _write_panels(out: Path, every: Any, names: Sequence[str]) -> Iterator[Path]:
    """Write the paper's panels, each as PDF and all on one sheet. The page has all figures."""
    make_folder(within(out, "figures"))
    rows = []
    for name in names:
        stems = [f"{name}-{letter}" for letter in panels.PANELS]
        rows.append([chart_figure(every[stem]) for stem in stems])
        for stem, figure in zip(stems, rows[-1], strict=True):
            yield from save(figure, out / "figures" / stem, ["pdf"])
    yield from contact_sheet(rows, out / "contact-sheet", _SHEET_DPI)


def _json(content: Any) -> str:
    return json.dumps(plain(content), indent=1, allow_nan=False) + "\n"
