"""Work that a question repeats: counts of reads, sums, bounds and names that are parsed."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

import fastfed as ff
from fastfed.analysis.moments import Moments
from fastfed.model.part import Part
from fastfed.storage import checked_parquet
from fastfed.storage.part_file import PartFile
from fastfed.theory.bounds import bounds

Reads: TypeAlias = "Counter[tuple[str, str]]"

CELLS = 5  # of the default sweep
PARTS = CELLS  # each a row group; of more than eight some are read again


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the default sweep, with few trials, a part for each cell."""
    out = tmp_path_factory.mktemp("traces") / "results"
    ff.sweep(trials=6, part_size=6, out=out, threads=1, progress=False)
    return out


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Count how often each column of each part is read; that of trials comes with every read."""
    found: Reads = Counter()
    real = checked_parquet.read_group

    def counted(
        opened: checked_parquet.Opened, number: int, columns: Sequence[str] | None = None
    ) -> pa.Table:
        table = real(opened, number, columns)
        if opened.path.parent.name == "trials":
            found.update((opened.path.name, name) for name in table.column_names if name != "trial")
        return table

    monkeypatch.setattr(checked_parquet, "read_group", counted)
    return found


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count batches that are decoded and added up, bounds that are computed, and names parsed."""
    found: Counter[str] = Counter()
    codes = {
        PartFile._validate.__code__: "decoded",
        Moments.add.__code__: "added",
        bounds.__code__: "bounds",
        Part.parse.__func__.__code__: "parse",  # type: ignore[attr-defined]
    }

    def hook(frame: FrameType, event: str, _: Any) -> None:
        name = codes.get(frame.f_code) if event == "call" else None
        if name == "parse":
            given = frame.f_locals
            if not (issubclass(given["cls"], ff.Schedule) and isinstance(given["given"], str)):
                return
        if name is not None:
            found[name] += 1

    threading.setprofile(hook)  # of threads that begin later
    sys.setprofile(hook)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def test_a_report_reads_adds_up_and_bounds_once(default: Path, tmp_path: Path, read: Reads) -> None:
    sweep = ff.open_sweep(default)
    with counting() as found:
        sweep.report(tmp_path / "report.html")
    assert len({part for part, _ in read}) == PARTS
    assert set(read.values()) == {1}
    assert found["decoded"] == PARTS  # for sums, pairs and two comparisons together
    # sums, pairs with the winners, comparisons by schedule; one batch by delta of 9 schedules
    assert found["added"] == 3 * CELLS + 9
    assert found["bounds"] == CELLS
    assert 0 < found["parse"] < 120  # names of schedules, however many cells there are


def test_questions_in_one_process_share_what_was_read(default: Path, read: Reads) -> None:
    sweep = ff.open_sweep(default)
    with counting() as found:
        sweep.summary([1, 7])
        sweep.best()
        sweep.check()
    assert set(read.values()) == {1}
    assert found["decoded"] == PARTS
    # of all trials; in `best` also of those that all answered rightly
    assert found["added"] == 4 * CELLS
    assert found["bounds"] == CELLS
    assert found["parse"] < 150


def test_a_sweep_reads_the_parts_that_it_wrote_once(tmp_path: Path, read: Reads) -> None:
    """For its summary, which other questions are answered from."""
    done = ff.sweep(trials=6, part_size=6, out=tmp_path / "out", threads=1, progress=False)
    assert len({part for part, _ in read}) == PARTS
    done.summary()
    done.summary([1, 7])
    assert set(read.values()) == {1}
    assert done.summary([1, 7]).equals(ff.open_sweep(tmp_path / "out").filter().summary([1, 7]))
    assert set(read.values()) == {2}  # by the folder that was opened


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "without"),
    [
        (
            "ff.simulate([[0.9], [0.1]], delta=0.1, trials=2)",
            ("scipy.special", "scipy.linalg", "polars", "pyarrow", "numba.np.linalg"),
        ),
        ("print(ff.open_sweep({folder!r}).summary([7]).height)", ("numba", "pandas")),
        ("print(ff.open_sweep({folder!r}).best())", ("numba", "pandas")),
    ],
)
def test_what_is_not_needed_is_not_imported(
    default: Path, code: str, without: tuple[str, ...]
) -> None:
    text = f"import sys, fastfed as ff; {code.format(folder=str(default))}; print(*sys.modules)"
    for _ in range(2):  # the first may compile
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not {*without} & {*done.stdout.splitlines()[-1].split()}


def test_a_check_of_rows_in_memory_opens_no_file(tmp_path: Path) -> None:
    opened: list[object] = []
    listening = False

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if listening and event == "open":
            opened.append(arguments[0])

    sys.addaudithook(hear)  # stays, and hears nothing after the test
    one, other = (
        ff.simulate([[0.9], [0.1]], ["fedelim", "fedelim0"], delta=0.1, trials=20, seed=seed)
        for seed in (0, 1)
    )
    one.check()  # which imports what a check needs
    listening = True
    other.check()
    assert opened == []
    other.save(tmp_path / "rows")
    listening = False
    assert opened
