"""The command line: called in this process, each command twice; in another only where it must."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from command_line import GRID, fastfed, on_a_terminal, twice, without_progress
from helpers import SMALL, typed

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.sweeps import task as tasks


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter the folder in which commands run."""
    monkeypatch.chdir(tmp_path)
    SMALL.save(tmp_path / "small.toml")
    return tmp_path


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a sweep to read from."""
    out = tmp_path_factory.mktemp("swept") / "results"
    ff.sweep(
        instances=[SMALL, "synthetic"],
        deltas=[0.1, 0.01],
        costs=[0, 10],
        periods=[10],
        schedules=["fedelim", "fedelim0"],
        trials=25,
        out=out,
        threads=1,
    )
    return out


# sweep


def test_sweep(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = twice(capsys, "sweep", "--instance", "small.toml", *GRID)
    assert {path.name for path in (folder / "results").iterdir()} >= {
        "sweep.json",
        "summary.parquet",
        "trials",
    }
    rows = pl.read_parquet("results/trials/*.parquet")
    assert rows.height == 3 * 20
    lines = shown.splitlines()
    assert lines[0] == "rewards: Gaussian(sigma=1.0)"
    assert len(lines) == 3 + 3 + 2 + 3
    assert [line[:5] for line in lines[-5:]] == ["x che", "x T*:", "All 9", "Next,", "  fas"]
    assert "fastfed summary results --all" in lines[-3]
    assert lines[-1].startswith("  fastfed sweep --spec results/sweep.json")


def test_sweep_again_touches_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sweep", "--instance", "small.toml", *GRID]
    assert cli.run(command) == 0
    before = {
        path: path.stat().st_mtime_ns
        for path in (folder / "results").rglob("*.*")
        if path.name != ".lock"
    }
    twice(capsys, *command)
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_sweep_shows_what_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """The folder may hold more."""
    twice(capsys, "sweep", "--instance", "small.toml", *GRID)
    shown = twice(
        capsys,
        *typed(
            "sweep --instance small.toml --delta 0.2 --schedule fedelim --cost 7 --trials "
            "5 --threads 1"
        ),
    )
    _, above, _, row, *_ = shown.splitlines()
    assert above == "all rows: small, delta 0.2, C 7, 5 trials"
    assert "All 1 rows: " in shown
    assert row.split()[0] == "fedelim"


def test_lists_by_comma_or_by_repeating(folder: Path) -> None:
    common = ["--instance", "small.toml", "--trials", "3", "--threads", "1", "--quiet"]
    assert (
        cli.run(
            [
                "sweep",
                *common,
                "--delta",
                "0.1, 0.2",
                *typed("--cost 1,2 --period 3,4 --schedule at:1,2,4,8,fedelim,at:1,3 --out a"),
            ]
        )
        == 0
    )
    assert (
        cli.run(
            [
                "sweep",
                *common,
                *typed(
                    "--delta 0.1 --delta 0.2 --cost 1 --cost 2 --period 3 --period 4 --schedule "
                    "at:1,2,4,8 --schedule fedelim --schedule at:1,3 --out b"
                ),
            ]
        )
        == 0
    )
    records = [(folder / name / "sweep.json").read_text() for name in "ab"]
    assert records[0] == records[1]
    spec = json.loads(records[0])["spec"]
    assert spec["schedule"] == ["at:1,2,4,8", "fedelim", "at:1,3", "periodic:3", "periodic:4"]


def test_numbers_in_any_usual_way(folder: Path) -> None:
    assert (
        cli.run(
            typed(
                "sweep --instance small.toml --trials 1e1 --max-steps 1e6 --delta 1e-1 "
                "--period 1e2 --quiet"
            )
        )
        == 0
    )
    spec = json.loads((folder / "results" / "sweep.json").read_text())["spec"]
    assert (spec["trials"], spec["max_steps"], spec["delta"]) == (10, 1_000_000, [0.1])
    assert "periodic:100" in spec["schedule"]


def test_costs_of_a_bit(capsys: pytest.CaptureFixture[str]) -> None:
    """Alone they are what is shown; the summary has the usual costs of an uplink as well."""

    def heads(shown: str) -> list[str]:
        return next(line for line in shown.splitlines() if "total ± sem" in line).split()[:5]

    grid = ["sweep", "--instance", "small.toml", *GRID]
    shown = twice(capsys, *grid, "--bit-cost", "0.5,2")
    assert heads(shown) == ["c", "of", "a", "bit", "cheapest"]
    assert len(ff.open_sweep("results").summary()) == 3 * (3 + 2)
    both = twice(capsys, *grid, "--bit-cost", "0.5", "--cost", "1")
    assert heads(both) == ["C", "c", "of", "a", "bit"]


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert twice(capsys, "sweep", "--instance", "small.toml", *GRID, "--quiet") == ""


@pytest.mark.process
def test_no_bar_where_there_is_no_terminal() -> None:
    done = fastfed("sweep", "--instance", "small.toml", *GRID)
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    assert done.stdout.splitlines()[1].startswith("all rows: small")


@pytest.mark.process
def test_bar_on_a_terminal_and_results_on_stdout() -> None:
    bar, table = on_a_terminal("sweep", "--instance", "small.toml", *GRID)
    for part in ("small, delta 0.1", "100%", "trials/s", "pulls/s"):
        assert part in bar
    assert table.splitlines()[1].startswith("all rows: small")
    assert "\x1b" not in table


@pytest.mark.usefixtures("terminal")
def test_table_fits_120_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the numbers: small gaps, dear uplinks, long names, truncated trials."""
    ff.Instance(SMALL.means * 0.001, name="x").save("a rather long name of an instance.toml")
    shown = twice(
        capsys,
        "sweep",
        "--instance",
        "small.toml",
        "--instance",
        "a rather long name of an instance.toml",
        *typed(
            "--delta 0.1,0.00012345678 --cost 0,0.012345678,123456.789,1e15 --schedule "
            "fedelim,fedelim0,exponential:1.0123456789,superexponential,at:1,2,3,4,5,6,7,8,9,10 "
            "--period 1,1e9 --trials 4 --threads 1"
        ),
    )
    assert cli.run(["summary", "results"]) == 0
    for text in (shown, capsys.readouterr().out):
        table = text.splitlines()
        assert [line for line in table if len(line) > 120 and "Files in" not in line] == []
        assert any(line.startswith("note: some trials did not end") for line in table)


