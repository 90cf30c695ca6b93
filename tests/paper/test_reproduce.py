"""`fastfed reproduce`: every file is there, nothing is done twice, the seed decides everything.

One small run, of three trials and three deltas, serves all tests.
"""

from __future__ import annotations

import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastfed as ff
from fastfed.analysis.verdict_words import STATUSES
from fastfed.cli import app as cli
from fastfed.display.series import styled
from fastfed.display.styles import style_of
from fastfed.errors import InputError
from fastfed.model.spec import Spec
from fastfed.paper import experiments as reproduce
from fastfed.paper import panels, tables, true_errors
from fastfed.paper.evidence import COSTS
from fastfed.paper.experiments import DATA_SETS, plan
from fastfed.sweeps import task as tasks
from fastfed.sweeps.run import iterate

pytestmark = pytest.mark.slow

FEW = (0.1, 0.01, 1e-3)
SPECS = reproduce.specs()


def smaller(spec: dict[str, Any]) -> dict[str, Any]:
    """Keep three deltas at most, and few bases and periods."""
    deltas = [delta for delta in spec["delta"] if delta in FEW or delta == 1e-12]
    left_out = ("exponential:", "periodic:") if len(spec["schedule"]) > 20 else ()
    kept = ("periodic:10", "periodic:461", "periodic:2042", "periodic:233", "exponential:1.05")
    return {
        **spec,
        "delta": deltas,
        "schedule": [one for one in spec["schedule"] if one in kept or not one.startswith(left_out)]
        if left_out
        else spec["schedule"],
    }


@pytest.fixture(scope="module")
def small() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            reproduce, "specs", lambda: {name: smaller(one) for name, one in SPECS.items()}
        )
        patch.setattr(true_errors, "DELTAS", (0.1,))
        patch.setattr(true_errors, "TRIALS", 500)
        yield patch


@pytest.fixture(scope="module")
def paper(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reproduce") / "paper"
    few = ["--trials", "3", "--threads", "1", "--seed", "5"]
    assert cli.run(["reproduce", "--out", str(out), *few]) == 0
    return out


def contents(folder: Path, *kinds: str) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in kinds
    }


def test_the_files_beside_the_sweeps(paper: Path) -> None:
    """A reader needs the page, the tables, the claims, the panels and the Parquet: 16 files."""
    names = {"report.html", "contact-sheet.png", "true-errors.parquet"}
    names |= {f"{name}.{kind}" for name in ("claims", "tables") for kind in ("md", "json")}
    assert {path.name for path in paper.iterdir() if path.is_file()} == names
    assert {path.name for path in paper.iterdir() if path.is_dir()} == {"figures", *SPECS}
    drawn = {path.name: path.stat().st_size for path in (paper / "figures").iterdir()}
    assert drawn.keys() == {f"{name}-{letter}.pdf" for name in DATA_SETS for letter in "abc"}
    assert min(drawn.values()) > 2000
    assert 20_000 < (paper / "contact-sheet.png").stat().st_size < 300_000


@pytest.mark.parametrize("name", SPECS)
def test_a_sweep_runs_every_spec_as_it_is(name: str) -> None:
    """Each file is a whole spec: `fastfed sweep --spec` needs no more."""
    spec = Spec.of(SPECS[name])
    assert (spec.trials, spec.seed) == (10_000, 0)
    assert spec.cost == list(COSTS)
    assert len(spec.settings()) == len(spec.instance) * len(spec.delta) * max(1, len(spec.radius))


def test_a_spec_gives_the_rows_of_reproduce(paper: Path, tmp_path: Path) -> None:
    spec = str(files("fastfed.paper") / "sweeps" / "gaps.toml")
    few = ["--trials", "3", "--seed", "5", "--threads", "1", "--quiet"]
    assert cli.run(["sweep", "--spec", spec, "--out", str(tmp_path / "gaps"), *few]) == 0
    mine, theirs = (
        pl.read_parquet(folder / "gaps" / "trials" / "*.parquet").sort(pl.all())
        for folder in (tmp_path, paper)
    )
    assert mine.equals(theirs)


def test_the_study_has_the_best_period_and_base() -> None:
    """The periods and bases are typed: those whose bounds are least must be among them."""
    for name in DATA_SETS:
        b, schedules = tables.study_bounds(name), SPECS[f"study-{name}"]["schedule"]
        assert f"periodic:{int(b.periodic.parameter)}" in schedules
        assert f"exponential:{round(float(b.base_opt), 4):g}" in schedules
        periods = [int(one[9:]) for one in schedules if one.startswith("periodic:")]
        assert min(periods) < float(b.period_opt) / 20 < float(b.period_opt) * 9 < max(periods)


