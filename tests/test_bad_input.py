"""Bad input and bad luck: exit status 2, one line that names what is wrong, nothing half-written.

Each case is a name, the arguments, and what the line must name. ``{...}`` in an argument is a file
or folder of `FILES` and `FOLDERS`, made for the case.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import SMALL

import fastfed as ff
from fastfed import cli

HUGE = "1" + "0" * 400  # a whole number that no float holds

# Values of options

OPTIONS: dict[str, list[str]] = {
    "--delta": ["0", "1", "-0.1", "1.5", "nan", "inf", "abc", "", ",", "0.1;0.2", "1e-400", "0.1,x",
                "10%", "0x1", "5e-324", "1e-301"],
    "--cost": ["-1", "nan", "inf", "-inf", "ten", "", "1,,x", "1e308", "1e101"],
    "--period": ["0", "-5", "1.5", "x", "9007199254740993", "nan", "inf"],
    "--schedule": ["fedelin", "periodic", "periodic:", "periodic:0", "periodic:x", "exponential:1",
                   "exponential:0.5", "exponential:abc", "exponential:inf", "exponential:nan",
                   "exponential:1.0000000001", "exponential:1e308", "at:", "at:5,1", "at:0,1",
                   "at:1,1", "at:x", "fedelim:3", "superexponential:2", "", "fedelim,fedelim",
                   "Periodic(100)", "at:1.5"],
    "--trials": ["0", "-1", "1.5", "abc", "1e12", "nan", "inf", "", "1" * 5000],
    "--seed": ["-1", "1.5", "abc", "18446744073709551616", "nan", ""],
    "--threads": ["0", "-2", "many", "1.5", "5000", ""],
    "--engine": ["fast", "SKIP", "", "skip,dense"],
    "--sigma": ["0", "-1", "nan", "inf", "x"],
    "--max-steps": ["0", "-1", "abc", "1e17", "0.5", ""],
    "--target-rse": ["0", "1", "-0.1", "abc", "nan", "2", "inf", ""],
    "--instance": ["", "syntetic", "no such", "random:1", "random:a,b,c", "random:0,3,1",
                   "random:3,0,1", "random:2,2,-1", "random:100000,100000,1", "random:2,2,1,1",
                   "random:2000,2000,1", "random:501,500,1",
                   "random:", "scaled:synthetic", "scaled:synthetic,0", "scaled:synthetic,-1",
                   "scaled:synthetic,x", "scaled:nope,1", "scaled:,1", "scaled:synthetic,nan",
                   "scaled:synthetic,1e-9", "scaled:synthetic,1e400", "scaled:synthetic,1e-400",
                   "missing.csv", "missing.toml", "folder/missing.toml", "file.txt", "folder",
                   "x" * 5000 + ".csv"],
    "--spec": ["missing.toml", "missing.json", "", "x" * 5000],
    "--out": ["file.txt", "file.txt/below", "file.txt/below/deep", "/dev/null", "/dev/full/results",
              "/proc/no/such/folder", "x" * 5000, "dangling"],
}

BOUNDS: dict[str, list[str]] = {
    "--delta": ["5e-324", "0", "x"],
    "--cost": ["1e308", "-1"],
    "--base": ["1e308", "1", "x"],
    "--period": ["0", "x"],
    "--sigma": ["0", "x", "nan"],
}

REPLAY: dict[str, list[str]] = {
    "--schedule": ["fedelin", "periodic:0", "fedelim,fedelim0", ""],
    "--delta": ["0", "1", "x", "0.1,0.2"],
    "--seed": ["-1", "x"],
    "--trial": ["-1", "1.5", "abc", "1e30", ""],
    "--sigma": ["0", "x"],
    "--max-steps": ["0", "x"],
}

USAGE: dict[str, tuple[list[str], str]] = {
    "unknown command": (["swep"], "swep"),
    "unknown option": (["sweep", "--trails", "10"], "--trails"),
    "unknown option of the program": (["--verbose", "sweep"], "--verbose"),
    "option without its value": (["sweep", "--trials"], "--trials"),
    "flag with a value": (["sweep", "--quiet=3"], "--quiet"),
    "stray argument of sweep": (["sweep", "synthetic"], "synthetic"),
    "summary of nothing": (["summary"], "DIR"),
    "summary of two": (["summary", "a", "b"], "b"),
    "summary in two forms": (["summary", "{good}", "--json", "--csv"], "--json"),
    "summary with a bad cost": (["summary", "{good}", "--cost", "-1"], "-1"),
    "summary with a cost that is no number": (["summary", "{good}", "--cost", "x"], "'x'"),
    "summary without costs": (["summary", "{good}", "--cost", ""], "cost"),
    "replay of nothing": (["replay"], "argument"),
    "replay of an unknown instance": (["replay", "syntetic"], "did you mean 'synthetic'"),
    "replay of a gap that is too small": (["replay", "{gap.csv}"], "gap 1e-09"),
    "stray argument of instances": (["instances", "all"], "all"),
    "two instances of one name": (
        ["sweep", "--instance", "{small.toml}", "--instance", "{other/small.toml}"], "'small'"),
    "steps beyond counting": (
        ["sweep", "--instance", "random:60,60,1", "--max-steps", "4503599627370496"], "max_steps"),
}

# Files of instances: every one is tried with `sweep` and with `replay`

INSTANCES: dict[str, tuple[str | bytes, str]] = {
    "empty.csv": ("", "empty"),
    "blank.csv": ("\n\n  \n", "empty"),
    "header.csv": ("arm,a,b\n", "header"),
    "ragged.csv": ("0.1,0.2\n0.3\n", "row 2"),
    "text.csv": ("0.1,0.2\n0.3,high\n", "'high'"),
    "nan.csv": ("0.1,0.2\n0.3,nan\n", "'nan'"),
    "hole.csv": ("0.1,0.2\n0.3,\n", "''"),
    "infinite.csv": ("0.1,0.2\n0.3,1e400\n", "inf"),
    "tie.csv": ("0.5,0.2\n0.5,0.4\n", "tie"),
    "tie-of-means.csv": ("0.1,0.4\n0.4,0.1\n", "tie"),
    "gap.csv": ("0.5,0.5\n0.500000001,0.9\n", "gap 1e-09"),
    "quote.csv": ('0.1,"0.2\n0.3,0.4\n', "CSV"),
    "field.csv": ("0.1," + "9" * 200_000 + "\n0.3,0.4\n", "CSV"),
    "latin.csv": ("é,a\nx,0.4\n".encode("latin-1"), "UTF-8"),
    "binary.csv": (bytes(range(256)), "binary.csv"),
    "arms.csv": ("arm,a\nx,0.1\nx,0.2\n", "'x'"),
    "clients.csv": ("arm,a,a\nx,0.1,0.3\ny,0.2,0.5\n", "'a'"),
    "names-only.csv": ("arm\nx\ny\n", "names-only.csv"),
    "empty.toml": ("", "means"),
    "syntax.toml": ("means = [[0.1, 0.2]", "TOML"),
    "twice.toml": ("means = [[1]]\nmeans = [[2]]\n", "TOML"),
    "latin.toml": ('description = "é"'.encode("latin-1"), "UTF-8"),
    "no-means.toml": ('description = "x"\n', "means"),
    "key.toml": ("means = [[0.1], [0.2]]\nclient = ['a']\n", "'client'"),
    "flat.toml": ("means = [0.1, 0.2]\n", "means"),
    "deep.toml": ("means = [[[0.1]], [[0.2]]]\n", "means"),
    "none.toml": ("means = []\n", "means"),
    "no-clients.toml": ("means = [[], []]\n", "means"),
    "ragged.toml": ("means = [[0.1, 0.2], [0.3]]\n", "means"),
    "text.toml": ('means = [["high"], ["low"]]\n', "means"),
    "word.toml": ('means = "high"\n', "means"),
    "date.toml": ("means = 2024-01-01\n", "means"),
    "table.toml": ("[means]\na = 1\n", "means"),
    "nan.toml": ("means = [[nan], [0.2]]\n", "means[0, 0]"),
    "huge.toml": (f"means = [[{HUGE}], [0.2]]\n", "means"),
    "tie.toml": ("means = [[0.5], [0.5]]\n", "tie"),
    "rewards.toml": ("means = [[0.1], [0.2]]\nrewards = 3\n", "rewards"),
    "kind.toml": ('means = [[0.1], [0.2]]\n[rewards]\nkind = "cauchy"\n', "'cauchy'"),
    "kind-number.toml": ("means = [[0.1], [0.2]]\n[rewards]\nkind = 3\n", "3"),
    "kind-list.toml": ("means = [[0.1], [0.2]]\n[rewards]\nkind = ['gaussian']\n", "gaussian"),
    "rewards-key.toml": ("means = [[0.1], [0.2]]\n[rewards]\nscale = 1\n", "'scale'"),
    "sigma.toml": ("means = [[0.1], [0.2]]\n[rewards]\nsigma = 0\n", "sigma"),
    "sigma-text.toml": ('means = [[0.1], [0.2]]\n[rewards]\nsigma = "x"\n', "sigma"),
    "sigma-list.toml": ("means = [[0.1], [0.2]]\n[rewards]\nsigma = [1]\n", "sigma"),
    "sigma-huge.toml": (f"means = [[0.1], [0.2]]\n[rewards]\nsigma = {HUGE}\n", "sigma"),
    "arms.toml": ("means = [[0.1], [0.2]]\narms = ['a']\n", "arm"),
    "arms-number.toml": ("means = [[0.1], [0.2]]\narms = 3\n", "arm"),
    "arms-numbers.toml": ("means = [[0.1], [0.2]]\narms = [1, 2]\n", "arm"),
    "arms-word.toml": ("means = [[0.1], [0.2]]\narms = 'ab'\n", "arm"),
    "arms-twice.toml": ("means = [[0.1], [0.2]]\narms = ['a', 'a']\n", "'a'"),
    "clients.toml": ("means = [[0.1], [0.2]]\nclients = ['a', 'b']\n", "client"),
    "description.toml": ("means = [[0.1], [0.2]]\ndescription = 3\n", "description"),
    "nested.toml": ("means = " + "[" * 50_000, "nested.toml"),
    "quoted.toml": ('means = [["0.5"], ["0.1"]]\n', "means: must be a K x M matrix of numbers"),
    "boolean.toml": ("means = [[true], [false]]\n", "means: must be a K x M matrix of numbers"),
    "one-boolean.toml": ("means = [[0.5], [true]]\n", "means: must be a K x M matrix of numbers"),
    "digits.toml": (f"means = [[{'9' * 5000}], [1]]\n", "TOML"),
    "sigma-boolean.toml": ("means = [[0.1], [0.2]]\n[rewards]\nsigma = true\n", "sigma = True"),
    "wide.csv": ("\n".join(",".join(map(str, range(600))) for _ in range(500)), "at most 250,000"),
    "large.toml": ("means = [[1e308], [-1e308]]\n", "too large"),
    **{f"finite-{name}.toml": (f'[rewards]\nkind = "finite"\n{rewards}\n', named)
       for name, rewards, named in (
        ("empty", "values = [0, 1]\nweights = [[[0, 0]], [[1, 1]]]\nempty = nan", "empty = nan"),
        ("empty-far", "values = [0, 1]\nweights = [[[0, 0]], [[1, 1]]]\nempty = 1e308", "empty"),
        ("empty-true", "values = [0, 1]\nweights = [[[0, 0]], [[1, 1]]]\nempty = true", "empty"),
        ("values", "values = [0, 1e308]\nweights = [[[1, 0]], [[1, 1]]]", "values: 1e+308"),
        ("weights", "values = [0, 1]\nweights = [[[1, 1e308]], [[1e308, 1]]]", "weights: 1e+308"),
        ("small", "values = [0, 1]\nweights = [[[1, 5e-324]], [[1, 1]]]", "weights: 4.9"),
        ("quoted", 'values = ["0", "1"]\nweights = [[[1, 0]], [[1, 1]]]', "must be numbers"),
        ("boolean", "values = [0, 1]\nweights = [[[true, false]], [[1, 1]]]", "must be numbers"),
    )},
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
    "schedule-number.toml": ("schedule = 3\n", "'3'"),
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

# Folders of sweeps


def _record(folder: Path, **changes: Any) -> None:
    path = folder / "sweep.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _no_rows(folder: Path) -> None:
    for path in (folder / "trials").iterdir():
        path.unlink()


def _replace_by_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


DAMAGED: dict[str, tuple[Callable[[Path], object], str, str]] = {
    # what happened to the folder, what must be named, which commands refuse it
    "nothing in it": (shutil.rmtree, "sweep.json", "summary"),
    "record is empty": (lambda f: (f / "sweep.json").write_text(""), "JSON", "both"),
    "record is cut": (lambda f: os.truncate(f / "sweep.json", 100), "JSON", "both"),
    "record is text": (lambda f: (f / "sweep.json").write_text("hello"), "JSON", "both"),
    "record is binary": (lambda f: (f / "sweep.json").write_bytes(b"\xff\xfe\x00"), "sweep.json",
                         "both"),
    "record is nested": (lambda f: (f / "sweep.json").write_text("[" * 200_000), "sweep.json",
                         "both"),
    "record is a list": (lambda f: (f / "sweep.json").write_text("[]"), "sweep.json", "both"),
    "record of something else": (lambda f: (f / "sweep.json").write_text('{"name": "x"}'),
                                 "sweep.json", "both"),
    "record is a folder": (lambda f: _replace_by_folder(f / "sweep.json"), "sweep.json", "both"),
    "record with a cost that is none": (lambda f: _record(f, spec={"cost": ["x"]}), "sweep.json",
                                        "summary"),
    "record with no costs": (lambda f: _record(f, spec={"cost": []}), "sweep.json", "summary"),
    "record with cells that are none": (lambda f: _record(f, cells=[3]), "sweep.json", "sweep"),
    "record with a number for cells": (lambda f: _record(f, cells=3), "sweep.json", "sweep"),
    "record with a cell that lacks something": (lambda f: _record(f, cells=[{"instance": "x"}]),
                                                "sweep.json", "sweep"),
    "record of another seed": (lambda f: _record(f, seed=1), "seed 1", "sweep"),
    "record of another engine": (lambda f: _record(f, engine="dense"), "engine dense", "sweep"),
    "record with a limit": (lambda f: _record(f, max_steps=7), "max_steps 7", "sweep"),
    "record of other rows": (lambda f: _record(f, rows=0), "version of the rows 0", "sweep"),
    "trials are a file": (lambda f: (shutil.rmtree(f / "trials"), (f / "trials").touch()),
                          "trials", "sweep"),
    "lock is a folder": (lambda f: _replace_by_folder(f / ".lock"), "good", "sweep"),
}

ROOT_ONLY_CAN = os.geteuid() == 0 if hasattr(os, "geteuid") else False


def _cases() -> dict[str, tuple[list[str], str]]:
    """Everything above as (arguments, what must be named)."""
    cases = dict(USAGE)
    for option, values in OPTIONS.items():
        for value in values:
            cases[f"{option} {value[:30]}"] = (["sweep", option, value], _named(option, value))
    for option, values in REPLAY.items():
        for value in values:
            cases[f"replay {option} {value[:30]}"] = (
                ["replay", "synthetic", option, value], _named(option, value))
    for option, values in BOUNDS.items():
        for value in values:
            cases[f"bounds {option} {value}"] = (
                ["bounds", "synthetic", option, value], option.removeprefix("--"))
    for name, (_, named) in INSTANCES.items():
        cases[f"sweep instance {name}"] = (["sweep", "--instance", f"{{{name}}}"], named)
        cases[f"replay instance {name}"] = (["replay", f"{{{name}}}"], named)
    for name, (_, named) in SPECS.items():
        cases[f"spec {name}"] = (["sweep", "--spec", f"{{spec-{name}}}"], named)
    for name, (_, named, who) in DAMAGED.items():
        if who in ("sweep", "both"):
            cases[f"sweep into a folder: {name}"] = (
                ["sweep", "--instance", "{small.toml}", "--trials", "7", "--out",
                 f"{{damaged {name}}}"], named)
        if who != "sweep":
            cases[f"summary of a folder: {name}"] = (["summary", f"{{damaged {name}}}"], named)
    for name in ("missing", "file.txt", "file.txt/below", "/dev/null", "/proc/self/mem", "folder",
                 "x" * 5000):
        cases[f"summary of {name[:20]}"] = (["summary", name], name[:100])
    for kind in ("csv", "toml"):  # reading this file fails, even for root
        cases[f"unreadable {kind}"] = (["sweep", "--instance", f"{{memory.{kind}}}"], "memory")
        cases[f"folder.{kind}"] = (["sweep", "--instance", f"{{folder.{kind}}}"], "folder")
    for kind in ("csv", "toml", "parquet"):
        cases[f"device.{kind}"] = (["sweep", "--instance", f"{{zero.{kind}}}"], "a pipe or device")
        cases[f"pipe.{kind}"] = (["replay", f"{{pipe.{kind}}}"], "a pipe or device")
        cases[f"huge.{kind}"] = (["bounds", f"{{sparse.{kind}}}"], "bytes, more than")
    cases["unreadable spec"] = (["sweep", "--spec", "{memory.toml}"], "memory")
    cases["spec is a folder"] = (["sweep", "--spec", "{folder.toml}"], "folder")
    return cases


def _named(option: str, value: str) -> str:
    """What the line must name: the value (of a list, the last), or the option if it is empty."""
    if value in ("scaled:nope,1", "scaled:,1"):  # the name is wrong, not the factor
        return "nope" if "nope" in value else "''"
    bare = value.split(",")[-1].split(":")[-1].strip()
    if not bare and value.strip(","):
        return value
    if not bare:
        return "." if option == "--spec" else option.removeprefix("--").replace("-", "_")
    return bare if len(bare) < 1000 else ""


CASES = _cases()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep with nothing wrong."""
    folder = tmp_path_factory.mktemp("good") / "good"
    ff.sweep(instances=[SMALL], deltas=[0.1], costs=[0, 10], schedules=["fedelim", "fedelim0"],
             trials=200, out=folder, threads=1)
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, but for a text file, a folder and a link to nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("mine\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "at all")
    return tmp_path


def made(place: Path, good: Path, argument: str) -> str:
    """``{name}`` as the path of a file or folder, which is made if it is used."""
    if not argument.startswith("{"):
        return argument
    name = argument[1:-1]
    path = place / name
    content: str | bytes = ""
    if name == "good":
        shutil.copytree(good, path)
        return str(path)
    if name.startswith("damaged "):
        path = place / "good"
        shutil.copytree(good, path)
        DAMAGED[name.removeprefix("damaged ")][0](path)
        path.mkdir(exist_ok=True)
        return str(path)
    if name.startswith("folder."):
        path.mkdir()
        return str(path)
    if name.startswith("zero."):
        path.symlink_to("/dev/zero")
        return str(path)
    if name.startswith("pipe."):
        os.mkfifo(path)
        return str(path)
    if name.startswith("sparse."):
        path.touch()
        os.truncate(path, 2**29)
        return str(path)
    if name.startswith("memory."):
        path.symlink_to("/proc/self/mem")
        return str(path)
    if name == "small.toml":
        SMALL.save(path)
        return str(path)
    if name == "other/small.toml":
        content = "means = [[0.1, 0.2], [0.7, 0.9]]\n"
    elif name.startswith("spec-"):
        content = SPECS[name.removeprefix("spec-")][0]
    else:
        content = INSTANCES[name][0]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def listing(place: Path) -> dict[str, bytes | None]:
    """Every file with its content; the lock, which holds nothing, aside."""
    return {str(path.relative_to(place)):
            path.read_bytes() if path.is_file() and not path.is_symlink()
            and path.stat().st_size < 2**28 else None
            for path in place.rglob("*") if path.name != ".lock"}


def assert_one_line(status: int, told: Any, named: str) -> None:
    assert told.out == ""
    assert told.err.startswith("fastfed: ")
    assert told.err.endswith("\n")
    assert len(told.err.splitlines()) == 1
    assert "Traceback" not in told.err
    assert named in told.err
    assert status == 2


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("case", CASES)
def test_bad_input(
    case: str, place: Path, good: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An exception that gets out of `run` is a traceback for the user: it fails the test."""
    arguments, named = CASES[case]
    ready = [made(place, good, argument) for argument in arguments]
    before = listing(place)
    capsys.readouterr()
    status = cli.run(ready)
    assert_one_line(status, capsys.readouterr(), named)
    assert listing(place) == before, "something was written"


@pytest.mark.skipif(ROOT_ONLY_CAN, reason="root may write everywhere")
@pytest.mark.parametrize("where", ["closed", "closed/results"])
def test_folder_that_may_not_be_written(
    place: Path, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "closed").mkdir(mode=0o500)
    status = cli.run(["sweep", "--out", where, "--trials", "3"])
    assert_one_line(status, capsys.readouterr(), "closed")


def test_folder_that_another_sweep_holds(
    place: Path, good: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fastfed.sweeps.store import Store

    folder = Path(made(place, good, "{good}"))
    before = listing(place)
    with Store(folder).lock():
        status = cli.run(["sweep", "--spec", str(folder / "sweep.json"), "--out", str(folder),
                          "--trials", "900"])
    assert_one_line(status, capsys.readouterr(), "another sweep is writing here")
    assert listing(place) == before


@pytest.mark.parametrize("after", range(8))
def test_disk_that_is_full(
    place: Path, after: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up at the first, second, ... file: no half of one is left, and once there is
    room the same command goes on."""
    SMALL.save("small.toml")
    command = ["sweep", "--instance", "small.toml", "--delta", "0.1,0.2", "--trials", "10",
               "--threads", "1", "--schedule", "fedelim,fedelim0"]
    real, left = os.fsync, after

    def sync(number: int) -> None:
        nonlocal left
        if left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left -= 1
        real(number)

    monkeypatch.setattr(os, "fsync", sync)
    status = cli.run(command)
    assert_one_line(status, capsys.readouterr(), "No space left")
    assert list(place.rglob(".*.partial")) == []
    monkeypatch.setattr(os, "fsync", real)
    assert cli.run(command) == 0
    assert capsys.readouterr().err == ""
    assert cli.run(["summary", "results", "--json"]) == 0
    assert {row["trials"] for row in json.loads(capsys.readouterr().out)} == {10}


@pytest.mark.parametrize("changes", [
    {"cells": 3}, {"cells": [3]}, {"cells": [{"instance": "x"}]}, {"cells": None}, {"cells": {}},
    {"spec": {"cost": 5}}, {"spec": {"cost": None}}, {"versions": 3}, {"summary_of": [1]},
], ids=str)
@pytest.mark.parametrize("cost", [[], ["--cost", "7"]], ids=["own costs", "other costs"])
def test_summary_of_a_record_that_was_edited(
    place: Path, good: Path, changes: dict[str, Any], cost: list[str],
    capsys: pytest.CaptureFixture[str]
) -> None:
    """The rows are there: it works, or says what it cannot read."""
    folder = Path(made(place, good, "{good}"))
    _record(folder, **changes)
    status = cli.run(["summary", str(folder), *cost])
    told = capsys.readouterr()
    if status != 0 or told.err:
        assert_one_line(status, told, "")


@pytest.mark.parametrize("content", [b"", b"garbage", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_summary_file_that_is_none_is_made_again(
    place: Path, good: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """It follows from the rows: what is wrong with it is no reason to stop."""
    folder = Path(made(place, good, "{good}"))
    assert cli.run(["summary", str(folder)]) == 0
    shown = capsys.readouterr().out
    (folder / "summary.parquet").write_bytes(content)
    assert cli.run(["summary", str(folder)]) == 0
    assert capsys.readouterr() == (shown, "")


def test_part_that_is_a_folder(
    place: Path, good: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Named, and left alone."""
    folder = Path(made(place, good, "{good}"))
    odd = folder / "trials" / "odd.parquet"
    odd.mkdir()
    (odd / "mine.txt").write_text("mine")
    status = cli.run(["sweep", "--spec", str(folder / "sweep.json"), "--out", str(folder),
                      "--quiet"])
    told = capsys.readouterr()
    assert status in (0, 2)
    assert "odd.parquet" in told.err
    assert len(told.err.splitlines()) == 1
    assert (odd / "mine.txt").read_text() == "mine"


def test_summary_file_that_holds_another_table(
    place: Path, good: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(made(place, good, "{good}"))
    assert cli.run(["summary", str(folder)]) == 0
    shown = capsys.readouterr().out
    pq.write_table(pa.table({"a": [1, 2]}), folder / "summary.parquet")
    again = ["sweep", "--spec", str(folder / "sweep.json"), "--out"]
    for command in (["summary"], ["plot"], again):
        status = cli.run([*command, str(folder)])
        told = capsys.readouterr()
        assert (status, told.err) == (0, "")
        if command == ["summary"]:
            assert told.out == shown


# Observed rewards


def observed(place: Path, **columns: Any) -> str:
    path = place / "seen.parquet"
    pq.write_table(pa.table(columns), path)
    return str(path)


@pytest.mark.parametrize(("columns", "named"), [
    ({"arm": [], "client": [], "reward": []}, "column 'arm' holds null"),
    ({"arm": ["a"], "client": ["x"]}, "no column 'reward'"),
    ({"arm": ["a", None], "client": ["x", "x"], "reward": [1.0, 2.0]}, "missing arm"),
    ({"arm": ["a", "a"], "client": ["x", "x"], "reward": [1.0, 1.0], "count": [1, None]},
     "missing arm, client, reward or count"),
    ({"arm": ["a", "a"], "client": ["x", "x"], "reward": [1.0, 1.0], "count": [-1, 3]}, "negative"),
    ({"arm": ["a"], "client": ["x"], "reward": ["1"]}, "column 'reward' holds string"),
    ({"arm": [["a"]], "client": ["x"], "reward": [1.0]}, "column 'arm' holds list"),
    ({"arm": ["a", "b"], "client": ["x", "x"], "reward": [1e308, 0.0]}, "too large"),
    ({"arm": ["a", "b"], "client": ["x", "x"], "reward": [float("nan"), 0.0]}, "finite"),
    ({"arm": [f"a{i}" for i in range(30_000)], "client": [f"c{i}" for i in range(30_000)],
      "reward": [1.0] * 30_000}, "at most 250,000 cells"),
    ({"arm": [f"a{i % 400}" for i in range(40_000)], "client": [f"c{i // 400}" for i in
      range(40_000)], "reward": [float(i) for i in range(40_000)]}, "at most 2,000,000 weights"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_observed_rewards(
    place: Path, columns: dict[str, Any], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = cli.run(["bounds", observed(place, **columns)])
    assert_one_line(status, capsys.readouterr(), named)


# What is odd and right


def test_a_mark_at_the_beginning_of_a_file(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some editors put one there."""
    (place / "marked.toml").write_text("means = [[0.9], [0.1]]\n", encoding="utf-8-sig")
    (place / "marked.csv").write_text("0.9\n0.1\n", encoding="utf-8-sig")
    assert ff.Instance.load("marked.toml") == ff.Instance.load("marked.csv")
    (place / "spec.toml").write_text('instance = "marked.toml"\ntrials = 2\n',
                                     encoding="utf-8-sig")
    assert cli.run(["sweep", "--spec", "spec.toml", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["a $\\frac{$ b", "$x", "中文", "\x1b[31m", "a_b^c{", "%s \\"])
@pytest.mark.usefixtures("place")
def test_names_in_figures(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """matplotlib reads formulas between dollar signs, and warns of letters that it lacks."""
    inst = ff.Instance([[0.9, 0.1], [0.1, 0.4]], name=name)
    ff.sweep(instances=[inst], deltas=[0.1], costs=[1, 1e100], trials=3, out="r", threads=1,
             schedules=["fedelim", "periodic:3"])
    assert cli.run(["plot", "r"]) == 0
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
