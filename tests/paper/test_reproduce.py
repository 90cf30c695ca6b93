"""`fastfed reproduce`: every file is there, nothing is done twice, the seed decides everything."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastfed as ff
from fastfed.analysis.intervals import LEAST_DIFFERING
from fastfed.analysis.moments import Prices
from fastfed.analysis.trials import samples
from fastfed.analysis.verdict_words import STATUSES
from fastfed.cli import app as cli
from fastfed.display.series import styled
from fastfed.display.styles import style_of
from fastfed.errors import InputError
from fastfed.model.instance import Instance
from fastfed.paper import algorithms, optimum, panels, true_errors
from fastfed.paper import experiments as reproduce
from fastfed.paper.experiments import COSTS, DATA_SETS, places_of, plan, scheme_table
from fastfed.storage.folder import Store
from fastfed.sweeps import task as tasks

pytestmark = pytest.mark.slow

FEW = (0.1, 0.01, 1e-3)
ALL_DELTAS, ALL_BASES = reproduce.DELTAS, reproduce.BASES


@pytest.fixture(scope="module")
def small() -> Any:
    """Make a grid of three deltas and few bases."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduce, "DELTAS", FEW)
        patch.setattr(reproduce, "BASES", (1.05, 1.5, 10))
        patch.setattr(optimum, "DELTAS", (0.1, 1e-12))
        patch.setattr(true_errors, "DELTAS", (0.1,))
        patch.setattr(true_errors, "TRIALS", 500)
        yield patch


@pytest.fixture(scope="module")
def paper(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reproduce") / "paper"
    assert (
        cli.run(
            [
                "reproduce",
                "--out",
                str(out),
                "--trials",
                "3",
                "--threads",
                "1",
                "--seed",
                "5",
                "--quiet",
            ]
        )
        == 0
    )
    return out


def contents(folder: Path, *kinds: str) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in kinds
    }


def test_every_figure_in_every_format(paper: Path) -> None:
    names = {
        f"{data}-{what}.{kind}"
        for data in DATA_SETS
        for what in (*"abc", "schemes", "adaptive", "base", "period", "minimum", "radii", "errors")
        for kind in ("png", "pdf", "svg")
    }
    names |= {
        f"{panels.figure_stem(name)}-optimum.{kind}"
        for name in ("synthetic", "bernoulli", "movielens-gaussian", *optimum.RANDOM)
        for kind in ("png", "pdf", "svg")
    }
    names |= {
        f"synthetic-{what}.{kind}"
        for what in ("gap", "talk", "clients")
        for kind in ("png", "pdf", "svg")
    }
    assert {path.name for path in (paper / "figures").iterdir()} == names
    for path in (paper / "figures").iterdir():
        assert path.stat().st_size > 2000


def test_the_contact_sheet_is_small(paper: Path) -> None:
    assert 20_000 < (paper / "contact-sheet.png").stat().st_size < 300_000
    assert 20_000 < (paper / "claims.png").stat().st_size < 300_000
    assert 10_000 < (paper / "true-errors.png").stat().st_size < 300_000


def test_schedules_look_as_in_every_other_figure(paper: Path) -> None:
    """FedElim and FedElim0 have their own styles in all panels, and no two lines are alike."""
    frames = reproduce.read(paper)[0]
    every = panels.charts(frames)
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
            ("periodic:10", "periodic:10"),
            ("superexponential", "superexponential"),
        ):
            assert own.get(label, style_of(schedule)) == style_of(schedule), (name, label)
    assert sum(len(chart.lines) for chart in every.values()) > 80


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
        assert shown["figures"], shown["key"]
        assert set(shown["figures"]) <= names


def test_radii_are_compared_on_the_same_trials(paper: Path) -> None:
    rows = json.loads((paper / "radii.json").read_text())
    assert len(rows) == len(DATA_SETS) * len(FEW) * 2 * 5
    paper_rows = pl.read_parquet(paper / "bernoulli" / "trials" / "*.parquet")
    other_rows = pl.read_parquet(paper / "radii" / "bernoulli" / "trials" / "*.parquet")
    for row in rows:
        if row["instance"] == "bernoulli" and row["radius"] != "paper":
            x, y = (
                frame.filter(
                    pl.col("schedule") == row["schedule"],
                    pl.col("delta") == row["delta"],
                    pl.col("sigma") == 1.0,
                    pl.col("radius") == radius,
                ).sort("trial")
                for frame, radius in ((other_rows, row["radius"]), (paper_rows, "paper"))
            )
            price = 10 if row["schedule"] == "fedelim" else 0
            a, b = ((one["pulls"] + price * one["uplinks"]).to_numpy() for one in (x, y))
            ratio = a.mean() / b.mean()
            assert row["ratio"] == pytest.approx(ratio)
            assert row["ratio_sem"] == pytest.approx(
                (a - ratio * b).std(ddof=1) / 3**0.5 / b.mean()
            )
        if row["radius"] == "paper":
            assert row["ratio"] == 1
    text = (paper / "radii.md").read_text()
    assert "With the radius `mixture-pairs` FedElim's error probability is also at most" in text
    assert "% of the cost with the paper's radius on " in text
    assert "% on bernoulli" in text or "radius on bernoulli" in text