def test_schedules_look_as_in_every_other_figure(paper: Path) -> None:
    """FedElim and FedElim0 have their own styles in all panels, and no two lines are alike."""
    every = panels.charts(*reproduce.read(paper)[1:])
    assert {f"{name}-{letter}" for name in DATA_SETS for letter in "abc"} <= set(every)
    for name, chart in every.items():
        looks = [line.style for line in styled(chart.lines)]
        assert len(set(looks)) == len(looks), name
        own = {line.label: line.style for line in chart.lines}
        for label, schedule in (
            ("fedelim", "fedelim"),
            ("fedelim, C = 0", "fedelim"),
            ("fedelim, paper", "fedelim"),
            ("fedelim0, paper", "fedelim0"),
            ("fedelim0, pulls alone", "fedelim0"),
        ):
            assert own.get(label, style_of(schedule)) == style_of(schedule), (name, label)
    assert sum(len(chart.lines) for chart in every.values()) > 80
    assert every["bernoulli-b"].y_label == "communication cost (C x uplinks)"
    assert "mean ± one standard deviation, 3 trials" in every["bernoulli-c"].title[-1]


def test_the_page_has_all_panels_and_claims(paper: Path) -> None:
    text = (paper / "report.html").read_text()
    assert len(text) < 2_000_000
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])  # type: ignore[index]
    names = {figure["name"] for figure in data["figures"]}
    assert len([one for one in data["figures"] if one["section"] == "panels"]) == 9
    claims = json.loads((paper / "claims.json").read_text())["claims"]
    assert [one["key"] for one in data["claims"]] == [one["key"] for one in claims]
    for shown, claim in zip(data["claims"], claims, strict=True):
        assert (shown["verdict"], shown["sentence"]) == (claim["verdict"], claim["sentence"])
        squares = shown["squares"].values()
        assert sum(sum(square["counts"]) for square in squares) == len(claim["cells"])
        assert len(shown["cells"]) == len(claim["cells"])
        assert set(shown["figures"]) <= names


