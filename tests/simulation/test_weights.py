"""Clients that do not count alike: weights, and several questions of the server.

Equal weights give the rows without weights, and the questions of a server leave each other alone.
`test_engines.py` compares engines and reference, `test_laws.py` distributions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from helpers import BOUNDS, refused
from polars.testing import assert_frame_equal

import fastfed as ff
from fastfed.model.setting import Setting

SCHEDULES = ["fedelim", "fedelim0", "periodic:7", "adaptive", "at:3,9,60,500,3000,20000,100000"]


def means(arms: int, clients: int) -> np.ndarray:
    """Make means from 0 to 2 that are well apart at every client, in another order at each."""
    rng = np.random.default_rng(32)
    levels = np.linspace(0.0, 1.9, arms)
    columns = [rng.permutation(levels) + rng.uniform(0.0, 0.1, arms) for _ in range(clients)]
    return np.stack(columns, axis=1).round(2)


def gaussian(arms: int, clients: int, **more: Any) -> ff.Instance:
    """Make an instance with noise."""
    return ff.Instance(means(arms, clients), **more)


class Case(NamedTuple):
    """An instance with weights, and the choices of a run."""

    instance: ff.Instance
    sigma: float
    radius: str = "paper"
    goal: str = "best"
    uplink: str = "exact"


TWO = [[6.0, 3.0, 1.0], [0.0, 1.0, 5.0]]


def rows(case: Case, engine: str = "skip", trials: int = 30, **more: Any) -> pl.DataFrame:
    """Run a case under all schedules."""
    one = len(case.instance.questions) == 1
    schedules = [name for name in SCHEDULES if one or name != "adaptive"]
    given = {"delta": 0.2, "seed": 5, "schedules": schedules, **more}
    return ff.simulate(
        case.instance,
        trials=trials,
        engine=engine,
        sigma=case.sigma,
        radius=case.radius,
        goal=case.goal,
        uplink=case.uplink,
        **given,
    ).frame


def server_errors(instance: ff.Instance, frame: pl.DataFrame) -> np.ndarray:
    """Count the answers of the server that are wrong, where it has one question or several."""
    if "server_errors" in frame.columns:
        return frame["server_errors"].to_numpy()
    arms = frame["global_arm"].to_numpy()
    return ((arms >= 0) & (arms != instance.global_best)).astype(np.int64)


@pytest.mark.slow
def test_a_question_has_the_same_radius_beside_another() -> None:
    """With dither it is alpha + D / 2, and was sqrt(E / E') D / 2 beside one with E clients."""
    own = [1.0] + 15 * [0.0]
    means = np.vstack([np.full(16, 0.5), np.zeros(16)])

    def pulls(*weights: list[float]) -> float:
        instance = ff.Instance(means, weights=weights, local=False)
        options: dict[str, Any] = {"radius": "mixture-pairs", "uplink": "dither:4"}
        setting = Setting.of(instance, delta=0.1, **options)
        for q, effective in enumerate(instance.questions.effective):
            exact = replace(setting.radii.means, walks=float(effective))
            for n in (1, 40, 10**6):
                assert setting.radii.of(q).alpha(n) == pytest.approx(exact.alpha(n) + 2 / n**0.5)
        done = ff.simulate(instance, delta=0.1, trials=40, keep_pulls=True, **options)
        return float(done.pulls[0, :, :, 0].sum(axis=1).mean())

    assert pulls(own, own) == pulls(own, [1.0] * 16)


# ---- equal weights, no weight, all the weight --------------------------------------------------


@pytest.mark.parametrize("equal", [[0.7] * 3, [[3, 3, 3]]], ids=str)
@pytest.mark.parametrize(
    "choice",
    [
        {"engine": "skip"},
        {"engine": "dense"},
        {"goal": "top:2"},
        {"goal": "eps:0.3"},
        {"goal": "threshold:1.03,0.02"},
        {"radius": "mixture-pairs"},
        pytest.param({"uplink": "dither:1"}, marks=pytest.mark.slow),
        pytest.param({"uplink": "round:0.2"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_equal_weights_give_the_rows_without(choice: dict[str, str], equal: Any) -> None:
    chosen = dict(choice)
    engine = chosen.pop("engine", "skip")
    without, given = (
        rows(Case(gaussian(4, 3, weights=weights), 0.5, **chosen), engine)
        for weights in (None, equal)
    )
    assert_frame_equal(without, given, check_exact=True)


@pytest.mark.parametrize(
    "uplink",
    ["exact", *(pytest.param(one, marks=pytest.mark.slow) for one in ("dither:1", "round:0.3"))],
)
def test_a_client_without_weight_sends_nothing_and_is_not_pulled(uplink: str) -> None:
    """The rows are those of the instance without the client, whose walks are the same."""
    more = {"local": False}
    three = Case(gaussian(4, 3, weights=[2, 1, 0], **more), 0.5, uplink=uplink)
    two = Case(ff.Instance(means(4, 3)[:, :2], weights=[2, 1], **more), 0.5, uplink=uplink)
    assert_frame_equal(rows(three).drop(BOUNDS), rows(two).drop(BOUNDS), check_exact=True)
    kept = ff.simulate(three.instance, "fedelim", delta=0.1, trials=5, keep_pulls=True).pulls
    assert (kept[..., 2] == 0).all()
    assert (kept[..., :2] > 0).all()


def test_a_client_without_weight_answers_for_itself_alone() -> None:
    case = Case(gaussian(4, 3, weights=[2, 0, 1]), 0.5)
    done = ff.simulate(
        case.instance, ["fedelim", "periodic:7"], delta=0.2, sigma=0.5, trials=30, keep_pulls=True
    )
    # its pulls do not depend on the schedule, and it sends none of the uplinks
    assert (done.pulls[0, :, :, 1] == done.pulls[1, :, :, 1]).all()
    assert (done.pulls[0, :, :, 0] != done.pulls[1, :, :, 0]).any()
    plain = rows(Case(gaussian(4, 3), 0.5), schedules=["at:1"])
    assert set(plain["uplinks"]) == {12}
    assert set(rows(case, schedules=["at:1"])["uplinks"]) == {8}


def test_one_client_with_all_the_weight_is_its_own_problem_seen_by_the_server() -> None:
    """A server that looks at every step decides as the client would with the same radius."""
    case = Case(gaussian(4, 3, weights=[5, 0, 0], local=False), 0.5)
    alone = Case(ff.Instance(means(4, 3)[:, :1]), 0.5)
    # without the clients' questions the server has all of delta, twice its half
    served = rows(case, schedules=["fedelim0"], delta=0.1)
    both = rows(alone, schedules=["fedelim0"], delta=0.2)
    assert served["global_steps"].to_list() == both["local_steps"].to_list()
    assert served["pulls"].to_list() == both["pulls"].to_list()
    assert served["global_arm"].to_list() == both["global_arm"].to_list()


def test_questions_do_not_change_each_other() -> None:
    """Each question of several is decided as if it were alone, with its share of delta."""
    case = Case(gaussian(4, 3, weights=TWO), 0.5)
    several = rows(case, schedules=["fedelim", "periodic:7"], trials=50)
    for q, weights in enumerate(case.instance.questions.given):
        alone = gaussian(4, 3, weights=weights)
        one = rows(Case(alone, 0.5), schedules=["fedelim", "periodic:7"], trials=50, delta=0.1)
        assert several["server_answers"].list.get(q).to_list() == one["global_arm"].to_list()
        assert (several["rounds"] >= one["rounds"]).all()
        assert (several["global_steps"] >= one["global_steps"]).all()


def test_questions_that_repeat_each_other_cost_nothing_more() -> None:
    case = Case(gaussian(4, 3, weights=[[6, 3, 1]] * 3, local=False), 0.5)
    alone = Case(gaussian(4, 3, weights=[6, 3, 1], local=False), 0.5)
    fixed = [name for name in SCHEDULES if name != "adaptive"]
    three = rows(case, delta=0.3, schedules=fixed)
    one = rows(alone, delta=0.1, schedules=fixed)
    for name in ("pulls", "uplinks", "bits", "rounds", "steps"):
        assert three[name].to_list() == one[name].to_list(), name
    assert three["server_errors"].to_list() == (3 * server_errors(alone.instance, one)).tolist()


@pytest.mark.parametrize("goal", ["best", "top:2"])
def test_a_schedule_that_is_kept_keeps_its_answers(goal: str) -> None:
    instance = gaussian(4, 3, weights=[[5, 3, 2], [0, 1, 1]])
    done = ff.simulate(instance, SCHEDULES[:3], delta=0.1, trials=4, goal=goal)
    kept = done.filter(schedule="fedelim0").frame
    assert_frame_equal(kept, done.frame.filter(pl.col("schedule") == "fedelim0"))


def test_rows_do_not_depend_on_other_schedules_or_threads() -> None:
    case = Case(gaussian(4, 3, weights=TWO), 0.5)
    whole = rows(case)
    for name in ("fedelim", "periodic:7"):
        alone = rows(case, schedules=[name], threads=2)
        assert_frame_equal(
            whole.filter(schedule=name).drop(BOUNDS), alone.drop(BOUNDS), check_exact=True
        )


def test_an_adaptive_schedule_has_one_question() -> None:
    instance = gaussian(4, 3, weights=TWO)
    refused(lambda: ff.simulate(instance, "adaptive", delta=0.1, trials=1), "adaptive", "asks 2")
    refused(lambda: ff.replay(instance, "adaptive", delta=0.1), "adaptive", "one row of weights")
