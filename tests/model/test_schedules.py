"""Schedules: their times, their names, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers import refused

import fastfed as ff
from fastfed.model.schedules import Schedule
from fastfed.model.schedules.evidence import boundaries
from fastfed.model.schedules.halving import keep_half
from fastfed.model.setting import Setting


@pytest.mark.parametrize(
    ("schedule", "until", "times"),
    [
        (ff.FedElim(), 20, [1, 2, 4, 8, 16]),
        (ff.FedElim(), 16, [1, 2, 4, 8, 16]),
        (ff.FedElim(), 15, [1, 2, 4, 8]),
        (ff.FedElim0(), 5, [1, 2, 3, 4, 5]),
        (ff.Periodic(3), 10, [3, 6, 9]),
        (ff.Periodic(3), 9, [3, 6, 9]),
        (ff.Periodic(3), 2, []),
        # 1, 1.5, 2.25, 3.375, 5.0625, 7.59, 11.39, 17.09
        (ff.Exponential(1.5), 18, [1, 2, 3, 4, 6, 8, 12, 18]),
        (ff.Exponential(1.5), 17, [1, 2, 3, 4, 6, 8, 12]),
        # ceil(1.1^t) repeats itself at first: distinct values only
        (ff.Exponential(1.1), 7, [1, 2, 3, 4, 5, 6, 7]),
        (ff.Exponential(10), 1000, [1, 10, 100, 1000]),
        (ff.Exponential(3), 100, [1, 3, 9, 27, 81]),
        (ff.Exponential(1e100), 2**52, [1]),
        (ff.SuperExponential(), 70_000, [2, 4, 16, 256, 65536]),
        (ff.SuperExponential(), 2**52, [2, 4, 16, 256, 65536, 2**32]),
        (ff.SuperExponential(), 1, []),
        (ff.At([1, 5, 25, 125]), 125, [1, 5, 25, 125]),
        (ff.At([1, 5, 25, 125]), 124, [1, 5, 25]),
        (ff.At(t * t for t in range(1, 4)), 100, [1, 4, 9]),
    ],
)
def test_times(schedule, until, times):
    found = schedule.times(until)
    assert found.tolist() == times
    assert found.dtype == np.int64


@pytest.mark.parametrize("base", [1.01, 1.5, 2.0, math.e, 7.0])
def test_exponential_times_are_the_distinct_ceilings(base):
    last = int(math.log(10**6, base))
    expected = sorted({math.ceil(base**t) for t in range(last + 1)})
    assert ff.Exponential(base).times(10**6).tolist() == [n for n in expected if n <= 10**6]


def test_exact_powers_up_to_the_last_step():
    assert ff.FedElim().times(2**52).tolist() == [2**t for t in range(53)]
    assert ff.Exponential(3).times(2**52).tolist() == [3**t for t in range(33)]


def test_two_names_for_the_same_times():
    for n in (1, 100, 2**52):
        np.testing.assert_array_equal(
            ff.FedElim().times(n), Schedule.parse("exponential:2").times(n)
        )
    np.testing.assert_array_equal(ff.FedElim0().times(999), Schedule.parse("periodic:1").times(999))
    assert ff.FedElim0().period == ff.Periodic(1).period == 1
    assert ff.FedElim().period is None


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("fedelim", ff.FedElim()),
        ("fedelim0", ff.FedElim0()),
        ("periodic:100", ff.Periodic(100)),
        ("exponential:1.5", ff.Exponential(1.5)),
        ("exponential:2", ff.Exponential(2)),
        ("superexponential", ff.SuperExponential()),
        ("at:1,5,25,125", ff.At([1, 5, 25, 125])),
        ("at:7", ff.At([7])),
        ("periodic:1", ff.Periodic(1)),
        (f"periodic:{2**52}", ff.Periodic(2**52)),
    ],
)
def test_strings_and_back(text, schedule):
    assert str(schedule) == text
    assert Schedule.parse(text) == schedule
    assert hash(Schedule.parse(text)) == hash(schedule)
    assert type(Schedule.parse(text)) is type(schedule)
    assert Schedule.parse(schedule) is schedule
    assert text in repr(schedule)


def test_whole_numbers_of_any_type():
    assert ff.Periodic(np.int32(5)) == ff.Periodic(5.0) == ff.Periodic("5") == ff.Periodic(5)
    assert ff.At(np.array([1, 2, 3])) == ff.At([1, 2.0, 3])


def test_equality():
    different = [
        ff.FedElim(),
        ff.FedElim0(),
        ff.Periodic(1),
        ff.Periodic(2),
        ff.Exponential(2),
        ff.Exponential(3),
        ff.SuperExponential(),
        ff.At([1]),
        ff.At([1, 2]),
    ]
    for i, a in enumerate(different):
        assert [a == b for b in different] == [i == j for j in range(len(different))]
    assert len(set(different)) == len(different)
    assert ff.FedElim() != "fedelim"


def test_a_base_of_one_names_the_fix():
    refused(lambda: ff.Exponential(1), "fedelim0")
    refused(lambda: ff.Exponential(1 + 1e-9), "fedelim0", "1.000000001")


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([], ["no times"]),
        ([5, 3], ["times 5, 3", "increase"]),
        ([1, 2, 2], ["times 2, 2", "increase"]),
        ([0, 1], ["time 0", "whole numbers from 1"]),
        ([-4], ["time -4", "whole numbers"]),
        ([1, 2.5], ["time 2.5", "whole numbers"]),
        ([1, 2**53], ["9007199254740992", "2^52"]),
        ([1, math.nan], ["nan", "whole numbers"]),
        (["a"], ["time 'a'", "whole numbers"]),
        (["1", ""], ["time ''", "whole numbers"]),
    ],
)
def test_bad_times(times, words):
    refused(lambda: ff.At(times), *words)


def test_too_many_times_to_list():
    refused(lambda: ff.FedElim0().times(2**40), "fedelim0", "too many")


@pytest.mark.parametrize(("arms", "kept"), [(2, 1), (3, 2), (5, 3), (8, 4)])
def test_halving_keeps_the_better_half_rounded_up(arms: int, kept: int) -> None:
    alive, values = np.ones(arms), np.arange(arms, dtype=float)[::-1].copy()
    keep_half(alive, values)
    assert alive.tolist() == [1.0] * kept + [0.0] * (arms - kept)


def test_evidence_shares_delta_among_clients_and_rivals() -> None:
    """A client has delta / (2 M (K - 1)) for each rival, and the server delta / (2 (K - 1))."""
    means = np.array([[0.9], [0.1], [0.0]])
    base, more_clients, fewer_rivals = (
        boundaries(Setting.of(ff.Instance(means[:arms] * np.ones(clients)), delta=0.1)).constant
        for arms, clients in ((3, 1), (3, 4), (2, 1))
    )
    assert more_clients - base == pytest.approx([np.log(4), 0.0])
    assert base - fewer_rivals == pytest.approx([np.log(2), np.log(2)])
