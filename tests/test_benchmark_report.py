"""Tables that `benchmarks/report.py` writes from the JSON of a run.

The tables stand between markers, and are written only if the machine was quiet.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import typed

ROOT = Path(__file__).resolve().parents[1]
OLD = (
    "before\n<!-- speed -->\nold\n<!-- /speed -->\n"
    "<!-- benchmarks -->\nold\n<!-- /benchmarks -->\nafter\n"
)


def content(spread: float) -> dict[str, Any]:
    """Make a run of two benchmarks whose median round took ``spread`` times the best one."""

    def one(name: str, microseconds: float) -> dict[str, Any]:
        return {
            "name": name,
            "stats": {"min": 1.0, "median": spread, "rounds": 5},
            "extra_info": {
                "microseconds_a_trial": microseconds,
                "pulls_a_trial": 1e5,
                "draws_a_trial": 1e3,
                "trials": 50,
            },
        }

    def trial(name: str, microseconds: float) -> dict[str, Any]:
        made = one(name, microseconds)
        made["extra_info"] |= {"instance": "bernoulli", "arms": 3, "clients": 2}
        return made

    return {
        "benchmarks": [
            one("test_hardness[1]", 20.0),
            one("test_baseline[numba_stepper]", 500.0),
            trial("test_trial[bernoulli-fedelim]", 60.0),
            trial("test_twin[bernoulli-fedelim]", 20.0),
        ],
        "machine_info": {"cpu": {"count": 2, "brand_raw": "X"}, "python_version": "3.11"},
    }


def report(tmp_path: Path, spread: float, *more: str) -> tuple[int, str, str]:
    """Exit status, what is in the file afterwards, and stderr."""
    page = tmp_path / "page.md"
    page.write_text(OLD)
    (tmp_path / "bench.json").write_text(json.dumps(content(spread)))
    given = [tmp_path / "bench.json", "--readme", page, "--page", page, *more]
    command = [sys.executable, ROOT / "benchmarks" / "report.py", *given]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    return done.returncode, page.read_text(), done.stderr


@pytest.mark.process
def test_a_quiet_run_is_written_between_the_markers(tmp_path: Path) -> None:
    status, text, _ = report(tmp_path, 1.05)
    assert status == 0
    assert text.startswith("before\n<!-- speed -->\n| FedElim")
    assert text.endswith("<!-- /benchmarks -->\nafter\n")
    assert text.count("| Numba, every step, fast generator | 500 µs | 25.0 x |") == 2
    assert text.count("Measured on 2 cores") == 1
    assert (
        text.count(
            "| `bernoulli`, 3 arms x 2 clients | 60.0 µs |  |  |\n"
            "| its Gaussian twin | 20.0 µs |  |  |"
        )
        == 1  # the page alone
    )
    assert "takes 3.00 x the time of the twin on `bernoulli`," in text
    assert "old" not in text


@pytest.mark.process
def test_a_noisy_run_is_not_written(tmp_path: Path) -> None:
    status, text, message = report(tmp_path, 1.6)
    assert status != 0
    assert text == OLD
    assert "1.60 x" in message
    assert "--noisy" in message
    status, text, _ = report(tmp_path, 1.6, "--noisy")
    assert status == 0
    assert "old" not in text


@pytest.mark.process
def test_a_run_stands_beside_the_history(tmp_path: Path) -> None:
    """The stepper takes 500 microseconds in this run, and fastfed 20 and 60."""
    (tmp_path / "bench.json").write_text(json.dumps({**content(1.0), "datetime": "2026-01-02T"}))
    command = [sys.executable, str(ROOT / "benchmarks" / "history.py")]
    run = subprocess.run(
        [*command, "--compare", str(tmp_path / "bench.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = dict(line.strip("| ").split(" | ", 1) for line in run.stdout.splitlines())
    assert lines["stepper's time over fastfed's"].endswith(" | this run")
    assert lines["synthetic"].startswith("34.5 | ")
    assert lines["synthetic"].endswith(" | 25")
    assert lines["bernoulli, FedElim"].endswith(" | 8.33")


@pytest.mark.process
def test_benchmarks_can_be_collected() -> None:
    """They run on demand only, so nothing else would notice a name that has moved."""
    collect = [*typed("-m pytest --collect-only -q -n 0"), str(ROOT / "benchmarks")]
    found = subprocess.run([sys.executable, *collect], capture_output=True, text=True, cwd=ROOT)
    assert found.returncode == 0, found.stdout[-2000:]
