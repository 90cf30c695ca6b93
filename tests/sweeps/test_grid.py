"""The grid: what is run, how it is written down, and what happens to a task that raises."""

from __future__ import annotations

import json
import shlex
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from helpers import KEYS, OTHER, SMALL, Call, assert_whole, rows, run, typed

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.display.sweep_text import MOST
from fastfed.model.spec import Spec
from fastfed.storage.folder import Store
from fastfed.sweeps import planner as planning
from fastfed.sweeps import task as tasks
from fastfed.sweeps.grid import Grid

# The grid


def test_default_grid_is_the_papers() -> None:
    spec = Spec.of({})
    assert spec.instance == ["synthetic"]
    assert spec.delta == [0.1, 0.05, 0.01, 0.005, 0.001]
    assert spec.cost == [0.0, 10.0, 100.0]
    assert set(spec.schedule) == {
        "fedelim",
        "fedelim0",
        "periodic:5",
        *(f"periodic:{10**e}" for e in range(6)),
    }
    assert (spec.trials, spec.seed) == (10_000, 0)


def test_grid_is_the_product(out: Path) -> None:
    summary = run(
        out,
        instances=[SMALL, OTHER],
        deltas=[0.1, 0.01],
        sigma=[1.0, 2.0],
        schedules=["fedelim"],
        periods=[1, 7],
        trials=6,
    )
    assert_whole(rows(out), 2 * 2 * 2 * 3, 6)
    assert summary.height == 2 * 2 * 2 * 3 * 2
    assert set(summary["schedule"]) == {"fedelim", "periodic:1", "periodic:7"}
    assert set(summary["sigma"]) == {1.0, 2.0}


