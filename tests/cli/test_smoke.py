"""Smoke test of every command, each in its own process.

`.ci/versions` runs this file with the lowest and with the newest versions of the dependencies.
A command passes if its exit status is 0, stderr holds no traceback or warning, and stdout holds a
word that only the right answer contains.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import polars as pl
import pytest
import typer
from command_line import fastfed

from fastfed.cli import app as cli

pytestmark = pytest.mark.slow

PROGRAM = typer.main.get_command(cli.app)
GRID = ["--instance", "synthetic", "--instance", "bernoulli", "--delta", "0.1", "--trials", "20"]
COMMANDS = {
    "summary": (["summary", "results"], "fedelim0"),
    "summary as csv": (["summary", "results", "--format", "csv"], "ratio_to_fedelim0"),
    "merge": (["merge", "results", "--out", "merged"], "parts added"),
    "best": (["best", "results"], "cheapest"),
    "compare": (["compare", "results", "--by", "schedule"], "fedelim0"),
    "missing": (["missing", "results", "--shards", "2"], ""),
    "plot": (["plot", "results", "--out", "figures", "--format", "png,svg,pdf",
              "--instance", "synthetic"], ".svg"),
    "plot of a column": (["plot", "results", "--out", "steps", "--x", "delta", "--y", "steps"],
                         "steps"),
    "trials that erred": (["replay", "results", "--wrong", "--instance", "synthetic"], "trial"),
    "replay": (["replay", "results", "--trial", "3", "--schedule", "fedelim",
                "--instance", "synthetic"], "pulls"),
    "report": (["report", "results"], "report.html"),
    "bounds": (["bounds", "synthetic"], "T* = 839.7"),
    "check": (["check", "results"], "claim "),
    "errors": (["errors", "synthetic", "--trials", "200"], "1e-"),
    "instances": (["instances"], "movielens"),
    "instance": (["instance", "synthetic", "--out", "again.toml"], "again.toml"),
    "compile": (["compile"], "4 kernels"),
    "movielens": (["movielens", "build", "ratings", "--out", "mine.parquet"], "mine.parquet"),
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder that holds a small sweep and a small data set in MovieLens' format."""
    folder = tmp_path_factory.mktemp("smoke")
    ran(folder, "sweep", *GRID, expected="fedelim0")
    files = {
        "user_ratedmovies.dat": ["userID\tmovieID\trating", "1\t1\t4", "1\t2\t2"],
        "movie_countries.dat": ["movieID\tcountry", "1\tUSA", "2\tUSA"],
        "movie_genres.dat": ["movieID\tgenre", "1\tDrama", "2\tComedy"],
    }
    (folder / "ratings").mkdir()
    for name, lines in files.items():
        (folder / "ratings" / name).write_text("\n".join(lines) + "\n")
    return folder


def ran(folder: Path, *arguments: str, expected: str) -> subprocess.CompletedProcess[str]:
    """Run a command in ``folder`` and check how it ended."""
    done = fastfed(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    return done


@pytest.mark.parametrize("name", COMMANDS)
def test_command(name: str, place: Path) -> None:
    arguments, expected = COMMANDS[name]
    ran(place, *arguments, expected=expected)


@pytest.mark.parametrize("name", PROGRAM.commands)
def test_help(name: str, tmp_path: Path) -> None:
    ran(tmp_path, name, "--help", expected="--help")


def test_unknown_option_is_refused(tmp_path: Path) -> None:
    done = fastfed("sweep", "--trails", "20", cwd=tmp_path)
    assert done.returncode == 2
    assert "--trails" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_sweep_wrote_all_rows(place: Path) -> None:
    rows = pl.read_parquet(place / "results" / "trials" / "*.parquet")
    assert rows.height == 2 * 9 * 20
    assert rows["correct"].all()


def test_reproduce(place: Path) -> None:
    ran(place, "reproduce", "--quick", "--trials", "2", "--only", "synthetic", expected="claims.md")


def test_every_command_is_run() -> None:
    names = {arguments[0] for arguments, _ in COMMANDS.values()} | {"sweep", "reproduce"}
    assert names == set(PROGRAM.commands)
