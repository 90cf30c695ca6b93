"""Every radius through the engine: skip = dense = Algorithm 1 as printed, and what it promises."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from helpers import BOUNDS, SMALL, built_in, refused, rows, run
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import fastfed as ff
from fastfed.confidence import Confidence
from fastfed.kernels import radii as boundary
from fastfed.kernels.compiling import kernel
from fastfed.model.radii import Radius
from fastfed.model.schedules import Schedule
from fastfed.simulation import reference
from fastfed.simulation.job import Job
from fastfed.simulation.replay import departures

pytestmark = pytest.mark.statistical

OTHERS = [name for name in built_in(Radius) if name not in ("paper", "betting")]
SCHEDULES = ["fedelim", "fedelim0", "periodic:7", "exponential:1.5"]


def union(n: float, a: float) -> float:
    """Compute the paper's radius, as a user's function might."""
    return math.log(4.0 / a) + 2.0 * math.log(n)


def instances(law: str) -> list[ff.Instance]:
    """Ten random ones, 2 to 5 arms at 1 to 4 clients, with gaps of at least 0.1."""
    found: list[ff.Instance] = []
    rng = np.random.default_rng(5)
    while len(found) < 10:
        arms, clients = int(rng.integers(2, 6)), int(rng.integers(1, 5))
        if law == "gaussian":
            made = ff.Instance(rng.uniform(-1, 1, (arms, clients)))
        else:
            weights = rng.integers(1, 9, (arms, clients, 3)) + rng.random((arms, clients, 3))
            made = ff.Instance(rewards=ff.Finite([-1.0, 0.25, 1.0], weights))
        if min(made.local_gaps.min(), made.global_gaps.min()) > 0.1:
            found.append(made)
    return found


CASES = {law: instances(law) for law in ("gaussian", "finite")}


@pytest.mark.parametrize("law", CASES)
@pytest.mark.parametrize("name", [*OTHERS, "mixture-pairs:17", "own"])
def test_skipping_changes_nothing(law, name):
    """Skipping may differ with probability `skip_error`, about 1e-11 a trial: seeds are fixed."""
    radius = ff.Radius(union) if name == "own" else name
    for number, instance in enumerate(CASES[law]):
        options = {
            "delta": 0.05,
            "trials": 12,
            "seed": number,
            "threads": 1,
            "radius": radius,
            "sigma": 0.7,
            "max_steps": 2**16,
        }
        skip = ff.simulate(instance, SCHEDULES, engine="skip", **options).frame
        dense = ff.simulate(instance, SCHEDULES, engine="dense", **options).frame
        assert set(skip["radius"]) == {name}
        assert_frame_equal(skip.drop(BOUNDS), dense.drop(BOUNDS))


@pytest.mark.parametrize("law", CASES)
@pytest.mark.parametrize("name", [*OTHERS, "own"])
def test_the_engine_is_algorithm_1(law, name):
    """Event by event on the same rewards: the reference knows the formula, and no table."""
    radius = ff.Radius(union) if name == "own" else name
    checked = 0
    for number, instance in enumerate(CASES[law][:4]):
        schedule = Schedule.parse(SCHEDULES[number % 4])
        job = Job.of(instance, [schedule], delta=0.05, seed=3, sigma=0.5, radius=radius)
        for trial in range(3):
            left = departures(job, trial)
            if max(left.local.max(), left.server.max()) > 3000:
                continue
            out = reference.fedelim(
                instance,
                schedule,
                0.05,
                reference.walk_rewards(instance, 3, trial),
                sigma=0.5,
                radius=radius,
            )
            np.testing.assert_array_equal(
                out.pulls, np.maximum(left.local, left.server[0][:, None])
            )
            assert out.global_arm == left.server_arms[0]
            assert [out.local_arms[m] for m in range(instance.shape[1])] == list(left.local_arms)
            checked += 1
    assert checked >= 6


def test_an_own_radius_with_the_papers_formula_gives_the_papers_rows():
    same = [
        ff.simulate(SMALL, SCHEDULES, delta=0.05, trials=50, radius=radius, threads=1).frame
        for radius in ("paper", ff.Radius(union, name="union"))
    ]
    assert_frame_equal(*(frame.drop("radius", *BOUNDS) for frame in same))
    assert same[1]["radius"].unique().to_list() == ["union"]


@kernel
def below(curve, n, level):
    return boundary.boundary_below(curve, n, level)


@kernel
def reaches(curve, lead, n, level):
    return boundary.reaches(curve, lead, n, level)


@kernel
def exact(curve, n):
    return boundary.exact(curve, n)


CURVES: dict[tuple[str, float], tuple[Confidence, object]] = {}


def curve_of(name: str, delta: float) -> tuple[Confidence, object]:
    if (name, delta) not in CURVES:
        confidence = Radius.parse(name).at_server(4, 3, delta, 1.3)
        CURVES[name, delta] = confidence, boundary.make_radius(confidence)
    return CURVES[name, delta]


steps = st.one_of(
    st.integers(1, 2**52), st.integers(0, 52).map(lambda t: 2**t), st.integers(1, 1000)
)


@given(
    n=steps,
    name=st.sampled_from([*OTHERS, "mixture:1", "mixture-pairs:4503599627370496"]),
    delta=st.sampled_from([0.999, 0.1, 1e-300]),
    off=st.floats(-3e-5, 3e-5),
)
def test_the_table_is_below_and_near_and_the_formula_decides(n, name, delta, off):
    confidence, curve = curve_of(name, delta)
    g, level = exact(curve, float(n)), n.bit_length()
    assert g == pytest.approx(confidence.boundary(float(n)), rel=1e-14)
    assert g * (1 - 3e-5) < below(curve, n, level) < g
    for lead in (g * (1 + off), g, math.nextafter(g, 0), math.nextafter(g, math.inf)):
        assert reaches(curve, lead, n, level) == (lead >= g)


def test_the_formula_is_asked_only_where_the_table_does_not_decide():
    """A forged formula would turn every answer round."""
    for name in OTHERS:
        _, curve = curve_of(name, 0.1)
        for n in (1, 3, 200, 12345, 2**40 + 12345):
            g, level = exact(curve, float(n)), n.bit_length()
            assert reaches(curve._replace(unit=1e300), g * (1 + 3e-5), n, level)
            assert not reaches(curve._replace(unit=1e-300), g * (1 - 3e-5), n, level)


@pytest.mark.parametrize("name", OTHERS)
def test_error_rates_agree_with_the_reference_where_errors_happen(name):
    """Compare 3,000 trials by skipping with 300 of the reference on NumPy's rewards.

    The confidence scale is below the noise. The tests allow 5 standard errors: 6e-7 each.
    """
    instance = ff.Instance([[0.8, 0.0], [0.0, 0.9]])
    scale = {"stitched": 0.3, "mixture": 0.3, "stitched-pairs": 0.4, "mixture-pairs": 0.5}[name]
    quick = ff.simulate(
        instance, "fedelim", delta=0.3, trials=3000, sigma=scale, radius=name, threads=1, seed=1
    ).frame
    rng = np.random.default_rng(8)
    slow = []
    for _ in range(300):
        out = reference.fedelim(
            instance,
            Schedule.parse("fedelim"),
            0.3,
            reference.independent_rewards(instance, rng),
            sigma=scale,
            radius=name,
        )
        right = out.global_arm == instance.global_best and all(
            out.local_arms[m] == best for m, best in enumerate(instance.local_best)
        )
        slow.append((not right, out.pulls.sum()))
    wrong, pulls = np.array(slow, dtype=float).T
    rate = float((~quick["correct"]).mean())
    assert 0.03 < rate < 0.6
    assert abs(rate - wrong.mean()) < 5 * math.sqrt(rate * (1 - rate) * (1 / 300 + 1 / 3000))
    spread = math.hypot(pulls.std() / math.sqrt(300), quick["pulls"].std() / math.sqrt(3000))
    assert abs(quick["pulls"].mean() - pulls.mean()) < 5 * spread


def left_the_radius(
    confidence: Confidence, walks: int, steps: int, seed: int, shrunk: float = 1.0
) -> int:
    """Count the centred Gaussian walks of variance 1 that ever leave, step by step."""
    n = np.arange(1, steps + 1, dtype=float)
    edge = shrunk * np.array([math.sqrt(2 * step * confidence.exponent(step)) for step in n])
    rng = np.random.default_rng(seed)
    out = 0
    for _ in range(walks // 1000):
        sums = np.cumsum(rng.standard_normal((1000, steps), dtype=np.float32), axis=1)
        if not confidence.pairs:
            sums = np.abs(sums)
        out += int((sums >= edge).any(axis=1).sum())
    return out


@pytest.mark.parametrize("name", ["paper", *OTHERS])
def test_walks_leave_a_radius_as_rarely_as_promised(name):
    """Follow 4,000 walks of 1,024 steps with a budget of a = 0.1.

    More than 0.1 + 5 standard errors has a probability below 3e-7. `benchmarks/studies/validity.py`
    follows millions of walks for 2^20 steps.
    """
    delta = 0.2 * (1 if Radius.parse(name).pairs else 2)
    confidence = Radius.parse(name).at_client(2, 1, delta, 1.0)
    found = left_the_radius(confidence, 4000, 1024, 2) / 4000
    assert 0 < found < 0.1 + 5 * math.sqrt(0.09 / 4000)


def test_a_sweep_over_radii(tmp_path):
    summary = run(tmp_path, radii=["paper", "mixture-pairs", "mixture:1000", "mixture"])
    assert summary["radius"].unique(maintain_order=True).to_list() == [
        "paper",
        "mixture-pairs",
        "mixture",
    ]
    means = dict(
        summary.filter(pl.col("cost") == 0, pl.col("schedule") == "fedelim0")
        .select("radius", "pulls_mean")
        .iter_rows()
    )
    assert means["mixture-pairs"] < 0.5 * means["mixture"] < 0.5 * means["paper"]
    alone = ff.simulate(
        SMALL, ["fedelim", "fedelim0"], delta=0.1, trials=20, threads=1, radius="mixture-pairs"
    ).frame
    stored = rows(tmp_path).filter(pl.col("radius") == "mixture-pairs")
    assert_frame_equal(stored.sort("schedule", "trial"), alone.sort("schedule", "trial"))
    again = run(tmp_path, radii=["paper", "mixture-pairs", "mixture"])
    assert_frame_equal(again, summary)


def test_a_replay_names_its_radius_and_adds_up():
    told = ff.replay(SMALL, "fedelim", delta=0.1, trial=3, radius="mixture-pairs")
    row = ff.simulate(
        SMALL, "fedelim", delta=0.1, trials=4, threads=1, radius="mixture-pairs"
    ).frame.row(3, named=True)
    assert told.row == row
    assert "mixture-pairs" in str(told)
    first = told.events[0]
    confidence = Radius.parse("mixture-pairs")
    at = confidence.at_server if first.actor == "server" else confidence.at_client
    assert first.threshold == pytest.approx(2 * at(2, 2, 0.1, 1.0).alpha(first.step))


def unsupported(n, a):
    return 5.0 if sorted({"x": n}.items(), key=str) else a


def test_bad_radii_are_one_line(tmp_path):
    def simulate(radius):
        return lambda: ff.simulate(SMALL, "fedelim", delta=0.1, trials=1, radius=radius)

    refused(simulate("mixtur"), "radius 'mixtur'", "'mixture'")
    refused(simulate("mixture:0"), "mixture:0", "1 to 2^52")
    refused(simulate("mixture:x"), "mixture:x", "1 to 2^52")
    refused(simulate("stitched:3"), "stitched takes no option")
    refused(simulate(3), "radius 3")
    refused(simulate(ff.Radius(lambda n, a: math.nan)), "L(1) = nan")
    refused(simulate(ff.Radius(lambda n, a: 5.0 - n / 10)), "L(50) = 0")
    refused(simulate(ff.Radius(lambda n, a: 1.0 + n * n)), "not concave at n = ")
    falling = ff.Radius(lambda n, a: (1e9 * (1.0 - 0.99 * (n / 2.0**53) ** 2)) ** 2 / n)
    refused(simulate(falling), "falls to ")
    refused(simulate(ff.Radius(lambda n, a: 1 / (n - n))), "L(1)", "ZeroDivisionError")
    refused(simulate(ff.Radius(unsupported)), "Numba cannot compile")
    refused(lambda: ff.Radius(3), "radius 3")
    refused(lambda: ff.Radius(union, name="mixture:3"), "taken by a built-in")
    refused(lambda: ff.Radius(union, name="a,b"), "commas")
    refused(lambda: run(tmp_path, radii=[ff.Radius(union)]), "radius own", "by name only")
    refused(lambda: run(tmp_path, radii=[]), "no radii")
