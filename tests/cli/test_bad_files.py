"""Files of instances and specs that are wrong, odd or no files at all: refused in one line."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_input import HUGE, assert_one_line, listing, refused_by_command
from helpers import SMALL

import fastfed as ff
from fastfed.cli import app as cli

INSTANCES: dict[str, tuple[str | bytes, str]] = {
    "ragged.csv": ("0.1,0.2\n0.3\n", "row 2"),
    "infinite.csv": ("0.1,0.2\n0.3,1e400\n", "inf"),
    "tie.csv": ("0.5,0.2\n0.5,0.4\n", "tie"),
    "tie-of-means.csv": ("0.1,0.4\n0.4,0.1\n", "tie"),
    "gap.csv": ("0.5,0.5\n0.500000001,0.9\n", "gap 1e-09"),
    "field.csv": ("0.1," + "9" * 200_000 + "\n0.3,0.4\n", "CSV"),
    "binary.csv": (bytes(range(256)), "binary.csv"),
    "clients.csv": ("arm,a,a\nx,0.1,0.3\ny,0.2,0.5\n", "'a'"),
    "names-only.csv": ("arm\nx\ny\n", "names-only.csv"),
    "twice.toml": ("means = [[1]]\nmeans = [[2]]\n", "TOML"),
    "deep.toml": ("means = [[[0.1]], [[0.2]]]\n", "means"),
    "no-clients.toml": ("means = [[], []]\n", "means"),
    "text.toml": ('means = [["high"], ["low"]]\n', "means"),
    "word.toml": ('means = "high"\n', "means"),
    "date.toml": ("means = 2024-01-01\n", "means"),
    "table.toml": ("[means]\na = 1\n", "means"),
    "huge.toml": (f"means = [[{HUGE}], [0.2]]\n", "means"),
    "tie.toml": ("means = [[0.5], [0.5]]\n", "tie"),
    "kind-number.toml": ("means = [[0.1], [0.2]]\n[rewards]\nkind = 3\n", "3"),
    "kind-list.toml": ("means = [[0.1], [0.2]]\n[rewards]\nkind = ['gaussian']\n", "gaussian"),
    "sigma-list.toml": ("means = [[0.1], [0.2]]\n[rewards]\nsigma = [1]\n", "sigma"),
    "sigma-huge.toml": (f"means = [[0.1], [0.2]]\n[rewards]\nsigma = {HUGE}\n", "sigma"),
    "arms-numbers.toml": ("means = [[0.1], [0.2]]\narms = [1, 2]\n", "arm"),
    "clients.toml": ("means = [[0.1], [0.2]]\nclients = ['a', 'b']\n", "client"),
    "nested.toml": ("means = " + "[" * 50_000, "nested.toml"),
    "quoted.toml": ('means = [["0.5"], ["0.1"]]\n', "means: must be a K x M matrix of numbers"),
    "boolean.toml": ("means = [[true], [false]]\n", "means: must be a K x M matrix of numbers"),
    "one-boolean.toml": ("means = [[0.5], [true]]\n", "means: must be a K x M matrix of numbers"),
    "digits.toml": (f"means = [[{'9' * 5000}], [1]]\n", "TOML"),
    "sigma-boolean.toml": ("means = [[0.1], [0.2]]\n[rewards]\nsigma = true\n", "sigma = True"),
    "large.toml": ("means = [[1e308], [-1e308]]\n", "too large"),
    **{
        f"finite-{name}.toml": (f'[rewards]\nkind = "finite"\n{rewards}\n', named)
        for name, rewards, named in (
            (
                "empty",
                "values = [0, 1]\nweights = [[[0, 0]], [[1, 1]]]\nempty = nan",
                "empty = nan",
            ),
            (
                "empty-far",
                "values = [0, 1]\nweights = [[[0, 0]], [[1, 1]]]\nempty = 1e308",
                "empty",
            ),
            (
                "empty-true",
                "values = [0, 1]\nweights = [[[0, 0]], [[1, 1]]]\nempty = true",
                "empty",
            ),
            ("values", "values = [0, 1e308]\nweights = [[[1, 0]], [[1, 1]]]", "values: 1e+308"),
            (
                "weights",
                "values = [0, 1]\nweights = [[[1, 1e308]], [[1e308, 1]]]",
                "weights: 1e+308",
            ),
            ("small", "values = [0, 1]\nweights = [[[1, 5e-324]], [[1, 1]]]", "weights: 4.9"),
            ("quoted", 'values = ["0", "1"]\nweights = [[[1, 0]], [[1, 1]]]', "must be numbers"),
            (
                "boolean",
                "values = [0, 1]\nweights = [[[true, false]], [[1, 1]]]",
                "must be numbers",
            ),
        )
    },
}

# Spec files

SPECS: dict[str, tuple[str | bytes, str]] = {
    "syntax.toml": ("delta = [0.1", "TOML"),
    "latin.toml": ("# é".encode("latin-1"), "UTF-8"),
    "key.toml": ("deltas = [0.1]\n", "did you mean 'delta'"),
    "section.toml": ("[sweep]\ndelta = 0.1\n", "'sweep'"),
    "out.toml": ('out = "elsewhere"\n', "'out'"),
    "nested.toml": ("delta = " + "[" * 50_000, "nested.toml"),
    "delta.toml": ("delta = [0.1, 2]\n", "delta"),
    "delta-text.toml": ('delta = "small"\n', "delta"),
    "delta-date.toml": ("delta = 2024-01-01\n", "delta"),
    "delta-time.toml": ("delta = [2024-01-01]\n", "delta"),
    "delta-deep.toml": ("delta = [[0.1]]\n", "delta"),
    "delta-table.toml": ("[delta]\na = 0.1\n", "delta"),
    "delta-huge.toml": (f"delta = {HUGE}\n", "delta"),
    "delta-none.toml": ("delta = []\n", "delta"),
    "cost.toml": ("cost = [0, -1]\n", "cost"),
    "cost-date.toml": ("cost = 2024-01-01\n", "cost"),
    "cost-huge.toml": (f"cost = [{HUGE}]\n", "cost"),
    "cost-none.toml": ("cost = []\n", "cost"),
    "schedule.toml": ('schedule = ["fedelin"]\n', "'fedelin'"),
    "schedule-number.toml": ("schedule = 3\n", "schedule 3: must be one of"),
    "schedule-date.toml": ("schedule = 2024-01-01\n", "schedule"),
    "schedule-none.toml": ("schedule = []\n", "schedule"),
    "period.toml": ("period = [10, 0]\n", "period"),
    "period-date.toml": ("period = 2024-01-01\n", "period"),
    "trials.toml": ("trials = 0\n", "trials"),
    "trials-true.toml": ("trials = true\n", "trials"),
    "trials-list.toml": ("trials = [10, 20]\n", "trials"),
    "trials-table.toml": ("[trials]\nn = 3\n", "trials"),
    "seed.toml": ("seed = -1\n", "seed"),
    "seed-date.toml": ("seed = 2024-01-01\n", "seed"),
    "engine.toml": ("engine = 3\n", "engine"),
    "engine-list.toml": ('engine = ["skip"]\n', "engine"),
    "sigma.toml": ("sigma = [1, 0]\n", "sigma"),
    "sigma-date.toml": ("sigma = 2024-01-01\n", "sigma"),
    "sigma-huge.toml": (f"sigma = {HUGE}\n", "sigma"),
    "steps.toml": ("max_steps = 0\n", "max_steps"),
    "steps-list.toml": ("max_steps = []\n", "max_steps"),
    "target.toml": ("target_rse = 5\n", "target_rse"),
    "target-list.toml": ("target_rse = [0.1]\n", "target_rse"),
    "target-huge.toml": (f"target_rse = {HUGE}\n", "target_rse"),
    "instance.toml": ('instance = "syntetic"\n', "'syntetic'"),
    "instance-file.toml": ('instance = ["missing.csv"]\n', "missing.csv"),
    "instance-number.toml": ("instance = 3\n", "3"),
    "instance-date.toml": ("instance = 2024-01-01\n", "instance"),
    "instance-none.toml": ("instance = []\n", "instance"),
    "instance-null.toml": ('instance = ["a\\u0000b.csv"]\n', "b.csv"),
    "instance-empty-table.toml": ("instance = [{}]\n", "instance"),
    "instance-table.toml": ("[instance]\nname = 3\n", "instance"),
    "instance-other.toml": ("instance = [{means = [[1], [0]]}]\n", "instance"),
    "instance-number-toml.toml": ("instance = [{toml = 3}]\n", "instance"),
    "instance-bad-toml.toml": ('instance = [{name = "mine", toml = "means ="}]\n', "mine"),
    "instance-tie.toml": ('instance = [{toml = "means = [[1], [1]]"}]\n', "tie"),
    "broken.json": ('{"spec": ', "JSON"),
    "list.json": ("[1, 2]", "spec"),
    "other.json": ('{"delta": [0.1]}', "spec"),
    "number.json": ('{"spec": 3}', "spec"),
    "key.json": ('{"spec": {"deltas": [0.1]}}', "'deltas'"),
    "latin.json": ('{"spec": "é"}'.encode("latin-1"), "UTF-8"),
    "nested.json": ("[" * 200_000, "nested.json"),
    "delta.json": ('{"spec": {"delta": [0]}}', "delta"),
    "null.json": ('{"spec": {"delta": [null]}}', "delta"),
    "nan.json": ('{"spec": {"cost": [NaN]}}', "cost"),
    "huge.json": (f'{{"spec": {{"cost": [{HUGE}]}}}}', "cost"),
}


def written(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.parametrize("name", INSTANCES)
def test_bad_instance(name: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """More files that the reader refuses are in ``tests/model/test_instance.py``."""
    content, named = INSTANCES[name]
    refused_by_command(["replay", written(place / name, content)], named, place, capsys)


@pytest.mark.parametrize("name", SPECS)
def test_bad_spec(name: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, named = SPECS[name]
    refused_by_command(
        ["sweep", "--spec", written(place / f"spec-{name}", content)], named, place, capsys
    )


# What is no regular file


def of_other_kind(path: Path) -> str:
    """Make something that is no regular file, by its name.

    The kinds are a folder, a device, a pipe, memory that cannot be read, and half a gigabyte.
    """
    if path.stem == "folder":
        path.mkdir()
    elif path.stem == "pipe":
        os.mkfifo(path)
    elif path.stem == "sparse":
        path.touch()
        os.truncate(path, 2**29)
    else:  # reading memory fails, even for root
        path.symlink_to({"zero": "/dev/zero", "memory": "/proc/self/mem"}[path.stem])
    return str(path)


@pytest.mark.parametrize(
    ("command", "name", "named"),
    [
        *((["sweep", "--instance"], f"memory.{kind}", "memory") for kind in ("csv", "toml")),
        *((["sweep", "--instance"], f"folder.{kind}", "folder") for kind in ("csv", "toml")),
        *(
            (["sweep", "--instance"], f"zero.{kind}", "a pipe or device")
            for kind in ("csv", "toml", "parquet")
        ),
        *((["replay"], f"pipe.{kind}", "a pipe or device") for kind in ("csv", "toml", "parquet")),
        *(
            (["bounds"], f"sparse.{kind}", "bytes, more than")
            for kind in ("csv", "toml", "parquet")
        ),
        (["sweep", "--spec"], "memory.toml", "memory"),
        (["sweep", "--spec"], "folder.toml", "folder"),
    ],
)
def test_no_regular_file(
    command: list[str], name: str, named: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused_by_command([*command, of_other_kind(place / name)], named, place, capsys)


# Observed rewards


def observed(place: Path, **columns: Any) -> str:
    path = place / "seen.parquet"
    pq.write_table(pa.table(columns), path)
    return str(path)


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"arm": [], "client": [], "reward": []}, "column 'arm' holds null"),
        ({"arm": ["a"], "client": ["x"]}, "no column 'reward'"),
        ({"arm": ["a", None], "client": ["x", "x"], "reward": [1.0, 2.0]}, "1 in arm"),
        (
            {"arm": ["a", "a"], "client": ["x", "x"], "reward": [1.0, 1.0], "count": [1, None]},
            "a missing value in 1 of 2 rows (1 in count)",
        ),
        (
            {"arm": ["a", "a"], "client": ["x", "x"], "reward": [1.0, 1.0], "count": [-1, 3]},
            "negative",
        ),
        ({"arm": ["a"], "client": ["x"], "reward": ["much"]}, "'much' is no number"),
        ({"arm": [["a"]], "client": ["x"], "reward": [1.0]}, "column 'arm' holds list"),
        ({"arm": ["a", "b"], "client": ["x", "x"], "reward": [1e308, 0.0]}, "too large"),
        (
            {"arm": ["a", "b"], "client": ["x", "x"], "reward": [float("nan"), 0.0]},
            "--drop-missing",
        ),
        ({"arm": ["a", "b"], "client": ["x", "x"], "reward": [float("inf"), 0.0]}, "finite"),
        (
            {
                "arm": [f"a{i}" for i in range(30_000)],
                "client": [f"c{i}" for i in range(30_000)],
                "reward": [1.0] * 30_000,
            },
            "at most 10,000,000 cells",
        ),
        (
            {
                "arm": [f"a{i % 400}" for i in range(40_000)],
                "client": [f"c{i // 400}" for i in range(40_000)],
                "reward": [float(i) for i in range(40_000)],
            },
            "at most 2,000,000 weights",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_observed_rewards(
    place: Path, columns: dict[str, Any], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = cli.run(["bounds", observed(place, **columns)])
    assert_one_line(status, capsys.readouterr(), named)


# What is odd and right


def test_a_mark_at_the_beginning_of_a_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Some editors put one there."""
    (place / "marked.toml").write_text("means = [[0.9], [0.1]]\n", encoding="utf-8-sig")
    (place / "marked.csv").write_text("0.9\n0.1\n", encoding="utf-8-sig")
    assert ff.Instance.load("marked.toml") == ff.Instance.load("marked.csv")
    (place / "spec.toml").write_text('instance = "marked.toml"\ntrials = 2\n', encoding="utf-8-sig")
    assert cli.run(["sweep", "--spec", "spec.toml", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["a $\\frac{$ b", "$x", "中文", "\x1b[31m", "a_b^c{", "%s \\"])
@pytest.mark.usefixtures("place")
def test_names_in_figures(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Matplotlib reads formulas between dollar signs, and warns of letters that it lacks."""
    inst = ff.Instance([[0.9, 0.1], [0.1, 0.4]], name=name)
    ff.sweep(
        instances=[inst],
        deltas=[0.1],
        costs=[1e100],
        trials=3,
        out="r",
        threads=1,
        schedules=["fedelim"],
    )
    assert cli.run(["plot", "r", "--x", "delta"]) == 0
    assert capsys.readouterr().err == ""


def test_full_disk_under_an_instance(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stays, or there is none."""

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    finite = ff.Instance(rewards=ff.Finite([0, 1], [[[1, 3]], [[3, 1]]]))
    for name, inst in (("a.toml", SMALL), ("a.csv", SMALL), ("a.parquet", finite)):
        before = listing(place)
        with pytest.raises(ff.InputError, match=f"{name}: cannot be written .No space left"):
            inst.save(name)
        (place / name).write_text("old")
        with pytest.raises(ff.InputError, match="No space left"):
            inst.save(name)
        assert listing(place) == {**before, name: b"old"}


def test_many_named_arms_take_no_square_of_time() -> None:
    """Comparing every name with every other would take minutes."""
    names = [f"arm {i}" for i in range(100_000)]
    means = [[float(i)] for i in range(100_000)]
    assert ff.Instance(means, arms=names).arms[-1] == "arm 99999"
