"""Results in the hand: what a `Result` and a `Sweep` answer, and that they answer alike."""

from __future__ import annotations

import math
from pathlib import Path
from threading import Event

import numpy as np
import polars as pl
import pytest
from helpers import OTHER, SMALL, refused
from polars.testing import assert_frame_equal

import fastfed as ff
from fastfed.display.tables import check_table

NAMES = ["fedelim", "fedelim0", "periodic:10"]
GRID = {"delta": [0.1, 0.01], "seed": 3, "threads": 1}


@pytest.fixture(scope="module")
def result() -> ff.Result:
    return ff.simulate(SMALL, NAMES, trials=40, **GRID)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> ff.Sweep:
    """Run the same trials as a sweep."""
    out = tmp_path_factory.mktemp("hand") / "results"
    return ff.sweep(
        instances=SMALL,
        deltas=[0.1, 0.01],
        schedules=NAMES,
        trials=40,
        seed=3,
        threads=1,
        out=out,
        progress=False,
    )


@pytest.fixture(params=["result", "swept"])
def held(request: pytest.FixtureRequest) -> ff.Result | ff.Sweep:
    found: ff.Result | ff.Sweep = request.getfixturevalue(request.param)
    return found


def by_key(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sort("delta", "schedule", "trial")


# --- the same answers


def test_result_and_sweep_answer_alike(result: ff.Result, swept: ff.Sweep) -> None:
    for ask in (
        lambda held: held.frame,
        lambda held: held.scan().collect(),
        lambda held: held.summary(),
        lambda held: held.summary([0.5, 7]),
        lambda held: held.best(costs=[1, 10]),
        lambda held: held.best().frame.drop("instance"),
        lambda held: held.check([0, 10]).frame,
    ):
        frames = [ask(held) for held in (result, swept)]
        order = [name for name in ("delta", "schedule", "trial", "claim", "cost", "cost_from")
                 if name in frames[0].columns]  # fmt: skip
        assert_frame_equal(*(frame.sort(order) for frame in frames))
    assert sorted(result.summary()["cost"].unique()) == [0, 10, 100]
    texts = {str(one) for one in result.best().envelopes}
    assert texts == {str(one) for one in swept.best().envelopes}
    assert len(texts) == 2


def test_best_is_the_least_mean_total_of_the_summary(held: ff.Result | ff.Sweep) -> None:
    costs = [0.0, 0.1, 3.0, 10.0, 1000.0]
    table = held.summary(costs)
    for row in held.best(costs=costs).to_dicts():
        rival = (
            table.filter(delta=row["delta"], cost=row["cost"]).sort("total_mean").row(0, named=True)
        )
        assert row["winner"] == rival["schedule"]
        assert row["total_mean"] == pytest.approx(rival["total_mean"])


def test_replay_tells_the_row_that_is_held(held: ff.Result | ff.Sweep) -> None:
    for schedule in ("fedelim0", ff.Periodic(10)):
        told = held.replay(17, schedule=schedule, delta=0.01)
        row = held.frame.filter(delta=0.01, schedule=str(schedule), trial=17).row(0, named=True)
        assert told.row == row


def test_replay_wants_to_know_which(held: ff.Result | ff.Sweep) -> None:
    refused(lambda: held.replay(1, delta=0.1), "several rows", "schedule", "fedelim0")
    refused(lambda: held.replay(1, "fedelim"), "2 values of delta", "0.1, 0.01")
    refused(lambda: held.replay(1, "periodic:9", 0.1), "periodic:9", "periodic:10")
    refused(lambda: held.replay(1, "fedelim", 0.2), "0.2", "0.1, 0.01")
    refused(lambda: held.replay(40, "fedelim", 0.1), "trial 40", "0 to 39")


def test_wrong_has_the_trials_that_erred() -> None:
    found = ff.simulate(SMALL, delta=0.5, trials=50, sigma=0.1, threads=1)
    assert 0 < found.wrong().height < 50
    assert (
        found.wrong()["trial"].to_list()
        == found.frame.filter(~pl.col("correct"))["trial"].to_list()
    )


@pytest.mark.parametrize(("x", "y"), [("delta", "total"), ("cost", "total"), ("gap", "error_rate")])
def test_plot(held: ff.Result | ff.Sweep, x: str, y: str) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    from fastfed.display.series import X, Y

    _, given = plt.subplots()
    ax = held.plot(x=x, y=y, cost=None if x == "cost" else 7.0, ax=given)
    assert ax is given
    assert isinstance(ax, Axes)
    assert (ax.get_xlabel(), ax.get_ylabel()) == (X[x], Y[y])
    plt.close("all")


# --- shown as text and as HTML


def test_shown_as_text_and_as_html(held: ff.Result | ff.Sweep) -> None:
    html = held._repr_html_()
    assert "rewards: Gaussian(sigma=1.0)" in html
    assert html.count("<tr>") == 1 + 2 * 3 * 3
    assert "\n" not in repr(held)
    assert str(held).splitlines()[0] == "rewards: Gaussian(sigma=1.0)"


def test_every_object_has_renderers(result: ff.Result) -> None:
    story = result.replay(1, "fedelim", 0.1)
    bounds = (ff.bounds(SMALL), ff.bounds(SMALL, [0.1, 0.2]))
    for one in (SMALL, *bounds, story, result.check(), result.best()):
        html = one._repr_html_()
        assert html.startswith("<div")
        assert "Event(" not in html + repr(one) + str(one)
    assert "Gaussian" in str(story).splitlines()[0]
    assert repr(story) == str(story)


def test_bounds_print_their_table() -> None:
    found = ff.bounds(SMALL, 0.01, 10.0)
    assert repr(found) == str(found)  # what a terminal shows of it
    lines = str(found).splitlines()
    assert 5 < len(lines) <= 30
    assert "rewards Gaussian(sigma=1.0)" in lines[0]
    grid = str(ff.bounds(SMALL, np.array([0.1, 0.2]), 10.0)).splitlines()
    assert grid[1].split()[:3] == ["delta", "C", "scheme"]
    assert len(grid) == 2 + 2 * 3


def test_the_check_says_of_what_its_intervals_are(result: ff.Result) -> None:
    text = " ".join(check_table(result.check(), every=True).text().split())
    assert "interval: 95 %, of the mean if it begins with ±, and otherwise of the share" in text
    assert "not refuted (P%): nothing speaks against the claim" in text


# --- results by themselves


def test_equal_results() -> None:
    one, two = (ff.simulate(SMALL, NAMES, trials=5, **GRID) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert len({one, two}) == 1
    for other in (
        ff.simulate(SMALL, NAMES, trials=6, **GRID),
        ff.simulate(SMALL, NAMES, trials=5, **{**GRID, "seed": 4}),
        ff.simulate(SMALL, NAMES, trials=5, keep_pulls=True, **GRID),
    ):
        assert one != other
    assert one != 5


def test_more_trials_of_the_same_job() -> None:
    options = {**GRID, "keep_pulls": True}
    whole = ff.simulate(SMALL, NAMES, trials=30, **options)
    first, rest = (
        ff.simulate(SMALL, NAMES, trials=n, first=at, **options) for n, at in ((20, 0), (10, 20))
    )
    assert first + rest == whole == rest + first
    assert (first + rest).pulls.shape == (2, 3, 30, 2, 2)
    refused(lambda: first + first, "trials 0 to 19 are in both", "first=20")
    late = ff.simulate(SMALL, NAMES, trials=5, first=25, **options)
    refused(lambda: first + late, "trials 20 to 24 would be missing")
    refused(
        lambda: first + ff.simulate(SMALL, NAMES, trials=5, first=20, **{**options, "seed": 1}),
        "seed",
        "[3, 3]",
        "[1, 1]",
    )
    refused(lambda: first + ff.simulate(OTHER, NAMES, trials=5, first=20, **options), "instance")
    with pytest.raises(TypeError):
        first + 5  # type: ignore[operator]


def test_an_instance_by_name_file_or_array(tmp_path: Path) -> None:
    options = {"delta": 0.1, "trials": 5, "threads": 1}
    SMALL.save(tmp_path / "other.toml")
    by_object = ff.simulate(SMALL, **options).frame
    assert_frame_equal(ff.simulate(tmp_path / "other.toml", **options).frame, by_object)
    assert_frame_equal(
        ff.simulate(SMALL.means, **options).frame.drop("instance"), by_object.drop("instance")
    )
    assert ff.simulate("synthetic", **options).job.instance == ff.Instance.load("synthetic")
    assert ff.replay("synthetic", delta=0.1).row["instance"] == "synthetic"


def test_several_deltas_are_the_single_ones(result: ff.Result) -> None:
    for delta in (0.1, 0.01):
        alone = ff.simulate(SMALL, NAMES, trials=40, **{**GRID, "delta": delta}).frame
        assert_frame_equal(result.frame.filter(delta=delta), alone)
    refused(lambda: ff.simulate(SMALL, delta=[], trials=1), "no deltas")


# --- folders


def test_saved_rows_are_those_of_a_sweep(result: ff.Result, tmp_path: Path) -> None:
    saved = result.save(tmp_path / "kept")
    assert_frame_equal(by_key(saved.frame), by_key(result.frame))
    assert result.save(tmp_path / "kept").frame.height == result.frame.height  # nothing twice


def test_a_sweep_goes_on_with_saved_rows(
    result: ff.Result, tmp_path: Path, calls: list[tuple[object, ...]]
) -> None:
    result.save(tmp_path / "kept")
    more = ff.sweep(
        instances=SMALL,
        deltas=[0.1, 0.01],
        schedules=NAMES,
        trials=50,
        seed=3,
        threads=1,
        out=tmp_path / "kept",
        progress=False,
    )
    assert sorted(call[3:] for call in calls) == [(40, 50), (40, 50)]
    assert more.frame.height == 50 * 2 * 3


def test_rows_that_do_not_fit_are_not_saved(result: ff.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "kept")
    other = ff.simulate(SMALL, trials=3, delta=0.1, seed=9, threads=1)
    refused(lambda: other.save(tmp_path / "kept"), "seed 3", "seed 9")


def test_a_sweep_is_opened_and_copied(swept: ff.Sweep, tmp_path: Path) -> None:
    again = ff.open_sweep(swept.folder)
    assert_frame_equal(by_key(again.frame), by_key(swept.frame))
    assert_frame_equal(by_key(swept.save(tmp_path / "copy").frame), by_key(swept.frame))
    refused(lambda: ff.open_sweep(tmp_path / "nowhere"), "nowhere", "no such folder")


def test_a_trial_in_two_files_is_refused(result: ff.Result, tmp_path: Path) -> None:
    saved = result.save(tmp_path / "kept")
    part = next((saved.folder / "trials").glob("*.parquet"))
    part.with_name("again.parquet").write_bytes(part.read_bytes())
    opened = ff.open_sweep(saved.folder)
    refused(lambda: opened.frame, "again.parquet", part.name, "both have trials 0 to 39")


# --- progress


def test_a_line_every_so_often_off_a_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fastfed.api import progress

    options = {"instances": SMALL, "deltas": [0.1], "schedules": ["fedelim"], "threads": 1}
    monkeypatch.setattr(progress, "LINE_SECONDS", 3600.0)
    ff.simulate(SMALL, delta=0.1, trials=1, threads=1)  # compiled, if it was not yet
    ff.sweep(trials=20, part_size=5, out=tmp_path / "a", **options)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    ff.sweep(trials=20, part_size=5, out=tmp_path / "b", **options)
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert len(lines) >= 4
    assert lines[-1].startswith("fastfed: 20 of 20 trials, small, delta 0.1")
    ff.sweep(trials=20, part_size=5, out=tmp_path / "c", progress=False, **options)
    assert capsys.readouterr() == ("", "")


def test_compiling_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fastfed.api import progress
    from fastfed.kernels import compiling

    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(compiling, "under_way", lambda: True)
    ff.simulate(SMALL, delta=0.1, trials=2, threads=1, progress=True)
    assert ", compiling" in capsys.readouterr().err


def test_what_is_compiled_is_said_once_to_a_person(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from types import SimpleNamespace

    from fastfed.kernels import compiling
    from fastfed.kernels.adaptive import ChosenTimes
    from fastfed.kernels.rewards.gaussian import GaussianRewards
    from fastfed.kernels.uplinks.exact import ExactUplink

    classes = (GaussianRewards, ExactUplink, ChosenTimes)
    kinds = [SimpleNamespace(instance_class=one) for one in classes]
    monkeypatch.setattr(compiling, "_said", set())
    monkeypatch.setattr(compiling, "_quiet", quiet := Event())
    compiling.announce(kinds)
    assert capsys.readouterr().err == ""  # nobody sees it
    monkeypatch.setattr(compiling.sys.stderr, "isatty", lambda: True)
    compiling.announce(kinds[:1])  # a small kernel
    assert capsys.readouterr().err == ""
    compiling.announce(kinds)
    compiling.announce(kinds)
    assert capsys.readouterr().err == (
        "fastfed: compiling for gaussian rewards, exact uplinks, adaptive schedules: "
        "about 10 s, only once; `fastfed compile` does it ahead\n"
    )
    quiet.set()
    compiling.announce(kinds[:2])
    assert capsys.readouterr().err == ""


def test_ctrl_c_does_not_wait_for_a_long_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads are left behind if they do not stop at once."""
    import threading

    from fastfed.simulation.job import Job

    release, left = threading.Event(), threading.Event()
    run = Job.run

    def slow(self: Job, *arguments: object) -> object:
        if arguments[0]:
            release.wait(60)
            left.set()
        return run(self, *arguments)  # type: ignore[arg-type]

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Job, "run", slow)
    with pytest.raises(KeyboardInterrupt):
        ff.simulate(SMALL, delta=0.1, trials=2, threads=2, progress=interrupt)
    waited = left.is_set()
    release.set()
    assert not waited


def union(n: float, a: float) -> float:
    """Compute the paper's radius, as a user would write it."""
    return math.log(4 / a) + 2 * math.log(n)


def test_an_own_radius_can_be_replayed_and_reported_but_not_saved(tmp_path: Path) -> None:
    """A folder outlives the process, and cannot hold a function."""
    res = ff.simulate(
        [[0.9], [0.1]], "fedelim", delta=0.1, trials=5, radius=ff.Radius(union, name="union")
    )
    assert res.replay(3).row["pulls"] == res.frame["pulls"][3]
    assert res.summary([1.0])["radius"].to_list() == ["union"]
    assert "claims" in res.report(tmp_path / "report.html").read_text()
    refused(lambda: res.save(tmp_path / "folder"), "knows radii by name only")
    assert not (tmp_path / "folder").exists()


def test_an_own_radius_is_checked_as_the_radius_that_it_is() -> None:
    """A user's copy of the paper's radius has the same rows and the same sharp bounds.

    The closed forms belong to the paper's own radius alone. Lower bounds need a guarantee, and
    nobody but the user knows whether an own radius has one.
    """
    mine, paper = (
        ff.simulate(SMALL, NAMES, delta=0.1, trials=40, radius=radius).check([10])
        for radius in (ff.Radius(union, name="union"), "paper")
    )
    assert mine.frame["radius"].unique().to_list() == ["union"]
    same = ("error rate <= delta", "pulls <= sharp", "uplinks <= sharp")
    one, other = (
        found.frame.filter(pl.col("claim").is_in(same)).drop("radius", "applies")
        for found in (mine, paper)
    )
    assert one.height == 3 * len(NAMES)
    assert_frame_equal(one, other)
    assert not mine.frame["applies"].any()  # no theorem is known of an own radius
    wide = mine.frame.filter(claim="pulls <= 2T")["bound"].item()
    assert wide < paper.frame.filter(claim="pulls <= 2T")["bound"].item()
