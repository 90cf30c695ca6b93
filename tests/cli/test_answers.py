"""Commands that ask a sweep's folder, ranges in options, laws for files, help and completion."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
from command_line import ENVIRONMENT
from helpers import SMALL, built_in, refused, typed

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.cli import lists
from fastfed.errors import UncertainWarning

NAMES = ["fedelim", "fedelim0", "periodic:10"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With trials that erred: the radii are too small."""
    out = tmp_path_factory.mktemp("commands") / "results"
    ff.sweep(
        instances=SMALL,
        deltas=[0.5, 0.1],
        costs=[0, 10],
        schedules=NAMES,
        trials=40,
        sigma=0.35,
        out=out,
        threads=1,
        progress=False,
    )
    return out


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert cli.run(list(arguments)) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert cli.run(list(arguments)) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    return shown.err


# best


def test_best(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    law, *text = printed(capsys, "best", str(swept)).splitlines()
    assert law == "rewards: Gaussian(sigma=1.0)"
    assert "\n".join(text).replace("--all", ".frame") == str(ff.open_sweep(swept).best())
    every = printed(capsys, "best", str(swept), "--all")
    pieces = [piece for one in ff.open_sweep(swept).best().envelopes for piece in one.pieces]
    rows = [line for line in every.splitlines() if line.lstrip().startswith("0.")]
    assert len(rows) == len(pieces)
    assert all(piece.winner in row for piece, row in zip(pieces, rows, strict=True))
    table = printed(capsys, "best", str(swept), "--cost", "0,100").splitlines()
    assert len(table) == 2 + 1 + 2 * 2 + 1
    assert table[-1].startswith("compared over trials that all answered rightly, ")
    rows = json.loads(printed(capsys, "best", str(swept), "--cost", "0,100", "--format", "json"))
    assert [row["winner"] for row in rows] == ff.open_sweep(swept).best(costs=[0, 100])[
        "winner"
    ].to_list()
    assert json.loads(printed(capsys, "best", str(swept), "--format", "json"))[0]["cost_from"] == 0
    rows = json.loads(
        printed(capsys, "best", str(swept), "--bit-cost", "0,100", "--format", "json")
    )
    assert [row["winner"] for row in rows] == ff.open_sweep(swept).best(bit_costs=[0, 100])[
        "winner"
    ].to_list()
    assert "c of a bit" in printed(capsys, "best", str(swept), "--bit-cost", "0,100")


# plot


def test_the_usual_figures_stand_in_the_folder(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = printed(capsys, "plot", str(swept), "--cost", "10").splitlines()
    assert all(Path(path).parent == swept / "figures" for path in paths)
    assert len(paths) == 4


def test_a_figure_of_choice(swept: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["plot", str(swept), "--out", "f"]
    shown = printed(capsys, *ask, "--x", "cost", "--y", "total", "--cost", "1:1e3:log")
    assert shown.splitlines() == ["f/total-cost.png"]
    shown = printed(
        capsys, *ask, *typed("--y pulls --group schedule --errors quantiles --format svg,pdf")
    )
    assert shown.splitlines() == ["f/pulls-delta.svg", "f/pulls-delta.pdf"]
    assert "median" in Path("f/pulls-delta.svg").read_text(encoding="utf-8")
    assert "steps has sem only; use sem" in complaint(
        capsys, *ask, "--y", "steps", "--errors", "std"
    )
    shown = printed(capsys, *ask, "--x", "period", "--y", "communication")
    assert shown.splitlines() == ["f/communication-period-C0.png", "f/communication-period-C10.png"]
    assert "did you mean 'delta'" in complaint(capsys, *ask, "--x", "dleta")
    assert "no theorem bounds steps" in complaint(capsys, *ask, "--y", "steps", "--bounds")


def test_too_many_lines_for_one_figure(
    swept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastfed.display.series.MOST_LINES", 5)
    told = complaint(capsys, "plot", str(swept), "--x", "cost")
    assert "6 lines in one figure, at most 5: choose fewer values of --schedule" in told


# replay


def test_replay_a_row_of_a_folder(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["replay", str(swept), "--trial", "7", "--schedule", "fedelim", "--delta", "0.1"]
    shown = printed(capsys, *ask)
    row = (
        ff.open_sweep(swept).frame.filter(trial=7, schedule="fedelim", delta=0.1).row(0, named=True)
    )
    total = f"{row['pulls']:,} pulls (busiest client: {row['busiest']:,})"
    assert f"in all: {total}, {row['uplinks']:,} uplinks" in shown
    assert shown.startswith("small, fedelim, delta 0.1, seed 0, trial 7; rewards: Gaussian(")
    assert "40" in complaint(capsys, *ask[:3], "40", *ask[4:])
    first = printed(capsys, "replay", str(swept), *ask[4:])  # trial 0, as the help says
    assert "seed 0, trial 0;" in first
    assert "no such folder" in complaint(capsys, "replay", "synthetic", "--wrong")


def test_a_replay_of_a_folder_has_the_seed_of_its_rows(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = complaint(capsys, "replay", str(swept), "--seed", "5")
    assert "--seed 5 with a folder: its rows have it" in text


def test_the_trials_that_erred(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ff.open_sweep(swept).frame.filter(~pl.col("correct"))
    assert rows.height > 5
    assert len(
        json.loads(printed(capsys, "replay", str(swept), "--wrong", "--format", "json"))
    ) == (rows.height)
    some = rows.filter(schedule="fedelim", delta=0.5)
    shown = printed(
        capsys, "replay", str(swept), "--wrong", "--schedule", "fedelim", "--delta", "0.5"
    ).splitlines()
    assert shown[0] == "rewards: Gaussian(sigma=1.0)"
    assert "schedule fedelim, delta 0.5" in shown[1]
    assert len(shown) == 3 + some.height + 2
    assert [int(line.split()[0]) for line in shown[3:-2]] == some["trial"].to_list()
    command = shown[-1].split()[1:]
    assert "not every answer right" in printed(capsys, *command) or (
        "truncated" in printed(capsys, *command)
    )


# lists and ranges


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1:1e5:log", ["1", "10", "100", "1000", "10000", "100000"]),
        ("1:100:log5", ["1", "3", "10", "32", "100"]),
        ("1:4", ["1", "2", "3", "4"]),
        ("0:100:25", ["0", "25", "50", "75", "100"]),
        ("7, 1:3 ,7", ["7", "1", "2", "3"]),
        ("100:1:log", ["100", "10", "1"]),
    ],
)
def test_ranges_of_periods(text: str, values: list[str]) -> None:
    assert lists.numbers("period", [text], whole=True) == values


def test_names_of_instances_by_comma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a,b.csv").touch()
    assert lists.instances(["synthetic,bernoulli", "a,b.csv"]) == [
        "synthetic",
        "bernoulli",
        "a,b.csv",
    ]
    assert lists.instances(["random:5,3,1"]) == ["random:5,3,1"]


def test_ranges_of_numbers() -> None:
    assert lists.numbers("delta", ["0.1:0.001:log"]) == ["0.1", "0.01", "0.001"]
    assert lists.numbers("delta", ["0.1:0.3:0.1", "0.5"]) == ["0.1", "0.2", "0.3", "0.5"]
    assert lists.costs(["1:100:log"]) == [1, 10, 100]


@pytest.mark.parametrize(
    "text", ["1:2:3:4", "a:b", "3:1", "1:10:0", "0:10:log", "1:10:logx", "1:inf", "1:10:log0", ":"]
)
def test_no_ranges(text: str) -> None:
    refused(lambda: lists.numbers("period", [text]), f"--period {text!r}", "FROM:TO")


def test_a_range_is_not_endless() -> None:
    refused(lambda: lists.numbers("cost", ["0:1e9"]), "at most 100,000")
    refused(lambda: lists.numbers("cost", ["1:9:log99999999999"]), "at most 100,000")


def test_an_option_given_twice_is_two_lists() -> None:
    """Two options do not join what one list joins, such as threshold:0.4,0.05."""
    assert lists.choices("goal")(["threshold:0.4,0.05,top:2"]) == ["threshold:0.4,0.05", "top:2"]
    assert lists.choices("goal")(["threshold:0.4", "0.05"]) == ["threshold:0.4", "0.05"]
    assert lists.schedules(["at:1,5", "25"]) == ["at:1,5", "25"]


@pytest.mark.parametrize(
    "command",
    [
        "sweep --goal threshold:0.4 --goal 0.05",
        "sweep --schedule at:1,5 --schedule 25",
        "sweep --goal top:0_2",
        "sweep --goal eps:0_1",
        "sweep --goal threshold:0.1_0",
        "sweep --uplink dither:1_0",
        "sweep --uplink round:1_0",
        "sweep --radius mixture:1_000",
        "sweep --schedule periodic:1_0",
        "sweep --schedule exponential:1_0",
        "sweep --schedule at:1,1_0",
        "sweep --delta 0.0_1",
        "sweep --trials 1_0",
        "sweep --cost 1_0",
        "sweep --period 1:1_0",
        "sweep --period 1:10:log1_0",
        "sweep --instance random:1_0,3,1",
        "sweep --instance scaled:synthetic,1_0",
        "sweep --schedule periodic:١٠",
    ],
)
def test_numbers_that_only_python_reads(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    complaint(capsys, *command.split())


def test_an_empty_item_is_a_slip(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["sweep", "--delta"], ["bounds", "synthetic", "--delta"]):
        assert "'0.1,,0.2'" in complaint(capsys, *command, "0.1,,0.2")
    assert "--schedule" in complaint(capsys, "sweep", "--schedule", "fedelim,,fedelim0")


def test_sweep_over_a_range(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SMALL.save("small.toml")
    printed(
        capsys,
        *typed(
            "sweep --instance small.toml --delta 0.1:0.01:log --period 1:100:log --trials 3 "
            "--threads 1"
        ),
    )
    frame = ff.open_sweep("results").frame
    assert set(frame["schedule"]) == {
        "fedelim",
        "fedelim0",
        "periodic:1",
        "periodic:10",
        "periodic:100",
    }
    assert set(frame["delta"]) == {0.1, 0.01}


# laws and names of instances


def test_a_law_for_files_without_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.csv").write_text("0.9,0.1\n0.1,0.4\n")
    Path("q.toml").write_text('means = [[0.9], [0.1]]\nname = "quick"\n')
    common = ["--delta", "0.1", "--schedule", "fedelim", "--trials", "3", "--threads", "1"]
    for name in ("p.csv", "q.toml"):
        out = f"{name[0]}b.toml"
        shown = printed(capsys, "instance", name, "--rewards", "bernoulli", "--out", out)
        assert "rewards: Bernoulli()" in shown
    shown = printed(capsys, "sweep", "--instance", "pb.toml", "--instance", "qb.toml", *common)
    assert shown.splitlines()[0] == "rewards: Bernoulli()"
    assert {one.name: one.rewards for one in ff.open_sweep("results").instances.values()} == {
        "pb": ff.Bernoulli(),
        "qb": ff.Bernoulli(),
    }
    assert printed(capsys, "summary", "results").splitlines()[0] == "rewards: Bernoulli()"
    assert "rewards: Gaussian(sigma=0.5)" in printed(
        capsys, "instance", "p.csv", "--rewards", "gaussian:0.5"
    )
    for law in (ff.Bernoulli(), "bernoulli"):
        assert ff.Instance.load("p.csv", rewards=law).rewards == ff.Bernoulli()
    assert "bernouli" in complaint(capsys, "instance", "p.csv", "--rewards", "bernouli")
    assert "takes no option" in complaint(capsys, "instance", "p.csv", "--rewards", "bernoulli:1")
    Path("tied.csv").write_text("0.9,0.1\n0.9,0.4\n")
    assert cli.run(["instance", "tied.csv"]) == 0
    assert "note: tie for the best arm at client 0" in capsys.readouterr().err
    for known in ("synthetic", "bernoulli", "movielens"):
        assert "leave it out" in complaint(capsys, "instance", known, "--rewards", "bernoulli")


def test_bounds_take_the_scale_that_sweeps_take(capsys: pytest.CaptureFixture[str]) -> None:
    assert "sigma 0.5" in printed(capsys, "bounds", "bernoulli", "--sigma", "proxy")


def test_a_name_survives_its_file(folder: Path) -> None:
    ff.Instance(SMALL.means, name="two towns").save("x.toml")
    assert ff.Instance.load("x.toml").name == "two towns"
    ff.Instance(SMALL.means).save("y.toml")
    assert ff.Instance.load("y.toml").name == "y"
    Path("z.toml").write_text("means = [[1.0], [2.0]]\nname = 5\n")
    refused(lambda: ff.Instance.load("z.toml"), "name must be a string")


def test_observed_rewards_as_text(folder: Path) -> None:
    frame = pl.DataFrame(
        {
            "arm": ["a", "a", "b", "b"],
            "client": ["x", "y", "x", "y"],
            "reward": [1.0, 0.5, 0.0, 2.0],
            "count": [2, 1, 3, 4],
        }
    )
    for columns in (["arm", "client", "reward"], ["reward", "count", "client", "arm"]):
        frame.select(columns).write_parquet("r.parquet")
        frame.select(columns).write_csv("r.csv")
        with pytest.warns(UncertainWarning):
            found = ff.Instance.load("r.csv")
        with pytest.warns(UncertainWarning):
            same = ff.Instance.load("r.parquet")
        assert isinstance(found.rewards, ff.Finite)
        assert found == same
    Path("r.csv").write_text("arm,client,reward\na,x,much\n")
    refused(lambda: ff.Instance.load("r.csv"), "r.csv", "row 2", "'much'")
    Path("r.csv").write_text("arm,client,reward\n")
    refused(lambda: ff.Instance.load("r.csv"), "r.csv", "no rewards")


# help


def test_bare_help_has_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["movielens"]):
        cli.run(arguments)
        shown = capsys.readouterr()
        assert shown.err == ""
        assert shown.out.startswith("Usage: fastfed")
        assert len(shown.out.splitlines()) > 8


def commands(group: Any, before: str = "") -> Iterator[str]:
    """Every command that there is, as it is typed."""
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from commands(one, f"{before}{name} ")
        else:
            yield f"{before}{name}"


@pytest.mark.parametrize("command", list(commands(typer.main.get_command(cli.app))))
def test_help_has_examples_and_readable_names(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = printed(capsys, *command.split(), "-h")
    examples = shown.partition("Examples:\n")[2].splitlines()
    assert sum(line.strip().startswith("fastfed ") for line in examples[:2]) == 2
    options = shown.partition("Options:\n")[2]
    assert "<" not in options  # Typer writes <str> where nobody named what is wanted
    for option in re.split(r"\n  (?=-)", options):  # one that takes a value says its default
        if re.match(r" *--[a-z-]+ [A-Z]", option) and "required" not in option:
            assert "[" in option, option


def test_help_tells_defaults_and_the_grammar_of_schedules(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = printed(capsys, "sweep", "--help")
    assert text.count("\n") < 53  # a screen and a half at 80 columns
    shown = " ".join(text.split())
    for words in (
        "at:1,5,25",
        "exponential:1.5",
        "[0,10,100]",
        "1:1e5:log",
        "[0.1,0.05,0.01,0.005,0.001]",
        "LIST",
        "DIR",
    ):
        assert words in shown, words


COMPLETED = """
import contextlib, io, json, os, sys
from fastfed.cli import app as cli
found = {}
for line in json.loads(sys.argv[1]):
    os.environ.update(_FASTFED_COMPLETE="complete_bash", COMP_WORDS=line,
                      COMP_CWORD=str(len(line.split(" ")) - 1))
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        assert cli.run([]) == 0
    found[line] = shown.getvalue().split("\\n")[:-1]
heavy = [name for name in ("numba", "polars", "matplotlib", "scipy", "numpy")
         if name in sys.modules]
print(json.dumps([found, heavy]))
"""


@pytest.mark.process
def test_shell_completion(folder: Path) -> None:
    """Commands, and the names that options take, in lists as well; nothing heavy is imported."""
    (folder / "mine.csv").write_text("0.9\n0.1\n")
    (folder / "my results").mkdir()
    (folder / "mine.txt").write_text("no instance")
    wanted = {
        "fastfed be": ["best"],
        "fastfed bounds syn": ["synthetic"],
        "fastfed bounds m": ["movielens", "movielens-available", "mine.csv", "my results/"],
        "fastfed replay r": ["random:"],
        "fastfed sweep --instance sc": ["scaled:"],
        "fastfed sweep --schedule fed": ["fedelim", "fedelim0"],
        "fastfed sweep --schedule fedelim,pe": ["fedelim,periodic:"],
        "fastfed errors synthetic --radius mi": ["mixture", "mixture-pairs"],
        "fastfed sweep --radius paper,st": ["paper,stitched", "paper,stitched-pairs"],
        "fastfed sweep --goal be": ["best"],
        "fastfed sweep --uplink ex": ["exact"],
        "fastfed instance p.csv --rewards be": ["bernoulli"],
    }
    done = subprocess.run(
        [sys.executable, "-c", COMPLETED, json.dumps(list(wanted))],
        text=True,
        capture_output=True,
        check=True,
        env=ENVIRONMENT,
    )
    found, heavy = json.loads(done.stdout)
    assert found == wanted
    assert heavy == []


def test_completed_names_are_those_that_are_known() -> None:
    from fastfed.cli import completion
    from fastfed.model import rewards
    from fastfed.model import schedules as schedule
    from fastfed.model.instance_files import load as instance_files

    assert [name.strip(":") for name in completion.SCHEDULES] == built_in(schedule.Schedule)
    assert [name.strip(":") for name in completion.FAMILIES] == list(instance_files.FAMILIES)
    assert set(completion.instances("")) >= set(instance_files.builtin_names())
    assert set(completion.LAWS) == set(built_in(rewards.Rewards)) - {"finite"}
    assert set(completion.SUFFIXES) == set(instance_files._READERS)


# filters


@pytest.mark.parametrize("command", ["summary", "best", "check", "plot", "report"])
def test_filters(
    command: str, swept: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    which = ["--schedule", "fedelim,periodic:10", "--delta", "0.1", "--instance", "small"]
    which += ["--radius", "paper", "--goal", "best", "--uplink", "exact", "--sigma", "0.35"]
    some = ff.open_sweep(swept).filter(schedule=["fedelim", "periodic:10"], delta=0.1)
    if command in ("plot", "report"):
        every = printed(capsys, command, str(swept), "--out", "every").splitlines()
        shown = printed(capsys, command, str(swept), "--out", "some", *which).splitlines()
        assert 0 < Path(shown[0]).stat().st_size < Path(every[0]).stat().st_size
        return
    rows = json.loads(printed(capsys, command, str(swept), "--format", "json", *which))
    frame = {"summary": some.summary, "best": lambda: some.best().frame}.get(
        command, lambda: some.check().frame
    )()
    assert rows == json.loads(frame.write_json())
    assert "delta 0.3" in complaint(capsys, command, str(swept), "--delta", "0.3")


def test_compare(swept: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["compare", str(swept), "--by", "delta", "--cost", "10"]
    opened = ff.open_sweep(swept)
    found = opened.compare(by="delta", cost=10)
    assert printed(capsys, *ask).replace("--all", ".frame") == f"{found}\n"
    assert json.loads(printed(capsys, *ask, "--format", "json")) == json.loads(
        found.frame.write_json()
    )
    some = json.loads(
        printed(capsys, *ask, "--format", "json", "--schedule", "fedelim", "--to", "0.1")
    )
    assert {(row["schedule"], row["delta"], row["reference"]) for row in some} == {
        ("fedelim", 0.5, 0.1)
    }
    opened.save("copy")
    assert "equal" in printed(capsys, "compare", str(swept), "copy")
    named = printed(capsys, *ask[:2], "--by", "schedule")
    assert printed(capsys, *ask[:2]) == named  # the only choice with several values
    assert "all rows have radius" in complaint(capsys, *ask[:2], "--by", "radius")
    assert "leave one of them out" in complaint(capsys, *ask, "copy")


# tables


@pytest.mark.parametrize("command", ["summary", "best", "check", "compare"])
def test_tables_in_other_notations(
    command: str, swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = [command, str(swept), "--cost", "10"] + (
        ["--by", "delta"] if command == "compare" else []
    )
    shown = {}
    for form in ("csv", "markdown", "latex"):
        shown[form] = printed(capsys, *ask, "--format", form).splitlines()
    body = [line for line in shown["markdown"] if line.startswith("| ")]
    rows = [line for line in shown["latex"] if line.endswith(r"\\")]
    assert len(body) - 1 == len(rows) > 2
    assert len({line.count(" | ") for line in body}) == 1
    assert len({line.count(" & ") for line in rows}) == 1
    assert r"\end{tabular}" in shown["latex"]
    assert "must be one of text, markdown" in complaint(capsys, *ask, "--format", "latx")


def test_nothing_is_cut_in_a_pipe(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    long = ff.Instance([[0.9], [0.1]], name="an instance with a name that is very long " * 2)
    other = ff.Instance([[0.8], [0.1]], name="another one")
    schedules = ["fedelim", f"at:{','.join(map(str, range(100, 160)))}"]
    grid = {"deltas": [0.1], "trials": 5, "threads": 1, "progress": False, "out": "long"}
    ff.sweep(instances=[long, other], schedules=schedules, **grid)
    assert max(map(len, printed(capsys, "summary", "long").splitlines())) <= 120
    text = printed(capsys, "summary", "long", "--all")
    assert long.name.strip() in text
    assert schedules[1] in text
    monkeypatch.setattr("fastfed.display.table._room", lambda: 90)
    assert max(map(len, printed(capsys, "summary", "long").splitlines()[2:])) <= 90


def test_the_width_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastfed.display import table

    monkeypatch.setenv("COLUMNS", "77")
    assert table._room() > 10**6  # pytest captures stdout
    monkeypatch.setattr(table.sys.stdout, "isatty", lambda: True)
    assert table._room() == 77


def test_differences_have_intervals_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = ff.simulate(SMALL, ["fedelim", "fedelim0"], delta=0.1, trials=100)
    found = trials.compare(by="schedule", cost=10)
    first = found.frame.filter(measure="total").row(0, named=True)
    ends = f"[{first['difference_low']:+,.0f} to {first['difference_high']:+,.0f}]"
    assert ends in str(found)
    assert "Intervals of differences" not in str(found)
    monkeypatch.setattr("fastfed.display.table._room", lambda: 100)
    assert " to " not in str(found).partition("reference")[2].partition("total")[2]
    assert "Intervals of differences: .frame" in str(found)
