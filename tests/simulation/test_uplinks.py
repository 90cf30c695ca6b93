"""Messages of a few bits: what the server hears, what it decides by it, and what was sent.

Engines and reference are compared exactly, on the same walks and dithers: nothing there is
statistical. The statistical tests are in `test_uplink_laws.py`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers import BOUNDS, KINDS, refused
from polars.testing import assert_frame_equal

import fastfed as ff
from fastfed.kernels.memory import BAR, SPINE
from fastfed.kernels.random.dither import dither_of
from fastfed.kernels.uplinks.lattice import MOST_COUNTED, dithered_uplink
from fastfed.model.radii import Radius
from fastfed.model.uplinks import Uplink, messages
from fastfed.simulation import reference
from fastfed.simulation.reference_uplink import wire

UPLINKS = ["dither:0.3", "dither:2", "round:0.2"]


def test_both_ends_of_the_wire_keep_equal_accounts() -> None:
    server = Radius.parse("paper").at_server(3, 2, 0.1, 1.0)
    rng = np.random.default_rng(0)

    def setting_of(uplink: Uplink) -> Any:
        return SimpleNamespace(uplink=uplink, radii=SimpleNamespace(means=server))

    for uplink in map(Uplink.parse, UPLINKS):
        line: Any = wire(setting_of(uplink), reference.independent_dithers(rng))
        for n in (1, 2, 3, 10, 100, 101, 10_000):
            for k in range(3):
                mean = float(rng.normal(0.5, 1 / math.sqrt(n)))
                heard, bits = line.send(k, 1, n, mean)
                assert line._told == line._heard
                assert heard == line.heard(k, 1, n, mean)
                assert abs(heard - mean) <= 0.5000001 * uplink.step(n, server)  # type: ignore[attr-defined]
                assert bits % 2 == 1
    assert isinstance(wire(setting_of(ff.Exact()), None).send(0, 0, 5, 0.25), tuple)
    refused(lambda: wire(setting_of(ff.Dither(1)), None), "dither:1", "walks.dithers")


# The code


def test_the_code_is_elias_gamma_of_the_zig_zag() -> None:
    few = "1 010 011 00100 00101 00110 00111 0001000"
    assert " ".join(messages.written(q) for q in (0, -1, 1, -2, 2, -3, 3, -4)) == few
    stream = [*range(-300, 301), 2**60, -(2**60), 12345678901234567890]
    text = "".join(map(messages.written, stream))
    bits = iter(text)
    assert [messages.read(bits) for _ in stream] == stream
    assert next(bits, None) is None
    assert [len(messages.written(q)) for q in stream] == [messages.bits_of(q) for q in stream]
    # a whole prefix code: the code words fill the tree of all bits (Kraft's sum is 1)
    share = sum(Fraction(1, 2 ** messages.bits_of(q)) for q in range(-(2**12) + 1, 2**12))
    assert share == 1 - Fraction(1, 2**13)


def test_a_message_and_what_is_heard() -> None:
    assert messages.nearest(0.26, 0.1, 0.0) == 3
    assert messages.message(0.26, 0.0, 0.1, 0.0) == 3
    assert messages.message(0.26, 0.3, 0.1, 0.0) == 0
    assert messages.received(0, 0.3, 0.1, 0.0) == pytest.approx(0.3)
    assert messages.received(-2, 0.3, 0.1, 0.25) == pytest.approx(0.1 * (3 - 2 - 0.25))


def test_dithers_are_philox_with_a_key_of_their_own() -> None:
    """NumPy's generator, which adds one to its counter first; no other stream has the key 1."""
    seed, trial, client, n = 2**63 + 7, 12, 5, 4097
    counter = np.array([n - 1, trial, client << 32 | 2, 0], np.uint64)
    words = np.random.Philox(key=np.array([seed, 1], np.uint64), counter=counter).random_raw(4)
    for arm in range(8, 12):
        expected = ((int(words[arm - 8]) >> 11) + 0.5) * 2.0**-53 - 0.5
        assert dither_of(np.uint64(seed), trial, client, arm, n) == expected


# Radii


