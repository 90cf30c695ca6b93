"""The rows of this version, bit for bit as they were when it was made.

If this fails and the change is meant, raise `fastfed.version.ROWS`, make the file anew
(`golden_jobs.py`) and say so in the changelog: folders of the older version are then refused
instead of mixed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import golden_jobs
import polars as pl
import pytest
from helpers import built_in
from polars.testing import assert_frame_equal

from fastfed.model import goals, uplinks
from fastfed.model import radii as radius

KEPT = pl.read_parquet(golden_jobs.FILE)


def _of_a_default_kernel(job: dict[str, Any]) -> bool:
    special = job["instance"] in ("events", "uneven") or job.get("radius") == "betting"
    return not special and "uplink" not in job


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(
            job,
            id="-".join(str(job[key]) for key in job if key not in ("trials", "seed", "sigma")),
            marks=() if _of_a_default_kernel(job) else pytest.mark.slow,
        )
        for job in golden_jobs.JOBS
    ],
)
def test_rows_are_those_of_their_version(job: dict[str, Any]) -> None:
    found = golden_jobs.rows(job)
    which = ("instance", "delta", "seed", "sigma", "engine", "radius", "goal", "uplink")
    same = pl.all_horizontal(pl.col(name) == found[name][0] for name in which)
    kept = KEPT.filter(same)
    assert kept.height == len(golden_jobs.SCHEDULES) * job["trials"]
    assert_frame_equal(found.select(kept.columns), kept, check_exact=True)


CHECKED = """
import golden_jobs
for job in golden_jobs.JOBS:
    if (job["instance"], job.get("uplink", "exact")) in [
        ("synthetic", "exact"), ("three values", "dither:0.5")
    ]:
        print(job["instance"], golden_jobs.rows(job).height)
"""


@pytest.mark.slow
def test_no_index_of_kernels_is_out_of_bounds(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", CHECKED],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {line.rsplit(" ", 1)[0] for line in told.stdout.splitlines()} == {
        "synthetic",
        "three values",
    }


def test_the_jobs_cover_what_rows_depend_on() -> None:
    """The golden rows cover every choice.

    They have both engines, at least twelve instances, every radius, every family of goals and
    uplinks, errors and cut-offs.
    """
    for column, names in (
        ("radius", built_in(radius.Radius)),
        ("goal", built_in(goals.Goal)),
        ("uplink", built_in(uplinks.Uplink)),
    ):
        assert {name.partition(":")[0] for name in KEPT[column]} == set(names)
    assert KEPT["instance"].n_unique() >= 12
    assert set(KEPT["engine"]) == {"skip", "dense"}
    assert (KEPT["local_errors"] > 0).any()
    assert KEPT["truncated"].any()
    assert not KEPT["truncated"].all()
