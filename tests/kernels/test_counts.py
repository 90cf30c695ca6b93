"""Counts of rewards with finite support: the laws of their extensions and splits.

Each statistical test has a fixed seed; chosen afresh, it would fail a correct program with
probability 1e-6 in all (the level of each test is 1e-6 over the number of comparisons it makes).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from goodness_of_fit import FALSE_ALARM, SEED, law_fits, moments_fit, smirnov
from scipy import stats

from fastfed.kernels.compiling import from_python, kernel
from fastfed.kernels.rewards import counts as count_walks
from fastfed.kernels.rewards.counts import extend_cell
from fastfed.kernels.rewards.finite import finite_rewards

middle_counts = from_python(count_walks.middle_counts)


@kernel
def draw_eighths(extending, kinds, top, seed, node, out):
    """Per trial: the counts at `top`, from 1 up, then the interval (top / 2, top] in eighths."""
    for trial in range(out.shape[0]):
        for v in range(kinds):
            node[8, v] = 0
        extend_cell(node[8], extending, kinds, 1, (seed, trial, 2, 3, 1), node[8])
        n = 1
        while n < top:
            for v in range(kinds):
                node[0, v] = node[8, v]
            extend_cell(node[0], extending, kinds, n, (seed, trial, 2, 3, 2 * n), node[8])
            n *= 2
        step = 8
        while step > 1:
            half = step // 2
            for i in range(half, 8, step):
                at = top // 2 + i * (top // 16)
                middle_counts(
                    node[i - half],
                    node[i + half],
                    kinds,
                    half * (top // 16),
                    (seed, trial, 2, 3, at),
                    node[i],
                )
            step = half
        for i in range(8):
            for v in range(kinds):
                out[trial, i, v] = node[i + 1, v] - node[i, v]


def eighths(weights, top, size):
    """(size, 8, V), in the order of the weights."""
    weights = np.array(weights, float)
    law = finite_rewards(np.arange(len(weights), dtype=float), weights[None, None])
    kinds = int(law.kinds[0, 0])
    drawn = np.zeros((size, 8, kinds + 1), np.int64)
    draw_eighths(
        (law.shares[0, 0], law.logs[0, 0], law.upto[0, 0]),
        kinds,
        top,
        SEED,
        np.zeros((9, kinds), np.int64),
        drawn,
    )
    drawn[:, :, kinds] = top // 16 - drawn.sum(axis=2)
    out = np.zeros((size, 8, len(weights)), np.int64)
    order = np.argsort(weights, kind="stable")[np.count_nonzero(weights == 0) :]
    out[:, :, order] = drawn
    return out


@pytest.mark.statistical
@pytest.mark.parametrize("top", [256, 2048, 2**15, 2**24, 2**41])
def test_counts_of_disjoint_intervals_after_three_splits(top):
    """Each eighth of (top / 2, top] is an independent multinomial.

    Values are compared with SciPy's binomial. Eighths and values are compared with each other by
    their correlations.
    """
    weights = np.array([1.0, 0.0, 6.0, 3.0, 10.0, 4.0, 5.0])
    p = weights / weights.sum()
    size, length = 40_000, top // 16
    counts = eighths(weights, top, size)
    assert (counts.sum(axis=2) == length).all()
    assert (counts[:, :, 1] == 0).all()
    assert counts.min() >= 0
    present = [0, 2, 3, 4, 5, 6]
    comparisons = 5 * (8 * 6 + 48 * 47 / 2)
    for i in range(8):
        for v in present:
            sample = counts[:, i, v]
            if length <= 2**12:
                pvalue = law_fits(sample, stats.binom(length, p[v]), 0, length)
                assert pvalue > FALSE_ALARM / comparisons
            else:
                z = moments_fit(sample, length * p[v], length * p[v] * (1 - p[v]), 2 * comparisons)
                if length > 2**30:
                    assert smirnov(sample, z) > FALSE_ALARM / comparisons
    # within an eighth the values are correlated as in a multinomial, between eighths not at all
    flat = counts[:, :, present].reshape(size, -1).astype(float)
    q = p[present]
    inside = -np.sqrt(np.outer(q, q) / np.outer(1 - q, 1 - q))
    np.fill_diagonal(inside, 1.0)
    expected = np.kron(np.eye(8), inside)
    limit = stats.norm.isf(FALSE_ALARM / (2 * comparisons))
    assert abs(np.corrcoef(flat.T) - expected).max() < 1.2 * limit / math.sqrt(size)


@pytest.mark.parametrize("values", [2, 3, 6])
def test_the_middle_is_between_the_ends(values):
    """Whatever the counts: a split stays within them and takes half of the items."""
    rng = np.random.default_rng(5)
    kinds = values - 1
    out = np.zeros(kinds, np.int64)
    for trial in range(1500):
        half = 2 ** int(rng.integers(0, 41))
        parts = rng.multinomial(2 * half, rng.dirichlet(np.full(values, 0.3)))
        left = rng.integers(0, 2**40, kinds)
        middle_counts(left, left + parts[:-1], kinds, half, (SEED, trial, 0, 0, 3 * half), out)
        assert (out >= left).all()
        assert (out <= left + parts[:-1]).all()
        assert 0 <= half - (out - left).sum() <= parts[-1]


@pytest.mark.parametrize("support", [1, 2, 5])
def test_tables_do_not_depend_on_the_blocks_in_which_they_are_made(monkeypatch, support):
    """Blocks of one cell, of seven, and all cells at once give the same bits."""
    rng = np.random.default_rng(4)
    weights = rng.integers(0, 4, (3, 12, support)) * rng.random((3, 12, support))
    weights[..., 0] += weights.sum(axis=2) == 0
    values = np.sort(rng.normal(size=support))
    whole = finite_rewards(values, weights)
    for cells in (1, 7):
        monkeypatch.setattr("fastfed.kernels.rewards.finite._TOGETHER", cells * support)
        for name, found in finite_rewards(values, weights)._asdict().items():
            expected = getattr(whole, name)
            assert np.asarray(found).dtype == np.asarray(expected).dtype
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes(), name


def test_laws_of_cells():
    """Own values only, the rarest first, the last one not counted."""
    law = finite_rewards(
        np.array([-1.0, 0.5, 2.0]),
        np.array([[[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]], [[5.0, 1.0, 2.0], [1, 1, 0]]]),
    )
    assert law.origin.tolist() == [-1, -1]
    assert law.kinds.tolist() == [[1, 0], [2, 1]]
    assert law.base[:-1].tolist() == [[3.0, 1.5], [0.0, 1.5]]
    assert law.rise.tolist() == [[[-3.0, 0.0], [0.0, 0.0]], [[1.5, 3.0], [-1.5, 0.0]]]
    assert law.shares.tolist() == [[[0.25, 0.0], [0.0, 0.0]], [[1 / 8, 2 / 7], [0.5, 0.0]]]
    assert (law.upto[1, 0] / 2.0**64).tolist() == [5 / 8, 7 / 8]
    assert law.reach.tolist() == [[3.0, 0.0], [3.0, 1.5]]
    assert law.noise == pytest.approx(0.75)
