"""Comparison of rows by skipping with those of every step, and with Algorithm 1 as printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from helpers import BOUNDS
from polars.testing import assert_frame_equal

import fastfed as ff
from fastfed.simulation import reference
from fastfed.simulation.job import Job
from fastfed.simulation.replay import OneTrial, departures
from fastfed.simulation.walks import dithers, presence


def assert_engines_agree(
    instance: ff.Instance, schedules: str | Sequence[str], **options: Any
) -> tuple[ff.Result, ff.Result]:
    """Compare rows and pulls by skipping with those of every step; return both results.

    Skipping may differ with probability `skip_error`, about 1e-11 a trial, so that seeds are fixed.
    """
    skip, dense = (
        ff.simulate(instance, schedules, engine=engine, threads=1, keep_pulls=True, **options)
        for engine in ("skip", "dense")
    )
    assert_frame_equal(skip.frame.drop(BOUNDS), dense.frame.drop(BOUNDS), check_exact=True)
    np.testing.assert_array_equal(skip.pulls, dense.pulls)
    assert (dense.frame["skip_error"] == 0).all()
    assert (skip.frame["skip_error"] < 1e-9).all()
    return skip, dense


def assert_as_printed(one: Job, trial: int) -> reference.Outcome:
    """Compare a row with Algorithm 1 as printed, on the same walks, dithers and presence.

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
    left = departures(one, trial)
    np.testing.assert_array_equal(left.block.pulls[0, 0], printed.pulls)
    row = one.frame(left.block).row(0, named=True)
    names = ("uplinks", "rounds", "steps", "busiest", "downlinks", "truncated")
    assert [row[name] for name in names] == [getattr(printed, name) for name in names]
    assert row["bits"] == printed.bits or str(setting.uplink) == "exact"
    if len(one.instance.questions) > 1:
        arms = one.instance.shape[0]
        answers = [
            q * arms + k for q, answer in sorted(printed.server_answers.items()) for k in answer
        ]
        assert row["server_answers"] == (printed.server_arms if one.goal.one_arm else answers)
    elif one.goal.one_arm:
        assert row["global_arm"] == printed.global_arm
    elif printed.global_answer is not None:
        assert set(row["global_answer"]) == printed.global_answer
    wrong = sum(
        not one.goal.right(one.instance.means[:, m]).allows(answer)
        for m, answer in printed.local_answers.items()
    )
    right = all(
        one.goal.right(one.instance.values[q]).allows(answer)
        for q, answer in printed.server_answers.items()
    )
    assert row["local_errors"] == wrong
    assert row["correct"] == (right and not wrong and not printed.truncated)
    if str(one.goal) == "best":
        assert eliminations(one, left) == printed.eliminations
        declared = {m: k for m, k in enumerate(left.local_arms.tolist()) if m in printed.local_arms}
        assert declared == printed.local_arms
        for name, at_server in (("local_steps", False), ("global_steps", True)):
            steps = [n for n, m, _ in printed.eliminations if (m is None) == at_server]
            if steps and not printed.truncated and len(one.instance.questions) == 1:
                assert row[name] == max(steps)
    return printed


def eliminations(one: Job, left: OneTrial) -> list[tuple[int, int | None, int]]:
    """List (n, client or None, arm) as Algorithm 1 goes: step by step, the server last."""
    arms, clients = one.instance.shape
    local, server = left.local, np.atleast_2d(left.server)[0]
    winner = np.atleast_1d(left.server_arms)[0]
    found = [
        (int(local[k, m]), m, k)
        for k, m in np.argwhere(one.instance.available).tolist()
        if 0 < local[k, m] <= left.horizon and k != left.local_arms[m]
    ]
    found += [
        (int(server[k]), clients, k)
        for k in range(arms)
        if 0 < server[k] <= left.horizon and k != winner
    ]
    return [(n, None if m == clients else m, k) for n, m, k in sorted(found)]
