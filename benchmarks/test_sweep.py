"""The default sweep end to end, and where its time goes."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from work import CORES, Work

from fastfed.api.sweep import sweep
from fastfed.simulation.job import Job
from fastfed.simulation.rows import Block
from fastfed.storage.folder import Store

TRIALS = 10_000


class Split:
    """Seconds of processor time that threads spend in some functions, by name, and their work.

    Processor time, since waiting for another thread is no work: the main thread writes while the
    others compute, and all share the cores. So the parts never exceed cores x wall time.
    """

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.work = Work()
        self._lock = threading.Lock()

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            begin = time.thread_time()
            result = function(*args, **options)
            seconds = time.thread_time() - begin
            with self._lock:
                self.seconds[name] += seconds
                if isinstance(result, Block):
                    self.work.add(result)
            return result

        return call


@pytest.mark.benchmark(group="sweep, default grid, 10,000 trials")
def test_sweep(
    benchmark: Any, measure: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernel, frame, Parquet and the rest are shares of the threads' time, threads x wall.

    The rest: planning, handing over as an Arrow stream, the summary, and waiting, whose share is
    also told by itself.
    """
    places = [("kernel", Job, "run"), ("frame", Job, "frame"), ("parquet", Store, "write_part")]
    real = {method: getattr(owner, method) for _, owner, method in places}
    numbers = itertools.count()
    rounds: list[tuple[float, float, Split, Path]] = []

    def run() -> None:
        split, out = Split(), tmp_path / str(next(numbers))
        for name, owner, method in places:
            monkeypatch.setattr(owner, method, split.timed(name, real[method]))
        wall, busy = time.perf_counter(), time.process_time()
        sweep(out=out, trials=TRIALS, threads=CORES)
        rounds.append((time.perf_counter() - wall, time.process_time() - busy, split, out))

    sweep(out=tmp_path / "warm", trials=10)
    measure(run, rounds=5)
    wall, busy, split, out = min(rounds, key=lambda one: one[0])
    rows = pl.scan_parquet(out / "trials" / "*.parquet").select(pl.len()).collect().item()
    whole = CORES * wall
    seconds = {f"{name}_seconds": split.seconds[name] for name, _, _ in places}
    shares = {f"{name}_share": split.seconds[name] / whole for name, _, _ in places}
    benchmark.extra_info.update(
        {
            **split.work.told(wall),
            "trials_a_cell": TRIALS,
            "rows": rows,
            "rows_a_second": rows / wall,
            "threads": CORES,
            "seconds": wall,
            **seconds,
            **shares,
            "rest_share": 1 - sum(shares.values()),
            "waiting_share": 1 - busy / whole,
        }
    )