def test_axes_are_named_and_legends_speak(paper: Path) -> None:
    text = {letter: (paper / "figures" / f"bernoulli-{letter}.svg").read_text() for letter in "abc"}
    assert "error probability delta" in text["a"]
    assert "total cost (pulls + C x uplinks)" in text["a"]
    assert "fedelim, C = 10" in text["a"]
    assert "communication cost (C x uplinks)" in text["b"]
    assert "periodic:5" in text["b"]
    assert "period H (steps between uplinks)" in text["c"]
    assert "mean ± one standard deviation, 3 trials" in text["c"]


def test_each_data_set_is_a_sweep(paper: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (*DATA_SETS, "studies/bernoulli", "gaps", "movielens-gaussian"):
        frame = pl.read_parquet(paper / name / "trials" / "*.parquet")
        assert set(frame["seed"]) == {5}
        assert set(frame["trial"]) == {0, 1, 2}
    assert cli.run(["summary", str(paper / "synthetic"), "--cost", "3", "--csv"]) == 0
    assert capsys.readouterr().out.count("\n") == 1 + len(FEW) * len(reproduce.SCHEDULES)


def test_claims_and_their_verdicts(paper: Path) -> None:
    content = json.loads((paper / "claims.json").read_text())
    assert content["trials"]["movielens"] == 3
    text = (paper / "claims.md").read_text()
    keys = [one["key"] for one in content["claims"]]
    assert len(keys) == len(set(keys)) == 37
    assert content["slips"]
    for one in content["claims"]:
        assert one["verdict"] in STATUSES
        assert one["sentence"] in text
        assert {"claim", "where", "criterion", "value", "sem", "measured"} <= set(one)
        assert f"## {one['key']}\n" in text
        assert one["measured"][0] in text


def test_the_table_has_measured_beside_bounds(paper: Path) -> None:
    rows = json.loads((paper / "table.json").read_text())
    assert [row["scheme"].partition(":")[0] for row in rows] == [
        "periodic",
        "fedelim",
        "superexponential",
    ] * len(DATA_SETS)
    for row in rows:
        assert 0 < row["total_mean"] <= row["total_sharp"] <= row["total_summed"]
        assert row["total_mean"] == pytest.approx(row["pulls_mean"] + row["comm_mean"])
    assert rows == json.loads(json.dumps(scheme_table(reproduce.read(paper)[0].studies)))
    assert (paper / "table.md").read_text().count("\n| ") == 2 + 3 * len(rows)


def test_all_algorithms_stand_side_by_side(paper: Path) -> None:
    """The table has every algorithm on every instance, and the means of the stored rows."""
    rows = json.loads((paper / "algorithms.json").read_text())
    names = (*DATA_SETS, *algorithms.RANDOM)
    assert [(row["instance"], row["schedule"]) for row in rows] == [
        (name, schedule) for name in names for schedule in algorithms.SCHEDULES
    ]
    stored = pl.read_parquet(paper / "algorithms" / "synthetic" / "trials" / "*.parquet")
    least = ff.bounds("synthetic", delta=algorithms.DELTA).least_pulls
    for row in rows[: len(algorithms.SCHEDULES)]:
        own = stored.filter(pl.col("schedule") == row["schedule"])
        assert row["trials"] == own.height == 3
        assert row["wrong"] == 3 - own["correct"].sum()
        for column in ("pulls", "uplinks", "rounds"):
            assert row[f"{column}_mean"] == pytest.approx(own[column].mean())
        if row["schedule"].startswith("halving"):
            assert row["x_least"] is None
        else:
            assert row["x_least"] == pytest.approx(own["pulls"].mean() / least)
    text = (paper / "algorithms.md").read_text()
    assert text.count("\n| ") == 2 + len(rows)
    assert text.count("oracle (knows the means)") == len(names)


def test_the_map_covers_delta_cost_and_scale(paper: Path) -> None:
    cells = pl.read_parquet(paper / "minimum.parquet")
    assert (
        cells.select("instance", "delta", "cost", "sigma").unique().height
        == cells.height
        == (4 * len(FEW) * (len(COSTS) - 1))
    )
    assert set(cells.filter(pl.col("instance") == "bernoulli")["sigma"]) == {1.0, 0.5}


def test_in_python_and_twice_does_nothing_new(
    paper: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`fastfed.reproduce`, which the command calls, goes on in the folder of the command.

    It computes no trial again, writes the same files and returns the verdicts.
    """

    def refuse(*_: Any) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(tasks, "compute", refuse)
    monkeypatch.setattr(panels, "FORMATS", ("png",))
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
    asked = ["reproduce", "--out", str(tmp_path), "--trials", "2", "--quiet", "--only", "synthetic"]
    assert cli.run(asked) == 1
    said = capsys.readouterr().err.splitlines()
    assert said
    assert all("no such sum; see it again with: fastfed replay" in line for line in said)


def test_another_seed_is_refused(paper: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["reproduce", "--out", str(paper), "--trials", "3", "--quiet"]) == 2
    assert "seed 5" in capsys.readouterr().err


def test_ratios_come_from_the_same_trials(paper: Path) -> None:
    place = next(one for one in places_of(Store(paper / "synthetic")) if one.delta == 0.1)
    store = Store(paper / "synthetic")
    cell = next(part.cell for part in store.parts() if part.cell.delta == 0.1)
    fedelim, mine = (
        samples(store.batches(cell, [name]), name) for name in ("fedelim", "periodic:10")
    )
    x, y = (one["pulls"] + 10.0 * one["uplinks"] for one in (mine, fedelim))
    found = place.compare("periodic:10", "fedelim", Prices.total(10.0))
    assert found["value"] == pytest.approx(x.mean() / y.mean())
    assert len(x) < LEAST_DIFFERING
    assert found["p_below"] == 1.0  # so few trials decide nothing


def test_one_data_set_alone(
    small: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panels, "FORMATS", ("png",))
    assert (
        cli.run(["reproduce", "--out", str(tmp_path), "--trials", "2", "--only", "synthetic"]) == 0
    )
    printed = capsys.readouterr()
    assert "delta-pac: Not refuted, but too few trials to confirm it, on " in printed.out
    assert "minimum-movielens" not in printed.out
    assert "synthetic: 2 trials of each cell" in printed.err
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {
        "synthetic",
        "studies",
        "radii",
        "optimum",
        "algorithms",
        "gaps",
        "figures",
    }


def test_trials_mean_the_same_everywhere(tmp_path: Path) -> None:
    for trials in (7, 100, 10_000):
        assert {one.spec.trials for one in plan(tmp_path, trials=trials)} == {trials}
    quick = {one.spec.trials for one in plan(tmp_path, quick=True)}
    assert quick == {reproduce.QUICK_TRIALS}
    assert {one.spec.trials for one in plan(tmp_path)} == {10_000}
    for trials in (7, 200):  # what is asked for is what is run
        assert {one.spec.trials for one in plan(tmp_path, quick=True, trials=trials)} == {trials}


def test_the_quick_run_asks_for_what_can_be_had() -> None:
    """Nothing is refused after the sweeps are done."""
    frame = true_errors.measure(
        ["synthetic"], true_errors.QUICK_DELTAS, trials=true_errors.QUICK_TRIALS
    )
    assert frame["delta"].n_unique() == len(true_errors.QUICK_DELTAS) > 1


def test_the_paper_s_deltas_and_periods() -> None:
    assert (max(ALL_DELTAS), min(ALL_DELTAS)) == (0.5, 1e-6)
    assert {10**p for p in range(6)} | {5} == set(reproduce.PERIODS)
    assert (min(ALL_BASES), max(ALL_BASES)) == (1.05, 10)


def test_gaussian_rewards_around_the_means() -> None:
    twin = reproduce._gaussian()
    assert (twin.means == Instance.load("movielens").means).all()
    assert twin.default_sigma == 1.0


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="did you mean 'bernoulli'"):
        plan(tmp_path, only="bernouli")
    assert cli.run(["reproduce", "--trials", "0", "--out", str(tmp_path / "x")]) == 2
    assert "trials" in capsys.readouterr().err
    with pytest.raises(InputError, match="no finished sweep"):
        reproduce.read(tmp_path)
