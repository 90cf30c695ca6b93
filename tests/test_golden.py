"""The rows of this version, bit for bit as they were when it was made.

If this fails and the change is meant, raise `fastfed.engine.rows.VERSION`, make the file anew
(`golden_jobs.py`) and say so in the changelog: folders of the older version are then refused
instead of mixed.
"""

from __future__ import annotations

from typing import Any

import golden_jobs
import polars as pl
import pytest
from polars.testing import assert_frame_equal

KEPT = pl.read_parquet(golden_jobs.FILE)


@pytest.mark.parametrize("job", golden_jobs.JOBS, ids=lambda job: (
    f"{job['instance']}-{job['engine']}-{job['delta']}"))
def test_rows_are_those_of_their_version(job: dict[str, Any]) -> None:
    found = golden_jobs.rows(job)
    same = pl.all_horizontal(pl.col(name) == found[name][0]
                             for name in ("instance", "delta", "seed", "sigma", "engine"))
    kept = KEPT.filter(same)
    assert kept.height == len(golden_jobs.SCHEDULES) * job["trials"]
    assert_frame_equal(found.select(kept.columns), kept, check_exact=True)


def test_the_jobs_cover_what_rows_depend_on() -> None:
    """Both laws, both engines, at least twelve instances, errors and cut-offs among the rows."""
    assert KEPT["instance"].n_unique() >= 12
    assert set(KEPT["engine"]) == {"skip", "dense"}
    assert (KEPT["local_errors"] > 0).any()
    assert KEPT["truncated"].any()
    assert not KEPT["truncated"].all()