@pytest.mark.parametrize("radius", ["paper", "mixture", "stitched-pairs"])
def test_the_radius_is_wider_by_what_the_uplink_asks(radius: str) -> None:
    plain = Radius.parse(radius).at_server(4, 3, 0.01, 2.0)
    for n in (1, 7, 1000, 10**9):
        dithered = ff.Dither(1.5).widened(plain).alpha(n)
        if radius == "paper":
            assert dithered == pytest.approx(plain.alpha(n) * math.sqrt(1 + 1.5**2 / 12))
        else:
            assert dithered == pytest.approx(plain.alpha(n) + 1.5 * 2.0 / math.sqrt(n) / 2)
        assert ff.Dither(1.5).widened(plain).boundary(n) == pytest.approx(2 * 3 * n * dithered)
        rounded = ff.Round(0.25).widened(plain).alpha(n)
        assert rounded == pytest.approx(1.25 * plain.alpha(n), rel=1e-8)
        assert ff.Round(0.25).step(n, plain) == pytest.approx(0.5 * plain.alpha(n), rel=1e-8)


@pytest.mark.parametrize("kappa", [0.25, 1.0, 4.0, 16.0])
@pytest.mark.parametrize("radius", ["paper", "mixture", "mixture-pairs", "stitched"])
@pytest.mark.parametrize("clients", [1, 3, 38, 400])
def test_what_remains_of_the_boundary_is_concave_where_it_is_used(
    kappa: float, radius: str, clients: int
) -> None:
    """Check g less the message error on a dense grid, wherever the difference is not negative."""
    plain = Radius.parse(radius).at_server(5, clients, 0.01, 1.0)
    wide = ff.Dither(kappa).widened(plain)
    for stray in (
        dithered_uplink(kappa, clients).errors_of_pair[0],
        dithered_uplink(kappa, clients).errors_of_pair[SPINE - 1],
    ):
        n = np.unique(np.floor(np.geomspace(1, 1e12, 4000)))
        left = np.array([wide.boundary(x) for x in n]) - stray * np.sqrt(n)
        chord = left[:-2] + (left[2:] - left[:-2]) * (n[1:-1] - n[:-2]) / (n[2:] - n[:-2])
        used = left[:-2] >= 0
        assert (left[1:-1] >= chord - 1e-9 * np.abs(chord))[used].all()
        assert used.any()
        assert used[np.argmax(used) :].all()


def test_message_errors_are_the_smaller_of_what_is_sure_and_what_is_likely() -> None:
    few, many = dithered_uplink(0.5, 3), dithered_uplink(0.5, 1000)
    np.testing.assert_allclose(few.errors_of_pair, 1.5, rtol=1e-6)
    assert few.errors == 1
    assert many.errors == 2
    for bits in (0, 20):
        likely = math.sqrt(1000 * 0.25 * (BAR + bits * math.log(2)) / 3)
        assert many.errors_of_pair[bits] == pytest.approx(likely, rel=1e-6)


# Rows


@pytest.mark.slow
def test_small_steps_give_the_rows_of_exact() -> None:
    """From some KAPPA and C0 on, all but the bits are those of real numbers, on the same walks."""
    options: Any = {"delta": 0.05, "trials": 60, "seed": 3}
    exact = ff.simulate("synthetic", KINDS[:5], **options)
    for uplink in ("dither:1e-7", "dither:1e-9", "round:1e-8"):
        found = ff.simulate("synthetic", KINDS[:5], uplink=uplink, **options)
        drop = ["bits", "uplink", *BOUNDS]
        assert_frame_equal(found.frame.drop(drop), exact.frame.drop(drop))
        assert (found.frame["bits"] > 30 * found.frame["rounds"]).all()
    assert (exact.frame["bits"] == 64 * exact.frame["uplinks"]).all()


@pytest.mark.slow
def test_bits_that_were_not_counted_are_null() -> None:
    """More communication times than are looked at one by one: the rest is skipped."""
    hard = ff.Instance([[0.004], [0.0]])
    result = ff.simulate(hard, ["fedelim", "fedelim0"], delta=0.5, trials=3, uplink="dither:1")
    fedelim, fedelim0 = (result.frame.filter(schedule=one) for one in ("fedelim", "fedelim0"))
    assert (fedelim0["bits"].is_null() == (fedelim0["rounds"] > MOST_COUNTED)).all()
    assert fedelim0["bits"].is_null().any()
    assert fedelim["bits"].null_count() == 0
    table = result.summary(bit_costs=[0, 1])
    unknown = table.filter(schedule="fedelim0").select("bits_mean", "total_mean")
    assert unknown.rows() == 2 * [(None, None)]
    assert table["pulls_mean"].null_count() == 0
    assert table.filter(bit_cost=1)["ratio_to_fedelim0"].null_count() == 2
    compared = result.compare(by="schedule", cost=[], bit_cost=[0, 1]).frame
    # bits that cost nothing need not be known
    assert compared["measure"].to_list() == ["total", "pulls", "uplinks"]
    assert compared["bit_cost"].to_list() == [0, None, None]
    assert result.summary([1])["total_mean"].null_count() == 0