# summary


def test_summary(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = twice(capsys, "summary", str(swept)).splitlines()
    assert len(shown) <= 30
    assert "22 of 24 rows; all of them: --all" in shown
    shown = twice(capsys, "summary", str(swept), "--all").splitlines()
    assert len(shown) == 3 + 2 * 2 * 3 * 2 + 2
    assert max(map(len, shown)) <= 100
    assert sum(line.startswith("synthetic") for line in shown) == 12


def test_summary_as_json_and_csv(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = pl.read_parquet(swept / "summary.parquet")
    told = json.loads(twice(capsys, "summary", str(swept), "--format", "json"))
    assert told == stored.to_dicts()
    comma = pl.read_csv(
        twice(capsys, "summary", str(swept), "--format", "csv").encode(), schema=stored.schema
    )
    assert comma.equals(stored)


def test_summary_of_a_lone_arm_is_valid_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is pulled: the ratio is 0 / 0."""
    Path("lone.csv").write_text("0.5,0.7\n")
    twice(capsys, "sweep", "--instance", "lone.csv", *GRID)
    shown = twice(capsys, "summary", "results", "--format", "json")

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    told = json.loads(shown, parse_constant=refuse)
    assert {row["pulls_mean"] for row in told} == {0.0}


def test_summary_for_other_costs_reads_only(
    swept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("nothing is simulated again")

    monkeypatch.setattr(tasks, "compute", never)
    before = {path: path.read_bytes() for path in swept.rglob("*") if path.is_file()}
    told = json.loads(
        twice(capsys, "summary", str(swept), "--cost", "1,3", "--cost", "7", "--format", "json")
    )
    assert before == {path: path.read_bytes() for path in swept.rglob("*") if path.is_file()}
    assert {row["cost"] for row in told} == {1.0, 3.0, 7.0}
    rows = pl.read_parquet(swept / "trials" / "*.parquet")
    for row in told:
        one = rows.filter(
            pl.col("instance") == row["instance"],
            pl.col("delta") == row["delta"],
            pl.col("schedule") == row["schedule"],
        )
        total = one["pulls"] + row["cost"] * one["uplinks"]
        assert row["total_mean"] == pytest.approx(total.mean())


def test_summary_while_a_sweep_holds_the_folder(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fastfed.storage.folder import Store

    with Store(swept).lock():
        twice(capsys, "summary", str(swept))


def test_summary_of_a_sweep_without_rows_yet(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed before its first part: nothing to show is no reason to fall over."""
    twice(capsys, "sweep", "--instance", "small.toml", *GRID)
    for path in (folder / "results" / "trials").iterdir():
        path.unlink()
    for options in ([], ["--format", "json"], ["--format", "csv"]):
        status = cli.run(["summary", "results", *options])
        told = capsys.readouterr().err
        assert (status, told) == (0, "") or (status == 2 and told.startswith("fastfed: "))


# replay, instances


def test_replay(capsys: pytest.CaptureFixture[str]) -> None:
    shown = twice(
        capsys, *typed("replay synthetic --schedule periodic:100 --delta 0.05 --seed 3 --trial 17")
    ).splitlines()
    row = ff.simulate(
        ff.Instance.load("synthetic"), "periodic:100", delta=0.05, trials=18, seed=3, threads=1
    ).frame.row(17, named=True)
    assert shown[0] == (
        "synthetic, periodic:100, delta 0.05, seed 3, trial 17; rewards: Gaussian(sigma=1.0)"
    )
    assert f"{row['pulls']:,} pulls (" in shown[-1]
    assert f" {row['uplinks']:,} uplinks" in shown[-1]


def test_replay_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(
        twice(capsys, "replay", "small.toml", "--format", "json", "--sigma", "2", "--seed", "3")
    )
    story = ff.replay(SMALL, "fedelim", delta=0.01, sigma=2.0, seed=3)
    assert told == story.frame.to_dicts()
    assert {event["event"] for event in told} == {"eliminated", "declared"}


def test_instances(capsys: pytest.CaptureFixture[str]) -> None:
    shown = twice(capsys, "instances")
    (line,) = [line for line in shown.splitlines() if line.startswith("synthetic ")]
    assert {"4", "3", "0.4", "0.1333"} <= set(line.split())
    assert "random:K,M,SEED" in shown


# Names

NASTY = "a\x1b]0;owned\x07\x1b[31m\u202e $\\frac{$ \r\x9b \u2028"


def test_names_that_a_terminal_would_obey(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters are shown escaped, whatever prints a name."""
    inst = ff.Instance([[0.9, 0.1], [0.1, 0.4]], arms=[NASTY, "b\nc"], clients=["x\x1b[2J", "y\n"])
    path = f"{NASTY}.toml"
    inst.save(path)
    for command in (
        ["sweep", "--instance", path, *GRID],
        ["summary", "results"],
        ["check", "results"],
        ["replay", path],
        ["bounds", path],
        ["plot", "results"],
        ["sweep", "--instance", f"{NASTY}.csv"],
        ["replay", NASTY],
        ["sweep", "--schedule", NASTY],
        ["sweep", "--engine", NASTY],
        ["sweep", "--dask", NASTY],
        ["sweep", NASTY],
        ["sweep", f"--{NASTY}"],
    ):
        status = cli.run(command)
        told = capsys.readouterr()
        assert status in (0, 2), told
        text = (told.out + told.err).replace("\n", "")
        assert text.isprintable(), command
        if status == 2:
            assert told.err.count("\n") == 1


def test_a_name_with_a_line_break_is_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    plain = ff.Instance([[0.9, 0.1], [0.1, 0.4]], arms=["b", "cc"])
    odd = ff.Instance([[0.9, 0.1], [0.1, 0.4]], arms=["b", "c\nc"])
    plain.save("plain.toml")
    odd.save("odd.toml")
    for command in ("replay", "bounds"):
        lines = [
            len(twice(capsys, command, name).splitlines()) for name in ("plain.toml", "odd.toml")
        ]
        assert lines[0] == lines[1]


@pytest.mark.process
def test_bar_of_a_name_with_markup(folder: Path) -> None:
    """Rich reads [/x] as the end of a style."""
    (folder / "spec.toml").write_text(
        'instance = [{name = "a [/x]", toml = "means = [[0.9, 0.1], [0.1, 0.4]]"}]\n'
    )
    bar, _ = on_a_terminal("sweep", "--spec", "spec.toml", *GRID)
    assert "a [/x], delta 0.1" in bar