def test_a_printed_sweep_is_what_the_command_prints(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At most `MOST` rows, and what shows the others."""
    schedules = [f"periodic:{period}" for period in range(1, 8)]
    deltas = [0.1, 0.2, 0.3, 0.4]
    sweep = ff.sweep(instances=[SMALL], schedules=schedules, deltas=deltas, trials=3, out=out)
    rows = sweep.summary()
    assert len(rows) > MOST
    cells = len(deltas) * rows["cost"].n_unique()
    assert str(sweep).count("periodic:") == min(cells, MOST)
    assert f"All {len(rows)} rows: summary()" in str(sweep)
    assert cli.run(["sweep", "--spec", str(out / "sweep.json"), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert f"All {len(rows)} rows: fastfed summary {out}" in printed
    table = str(sweep).partition("All ")[0]
    assert table in printed


def test_duplicates_in_the_grid_are_run_once(out: Path, calls: list[Call]) -> None:
    run(out, instances=[SMALL, SMALL], deltas=[0.1, 0.1], costs=[1, 1.0], sigma=[1.0, 1])
    assert len(calls) == 1
    assert_whole(rows(out), 2, 20)


def test_rows_are_those_of_simulate(out: Path) -> None:
    """The schedules run alone or together, in parts or at once: the same walks."""
    names = ["fedelim", "fedelim0", "periodic:100", "exponential:1.5", "at:1,5,25,125"]
    run(
        out,
        instances=["synthetic"],
        deltas=[0.1, 0.01],
        schedules=names,
        trials=30,
        seed=9,
        threads=2,
    )
    for delta in (0.1, 0.01):
        expected = ff.simulate(
            ff.Instance.load("synthetic"), names, delta=delta, trials=30, seed=9, threads=1
        ).frame
        assert rows(out).filter(pl.col("delta") == delta).equals(expected.sort(KEYS))


@pytest.mark.usefixtures("small_parts")
def test_rows_do_not_depend_on_parts_and_threads(tmp_path: Path) -> None:
    for threads in (1, 3):
        run(tmp_path / str(threads), trials=33, threads=threads)
    assert len(list((tmp_path / "1" / "trials").iterdir())) > 4
    assert rows(tmp_path / "1").equals(rows(tmp_path / "3"))
    assert rows(tmp_path / "1").equals(
        ff.simulate(SMALL, ["fedelim", "fedelim0"], delta=0.1, trials=33).frame.sort(KEYS)
    )


def test_options_reach_the_rows(out: Path) -> None:
    run(out, sigma=2.0, max_steps=50, engine="dense", seed=2**64 - 1)
    expected = ff.simulate(
        SMALL,
        ["fedelim", "fedelim0"],
        delta=0.1,
        trials=20,
        sigma=2.0,
        max_steps=50,
        engine="dense",
        seed=2**64 - 1,
        threads=1,
    ).frame
    assert rows(out).equals(expected.sort(KEYS))
    assert rows(out)["truncated"].all()


@pytest.mark.usefixtures("small_parts")
def test_parts_come_one_by_one(out: Path) -> None:
    seen = []
    for state, part in ff.sweep_parts(
        instances=SMALL, deltas=[0.1], schedules=["fedelim"], trials=20, out=out, threads=1
    ):
        if part is not None:
            assert part.path.exists()
            assert pq.read_metadata(part.path).num_rows == part.count
            seen.append((part.first, part.count))
            assert state.progress.trials_done >= sum(count for _, count in seen)
            assert state.progress.trials_planned == 20
    assert sum(count for _, count in seen) == 20
    assert state.progress.trials_done == 20
    assert state.progress.pulls == rows(out)["pulls"].sum()


# Spec files


SPEC = """
instance = ["synthetic", "random:3,2,1"]
delta = [0.1, 0.05]
cost = [0, 5]
schedule = ["fedelim", "at:1,5,25"]
period = [1, 10]
trials = 12
seed = 3
max_steps = 100_000
"""


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(SPEC)
    return path


def sweep_cli(out: Path, *options: str) -> None:
    assert cli.run(["sweep", "--out", str(out), "--quiet", "--threads", "1", *options]) == 0


def test_spec_file_is_the_command_line_written_down(tmp_path: Path, spec_file: Path) -> None:
    sweep_cli(tmp_path / "a", "--spec", str(spec_file))
    sweep_cli(
        tmp_path / "b",
        *typed(
            "--instance synthetic --instance random:3,2,1 --delta 0.1,0.05 --cost 0,5 --schedule "
            "fedelim,at:1,5,25 --period 1,10 --trials 12 --seed 3 --max-steps 1e5"
        ),
    )
    assert_whole(rows(tmp_path / "a"), 2 * 2 * 4, 12)
    assert rows(tmp_path / "a").equals(rows(tmp_path / "b"))
    records = [json.loads((tmp_path / name / "sweep.json").read_text()) for name in "ab"]
    assert records[0] == records[1]
    names = {"fedelim", "at:1,5,25", "periodic:1", "periodic:10"}
    assert set(rows(tmp_path / "a")["schedule"]) == names


def test_sweep_json_can_be_fed_back(tmp_path: Path, spec_file: Path, calls: list[Call]) -> None:
    sweep_cli(tmp_path / "a", "--spec", str(spec_file), "--target-rse", "0.5", "--sigma", "2")
    sweep_cli(tmp_path / "b", "--spec", str(tmp_path / "a" / "sweep.json"))
    assert rows(tmp_path / "a").equals(rows(tmp_path / "b"))
    assert (tmp_path / "a" / "sweep.json").read_bytes() == (
        tmp_path / "b" / "sweep.json"
    ).read_bytes()
    calls.clear()
    sweep_cli(tmp_path / "a", "--spec", str(tmp_path / "a" / "sweep.json"))
    assert calls == []


def test_a_record_goes_on_in_its_own_folder(
    place: Path, calls: list[Call], capsys: pytest.CaptureFixture[str]
) -> None:
    run(place / "g", trials=10)
    calls.clear()
    assert cli.run(["sweep", "--spec", "g/sweep.json", "--trials", "12"]) == 0
    said = capsys.readouterr()
    assert "the sweep goes on in g; --out DIR writes elsewhere" in said.err
    assert "fastfed summary g --all" in said.out
    assert not Path("results").exists()
    assert {(first, end) for *_, first, end in calls} == {(10, 12)}
    assert cli.run(["sweep", "--spec", "g/sweep.json", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_spec_that_rotted_is_not_run(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(place / "g", trials=10)
    path = place / "g" / "sweep.json"
    path.write_text(path.read_text().replace('"trials": 10', '"trials": 14'))
    assert cli.run(["sweep", "--spec", "g/sweep.json", "--out", "elsewhere"]) == 2
    assert "its spec does not fit its spec_hash" in capsys.readouterr().err
    assert not Path("elsewhere").exists()


def test_instances_made_in_python_can_be_fed_back(tmp_path: Path) -> None:
    odd = ff.Instance(OTHER.means / 3, name='all, "of" it: é\n', arms=["a", "b", "ü\\"])
    others = [
        ff.Instance(OTHER.means, ff.Gaussian(1.5), name="noisy"),
        ff.Instance(OTHER.means, ff.Bernoulli(), name="coins"),
        ff.Instance(rewards=ff.Finite([0, 1, 5], [[[1, 1, 1]], [[1, 0, 3]]]), name="histograms"),
    ]
    run(tmp_path / "a", instances=[SMALL, odd, *others])
    assert_whole(rows(tmp_path / "a"), 5 * 2, 20)
    sweep_cli(tmp_path / "b", "--spec", str(tmp_path / "a" / "sweep.json"))
    assert rows(tmp_path / "a").equals(rows(tmp_path / "b"))


@pytest.mark.parametrize(
    ("options", "names", "trials"),
    [
        (["--trials", "7"], {"fedelim", "at:1,5,25", "periodic:1", "periodic:10"}, 7),
        (["--schedule", "fedelim0"], {"fedelim0"}, 12),
        (["--period", "9", "--schedule", "fedelim"], {"fedelim", "periodic:9"}, 12),
    ],
)
def test_options_override_the_spec(
    out: Path, spec_file: Path, options: list[str], names: set[str], trials: int
) -> None:
    sweep_cli(out, "--spec", str(spec_file), "--delta", "0.2", *options)
    assert set(rows(out)["schedule"]) == names
    assert set(rows(out)["delta"]) == {0.2}
    assert_whole(rows(out), 2 * len(names), trials)


def test_deltas_on_one_spine_share_tasks_and_give_the_same_rows(
    out: Path, tmp_path: Path, calls: list[Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four settings in a task, in one part; what a folder holds is not run again."""
    weights = [[[1, 2, 3], [4, 1, 1]], [[3, 1, 1], [1, 1, 5]]]
    rated = ff.Instance(rewards=ff.Finite([0.0, 1.0, 2.0], weights), name="rated")
    grid = {
        "instances": [rated],
        "schedules": ["fedelim", "periodic:7"],
        "trials": 20,
        "part_size": 10,
    }
    deltas = [0.3, 0.2, 0.1, 0.05, 0.02, 0.01]
    run(out, deltas=deltas, **grid)
    assert len(calls) == 12
    calls.clear()
    monkeypatch.setattr("fastfed.model.rewards.finite._DEAR", 0)
    run(tmp_path / "shared", deltas=deltas[2:3], **grid)
    assert len(calls) == 2
    run(tmp_path / "shared", deltas=deltas, **grid)
    asked = [(call[1], call[3]) for call in calls[2:]]
    assert sorted(asked) == [(0.01, 0), (0.01, 10), (0.3, 0), (0.3, 10)]
    assert rows(tmp_path / "shared").equals(rows(out))
    assert len(Store(tmp_path / "shared").parts()) == 2 + 4
    assert len(Store(out).parts()) == 12


# A task that raises


def broken(monkeypatch: pytest.MonkeyPatch, first: int, delta: float) -> None:
    real = tasks.compute

    def compute(task: tasks.Task, *shared: Any) -> Any:
        if task.first == first and task.setting.delta == delta:
            raise ZeroDivisionError("the kernel's own words")
        return real(task, *shared)

    monkeypatch.setattr(tasks, "compute", compute)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--sigma", "2", "--max-steps", "50000"],
        ["--target-rse", "0.01"],
        ["--radius", "mixture"],
    ],
    ids=["plain", "sigma and max_steps", "target", "radius"],
)
@pytest.mark.usefixtures("small_parts")
def test_a_task_that_raises_is_named_and_the_rest_goes_on(
    tmp_path: Path, out: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    SMALL.save(tmp_path / "my small.toml")
    command = [
        "sweep",
        "--instance",
        str(tmp_path / "my small.toml"),
        *typed(
            "--delta 0.1,0.0123456789 --schedule fedelim,fedelim0 --trials 20 --seed 5 "
            f"--threads 2 --out {out}"
        ),
        *options,
    ]
    with pytest.MonkeyPatch.context() as patch:
        broken(patch, 10, 0.0123456789)
        assert cli.run(command) == 1
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert told.startswith("fastfed: ")
    for part in (
        "my small",
        "delta 0.012345",
        "trials 10 to 14",
        "ZeroDivisionError",
        "the kernel's own words",
        "fedelim",
    ):
        assert part in told
    held = rows(out)
    assert held.height == 2 * (20 + 15)
    assert not set(range(10, 15)) & set(held.filter(pl.col("delta") < 0.1)["trial"])
    # the command that it gives shows the trial
    again = shlex.split(told.split("see it again with: ")[1])
    assert again[0] == "fastfed"
    assert cli.run(again[1:]) == 0
    story = capsys.readouterr().out
    # and the same sweep does only what is missing
    assert cli.run(command) == 0
    assert capsys.readouterr().err == ""
    assert_whole(rows(out), 4, 20)
    row = (
        rows(out)
        .filter(pl.col("delta") < 0.1, pl.col("trial") == 10, pl.col("schedule") == "fedelim")
        .row(0, named=True)
    )
    assert f"{row['pulls']:,} pulls (" in story
    assert f" {row['uplinks']:,} uplinks" in story


@pytest.mark.usefixtures("small_parts")
def test_sweep_in_python_raises_at_the_end(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, 5, 0.1)
    with pytest.raises(RuntimeError, match=r"small, delta 0\.1.*trials 5 to 9.*ZeroDivisionError"):
        run(out)
    assert rows(out).height == 2 * 15


# How tasks run


@pytest.mark.usefixtures("small_parts")
def test_a_job_is_laid_out_once_for_all_parts_of_a_cell(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastfed.simulation.job import Job

    made = []
    real = Job.__init__

    def counted(self: Job, *arguments: Any, **options: Any) -> None:
        made.append(arguments[0].delta)
        real(self, *arguments, **options)

    monkeypatch.setattr(Job, "__init__", counted)
    tasks._job.cache_clear()
    run(out, deltas=[0.1, 0.05], trials=30)
    assert len(list((out / "trials").iterdir())) == 12
    assert made == [0.1, 0.05]


def test_instances_that_differ_by_name_alone_keep_their_names(tmp_path: Path) -> None:
    """Jobs are remembered from sweep to sweep; the rows of each carry the name it was given."""
    for name in ("first", "second"):
        again = ff.Instance(SMALL.means, name=name)
        frame = ff.sweep(
            instances=[again], deltas=[0.1], schedules=["fedelim"], trials=5, out=tmp_path / name
        ).frame
        assert set(frame["instance"]) == {name}


def test_parts_take_seconds(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is as large as two seconds allow; then half of what is left, from 0.3 seconds on."""
    monkeypatch.setattr(planning, "_PART_SECONDS", 2.0)
    monkeypatch.setattr(planning, "_LAST_SECONDS", 0.3)
    grid = Grid.of({"instance": [SMALL], "delta": [0.1], "trials": 10_000})
    planner = planning.Planner(grid, Store(out))
    sizes = []
    while (bundle := planner.next_bundle(workers=2)) is not None:
        (task,) = bundle.tasks
        sizes.append(task.count)
        planner.record(tasks.Done(bundle, 1, seconds=task.count / 1000))
    assert sizes[:4] == [250, 2000, 2000, 2000]
    assert sizes[4:] == [1875, 938, 469, 300, 168]
    assert sum(sizes) == 10_000


def test_parts_of_large_instances_take_longer(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part holds the instance, so there are few of them."""
    monkeypatch.setattr(planning, "_PART_SECONDS", 2.0)
    monkeypatch.setattr(planning, "_LAST_SECONDS", 0.3)
    monkeypatch.setattr(planning, "_LONGER", SMALL.means.size / 2)
    grid = Grid.of({"instance": [SMALL], "delta": [0.1], "trials": 10_000})
    planner = planning.Planner(grid, Store(out))
    sizes = []
    while (bundle := planner.next_bundle(workers=2)) is not None:
        (task,) = bundle.tasks
        sizes.append(task.count)
        planner.record(tasks.Done(bundle, 1, seconds=task.count / 1000))
    assert sizes == [250, 4000, 2875, 1438, 719, 718]


def test_leaving_early_tells_the_kernels_to_stop(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that would run on is told so by the flag that kernels look at between trials."""
    started, stopped = threading.Event(), threading.Event()

    def endless(task: tasks.Task, control: Any) -> tuple[Any, int]:
        started.set()
        for _ in range(30_000):
            if control.stop[0]:
                stopped.set()
                break
            time.sleep(0.01)
        raise RuntimeError("stopped")

    monkeypatch.setattr(tasks, "compute", endless)
    parts = ff.sweep_parts(
        instances=SMALL, deltas=[0.1], schedules=["fedelim"], trials=20, out=out, threads=1
    )
    while not started.is_set():
        next(parts)
    assert not stopped.is_set()
    parts.close()
    assert stopped.wait(300)


def test_a_scale_that_is_too_small_is_named_once(tmp_path: Path) -> None:
    """The rewards have sigma 1; half of it makes radii that do not hold."""
    options: dict[str, Any] = {
        "instances": SMALL,
        "deltas": [0.1, 0.05],
        "schedules": ["fedelim"],
        "trials": 2,
        "threads": 1,
        "progress": False,
    }
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ff.sweep(**options, sigma=0.5, out=tmp_path / "small")
        ff.sweep(**options, out=tmp_path / "usual")
    assert [str(one.message).partition(":")[0] for one in said] == [
        "sigma 0.5 is too small for the rewards of small, which need 1"
    ]
