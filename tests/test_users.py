"""First things that users meet: examples in docstrings, types, the tour as a notebook."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import site
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from helpers import typed

import fastfed as ff

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = [getattr(ff, name) for name in ff.__all__ if name != "__version__"]
MODULES = sorted({one.__module__ for one in PUBLIC} | {"fastfed.api.answers"})
FUNCTIONS = [one.__name__ for one in PUBLIC if inspect.isfunction(one)]
HELD = (
    ff.Result,
    ff.Sweep,
    ff.Replay,
    ff.Bounds,
    ff.Check,
    ff.ErrorProbability,
    ff.Instance,
    ff.Schedule,
)
"""What users are given and call methods of; goals, uplinks and laws are called by the engine."""


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # a part that an example defines belongs to the example, not to fastfed
    found = doctest.testmod(importlib.import_module(name), extraglobs={"__name__": "examples"})
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_tell_every_parameter(name: str) -> None:
    function = getattr(ff, name)
    text = inspect.getdoc(function) or ""
    gives = "Yields" if name == "sweep_parts" else "Returns"
    for section in ("Parameters\n-----", f"{gives}\n-----", "Examples\n-----"):
        assert section in text, section
    told = text.partition("Parameters\n")[2].partition(f"{gives}\n")[0]
    names = {
        word.strip()
        for line in told.splitlines()
        if not line.startswith(" ")
        for word in line.split(",")
    }
    assert set(inspect.signature(function).parameters) <= names


@pytest.mark.parametrize("name", [name for name in ff.__all__ if name[0].isupper()])
def test_classes_have_docstrings_of_their_own(name: str) -> None:
    found = getattr(ff, name)
    assert found.__doc__
    assert not found.__doc__.startswith(f"{name}(")  # what dataclasses write by themselves
    assert "Examples\n    -----" in found.__doc__


@pytest.mark.parametrize("held", HELD, ids=lambda held: held.__name__)
def test_methods_tell_what_they_take_and_give(held: type) -> None:
    for name, method in inspect.getmembers(held, inspect.isfunction):
        if name.startswith("_"):
            continue
        text = inspect.getdoc(method) or ""
        takes = set(inspect.signature(method).parameters) - {"self"}
        assert not takes or "Parameters\n-----" in text, name
        assert "Returns\n-----" in text or "Yields\n-----" in text, name


USER = """
import fastfed as ff
import numpy as np

instance = ff.Instance(means=[[0.9, 0.1], [0.5, 0.6]], rewards=ff.Gaussian(2.0))
result: ff.Result = ff.simulate(instance, ["fedelim", ff.Periodic(10)], delta=[0.1], trials=10)
more = ff.simulate(np.eye(2), delta=0.1, trials=10, first=10) + result
rows: int = more.frame.height
sweep: ff.Sweep = ff.sweep(instances="synthetic", deltas=[0.1], trials=10, out="r", progress=False)
winners: list[str] = sweep.best(costs=[1, 10])["winner"].to_list()
print(sweep.best().envelopes[0].pieces[0].winner, sweep.check().violated, sweep.plot(cost=10))
text: str = str(ff.open_sweep("r").replay(3, schedule="fedelim", delta=0.1))
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return the Python of an environment in which the wheel is installed.

    The environment also sees the packages of this one.
    """
    wheels = tmp_path / "wheels"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(ROOT)],
        check=True,
    )
    (wheel,) = wheels.iterdir()
    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    (packages,) = home.glob("lib/python*/site-packages")
    subprocess.run(
        [*pip, "install", "--no-deps", "--target", str(packages), str(wheel)], check=True
    )
    (packages / "ours.pth").write_text("\n".join(site.getsitepackages()))
    return home / "bin" / "python"


@pytest.mark.slow
def test_types_of_user_code(installed: Path, tmp_path: Path) -> None:
    """Check user code against the installed wheel, whose py.typed lets mypy look.

    None of this project's settings apply. The wheel contains its data.
    """
    code = tmp_path / "user.py"
    code.write_text(USER)
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import fastfed as ff\nx: int = ff.open_sweep('r').best()\n")
    config = tmp_path / "none.ini"
    config.write_text("[mypy]\n")
    # imports are followed in silence: the package is checked by its own settings
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [
            sys.executable,
            *typed(f"-m mypy --strict --follow-imports silent --config-file {config} --cache-dir"),
            str(tmp_path / "cache"),
            "--python-executable",
            str(installed),
            str(code),
            str(wrong),
        ],
        env=outside,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    complaints = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(complaints) == 1, done.stdout
    assert complaints[0].startswith("wrong.py:2")
    assert "Incompatible types" in complaints[0]
    ran = subprocess.run(
        [str(installed), "-m", "fastfed", "bounds", "movielens"],
        env=outside,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("movielens: ")


@pytest.mark.slow
def test_the_tour_runs_and_shows_no_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notebook, run anew: no warning, no raw dump, tables and a figure."""
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONWARNINGS", "default")
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    tour = nbformat.read(ROOT / "docs" / "tour.ipynb", as_version=4)
    saved = [[_shown(one) for one in cell.get("outputs", [])] for cell in tour.cells]
    NotebookClient(
        tour, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    # the site shows the saved outputs: python docs/hooks/tour.py saves them anew
    assert saved == [[_shown(one) for one in cell.get("outputs", [])] for cell in tour.cells]
    outputs = [one for cell in tour.cells if cell.cell_type == "code" for one in cell.outputs]
    assert not [one for one in outputs if one.output_type == "stream" and one.name == "stderr"]
    shown = [one.data for one in outputs if one.output_type in ("execute_result", "display_data")]
    html = "".join(data.get("text/html", "") for data in shown)
    assert html.count("<table") >= 4
    assert any("image/png" in data for data in shown)
    for dump in ("Event(", "Envelope(", "array(", "Warning", "Traceback"):
        assert dump not in html
        assert not any(dump in data.get("text/plain", "") for data in shown)


def _shown(output: Any) -> tuple[list[str], str]:
    """Return the kinds of an output, and its HTML unless it is that of Polars."""
    data = output.get("data", {"stream": ""})
    html = data.get("text/html", "")
    return sorted(data), "" if "dataframe" in html else html
