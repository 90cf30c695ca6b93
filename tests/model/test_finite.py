"""Rewards with finite support: units, means, files, and what rounding may do.

`tests/simulation` compares engines (`test_engines.py`) and distributions (`test_laws.py`).
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers import BOUNDS, refused

import fastfed as ff
from fastfed.kernels.random.discrete import VARIATE_ERROR, VARIATE_ERROR_A_SIGMA
from fastfed.kernels.random.halves import HALF_ERROR, HALF_ERROR_A_SIGMA
from fastfed.simulation.job import Job
from fastfed.simulation.walks import walk


def finite(arms: int, clients: int, support: int, seed: int) -> ff.Instance:
    rng = np.random.default_rng(seed)
    values = np.sort(rng.choice(np.arange(-10, 11) / 4, support, replace=False))
    weights = rng.integers(0, 9, (arms, clients, support)) + 0.5
    return ff.Instance(rewards=ff.Finite(values, weights), name=f"finite {support}")


def two_coins(low: float, high: float, p: float = 0.5, q: float = 0.49) -> ff.Instance:
    return ff.Instance(rewards=ff.Finite([low, high], [[[1 - p, p]], [[1 - q, q]]]), name="coins")


def answers(instance: ff.Instance, sigma: float, engine: str = "skip") -> pl.DataFrame:
    frame = ff.simulate(
        instance, ["fedelim0"], delta=0.1, trials=300, sigma=sigma, engine=engine, seed=3
    ).frame
    return frame.drop("sigma", *BOUNDS)


@pytest.mark.parametrize("offset", [1.0, 1e3, 1e6, 1e9])
def test_an_offset_of_all_values_changes_no_row(offset: float) -> None:
    """The walks are the same, and so are the spreads that verdicts hang on."""
    assert answers(two_coins(offset, offset + 1), 0.25).equals(answers(two_coins(0, 1), 0.25))


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e6])
def test_a_unit_of_all_values_changes_no_row(unit: float) -> None:
    assert answers(two_coins(0, unit), 0.25 * unit).equals(answers(two_coins(0, 1), 0.25))


def test_a_small_range_far_from_zero() -> None:
    instance = two_coins(1e5, 1e5 + 0.001, 0.55, 0.45)
    rows = answers(instance, 0.00025)
    assert rows.equals(answers(instance, 0.00025, "dense"))
    assert rows["pulls"].mean() > 1000


def test_scales() -> None:
    instance = ff.Instance.load("bernoulli")
    assert (instance.default_sigma, instance.proxy_sigma) == (1.0, 0.5)
    assert ff.Instance.load("movielens").proxy_sigma == 2.5
    frames = [
        ff.simulate(instance, delta=0.1, trials=5, sigma=sigma).frame for sigma in ("proxy", 0.5)
    ]
    assert frames[0].equals(frames[1])
    assert frames[0]["sigma"].unique().to_list() == [0.5]


@pytest.mark.parametrize("top", [0.0, 1e-300])
def test_a_range_without_a_scale_is_refused(top: float) -> None:
    """The scale was 0, or had the square 0, and schedule adaptive divided by it."""
    law = ff.Finite(sorted({0.0, top}), [[[1] * len({0.0, top})]] * 2)
    given = {"delta": 0.1, "trials": 1, "sigma": "proxy", "goal": "threshold:0.5", "max_steps": 4}
    refused(lambda: ff.simulate(ff.Instance(rewards=law), "adaptive", **given), "sigma = ")


def test_means_follow_from_weights() -> None:
    law = ff.Finite([2.0, 0.0, 1.0], [[[1, 1, 2]], [[0, 3, 1]]])
    instance = ff.Instance(rewards=law)
    assert instance.means.ravel().tolist() == [1.0, 0.25]
    assert law.values.tolist() == [0.0, 1.0, 2.0]
    assert (law.range, instance.proxy_sigma) == (2.0, 1.0)


def test_empty_cells_pay_what_the_instance_says() -> None:
    weights = [[[1, 1]], [[0, 0]]]
    with pytest.raises(ff.InputError, match=r"weights\[1, 0\].*empty=0"):
        ff.Finite([1, 2], weights)
    instance = ff.Instance(rewards=ff.Finite([1, 2], weights, empty=0))
    assert instance.means.ravel().tolist() == [1.5, 0.0]
    sums = walk(instance, 0, 0)
    assert [sums(1, 0, n) for n in (1, 7, 100)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ff.Finite([], []), "values"),
        (lambda: ff.Finite([1, 1], [[[1, 2]]]), "twice"),
        (lambda: ff.Finite([1, math.inf], [[[1, 2]]]), "finite"),
        (lambda: ff.Finite([1, 2], [[1, 2]]), "K x M x 2"),
        (lambda: ff.Finite([1, 2], [[[1, 2, 3]]]), "K x M x 2"),
        (lambda: ff.Finite([1, 2], [[[1, -2]]]), "negative"),
        (lambda: ff.Finite([1, 2], "many"), "numbers"),
        (lambda: ff.Instance([[1.0]], ff.Finite([1, 2], [[[1, 2]]])), "follow from the weights"),
        (lambda: ff.Instance(rewards=ff.Bernoulli()), "missing"),
        (lambda: ff.Instance([[1.2], [0.5]], ff.Bernoulli()), "probability"),
        (lambda: ff.Instance([[0.2], [0.5]], "coins"), "must be fastfed.Gaussian"),  # type: ignore[arg-type]
        (lambda: ff.Instance.load("scaled:bernoulli,2"), "probability"),
    ],
)
def test_bad_rewards(make: object, words: str) -> None:
    with pytest.raises(ff.InputError, match=words) as told:
        make()  # type: ignore[operator]
    assert "\n" not in str(told.value)


def test_only_finite_rewards_are_tables_of_observations(tmp_path: Path) -> None:
    instance = finite(3, 2, 4, 1)
    instance.save(tmp_path / "f.parquet")
    assert ff.Instance.load(tmp_path / "f.parquet") == instance
    refused(lambda: ff.Instance.load("bernoulli").save(tmp_path / "c.parquet"), "toml")


def test_observed_rewards(tmp_path: Path) -> None:
    raw = pl.DataFrame(
        {"arm": ["b", "a", "a", "b", "a"], "client": ["x"] * 5, "reward": [1.0, 2.0, 2.0, 0.0, 5.0]}
    )
    raw.write_parquet(tmp_path / "raw.parquet")
    raw.group_by("arm", "client", "reward").len("count").write_parquet(tmp_path / "counted.parquet")
    one, other = (ff.Instance.load(tmp_path / f"{name}.parquet") for name in ("raw", "counted"))
    assert one == other
    assert (one.arms, one.clients) == (("a", "b"), ("x",))
    assert one.means.ravel().tolist() == [3.0, 0.5]


def test_movielens() -> None:
    instance = ff.Instance.load("movielens")
    assert instance.shape == (20, 38)
    assert instance.arms[instance.global_best] == "Drama"
    assert instance.means[instance.global_best].mean() == pytest.approx(3.3184, abs=5e-5)
    usa = instance.clients.index("USA")
    assert instance.local_gaps[:, usa].min() == instance.local_gaps.min()
    assert instance.local_gaps.min() == pytest.approx(0.0561, abs=5e-5)
    assert "nan" in instance.clients


def test_rows_carry_what_the_rounding_of_variates_may_do() -> None:
    """`draw_error` is at least the number of draws times the bound of one draw, in both engines.

    The draw of a cell takes one variate less than the cell has values. The bound may be
    larger beside other schedules, whose rows need more of the clients' walks.
    """
    three = ff.Instance(
        rewards=ff.Finite([0.0, 1.0, 3.0], [[[1, 2, 3], [3, 1, 1]], [[2, 2, 1], [1, 0, 5]]])
    )
    for engine in ("skip", "dense"):
        together = Job.of(three, ["fedelim", "periodic:7"], delta=0.1, engine=engine).run(0, 20)
        for row, name in enumerate(["fedelim", "periodic:7"]):
            job = Job.of(three, [name], delta=0.1, engine=engine)
            block = job.run(0, 20)
            steps = block.column("steps")[0]
            bound = VARIATE_ERROR + VARIATE_ERROR_A_SIGMA * 0.5 * np.sqrt(2.0 * steps)
            drawn = 2 * block.work[:, 1] * bound
            found = job.frame(block)["draw_error"].to_numpy()
            assert (found >= drawn).all()
            assert (found <= 3 * drawn).all()
            assert (found <= together.draw_error[row]).all()
    assert HALF_ERROR <= VARIATE_ERROR  # halves are variates, too
    assert HALF_ERROR_A_SIGMA <= VARIATE_ERROR_A_SIGMA
