"""Rows of trials: several passes over them, and how often they are read for that."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fastfed.analysis.trials import BLOCK, Aligned, Batch, Passes, blocks

NAMES = ("fedelim", "fedelim0")


class Seen:
    """A collector of the trials that it was shown."""

    def __init__(self) -> None:
        self.trials: list[int] = []

    def add(self, trials: Aligned) -> None:
        self.trials += trials.trial.tolist()


@pytest.mark.parametrize(("most", "reads"), [(2 * 10, 1), (2 * 10 - 1, 3)])
def test_small_batches_are_read_once_and_large_ones_are_not_kept(
    most: int, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Passes, "MOST", most)
    count = 0

    def read() -> Iterator[Batch]:
        nonlocal count
        count += 1
        for numbers in (np.arange(4), np.arange(4, 10)):
            zeros, whole = np.zeros(len(numbers), np.int64), np.ones(len(numbers), bool)
            rows = {"trial": numbers, "pulls": zeros, "uplinks": zeros}
            yield {name: {**rows, "correct": whole, "truncated": ~whole} for name in NAMES}

    rows = Passes(read, NAMES)
    for collectors in ([Seen()], [Seen(), Seen()], [Seen()]):
        rows.collect(*collectors)
        assert [one.trials for one in collectors] == [list(range(10))] * len(collectors)
    assert count == reads


def test_blocks_without_rows_are_left_out() -> None:
    trials = np.array([0, 1, 5 * BLOCK, 10**8])
    found = [*blocks([{NAMES[0]: {"trial": trials}}])]
    assert [one[NAMES[0]]["trial"].tolist() for one in found] == [[0, 1], [5 * BLOCK], [10**8]]
