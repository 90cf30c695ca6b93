"""Instances: made from matrices, names and files; what follows from the means; what is refused."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import refused

import fastfed as ff
from fastfed.model.instance_files.load import builtin_names

PAPER = [[0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.1, 0.9], [0.5, 0.5, 0.5]]


# --- what follows from the means


def test_best_arms_and_gaps_of_the_paper():
    inst = ff.Instance(PAPER)
    assert inst.shape == (4, 3)
    assert inst.local_best.tolist() == [0, 1, 2]
    assert inst.global_best == 3
    # Delta_km = best - mean; the best arm's own gap is the smallest other
    expected = np.array([[0.4, 0.8, 0.8], [0.8, 0.4, 0.8], [0.8, 0.8, 0.4], [0.4, 0.4, 0.4]])
    np.testing.assert_allclose(inst.local_gaps, expected, rtol=1e-14)
    third = 0.5 - 1.1 / 3
    np.testing.assert_allclose(inst.global_gaps, [third] * 4, rtol=1e-12)
    assert (inst.rewards, inst.default_sigma, inst.name) == (ff.Gaussian(1.0), 1.0, "custom")
    assert inst.arms == ("0", "1", "2", "3")
    assert inst.clients == ("0", "1", "2")


def test_gaps_of_unequal_arms():
    inst = ff.Instance([[-3.0, 1.0], [-1.0, 0.5], [-2.5, -4.0]])
    assert inst.local_best.tolist() == [1, 0]
    np.testing.assert_allclose(inst.local_gaps, [[2, 0.5], [1.5, 0.5], [1.5, 5]])
    assert inst.global_best == 1
    np.testing.assert_allclose(inst.global_gaps, [0.75, 0.75, 3.0])


def test_types_and_immutability():
    given_means = np.array(PAPER, order="F")
    inst = ff.Instance(given_means)
    given_means[0, 0] = 100.0
    assert inst.means[0, 0] == 0.9
    assert inst.means.dtype == np.float64
    assert inst.local_best.dtype == np.int64
    assert isinstance(inst.global_best, int)
    for array in (inst.means, inst.local_best, inst.local_gaps, inst.global_gaps):
        with pytest.raises(ValueError):
            array[0] = 0


@pytest.mark.parametrize(
    "means",
    [
        [[1, 0], [0, 2]],
        ((1, 0), (0, 2)),
        np.array([[1, 0], [0, 2]], dtype=np.int32),
        np.array([[1, 0], [0, 2]], dtype=np.float32),
    ],
)
def test_any_matrix_will_do(means):
    assert ff.Instance(means) == ff.Instance([[1.0, 0.0], [0.0, 2.0]])


def test_a_lone_arm_is_allowed():
    inst = ff.Instance([[0.3, 0.4]])
    assert inst.shape == (1, 2)
    assert inst.local_best.tolist() == [0, 0]
    assert inst.global_best == 0
    assert np.isinf(inst.local_gaps).all()
    assert np.isinf(inst.global_gaps).all()


def test_names():
    inst = ff.Instance(
        [[1, 0], [0, 2]],
        ff.Gaussian(2),
        arms=["a", "b"],
        clients=["Ü", "x y"],
        name="mine",
        description="two by two",
    )
    assert (inst.arms, inst.clients) == (("a", "b"), ("Ü", "x y"))
    assert (inst.name, inst.description, inst.default_sigma) == ("mine", "two by two", 2.0)
    assert "mine" in repr(inst)
    assert "2 arms x 2 clients" in repr(inst)


def test_equality_is_of_rewards_and_names():
    inst = ff.Instance(PAPER)
    assert inst == ff.Instance(PAPER, name="other name", description="same problem")
    assert hash(inst) == hash(ff.Instance(PAPER))
    assert inst.digest == ff.Instance(PAPER, arms=list("abcd")).digest
    assert inst != ff.Instance(PAPER, arms=list("abcd"))
    assert inst != ff.Instance(PAPER, clients=list("abc"))
    for other in (
        ff.Instance(PAPER, ff.Gaussian(2)),
        ff.Instance(np.array(PAPER) * 2),
        ff.Instance(np.array(PAPER)[:, :2] + [[0, 0], [0, 0], [0, 0], [0, 0.1]]),
    ):
        assert inst != other
        assert inst.digest != other.digest
    # equal bytes in another shape are another problem
    a, b = ff.Instance([[1, 2, 3, 4, 5, 6.0]]), ff.Instance([[1.0], [2], [3], [4], [5], [6]])
    assert a.digest != b.digest
    assert inst != "custom"


DIGEST = """
import numpy as np, fastfed as ff
draw = np.random.Generator(np.random.Philox(5))
one = ff.Instance(rewards=ff.Finite(draw.normal(size=37), draw.random((5, 7, 37))))
print(one.digest, one.means.tobytes().hex())
"""


@pytest.mark.process
def test_every_processor_has_the_same_digest_and_means():
    """A matrix product adds up in another order on a Prescott than on a Haswell."""
    root = str(Path(__file__).resolve().parents[2])
    told = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": root, "OPENBLAS_CORETYPE": core},
        ).stdout
        for core in ("Haswell", "Prescott")
    }
    assert len(told) == 1


def test_means_of_finite_rewards_are_summed_in_order_of_value():
    draw = np.random.Generator(np.random.Philox(5))
    values, weights = np.sort(draw.normal(size=37)), draw.random((3, 4, 37))
    means = ff.Finite(values, weights).own_means
    for k in range(3):
        for m in range(4):
            total = weight = 0.0
            for value, share in zip(values, weights[k, m], strict=True):
                total, weight = total + value * share, weight + share
            assert means[k, m] == total / weight


def test_digest_of_finite_rewards_is_of_values_and_weights_alone(monkeypatch):
    law = ff.Finite([0, 1], [[[1, 3]], [[3, 1]]])
    before = ff.Instance(rewards=law).digest
    rounded = law.own_means * (1 + 2**-50)
    monkeypatch.setattr(ff.Finite, "own_means", property(lambda self: rounded))
    assert ff.Instance(rewards=law).digest == before


# --- by name


def test_the_built_in():
    assert "synthetic" in builtin_names()
    inst = ff.Instance.load("synthetic")
    np.testing.assert_array_equal(inst.means, PAPER)
    assert (inst.name, inst.rewards) == ("synthetic", ff.Gaussian(1.0))
    assert inst.description


def test_random_family():
    inst = ff.Instance.load("random:20,30,7")
    assert inst.shape == (20, 30)
    assert inst.name == "random:20,30,7"
    assert ((inst.means >= 0) & (inst.means < 1)).all()
    assert len(np.unique(inst.means)) == 600
    # uniform: the mean of 600 is 0.5 within 6 standard errors (false alarm 2e-9, fixed seed)
    assert abs(inst.means.mean() - 0.5) < 6 * math.sqrt(1 / 12 / 600)
    assert inst == ff.Instance.load("random:20,30,7")
    assert inst != ff.Instance.load("random:20,30,8")


def test_random_family_stays_as_it_is():
    """Raw Philox words of key = seed, upper 53 bits: the same means on every machine for ever."""
    words = [int(w) for w in np.random.Philox(key=5).random_raw(6)]
    expected = np.array([(w >> 11) * 2.0**-53 for w in words]).reshape(2, 3)
    np.testing.assert_array_equal(ff.Instance.load("random:2,3,5").means, expected)


@pytest.mark.parametrize("factor", [0.1, 1, 3, 1e-3])
def test_scaled_family(factor):
    inst = ff.Instance.load(f"scaled:synthetic,{factor}")
    np.testing.assert_array_equal(inst.means, np.array(PAPER) * factor)
    assert inst.name == f"scaled:synthetic,{factor}"


def test_scaled_takes_more_clients_than_weights_may_have():
    assert ff.Instance.load("scaled:random:1,1000001,1,0.5").means.shape == (1, 1_000_001)


def test_scaled_of_a_family_and_of_a_file(tmp_path):
    inner = ff.Instance.load("random:3,2,1")
    assert ff.Instance.load("scaled:random:3,2,1,0.5") == ff.Instance(inner.means * 0.5)
    path = tmp_path / "a,b.toml"
    ff.Instance([[1, 0], [0, 2]], ff.Gaussian(3), arms=["p", "q"]).save(path)
    assert ff.Instance.load(f"scaled:{path},2") == ff.Instance(
        [[2, 0], [0, 4]], ff.Gaussian(3), arms=["p", "q"]
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sinthetic", ["unknown instance 'sinthetic'", "did you mean 'synthetic'"]),
        ("randm:3,2,1", ["did you mean 'random:'"]),
        ("zzzz", ["unknown instance 'zzzz'", "synthetic", ".toml", ".csv"]),
        ("", ["unknown instance ''"]),
        ("synthetic,bernoulli", ["--instance is repeated for several"]),
        ("random:3,2", ["random:3,2", "K,M,SEED"]),
        ("random:0,2,1", ["random:0,2,1", "at least 1"]),
        ("random:100000,100000,1", ["at most"]),
        ("random:3,2,-1", ["seed"]),
        ("random:3,2,18446744073709551616", ["seed"]),
        ("scaled:synthetic", ["NAME,FACTOR"]),
        ("scaled:synthetic,x", ["NAME,FACTOR"]),
        ("scaled:synthetic,0", ["above 0"]),
        ("scaled:synthetic,1e400", ["finite"]),
        ("scaled:synthetik,0.1", ["unknown instance 'synthetik'", "did you mean 'synthetic'"]),
        ("no/such/file.toml", ["file.toml", "cannot be read"]),
        ("instance.xlsx", ["unknown instance", ".toml", ".csv"]),
    ],
)
def test_bad_names(name, words):
    refused(lambda: ff.Instance.load(name), *words)


# --- bad matrices


@pytest.mark.parametrize(
    ("means", "words"),
    [
        ([1.0, 2.0], ["1-dimensional", "K x M", "[[a], [b], ...]"]),
        (3.0, ["0-dimensional", "K x M"]),
        ([[1.0, 2.0], [3.0]], ["equally long"]),
        ([["a", "b"]], ["numbers"]),
        ("synthetic", ["numbers"]),
        ([[]], ["empty", "1 x 0"]),
        (np.zeros((0, 3)), ["empty", "0 x 3"]),
        ([[math.nan, math.nan], [0.0, 1.0]], ["arm 0", "no client has it"]),
        ([[1.0, 0.0], [math.inf, 1.0]], ["means[1, 0] = inf", "finite"]),
    ],
)
def test_bad_means(means, words):
    refused(lambda: ff.Instance(means), *words)


@pytest.mark.parametrize(
    "means",
    [[[10**400], [1]], [[1e308, 1e308], [0.0, 1.0]], [[1e308, -1e308], [-1e308, 0.0]]],
    ids=["10^400", "sum", "difference"],
)
def test_means_past_the_doubles(means):
    """Too large for a double, or so large that their sum or difference is."""
    refused(lambda: ff.Instance(means), "means")


def test_a_tie_names_the_client_and_the_arms():
    """An instance may tie: what it then lacks is a best arm."""
    tied = ff.Instance([[1, 2], [1, 0], [0, 1]])
    for name in ("local_best", "global_best", "local_gaps", "global_gaps"):
        refused(lambda name=name: getattr(tied, name), "tie", "client 0", "arms 0, 1")
    assert tied.local_ties.tolist() == [[1, 2], [1, 0], [0, 1]]
    names = {"arms": ["x", "y", "z"], "clients": ["north", "south"]}
    named = ff.Instance([[1, 2], [0, 2], [3, 2]], **names)
    refused(lambda: named.local_best, "tie", "client 1 (south)", "0 (x), 1 (y), 2 (z)")
    apart = ff.Instance([[1, 0], [0, 1], [0.2, 0.2]])
    refused(lambda: apart.global_best, "tie", "mean over clients", "arms 0, 1")


def test_ties_that_rounding_hides():
    """0.1 + 0.2 is not 0.3 in doubles, and averages depend on the order of their terms."""
    refused(lambda: ff.Instance([[0.1 + 0.2], [0.3]]).local_best, "tie", "client 0")
    refused(
        lambda: ff.Instance([[0.1, 0.7, 0.3], [0.3, 0.1, 0.7]]).global_best,
        "tie",
        "mean over clients",
    )


def test_a_tie_below_the_best_is_none():
    assert ff.Instance([[1, 2], [0, 0], [0, 0]]).global_best == 0


def test_small_gaps_are_no_ties():
    assert ff.Instance([[1.0], [1.0 + 1e-9]]).global_best == 1
    assert ff.Instance([[1e-30], [2e-30]]).global_best == 1


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a"], ["arm names", "1 given for 2"]),
        (["a", "b", "c"], ["3 given for 2"]),
        (["a", "a"], ["'a'", "twice"]),
        ("ab", ["arm names", "list of strings"]),
        ([1, 2], ["arm names", "list of strings"]),
        (5, ["arm names", "list of strings"]),
    ],
)
def test_bad_arm_names(names, words):
    refused(lambda: ff.Instance([[1.0], [2.0]], arms=names), *words)


# --- rewards


@pytest.mark.parametrize("sigma", [0, -1, math.nan, math.inf, "x", None, [1]])
def test_bad_sigma(sigma):
    refused(lambda: ff.Gaussian(sigma), f"sigma = {sigma!r}", "must be")


def test_rewards():
    for square in (1e-170, 1e154):  # is no number
        refused(lambda square=square: ff.Gaussian(square), "from 1e-100 to 1e+100")
    assert ff.Gaussian() == ff.Gaussian(1) == ff.Gaussian(sigma=1.0)
    assert isinstance(ff.Gaussian(2).sigma, float)
    assert ff.Gaussian(1) != ff.Gaussian(2)
    refused(lambda: ff.Instance(PAPER, rewards="gaussian"), "'gaussian'", "Gaussian")
    refused(lambda: ff.Instance(PAPER, 2.0), "2.0", "Gaussian")


# Ties


@pytest.mark.parametrize("shared", [0.0, 1.0, 1e9, -1e9])
def test_ties_are_relative_to_what_means_differ_by(shared):
    """Arms that are 1e-3 apart do not tie, whatever all means share; 1e-12 of the spread does."""
    instance = ff.Instance(np.array([[0.3], [0.301], [0.302]]) + shared)
    assert instance.local_ties[:, 0].tolist() == [0, 1, 2]
    assert ff.Best().local_gaps(instance).min() == pytest.approx(1e-3, rel=1e-3)
    ff.Best().check(instance)
    rows = ff.simulate(instance, ["fedelim"], delta=0.1, trials=1, max_steps=50).frame
    assert rows["truncated"].all()


def test_decimal_means_that_agree_tie():
    """0.1 + 0.2 is 0.3 but for its last digit, with and without what all means share."""
    for shared in (0.0, 1.0, 1e3, 1e9):
        means = np.array([[0.1 + shared + 0.2], [0.3 + shared], [shared]])
        assert ff.Instance(means).local_ties[:, 0].tolist() == [1, 1, 0]
        with pytest.raises(ff.InputError, match="tie"):
            ff.Best().check(ff.Instance(means))
    almost = ff.Instance([[1.0], [1.0 - 5e-13], [0.0]])
    assert almost.local_ties[:, 0].tolist() == [1, 1, 0]
    assert ff.Instance([[1.0], [1.0 - 5e-12], [0.0]]).local_ties[:, 0].tolist() == [2, 1, 0]


def test_threshold_ties_are_relative_to_what_means_differ_by():
    ff.Threshold(1e9).check(ff.Instance(np.array([[1e9 + 1e-3], [1e9 - 1e-3]])))
    with pytest.raises(ff.InputError, match="exactly"):
        ff.Threshold(0.3).check(ff.Instance([[0.1 + 0.2], [0.0]]))


def test_gaussian_rewards_around_the_means_of_another() -> None:
    twin, real = ff.Instance.load("gaussian:movielens"), ff.Instance.load("movielens")
    assert (twin.means == real.means).all()
    assert (twin.name, twin.default_sigma) == ("gaussian:movielens", 1.0)
    assert isinstance(twin.rewards, ff.Gaussian)
    assert twin.arms == real.arms
