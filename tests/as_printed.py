"""Comparison of a job's rows with Algorithm 1 as printed."""

from __future__ import annotations

import numpy as np

from fastfed.simulation import reference
from fastfed.simulation.job import Job
from fastfed.simulation.walks import dithers, presence


def assert_as_printed(one: Job, trial: int) -> None:
    """Compare a row with Algorithm 1 as printed, on the same walks and dithers.

    The job keeps pulls; its first schedule is compared.
    """
    setting = one.setting
    printed = reference.fedelim(
        one.instance,
        one.schedules[0],
        setting.delta,
        reference.walk_rewards(one.instance, setting.seed, trial),
        sigma=setting.sigma,
        max_steps=one.max_steps,
        radius=setting.radius,
        goal=setting.goal,
        uplink=setting.uplink,
        participation=setting.participation,
        dither=dithers(setting.seed, trial),
        presence=presence(setting.seed, trial, setting.participation.probability),
    )
    block = one.run(trial, 1)
    np.testing.assert_array_equal(block.pulls[0, 0], printed.pulls)
    row = one.frame(block).row(0, named=True)
    names = ("uplinks", "rounds", "steps", "busiest", "downlinks", "truncated")
    assert [row[name] for name in names] == [getattr(printed, name) for name in names]
    assert row["bits"] == printed.bits or str(setting.uplink) == "exact"
    if one.goal.one_arm:
        assert row["global_arm"] == printed.global_arm
    elif printed.global_answer is not None:
        assert set(row["global_answer"]) == printed.global_answer
