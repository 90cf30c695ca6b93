"""Rounding of sums.

Large means that all arms share do not matter. Where rounding does matter, the rows say so.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import fastfed as ff
from fastfed.model.rewards.rounding import Spent, sum_error
from fastfed.simulation.job import Job
from fastfed.simulation.walks import values_at

# multiples of 2^-8, so that 1e9 can be added to them exactly
MEANS = np.array([[128, 0], [102, 77], [0, 26]]) / 256
NOISE = np.array([[1.0, 0.5], [0.75, 1.0], [1.25, 0.5]])
SCHEDULES = ["fedelim", "fedelim0", "periodic:7"]


def rows(means: np.ndarray, noise: object = 1.0, **options: object) -> pl.DataFrame:
    instance = ff.Instance(means, ff.Gaussian(noise), name="shifted")
    return ff.simulate(
        instance, SCHEDULES, **{"trials": 1500, "delta": 0.05, "seed": 1, "sigma": 1, **options}
    ).frame


@pytest.mark.parametrize(
    "noise", [1.0, pytest.param(NOISE, marks=pytest.mark.slow)], ids=["one noise", "of each cell"]
)
@pytest.mark.parametrize("shift", [1e3, -1e6, 1e9, [[1e9, -1e9]]])
def test_what_the_means_of_a_client_share_does_not_matter(noise: object, shift: object) -> None:
    """With sums of the rewards as they are, 24 of 4,000 rows changed for 1e9."""
    assert rows(MEANS + np.array(shift), noise).equals(rows(MEANS, noise))


@pytest.mark.parametrize("apart", [0, 2.0**30])
def test_nor_what_the_values_of_a_client_share(apart: float) -> None:
    """38 of 6,000 rows changed where one client's values lay 2^30 above another's."""
    low, high = 104857 / 2**20, 314573 / 2**20
    weights = np.array([[5, 5], [4, 6], [7, 3]])  # of the low and of the high value

    def found(shift: float) -> pl.DataFrame:
        cells = np.zeros((3, 2, 4))
        cells[:, 0, 2:], cells[:, 1, :2] = weights, weights
        values = [low - apart, high - apart, shift + low, shift + high]
        instance = ff.Instance(rewards=ff.Finite(values, cells), name="far values")
        return ff.simulate(instance, SCHEDULES, delta=0.05, trials=500, seed=3, sigma=0.1).frame

    assert found(1.0).equals(found(2.0**30))


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["top:2", "eps:0.25", "threshold"])
def test_nor_for_other_goals(goal: str) -> None:
    shift = 2.0**30
    near, far = (
        (f"threshold:{tau}" if goal == "threshold" else goal) for tau in (0.1875, shift + 0.1875)
    )
    found = [
        rows(MEANS + by, goal=name, trials=300).drop("goal", "global_answer")
        for by, name in ((0.0, near), (shift, far))
    ]
    assert found[0].equals(found[1])


def test_sums_are_off_by_no_more_than_is_said() -> None:
    """X(n) with a large mean against n times the mean and X(n) without it, on the same normals."""
    large, steps = 2.0**30 + 1 / 3, np.unique(np.geomspace(1, 2**22, 60).astype(int))
    with_mean, without = (
        values_at(
            ff.Instance([[mean], [-mean]], name="x"),
            5,
            np.arange(len(steps)),
            np.repeat(steps, 2).reshape(-1, 2, 1),
        )[:, 0, 0]
        for mean in (large, 0.25)
    )
    exact = np.array(
        [
            float(Fraction(x) - int(n) * Fraction(large))
            for x, n in zip(with_mean.tolist(), steps, strict=True)
        ]
    )
    off = abs(exact - (without - 0.25 * steps))
    said = 2.0**-53 * (2 * np.ceil(np.log2(steps)) + 19) * (large * steps + 9 * np.sqrt(steps))
    assert 0.01 < (off / said).max() < 1


def test_rows_tell_where_rounding_matters() -> None:
    """Arms differ by a billion at each client, in opposite directions, and by 1/8 on average.

    The server's sums stay large, and some of its decisions change.
    """
    apart = np.array([[1, -1], [-1, 1]])
    near, far = (rows(MEANS[:2] * [[0, 0], [0, 1]] + by * apart) for by in (2.0**3, 2.0**30))
    assert 0 < (near["pulls"] != far["pulls"]).mean() < 0.1
    assert far["draw_error"].min() == 1
    assert near["draw_error"].mean() < 1e-6


@pytest.mark.slow
def test_messages_keep_what_means_share() -> None:
    """A lattice is one of means as they are, so that a large one leaves it fewer digits."""
    near, far = (
        rows(MEANS + by, uplink="dither:0.5", trials=20)["draw_error"].mean()
        for by in (0.0, 2.0**20)
    )
    assert near < 1e-6
    assert far > 1000 * near


@pytest.mark.parametrize("radius", ["paper", "mixture", "mixture:1000000000"])
def test_the_boundary_that_counts_is_never_below_g(radius: str) -> None:
    """That of mixtures is high at first, and L(n) falls with n."""
    job = Job.of(ff.Instance(MEANS, name="x"), "fedelim", delta=0.1, radius=radius)
    means = np.array([[1.0, 1.5, 2.0, 700.0, 2.0**40]])
    spent = Spent.of(job.setting, means, (means * MEANS.size).astype(np.int64))
    for place, g in (
        (job.setting.radii.client, spent.local_g),
        (job.setting.radii.server, spent.global_g),
    ):
        assert all(bound >= place.boundary(n) for n, bound in zip(means[0], g[0], strict=True))


def test_a_lone_arm_can_be_misjudged_too() -> None:
    found = ff.simulate([[0.3]], "fedelim", delta=0.1, trials=3, goal="threshold:0.1").frame
    assert (found["draw_error"] > 0).all()


def test_the_bound_is_small_for_usual_means() -> None:
    found = ff.simulate("synthetic", ["fedelim", "fedelim0"], delta=0.01, trials=50).frame
    assert found["draw_error"].min() > 0
    assert found["draw_error"].mean() < 1e-6


def test_every_term_of_the_bound_counts() -> None:
    """Compare with the formula of the module's text, one term at a time, by hand.

    Two arms, four clients, noise 1/2 to 2, three pulls of an arm at a client and eight steps:
    log2 8 = 3 is rounded up to 4, A(3) = 3 a + 9 noise sqrt(3).
    """
    noise = np.array([0.5, 2.0])

    def bound(mean: float, local_g: float, global_g: float) -> float:
        spent = Spent(*(np.array([one]) for one in (8.0, 3.0, local_g, global_g)))
        return float(sum_error(np.full((2, 4), mean), noise, spent)[0])

    per_place = 40 / 0.5  # 40 e / s, for the least noise
    walks = 9 * 2 * np.sqrt(3)
    at_clients, at_server = 2 * 4, 2 / np.sqrt(4)  # places, over the deviation of a server's step
    digits = 2 * 4 + 20
    least = per_place * 2.0**-52 * walks * (at_clients * digits + at_server * 4 * (digits + 4))
    assert bound(0, 0, 0) == pytest.approx(least, rel=1e-12)
    assert bound(7, 0, 0) / bound(0, 0, 0) == pytest.approx(1 + 3 * 7 / walks, rel=1e-12)
    for given, places in (((1e6, 0), at_clients), ((0, 1e6), at_server)):
        more = bound(0, *given) - least
        assert more == pytest.approx(per_place * 2.0**-51 * 1e6 * places, rel=1e-9)
