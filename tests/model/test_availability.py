"""Arms that not every client has: instances, files, weights, refusals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import fastfed as ff
from fastfed.model.weights import Questions
from tests.helpers import refused

NAN = math.nan
CHAIN = [[1.0, NAN], [0.5, 0.5], [NAN, 0.0]]


def test_a_missing_mean_is_an_arm_that_the_client_does_not_have() -> None:
    chain = ff.Instance(CHAIN)
    assert chain.available.tolist() == [[True, False], [True, True], [False, True]]
    assert chain.averages.tolist() == [1.0, 0.5, 0.0]
    assert (chain.local_best.tolist(), chain.global_best) == ([0, 1], 0)
    assert chain.local_gaps.tolist() == [[0.5, math.inf], [0.5, 0.5], [math.inf, 0.5]]
    assert "4 of 6 cells" in repr(chain)
    assert chain != ff.Instance(np.nan_to_num(CHAIN))
    assert chain.digest != ff.Instance(np.nan_to_num(CHAIN)).digest


def test_any_bits_of_nan_are_the_same_instance() -> None:
    other = np.array(CHAIN)
    other[np.isnan(other)] = -np.float64(NAN)
    assert ff.Instance(other).digest == ff.Instance(CHAIN).digest


def test_own_questions_have_the_arms_of_each_client() -> None:
    own = ff.Instance(CHAIN).own()
    assert not own.questions.local
    assert np.array_equal(own.values, [[1.0, 0.5, NAN], [NAN, 0.5, 0.0]], equal_nan=True)
    assert own.server_best.tolist() == [0, 1]
    assert own.questions.candidates.tolist() == [[True, True, False], [False, True, True]]
    assert own.weights is None
    full = ff.Instance([[0.9, 0.1], [0.5, 0.6]]).own()
    assert full.values.tolist() == [[0.5, 0.55], [0.5, 0.55]]


def test_weights_are_shared_among_the_clients_that_have_an_arm() -> None:
    """W_km = w_m / sum of w over M_k; the sum of w over the clients is the same for every arm."""
    weighted = ff.Instance(CHAIN, weights=[3.0, 1.0])
    assert weighted.questions.shares[0].tolist() == [[1.0, 0.0], [0.75, 0.25], [0.0, 1.0]]
    assert weighted.averages.tolist() == [1.0, 0.5, 0.0]
    questions = weighted.questions
    assert questions.effective[0] == pytest.approx(1 / (0.75**2 + 0.25**2))
    assert questions.arm_scales[0] == pytest.approx(np.sqrt([1.6, 1.0, 1.6]))
    assert questions.factors.sum(axis=2) == pytest.approx(questions.factor_sums[:, None] + [0] * 3)
    # an arm that only clients without a weight have is no candidate
    assert np.isnan(ff.Instance(CHAIN, weights=[1.0, 0.0]).averages).tolist() == [
        False,
        False,
        True,
    ]


def test_a_full_mask_has_the_scales_of_the_paper() -> None:
    for weights in (None, [5, 3, 2], [[1, 0, 0], [1, 2, 3]]):
        plain = Questions(weights, np.ones((4, 3), bool))
        assert (plain.arm_scales == 1.0).all()
        assert (plain.shares == plain.rows[:, None]).all()
    assert (Questions(None, np.ones((4, 3), bool)).factors == 1.0).all()


def test_the_scale_of_a_pair_is_that_of_its_variance() -> None:
    """Per pair the variances add up; per arm the radii do."""
    questions = ff.Instance([[1.0, NAN, NAN, NAN], [0.5] * 4, [0.0] * 4]).questions
    per_pair, per_arm = questions.scales(0, True), questions.scales(0, False)
    assert per_pair.pair(0, 1) == pytest.approx(math.sqrt((4 + 1) / 2))
    assert per_arm.pair(0, 1) == pytest.approx((2 + 1) / 2)
    assert per_pair.pair(1, 2) == per_arm.pair(1, 2) == per_arm.arm(1) == 1.0
    assert per_arm.arm(0) == 2.0


@pytest.mark.parametrize(
    ("means", "words"),
    [
        ([[NAN, NAN], [0.5, 0.5]], ["arm 0", "no client has it"]),
        ([[0.9, NAN], [0.5, NAN]], ["client 1", "no arm"]),
        ([[0.9, math.inf], [0.5, 0.1]], ["means[0, 1]", "finite"]),
    ],
)
def test_refusals(means: list[list[float]], words: list[str]) -> None:
    refused(lambda: ff.Instance(means), *words)


def test_refusals_name_the_arm() -> None:
    refused(
        lambda: ff.Instance([[NAN, NAN], [0.5, 0.5]], arms=["a", "b"]), "arm 0 (a)", "no client"
    )
    refused(lambda: ff.Instance(CHAIN, weights=[[1, 2], [2, 1]], own=True), "one row")


def test_ties_are_among_the_arms_that_a_client_has() -> None:
    tied = ff.Instance([[0.5, NAN], [0.5, 0.1]])
    refused(lambda: tied.local_best, "tie", "client 0", "arms 0, 1")
    # the third arm would tie at client 1, which does not have it
    assert ff.Instance([[0.9, 0.9], [0.1, 0.2], [0.2, NAN]]).local_best.tolist() == [0, 0]


OBSERVED = "arm,client,reward,count\na,x,1,90\na,x,0,10\nb,x,0,50\nb,y,1,50\nc,y,0,50\n"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_observed_rewards_with_absent_cells(tmp_path: Path, suffix: str) -> None:
    import polars as pl

    path = tmp_path / f"seen{suffix}"
    (tmp_path / "seen.csv").write_text(OBSERVED)
    if suffix == ".parquet":
        pl.read_csv(tmp_path / "seen.csv").write_parquet(path)
    refused(lambda: ff.Instance.load(path), "arm 'a'", "client 'y'", "absent")
    refused(lambda: ff.Instance.load(path, empty="none"), "empty = 'none'", "absent")
    seen = ff.Instance.load(path, empty="absent")
    assert seen.available.tolist() == [[True, False], [True, True], [False, True]]
    assert seen.averages.tolist() == [0.9, 0.5, 0.0]
    seen.save(tmp_path / "kept.toml")
    assert ff.Instance.load(tmp_path / "kept.toml") == seen
    seen.save(tmp_path / "kept.parquet")
    assert ff.Instance.load(tmp_path / "kept.parquet", empty="absent") == seen
    drawn = seen.resample(np.random.default_rng(0))
    assert drawn.available.tolist() == seen.available.tolist()


def test_finite_rewards_with_absent_cells() -> None:
    weights = [[[1, 1], [0, 0]], [[2, 1], [1, 2]]]
    refused(lambda: ff.Finite([0.0, 1.0], weights), "weights[0, 1]", "absent")
    law = ff.Finite([0.0, 1.0], weights, empty="absent")
    assert ff.Instance(rewards=law).available.tolist() == [[True, False], [True, True]]
    bernoulli = ff.Instance(CHAIN, ff.Bernoulli())
    assert np.isnan(bernoulli.rewards.as_finite(bernoulli.means).own_means).sum() == 2  # type: ignore[attr-defined]


def test_movielens_available() -> None:
    """The same data as `movielens`: 252 of 760 cells, and other answers."""
    available, zero = (ff.Instance.load(n) for n in ("movielens-available", "movielens"))
    assert available.available.sum() == 252
    assert (available.means[available.available] == zero.means[available.available]).all()
    arms = available.available.sum(axis=0)
    assert (arms.min(), arms.max(), (arms == 1).sum()) == (1, 20, 7)
    best = np.argsort(-available.averages)[:3]
    assert available.averages[best] == pytest.approx([4.0, 3.964, 3.937], abs=5e-4)
    assert available.available[best].sum(axis=1).tolist() == [1, 4, 15]


def test_few_arms_are_all_the_answer_of_top() -> None:
    """A client with N arms or fewer accepts all of them, as a lone arm is the best."""
    goal = ff.Top(2)
    means = [[0.9, NAN], [0.5, 0.5], [0.1, 0.2], [0.0, NAN]]
    instance = ff.Instance(means, ff.Bernoulli())
    goal.check(instance)
    assert goal.right(instance.means).must.T.tolist() == [
        [True, True, False, False],
        [False, True, True, False],
    ]
    assert goal.local_gaps(instance)[:, 1].tolist() == [math.inf] * 4
    done = ff.simulate(
        instance.own(), goal=goal, radius="mixture-pairs", delta=0.1, trials=2, keep_pulls=True
    )
    # the second client asks nothing, and pulls arms for the first one alone
    assert done.frame["correct"].all()
    assert (done.pulls[..., 1:3, 1] > 0).all()


def test_uplink_round_needs_questions_of_one_size() -> None:
    ragged = ff.Instance([[0.9, NAN], [0.5, 0.5], [0.1, 0.2]]).own()
    refused(lambda: ff.bounds(ragged, uplink="round:0.1"), "round:0.1", "2 to 3 arms", "dither:1")


def test_a_mask_is_part_of_the_cells_of_derived_instances() -> None:
    scaled = ff.Instance.load("scaled:movielens-available,0.5")
    gaussian = ff.Instance.load("gaussian:movielens-available")
    assert scaled.available.sum() == gaussian.available.sum() == 252
    assert np.nanmax(scaled.means) == pytest.approx(0.5 * np.nanmax(gaussian.means))


def test_an_own_question_needs_a_client_that_counts() -> None:
    apart = ff.Instance([[0.9, NAN], [NAN, 0.5], [0.2, NAN]], weights=[1.0, 0.0])
    refused(apart.own, "client 1 asks about its own arms")
