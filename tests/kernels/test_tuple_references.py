"""References to named tuples: fields are those of the tuple, wherever it lies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.compiling import inlined, inner, kernel
from fastfed.kernels.tuple_references import by_reference


class Inside(NamedTuple):
    flag: Any
    numbers: Any
    nothing: Any


class Outside(NamedTuple):
    first: Any
    inside: Any
    alike: Any
    last: Any


class Alike(NamedTuple):
    x: Any
    y: Any


def made() -> Outside:
    inside = Inside(True, np.arange(12.0).reshape(3, 4), ())
    return Outside(np.uint32(7), inside, Alike(1.5, 2.5), np.arange(5))


def same_name() -> tuple[Any, Any]:
    """Make two classes of one name, with the fields the other way round."""
    one = NamedTuple("Twin", [("x", Any), ("y", Any)])  # noqa: UP014
    other = NamedTuple("Twin", [("y", Any), ("x", Any)])  # noqa: UP014
    return one, other


def test_two_classes_of_one_name_stay_apart() -> None:
    one, other = same_name()

    @kernel
    def firsts(a: Any, b: Any) -> Any:
        return by_reference(a).x, by_reference(b).x

    assert firsts(one(1, 2), other(3, 4)) == (1, 4)


class Holder(NamedTuple):
    number: Any
    held: Any


@inlined
def _held(whole: Any, m: Any) -> Holder:
    return Holder(m, whole.inside)


@inner
def _sum_of_row(holder: Any) -> Any:
    row = holder.held.numbers[holder.number]
    total = 0.0
    for i in range(row.shape[0]):
        total += row[i]
    return total


@inlined
def _add_rows(whole: Any, count: Any) -> Any:
    total = 0.0
    for m in range(count):
        holder = by_reference(_held(whole, m))
        total = 10.0 * total + _sum_of_row(holder)
    return total


@kernel
def rows(whole: Outside) -> Any:
    known = by_reference(whole)
    return _add_rows(known, 1), _add_rows(known, 3)


def test_a_reference_may_be_held_by_a_tuple_and_made_anew_in_an_inlined_loop() -> None:
    sums = made().inside.numbers.sum(axis=1)
    assert rows(made()) == (sums[0], 100.0 * sums[0] + 10.0 * sums[1] + sums[2])
