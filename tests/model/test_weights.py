"""Weights of clients: normalised, refused, written to files, and part of an instance's identity."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers import refused

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.model.setting import Setting
from fastfed.model.weights import Questions

MEANS = [[0.9, 0.1, 0.2], [0.5, 0.6, 0.4]]


def weighted(weights: Any = (6, 3, 1), **more: Any) -> ff.Instance:
    """Make a small instance with weights."""
    return ff.Instance(MEANS, weights=weights, **more)


def test_negative_zero_is_zero() -> None:
    one, other = (ff.Instance(np.eye(2), weights=[1.0, zero]) for zero in (0.0, -0.0))
    assert one.digest == other.digest
    assert one.name == other.name


def test_weights_are_normalised_and_make_the_values() -> None:
    instance = weighted()
    assert instance.weights.tolist() == [0.6, 0.3, 0.1]
    assert instance.averages.tolist() == pytest.approx([0.59, 0.52])
    assert instance.global_best == 0
    assert ff.Instance(MEANS).global_best == 1
    assert instance.global_gaps.tolist() == pytest.approx([0.07, 0.07])
    assert weighted([1e200, 5e199, 0]).weights.tolist() == pytest.approx([2 / 3, 1 / 3, 0])


def test_effective_clients_and_factors() -> None:
    """Squares of factors add up to M, and factors to sqrt(M E): see `model.weights`."""
    questions = Questions([[6, 3, 1], [0, 1, 0], [4, 4, 4]], np.ones((2, 3), bool))
    assert questions.effective.tolist() == pytest.approx([1 / 0.46, 1.0, 3.0])
    assert (questions.factors[:, 1] ** 2).sum(axis=1).tolist() == pytest.approx([3.0] * 3)
    assert questions.factors[:, 1].sum(axis=1).tolist() == pytest.approx(
        questions.factor_sums.tolist()
    )
    assert questions.factors[2, 1].tolist() == [1.0] * 3
    assert questions.effective[2] == 3.0


@pytest.mark.parametrize("equal", [[2, 2, 2], [0.1] * 3, [[7, 7, 7]], np.ones(3)])
def test_equal_weights_are_the_instance_without(equal: Any) -> None:
    plain, given = ff.Instance(MEANS), weighted(equal)
    assert given.digest == plain.digest
    assert given == plain
    assert given.weights is None
    assert given.averages.tolist() == plain.averages.tolist()
    assert Setting.of(given, delta=0.1).radii == Setting.of(plain, delta=0.1).radii
    assert Setting.of(given, delta=0.1).key == Setting.of(plain, delta=0.1).key
    assert repr(given) == repr(plain)


def test_digests_tell_weights_and_questions_apart() -> None:
    made = [
        ff.Instance(MEANS),
        weighted(),
        weighted([3, 6, 1]),
        weighted([[6, 3, 1], [1, 1, 1]]),
        weighted(None, local=False),
        weighted(local=False),
        ff.Instance.personalised(MEANS, alpha=0.4),
        ff.Instance.personalised(MEANS, alpha=0.5),
        ff.Instance.personalised(MEANS, alpha=0.5, local=True),
    ]
    assert len({one.digest for one in made}) == len(made)
    assert weighted([12, 6, 2]).digest == weighted().digest
    # that of instances without weights is what it was before there were any
    digest = ff.Instance.load("synthetic").digest
    assert digest == "a1555df5faa3beaac4f2a592aecf028a5f2ffb45b8c41a783e60608cf0e2489a"


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_personalised_questions(alpha: float) -> None:
    made = ff.Instance.personalised(MEANS, alpha=alpha)
    expected = alpha * np.eye(3) + (1 - alpha) / 3
    assert np.allclose(made.questions.rows, expected)
    assert not made.questions.local
    assert np.allclose(made.values, expected @ np.array(MEANS).T)
    for wrong in (-0.1, 1.5, math.nan, "half", True, None):
        refused(lambda wrong=wrong: ff.Instance.personalised(MEANS, alpha=wrong), "alpha")


def test_radii_and_the_share_of_delta() -> None:
    """Q questions share the server's half of delta, or all of it without the clients' own."""
    plain, one = Setting.of(ff.Instance(MEANS), delta=0.1), Setting.of(weighted(), delta=0.1)
    n = 1000.0
    ratio = one.radii.of(0).alpha(n) / plain.radii.of(0).alpha(n)
    assert ratio == pytest.approx(math.sqrt(0.46 * 3))
    assert one.radii.client == plain.radii.client
    assert one.radii.sums == plain.radii.sums
    for local in (True, False):
        several = Setting.of(weighted([[6, 3, 1], [1, 1, 1]], local=local), delta=0.1)
        budget = 0.1 * (1 if local else 2) / 2
        for radius in ("paper", "mixture", "mixture-pairs"):
            other = Setting.of(several.instance, delta=0.1, radius=radius).radii
            alone = Setting.of(weighted(), delta=budget, radius=radius).radii
            assert other.of(0).alpha(n) == pytest.approx(alone.of(0).alpha(n))
            # errors of the server: K arms (or pairs), two questions; each 2 alpha off is one
            assert other.client.alpha(n) == Setting.of(
                ff.Instance(MEANS), delta=0.1, radius=radius
            ).radii.client.alpha(n)


MALFORMED: list[tuple[Any, tuple[str, ...]]] = [
    ([6, 3], ("weights: 2 in a row for 3 clients",)),
    ([6, -3, 1], ("weights[1] = -3", "negative")),
    ([0, 0, 0], ("weights: all 0",)),
    ([6, math.nan, 1], ("weights[1] = nan", "finite")),
    ([6, 1e-30, 1], ("weights[1] = 1e-30", "write 0")),
    ("6,3,1", ("weights: must be a number for each client",)),
    ([True, False, True], ("weights: must be a number for each client",)),
    ([6, None, 1], ("weights[1] = nan", "finite")),
    ([], ("weights: empty",)),
    ([[6, 3, 1], [1, 1]], ("weights: must be a number for each client",)),
    ([[6, 3, 1], [1, -1, 1]], ("weights[1, 1] = -1",)),
    ([[[6, 3, 1]]], ("weights: 3-dimensional",)),
    (5, ("weights: 0-dimensional",)),
]


@pytest.mark.parametrize(("weights", "words"), MALFORMED, ids=str)
def test_malformed_weights_in_python(weights: Any, words: tuple[str, ...]) -> None:
    refused(lambda: weighted(weights), *words)
    refused(lambda: ff.Instance(MEANS).weighted(weights), *words)


def test_local_is_a_truth_value() -> None:
    refused(lambda: weighted(local="no"), "local = 'no'")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["6,3"], ("2 in a row for 3 clients",)),
        (["6,x,1"], ("--weights '6,x,1'", "'x' is not a number")),
        (["6,,1"], ("--weights '6,,1'", "an empty item")),
        (["6,3,1", "1,1"], ("weights",)),
    ],
)
def test_malformed_weights_as_options(
    given: list[str], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    options = [word for one in given for word in ("--weights", one)]
    assert cli.run(["instance", "synthetic", *options]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    for word in words:
        assert word in shown.err


# ---- files -------------------------------------------------------------------------------------


def test_files_that_cannot_hold_it_say_so(tmp_path: Path) -> None:
    refused(lambda: weighted(local=False).save(tmp_path / "it.csv"), "as .toml")
    named = ff.Instance(MEANS, arms=["x", "Weights"])
    refused(lambda: named.save(tmp_path / "it.csv"), "an arm is named 'weights'")
    finite = ff.Finite([0.0, 1.0], [[[100, 200], [200, 100]], [[200, 100], [100, 300]]])
    for odd in ({"weights": [[1, 2], [1, 1]]}, {"local": False}):
        made = ff.Instance(rewards=finite, **odd)
        refused(lambda made=made: made.save(tmp_path / "it.parquet"), "as .toml")


def test_observed_rewards_with_weights(tmp_path: Path) -> None:
    finite = ff.Finite([0.0, 1.0], [[[100, 200], [200, 100]], [[200, 100], [100, 300]]])
    made = ff.Instance(rewards=finite, weights=[1, 4])
    made.save(tmp_path / "it.parquet")
    frame = pl.read_parquet(tmp_path / "it.parquet")
    assert set(frame["weight"]) == {1.0, 4.0}
    assert ff.Instance.load(tmp_path / "it.parquet") == made
    frame.write_csv(tmp_path / "it.csv")
    assert ff.Instance.load(tmp_path / "it.csv") == made
    odd = frame.with_columns(weight=pl.int_range(pl.len()))
    odd.write_parquet(tmp_path / "odd.parquet")
    refused(lambda: ff.Instance.load(tmp_path / "odd.parquet"), "client '0' has the weights")
    ff.Instance(rewards=finite).save(tmp_path / "plain.parquet")
    assert "weight" not in pl.read_parquet(tmp_path / "plain.parquet").columns


def test_names_and_scaled_instances_keep_weights(tmp_path: Path) -> None:
    assert weighted(name="x").weighted([1, 2, 3]).name == "x weighted 1,2,3"
    assert ff.Instance(MEANS, name="x").weighted([3, 3, 3]).name == "x"
    odd = ff.Instance(MEANS, name="x").weighted([1 / 3, 0.5, 0.25])
    assert odd.name.startswith("x weighted ")
    weighted().save(tmp_path / "it.toml")
    scaled = ff.Instance.load(f"scaled:{tmp_path / 'it.toml'},0.5")
    assert scaled.weights.tolist() == weighted().weights.tolist()
    over = ff.Instance.load(tmp_path / "it.toml", weights=[1, 1, 1])
    assert over.weights is None