def test_each_folder_is_a_sweep(paper: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in SPECS:
        frame = pl.read_parquet(paper / name / "trials" / "*.parquet")
        assert set(frame["seed"]) == {5}
        assert set(frame["trial"]) == {0, 1, 2}
    assert cli.run(["summary", str(paper / "twin"), "--cost", "3", "--format", "csv"]) == 0
    assert capsys.readouterr().out.count("\n") == 1 + len(FEW) * len(SPECS["twin"]["schedule"])


def test_claims_and_their_verdicts(paper: Path) -> None:
    content = json.loads((paper / "claims.json").read_text())
    assert content["trials"] == 3
    text = (paper / "claims.md").read_text()
    keys = [one["key"] for one in content["claims"]]
    assert len(keys) == len(set(keys)) == 38
    assert content["outlook"] in text.splitlines()[2]
    for one in content["claims"]:
        assert one["verdict"] in STATUSES
        assert one["sentence"] in text
        assert {"claim", "where", "criterion", "value", "sem", "measured"} <= set(one)
        assert f"## {one['key']}\n" in text
        assert one["measured"][0] in text


def test_the_table_has_measured_beside_bounds(paper: Path) -> None:
    rows = json.loads((paper / "tables.json").read_text())["schemes"]
    assert [row["schedule"].partition(":")[0] for row in rows] == [
        scheme
        for _ in DATA_SETS
        for scheme in ("periodic", "fedelim", "superexponential")
        for _ in ("pulls", "communication", "total")
    ]
    for row in rows:
        if row["quantity"] == "total cost":
            assert 0 < row["mean"] <= row["sharp"] <= row["summed"]
    for pulls, sent, total in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        assert total["mean"] == pytest.approx(pulls["mean"] + sent["mean"])
    text = (paper / "tables.md").read_text()
    assert text.count("\n## ") == 5
    assert "## True errors of FedElim" in text


def test_all_algorithms_stand_side_by_side(paper: Path) -> None:
    """The table has every algorithm on every instance, as the summary of their sweep."""
    rows = json.loads((paper / "tables.json").read_text())["algorithms"]
    spec = SPECS["algorithms"]
    assert [(row["instance"], row["schedule"]) for row in rows] == [
        (name, schedule) for name in spec["instance"] for schedule in spec["schedule"]
    ]
    summary = ff.open_sweep(paper / "algorithms").summary(costs=[0])
    assert [row["pulls_mean"] for row in rows] == summary["pulls_mean"].to_list()
    assert (paper / "tables.md").read_text().count("| oracle |") == len(spec["instance"])


def test_the_map_covers_delta_cost_and_scale(paper: Path) -> None:
    claims = json.loads((paper / "claims.json").read_text())["claims"]
    cells = next(one["cells"] for one in claims if one["key"] == "minimum-map")
    where = {tuple(cell[key] for key in ("instance", "delta", "cost", "sigma")) for cell in cells}
    assert len(where) == len(cells) == 4 * len(FEW) * (len(COSTS) - 1)
    assert {sigma for name, _, _, sigma in where if name == "bernoulli"} == {1.0, 0.5}


def test_in_python_and_twice_does_nothing_new(
    paper: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`fastfed.reproduce`, which the command calls, goes on in the folder of the command.

    It computes no trial again, writes the same files and returns the verdicts.
    """

    def refuse(*_: Any) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(tasks, "compute", refuse)
    kinds = (".png", ".parquet", ".json", ".md")
    before = contents(paper, *kinds)
    done = ff.reproduce(paper, trials=3, seed=5, progress=False)
    assert capsys.readouterr() == ("", "")
    assert contents(paper, *kinds) == before
    written = json.loads((paper / "claims.json").read_text())["claims"]
    assert [(one.key, one.verdict) for one in done.claims] == [
        (one["key"], one["verdict"]) for one in written
    ]
    assert paper / "report.html" in done.files
    assert all(path.is_file() for path in done.files)
    with pytest.raises(InputError, match="trials"):
        ff.reproduce(paper, trials=0)


def test_failures_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> None:
        raise ArithmeticError("no such sum")

    monkeypatch.setattr(tasks, "compute", broken)
    asked = ["reproduce", "--out", str(tmp_path), "--trials", "2", "--only", "synthetic"]
    assert cli.run(asked) == 1
    start, *said = capsys.readouterr().err.splitlines()
    assert start.endswith("2 trials of each cell")
    assert said
    assert all("no such sum; see it again with: fastfed replay" in line for line in said)


def test_one_data_set_alone(
    small: Any, paper: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sweeps of one data set are a part of all, and the whole run goes on in its folders."""
    alone = ["--trials", "3", "--only", "synthetic", "--seed", "5"]
    assert cli.run(["reproduce", "--out", str(tmp_path), *alone]) == 0
    printed = capsys.readouterr()
    assert re.match(r"\d+ of \d+ claims have a verdict from 3 trials", printed.out)
    assert "delta-pac: Not refuted, but too few trials to confirm it, on " in printed.out
    assert "minimum-movielens" not in printed.out
    assert "panels: 3 trials of each cell" in printed.err
    folders = {"panels", "study-synthetic", "radii", "optimum", "algorithms", "gaps", "figures"}
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == folders
    for _ in iterate(plan(trials=3, seed=5)["radii"], tmp_path / "radii", threads=1):
        pass
    mine, whole = (
        pl.read_parquet(folder / "radii" / "trials" / "*.parquet").sort(pl.all())
        for folder in (tmp_path, paper)
    )
    assert mine.equals(whole)


def test_trials_mean_the_same_everywhere() -> None:
    for trials in (7, 100, 10_000):
        assert {one.spec.trials for one in plan(trials=trials).values()} == {trials}
    quick = {one.spec.trials for one in plan(quick=True).values()}
    assert quick == {reproduce.QUICK_TRIALS} == {200}
    assert {one.spec.trials for one in plan().values()} == {10_000}
    for trials in (7, 200):  # what is asked for is what is run
        assert {one.spec.trials for one in plan(quick=True, trials=trials).values()} == {trials}


def test_bad_input(paper: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["reproduce", "--out", str(paper), "--trials", "3"]) == 2
    assert "seed 5" in capsys.readouterr().err
    with pytest.raises(InputError, match="did you mean 'bernoulli'"):
        plan(only="bernouli")
    assert cli.run(["reproduce", "--trials", "0", "--out", str(tmp_path / "x")]) == 2
    assert "trials" in capsys.readouterr().err
