"""Parts of installed packages: found by their entry points, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import polars as pl
import pytest
from dask_sweeps import cluster_elsewhere
from helpers import refused

import fastfed as ff
from fastfed.model import installed

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "tiny-algorithms"
version = "1.0"

[project.entry-points."fastfed.parts"]
tiny = "tiny_algorithms"

[tool.hatch.build.targets.wheel]
packages = ["tiny_algorithms"]
"""
MODULE = '''
"""One algorithm: pull every arm equally often, and guess."""

import fastfed as ff


class Tiny(ff.Algorithm):
    """Pull every arm so many times, and declare arm 0."""

    family = "tiny"
    parameters = {"pulls": None}

    @staticmethod
    def decide(seen, answer):
        answer.targets[:] = int(seen.options.pulls)
        if seen.round == 1:
            answer.local_arms[:] = 0
            answer.global_arm[0] = 0
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the package as a wheel, install it into a folder, and return the folder."""
    source = tmp_path_factory.mktemp("source")
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "tiny_algorithms").mkdir()
    (source / "tiny_algorithms" / "__init__.py").write_text(MODULE)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
        cwd=source,
        check=True,
        capture_output=True,
    )
    place = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(next((source / "dist").glob("*.whl"))) as wheel:
        wheel.extractall(place)
    return place


def sweep(site: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a sweep of the package's algorithm in a process of its own."""
    command = ["sweep", "--schedule", "tiny:3", "--delta", "0.1", "--trials", "6"]
    return subprocess.run(
        [sys.executable, "-m", "fastfed", *command, "--out", str(out), *options],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.process
def test_installed_algorithm_is_known_by_name(site: Path, tmp_path: Path) -> None:
    done = sweep(site, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "tiny:3" in done.stdout


def test_without_the_package_the_name_is_unknown() -> None:
    refused(lambda: ff.Schedule.parse("tiny:3"), "schedule 'tiny:3'", "must be one of", "phases")


@pytest.mark.cluster
def test_workers_of_a_cluster_know_an_installed_algorithm(site: Path, tmp_path: Path) -> None:
    with cluster_elsewhere(tmp_path, site) as (address, _):
        for name, options in (("threads", ()), ("workers", ("--dask", address))):
            done = sweep(site, tmp_path / name, *options)
            assert done.returncode == 0, done.stderr
    threads, workers = (
        pl.read_parquet(tmp_path / name / "trials/*.parquet").sort("trial")
        for name in ("threads", "workers")
    )
    assert threads.height == 6
    assert threads.equals(workers)


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder of modules in which a package is installed whose files a test writes."""
    about = tmp_path / "bad-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    caches = (installed.load, installed.packages)
    for one in caches:
        one.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    for one in caches:
        one.cache_clear()


def test_package_that_ends_the_process_is_named(broken: Path) -> None:
    """`sys.exit(0)` at import made every unknown name a success."""
    (broken / "bad-1.0.dist-info" / "entry_points.txt").write_text("[fastfed.parts]\nx = leaves\n")
    (broken / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    refused(lambda: ff.Schedule.parse("tiny:3"), "entry point x = leaves of bad", "uninstall")


def test_damaged_entry_points_are_refused_in_one_line(broken: Path) -> None:
    damaged = b"[fastfed.parts]\n\xff\xfe = \n"
    (broken / "bad-1.0.dist-info" / "entry_points.txt").write_bytes(damaged)
    refused(lambda: ff.Schedule.parse("tiny:3"), "entry points", "cannot be read", "install")


def test_package_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    point = metadata.EntryPoint("broken", "no_such_module_anywhere", installed.GROUP)
    monkeypatch.setattr(installed, "_points", lambda: (point,))
    installed.load.cache_clear()
    refused(
        lambda: ff.Schedule.parse("tiny:3"),
        "entry point broken = no_such_module_anywhere",
        "cannot be loaded",
    )
    monkeypatch.undo()
    installed.load.cache_clear()
