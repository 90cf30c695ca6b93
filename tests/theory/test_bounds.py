"""Theorems 2 to 4 as numbers: by hand, against their definitions, and against Algorithm 1."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastfed import confidence as radius
from fastfed.errors import InputError
from fastfed.model.instance import Instance
from fastfed.model.rewards import Gaussian
from fastfed.model.schedules import Exponential, FedElim, Periodic, SuperExponential
from fastfed.simulation import reference
from fastfed.theory.bounds import Bounds, bounds

VARIANTS = ("as_stated", "summed", "sharp")
COSTS = ("pulls", "uplinks", "comm", "total")
steady = settings(max_examples=30)


@pytest.fixture(scope="module")
def synthetic() -> Instance:
    return Instance.load("synthetic")


def random_instance(rng: np.random.Generator) -> Instance:
    shape = (int(rng.integers(2, 7)), int(rng.integers(1, 6)))
    means = rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 2)
    return Instance(means, Gaussian(10.0 ** rng.uniform(-1, 1)))


# The synthetic instance, K = 4, M = 3. At client m arm m pays 0.9, arm 3 pays 0.5, two pay 0.1:
# Delta_km is 0.4 for arms m and 3, 0.8 for the others. Over the clients arm 3 averages 1/2, the
# others 1.1/3: Delta_k = 2/15 for all four, M Delta_k^2 = 4/75, and 102 / (4/75) = 1912.5.
#
# delta = 0.1: 8K/delta = 320, 8KM/delta = 960.
#   T_k  = 1912.5 (ln 64 + ln 320 / 2 + ln 18.75) + 1
#        = 1912.5 (4.158883 + 2.884160 + 2.931194) + 1 = 1912.5 * 9.974237 + 1 = 19076.73
#   T_km = 637.5 (4.158883 + ln 960 / 2 + ln 6.25) + 1
#        = 637.5 (4.158883 + 3.433467 + 1.832581) + 1 = 6009.39     for Delta = 0.4
#        = 159.375 (4.158883 + 3.433467 + 0.446287) + 1 = 1282.16   for Delta = 0.8
#   T_k is the larger everywhere: T = 12 * 19076.73 = 228920.75.
#   n_k: alpha_g <= 1/30 where n >= 600 ln(320 n^2): 600 (5.768321 + 2 ln 15000) = 14999.96, while
#   for 14999 it is 14999.88, too much: n_k = 15000.
#   n_km: alpha_l <= 0.1 where n >= 200 ln(960 n^2): 4760.67 at 4761, 4760.63 at 4760: 4761.
#         alpha_l <= 0.2 where n >= 50 ln(960 n^2): 1037.85 at 1038, 1037.76 at 1037: 1038.
#   FedElim, C = 10: log2 T_k = 14.2 gives 12 * 15 = 180 uplinks as stated, 12 * 16 = 192 counted
#   with n = 1; the first power of 2 from n_k on is 2^14 = 16384, the 15th time: 180.
#   Lower bound: M Delta_k = 0.4 <= Delta_km, so 2 ln(1 / 0.24) * 12 / 0.16 = 150 * 1.427116.
#   H_opt = sqrt(10 * 228920.75 / 12) = 436.77, and lambda = 1.071894 has ln = 0.069427:
#   lambda ln^2 = 0.0051666 = 10 * 3 * 4 * ln(19076.73) / 228920.75.
#
# delta = 0.01: 8K/delta = 3200, 8KM/delta = 9600.
#   T_k  = 1912.5 (4.158883 + 4.035453 + 2.931194) + 1 = 21278.58, T = 12 T_k = 255342.91
#   T_km = 637.5 (4.158883 + 4.584759 + 1.832581) + 1 = 6743.34, 159.375 * 9.189929 + 1 = 1465.64
#   n_k: 600 ln(3200 n^2) is 16495.59 at 16496 and 16495.52 at 16495: 16496.
#   n_k has passed 2^14, so FedElim waits until 2^15 = 32768, its 16th time.
BY_HAND = {
    0.1: {
        "T_k": 19076.73,
        "T_km": (6009.39, 1282.16),
        "T": 228920.75,
        "n_k": 15000,
        "n_km": (4761, 1038),
        "settled": 16384,
        "turns": 15,
        "lower": 214.0675,
        "period": 436.769,
        "base": 1.071894,
    },
    0.01: {
        "T_k": 21278.58,
        "T_km": (6743.34, 1465.64),
        "T": 255342.91,
        "n_k": 16496,
        "n_km": (5262, 1165),
        "settled": 32768,
        "turns": 16,
        "lower": 559.4552,
        "period": 461.287,
        "base": 1.068447,
    },
}


@pytest.mark.parametrize("delta", BY_HAND)
def test_synthetic_by_hand(synthetic: Instance, delta: float) -> None:
    hand = BY_HAND[delta]
    b = bounds(synthetic, delta, 10.0)
    near = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=bool)
    np.testing.assert_allclose(b.local_gaps, np.where(near, 0.4, 0.8))
    np.testing.assert_allclose(b.global_gaps, 2 / 15)
    np.testing.assert_allclose(b.T_k, hand["T_k"], atol=0.01)
    np.testing.assert_allclose(b.T_km, np.where(near, *hand["T_km"]), atol=0.01)
    np.testing.assert_array_equal(b.n_k, hand["n_k"])
    np.testing.assert_array_equal(b.n_km, np.where(near, *hand["n_km"]))
    assert pytest.approx(hand["T"], abs=0.01) == b.T
    assert b.T_sharp == 12 * hand["n_k"]
    assert b.lower == pytest.approx(hand["lower"], abs=1e-3)
    assert b.lower_as_stated == pytest.approx(hand["lower"] / 2, abs=1e-3)
    assert b.period_opt == pytest.approx(hand["period"], abs=1e-3)
    assert b.base_opt == pytest.approx(hand["base"], abs=1e-6)
    assert b.condition.all()
    assert b.breaking_arms == []
    assert b.three_T_follows

    f = b.fedelim
    assert f.as_stated.pulls == pytest.approx(2 * hand["T"], abs=0.1)
    assert (f.as_stated.uplinks, f.as_stated.comm) == (180, 1800)
    assert f.as_stated.total == pytest.approx(3 * hand["T"], abs=0.1)
    assert f.summed.pulls == pytest.approx(24 * hand["T_k"], abs=0.3)
    assert (f.summed.uplinks, f.summed.comm) == (192, 1920)
    assert f.summed.total == pytest.approx(24 * hand["T_k"] + 1920, abs=0.3)
    assert f.sharp.pulls == 12 * hand["settled"]
    assert f.sharp.uplinks == 12 * hand["turns"]
    # 2, 4, 16, 256, 65536: the fifth time is the first from T_k, and from n_k, on
    s = b.superexponential
    assert s.summed.pulls == pytest.approx(12 * hand["T_k"] ** 2, rel=1e-6)
    assert (s.summed.uplinks, s.sharp.uplinks, s.sharp.pulls) == (60, 60, 12 * 65536)


def test_period_and_base_by_hand(synthetic: Instance) -> None:
    # H = 100: 19076.73 rounds up to 191 periods, n_k = 15000 is 150 of them.
    # lambda = 1.5: ln T_k / ln 1.5 = 24.31, so 25 + 1 turns; ceil(1.5^t) first reaches 15000 at
    # t = 24 (1.5^24 = 16834.1), the 25th time, as no two coincide: 1, 2, 3, 4, 6, 8, ...
    b = bounds(synthetic, 0.1, 10.0, period=100, base=1.5)
    p, e, T = b.periodic, b.exponential, b.T
    assert e is not None
    assert p.as_stated.pulls == pytest.approx(T + 1200)
    assert p.as_stated.total == pytest.approx(T + 1200 + T / 10 + 120)
    assert (p.summed.pulls, p.summed.uplinks) == (12 * 19100, 12 * 191)
    assert (p.sharp.pulls, p.sharp.uplinks, p.sharp.comm) == (180_000, 1800, 18_000)
    assert e.as_stated.total == pytest.approx(1.5 * T + 120 * np.log(b.T_k[0]) / np.log(1.5) + 120)
    assert (e.summed.pulls, e.summed.uplinks) == (pytest.approx(1.5 * T), 12 * 26)
    assert (e.sharp.pulls, e.sharp.uplinks) == (12 * 16835, 12 * 25)


def test_radii_at_n_on_random_instances() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        instance, delta = random_instance(rng), float(rng.uniform(1e-6, 0.99))
        b = bounds(instance, delta)
        (K, M), sigma = instance.shape, b.sigma
        assert (b.n_km <= b.T_km).all()
        assert (b.n_k <= b.T_k).all()
        for n, gap in zip(b.n_km.flat, b.local_gaps.flat, strict=True):
            assert radius.alpha_local(n, K, M, delta, sigma) <= gap / 4
            assert n == 1 or radius.alpha_local(n - 1, K, M, delta, sigma) > gap / 4
        for n, gap in zip(b.n_k, b.global_gaps, strict=True):
            assert radius.alpha_global(n, K, M, delta, sigma) <= gap / 4
            assert n == 1 or radius.alpha_global(n - 1, K, M, delta, sigma) > gap / 4


def test_tighter_variants_are_tighter() -> None:
    rng = np.random.default_rng(6)
    for _ in range(200):
        b = bounds(
            random_instance(rng),
            10.0 ** rng.uniform(-6, -0.1),
            10.0 ** rng.uniform(-1, 4),
            base=float(rng.uniform(1.05, 20.0)),
            period=int(rng.integers(1, 1000)),
        )
        slack = 1 + 1e-12
        assert b.lower <= b.T_sharp * slack
        assert b.T_sharp <= b.T * slack
        for scheme in b.schemes:
            for name in COSTS:
                assert getattr(scheme.sharp, name) <= getattr(scheme.summed, name) * slack, name
            assert scheme.summed.pulls <= scheme.as_stated.pulls * slack
            # the uplink that the paper forgets is all that the closed forms lack
            forgotten = b.T_km.size if scheme.name in ("fedelim", "exponential") else 0
            assert scheme.summed.uplinks <= (scheme.as_stated.uplinks + forgotten) * slack


def costs_of(b: Bounds, names: tuple[str, ...] = COSTS) -> np.ndarray:
    return np.array(
        [
            getattr(getattr(scheme, variant), name)
            for scheme in b.schemes
            for variant in VARIANTS
            for name in names
        ]
    )


def not_above(low: np.ndarray, high: np.ndarray) -> bool:
    return bool(np.all(np.asarray(low) <= np.asarray(high) * (1 + 1e-12)))


seeds = st.integers(0, 10**6)


@steady
@given(seeds, st.floats(1e-9, 0.99), st.floats(1e-9, 0.99))
def test_smaller_delta_costs_more(seed: int, one: float, other: float) -> None:
    instance = random_instance(np.random.default_rng(seed))
    low, high = (bounds(instance, d, period=50, base=1.7) for d in sorted((one, other)))
    for name in ("T_km", "T_k", "n_km", "n_k", "T", "T_sharp", "lower", "period_opt"):
        assert not_above(getattr(high, name), getattr(low, name)), name
    assert not_above(costs_of(high), costs_of(low))


@steady
@given(seeds, st.floats(0, 1e6), st.floats(0, 1e6))
def test_dearer_uplinks_cost_more(seed: int, one: float, other: float) -> None:
    instance = random_instance(np.random.default_rng(seed))
    low, high = (bounds(instance, 0.05, c, period=50, base=1.7) for c in sorted((one, other)))
    assert not_above(costs_of(low), costs_of(high))
    assert not_above(low.period_opt, high.period_opt)
    assert not_above(low.base_opt, high.base_opt)
    assert low.T == high.T
    assert not (high.condition & ~low.condition).any()
    assert low.three_T_follows >= high.three_T_follows


@steady
@given(seeds, st.floats(1.0, 1e3))
def test_wider_gaps_cost_less(seed: int, factor: float) -> None:
    instance = random_instance(np.random.default_rng(seed))
    narrow = bounds(instance, 0.05, period=50, base=1.7)
    wide = bounds(Instance(instance.means * factor, instance.rewards), 0.05, period=50, base=1.7)
    for name in ("T_km", "T_k", "n_km", "n_k", "T", "lower"):
        assert not_above(getattr(wide, name), getattr(narrow, name)), name
    assert not_above(costs_of(wide), costs_of(narrow))


def test_only_gap_over_sigma_counts(synthetic: Instance) -> None:
    scaled = Instance(synthetic.means * 8.0, Gaussian(8.0))
    np.testing.assert_allclose(costs_of(bounds(scaled, 0.01)), costs_of(bounds(synthetic, 0.01)))
    tenth = bounds(synthetic, 0.01, sigma=0.1)
    np.testing.assert_allclose(tenth.T_km, bounds(Instance(synthetic.means * 10), 0.01).T_km)
    # the lower bound is about the rewards, whatever radii a run chose
    assert tenth.lower == bounds(synthetic, 0.01).lower


@pytest.mark.parametrize("cost", [0.3, 1e4])
@pytest.mark.parametrize("name", ["synthetic", "random:5,4,1"])
def test_period_opt_is_the_minimiser(name: str, cost: float) -> None:
    instance = Instance.load(name)
    b = bounds(instance, 0.01, cost)
    cells = b.T_km.size

    def total(H: float) -> float:
        return float(b.T + H * cells + cost * b.T / H + cost * cells)

    grid = sorted({max(1, round(float(b.period_opt) * 1.03**i)) for i in range(-150, 151)})
    whole = [bounds(instance, 0.01, cost, period=H).periodic.as_stated.total for H in grid]
    assert total(b.period_opt) <= min(whole)
    assert b.periodic.as_stated.total == pytest.approx(min(whole), rel=1e-12)
    assert b.periodic.parameter == grid[int(np.argmin(whole))]


@pytest.mark.parametrize("cost", [0.3, 1e4, 1e7])
@pytest.mark.parametrize("name", ["synthetic", "random:5,4,1"])
def test_base_opt_is_the_minimiser(name: str, cost: float) -> None:
    instance = Instance.load(name)
    b = bounds(instance, 0.01, cost)

    def total(base: float) -> float:
        scheme = bounds(instance, 0.01, cost, base=base).exponential
        assert scheme is not None
        return float(scheme.as_stated.total)

    logs = math.log(b.base_opt) * 1.05 ** np.arange(-60, 61)
    assert total(float(b.base_opt)) <= min(map(total, np.exp(logs))) * (1 + 1e-14)
    r = cost * b.T_km.shape[1] * np.log(b.T_k).sum() / b.T
    assert b.base_opt * math.log(b.base_opt) ** 2 == pytest.approx(r, rel=1e-11)


def test_free_communication_wants_every_step(synthetic: Instance) -> None:
    b = bounds(synthetic, 0.01, 0.0)
    assert (b.period_opt, b.base_opt, b.periodic.parameter) == (0.0, 1.0, 1.0)
    assert b.periodic.sharp.total == b.T_sharp  # FedElim0


def test_theorem_4_needs_more_than_its_condition(synthetic: Instance) -> None:
    # T_k = 19076.73, T_k / ln T_k = 1935.5. For C = 1900 the condition holds, but one arm at one
    # client may talk 16 times: 16 * 1900 = 30400 > T_k, and 2T + 30400 * 12 is above 3T.
    b = bounds(synthetic, 0.1, [1100.0, 1900.0, 2000.0])
    assert b.condition.all(axis=-1).tolist() == [True, True, False]
    assert b.three_T_follows.tolist() == [True, False, False]
    assert b.breaking_arms == [[], [], [0, 1, 2, 3]]
    uneven = Instance([[1.0], [0.5], [-9.0]])  # only the arm with the wide gap is soon settled
    assert bounds(uneven, 0.1, 50.0).breaking_arms == [2]


def leaves(b: Bounds) -> dict[str, np.ndarray]:
    names = "delta cost T_km T_k n_km n_k T T_sharp lower lower_as_stated condition"
    names += " three_T_follows period_opt base_opt"
    found = {name: np.asarray(getattr(b, name)) for name in names.split()}
    for scheme in b.schemes:
        if scheme.parameter is not None:
            found[scheme.name] = np.asarray(scheme.parameter)
        for variant in VARIANTS:
            for name in COSTS:
                value = getattr(getattr(scheme, variant), name)
                found[f"{scheme.name} {variant} {name}"] = np.asarray(value)
    return found


@pytest.mark.parametrize("period", [None, 30])
def test_arrays_equal_a_loop(period: int | None) -> None:
    instance = Instance.load("random:5,3,2")
    deltas, costs = np.array([0.5, 0.1, 1e-3, 1e-9]), np.array([0.0, 10.0, 1e5])
    grid = bounds(instance, deltas[:, None], costs, period=period, base=1.3)
    assert grid.T.shape == (4, 3)
    assert grid.T_k.shape == (4, 3, 5)
    assert grid.T_km.shape == (4, 3, 5, 3)
    many = leaves(grid)
    for i, delta in enumerate(deltas):
        for j, cost in enumerate(costs):
            one = leaves(bounds(instance, delta, cost, period=period, base=1.3))
            assert one.keys() == many.keys()
            for name in one:
                np.testing.assert_allclose(many[name][i, j], one[name], rtol=1e-12, err_msg=name)
    paired = bounds(instance, deltas[:3], costs)
    np.testing.assert_allclose(
        paired.fedelim.sharp.total, np.diag(grid.fedelim.sharp.total[:3]), rtol=1e-12
    )


def test_numbers_give_numbers(synthetic: Instance) -> None:
    b = bounds(synthetic)
    assert isinstance(b.T, float)
    assert isinstance(b.fedelim.sharp.total, float)
    assert (b.delta, b.cost, b.sigma) == (0.01, 10.0, 1.0)
    assert b.exponential is None


def on_the_edge(instance: Instance, delta: float) -> reference.Rewards:
    """Make rewards whose running means stay at the edge of the good event.

    The best arm stays at its lower edge, the other arms at their upper one. No path on the event is
    slower. There is one client, for which both radii are the same.
    """
    K = instance.shape[0]

    def total(k: int, n: int) -> float:
        if n == 0:
            return 0.0
        sign = -1.0 if k == instance.global_best else 1.0
        edge = radius.alpha_local(n, K, 1, delta) * (1 - 1e-9)
        return n * (float(instance.means[k, 0]) + sign * edge)

    return lambda k, m, n: total(k, n) - total(k, n - 1)


@pytest.mark.parametrize(
    "schedule",
    [FedElim(), Periodic(1), Periodic(7), Exponential(1.5), Exponential(3), SuperExponential()],
    ids=str,
)
def test_sharp_bounds_are_attained(schedule: FedElim | Periodic | SuperExponential) -> None:
    delta = 0.1
    instance = Instance([[3.0], [0.6], [1.0], [0.3]])
    b = bounds(instance, delta, 10.0, period=schedule.period, base=getattr(schedule, "base", None))
    name = str(schedule).split(":")[0]
    sharp = getattr(b, name).sharp
    out = reference.fedelim(instance, schedule, delta, on_the_edge(instance, delta))
    assert out.pulls.sum() == sharp.pulls
    assert out.uplinks == sharp.uplinks
    local = {k: n for n, m, k in out.eliminations if m == 0}
    assert local == {k: b.n_km[k, 0] for k in (1, 2, 3)}


def test_a_lone_arm_costs_nothing() -> None:
    b = bounds(Instance([[0.3, 0.4]]), [0.1, 0.6], 10.0, base=1.5)
    assert np.isinf(b.local_gaps).all()
    assert np.isinf(b.global_gaps).all()
    assert not costs_of(b).any()
    for name in ("T_km", "T_k", "n_km", "n_k", "T", "T_sharp", "lower", "period_opt"):
        assert not np.any(getattr(b, name)), name
    assert b.condition.all()
    assert b.breaking_arms == [[], []]
    assert b.table()["total_over_T"].null_count() == 8
    assert json.loads(json.dumps(b.to_dict(), allow_nan=False))["global_gaps"] == [None]


@pytest.mark.parametrize("means", [[[1e90], [0.0]], [[1e-70], [0.0]], [[1e3, 5.0], [0.0, -1e3]]])
def test_extreme_gaps_stay_finite(means: list[list[float]]) -> None:
    b = bounds(Instance(means), [1e-12, 0.999], [0.0, 1e9], base=1.5)
    assert all(np.isfinite(value).all() for value in leaves(b).values())
    assert (b.n_km >= 1).all()
    assert (b.n_km <= b.T_km).all()
    assert (b.n_k <= b.T_k).all()


def test_wide_gaps_take_one_pull() -> None:
    # without the floor at 1 the printed formula gives 102 ln(64 sqrt(160) / 1e6) / 1e6 + 1 < 1
    b = bounds(Instance([[1e3], [0.0]]), 0.1)
    np.testing.assert_array_equal(b.T_km, 1.0)
    np.testing.assert_array_equal(b.n_km, 1.0)
    assert (b.T, b.T_sharp, b.superexponential.sharp.pulls) == (2.0, 2.0, 4.0)


def test_least_pulls_are_the_characteristic_time_in_kl(synthetic: Instance) -> None:
    b = bounds(synthetic, [0.1, 0.01, 0.5, 0.9])
    assert b.T_star == pytest.approx(839.711, abs=1e-3)
    kl = [0.8 * math.log(9), 0.98 * math.log(99), 0.0, 0.0]
    assert b.least_pulls == pytest.approx([b.T_star * one for one in kl], rel=1e-12)
    assert b.allocation.sum() == pytest.approx(b.T_star, rel=1e-6)
    assert b.notes == ()
    # sharper than Theorem 3, by a factor of up to 2 M = 6
    assert b.lower[1] < b.least_pulls[1] < 6.9 * b.lower[1]


@pytest.mark.parametrize(
    ("source", "goal", "expected"),
    [
        ("bernoulli", "best", ["Theorem 3 is about Gaussian rewards of one variance"]),
        ("synthetic", "eps:0.1", ["Theorem 3 is about the best arm", "goal eps:0.1: several"]),
        ("movielens", "best", ["Theorem 3 is about Gaussian", "finite rewards: the family"]),
    ],
)
def test_notes_say_which_lower_bound_has_no_number(
    source: str, goal: str, expected: list[str]
) -> None:
    b = bounds(source, goal=goal)
    assert (b.lower, b.lower_as_stated) == (None, None)
    assert (b.T_star is None) == (len(expected) == 2)
    assert len(b.notes) == len(expected)
    assert all(map(str.startswith, b.notes, expected))
    assert b.to_dict()["notes"] == list(b.notes)


def test_lower_bound_is_never_negative(synthetic: Instance) -> None:
    assert bounds(synthetic, [0.4, 0.42, 0.9]).lower.tolist() == [
        pytest.approx(150 * math.log(1 / 0.96)),
        0.0,
        0.0,
    ]


def test_table(synthetic: Instance) -> None:
    b = bounds(synthetic, np.array([0.1, 0.01])[:, None], [0.0, 10.0])
    table = b.table()
    assert table["scheme"].to_list() == ["periodic", "fedelim", "superexponential"] * 4
    assert table["delta"].to_list() == [0.1] * 6 + [0.01] * 6
    assert table["cost"].to_list() == ([0.0] * 3 + [10.0] * 3) * 2
    assert table["parameter"].to_list()[:3] == [1.0, 2.0, None]
    row = table.row(10, named=True)
    assert row["total"] == b.fedelim.summed.total[1, 1]
    assert row["total_over_T"] == pytest.approx(b.fedelim.summed.total[1, 1] / b.T[1, 1])
    stated = b.table("as_stated").row(10, named=True)
    assert stated["total_over_T"] == pytest.approx(3.0)
    assert b.table("sharp").row(10, named=True)["pulls"] == 12 * 32768
    with pytest.raises(InputError, match="did you mean 'sharp'"):
        b.table("sharpe")


def test_to_frame_holds_everything(synthetic: Instance) -> None:
    import polars as pl

    b = bounds(synthetic, np.array([0.1, 0.01])[:, None], [0.0, 10.0, 100.0], base=1.5)
    frame = b.to_frame()
    keys = ["delta", "cost", "scheme", "variant", "quantity", "arm", "client"]
    assert frame.select(keys).is_unique().all()
    # per cell: 4 of (K, M), 4 of (K,), 10 numbers, 3 parameters, 4 schemes x 3 variants x 4 costs
    assert frame.height == 6 * (4 * 12 + 4 * 4 + 10 + 3 + 48)
    assert frame["value"].is_finite().all()
    cell = frame.filter(delta=0.01, cost=100.0)

    def value(**where: object) -> float:
        return float(cell.filter(**where)["value"].item())

    assert value(quantity="n_km", arm=3, client=1) == b.n_km[1, 2, 3, 1]
    assert value(quantity="local_gaps", arm=0, client=1) == b.local_gaps[0, 1]
    assert value(quantity="T_k", arm=2) == b.T_k[1, 2, 2]
    assert value(quantity="base_opt") == b.base_opt[1, 2]
    assert (
        value(scheme="exponential", variant="sharp", quantity="total")
        == (b.exponential.sharp.total[1, 2])
    )
    assert frame.schema["arm"] == pl.Int32


@pytest.mark.parametrize("grid", [False, True])
def test_to_dict_is_json(synthetic: Instance, grid: bool) -> None:
    b = bounds(synthetic, [0.1, 0.01] if grid else 0.1, base=1.5)
    read = json.loads(json.dumps(b.to_dict(), allow_nan=False))
    assert read["T"] == (b.T.tolist() if grid else b.T)
    assert read["n_km"] == b.n_km.tolist()
    assert read["condition"] == b.condition.tolist()
    assert read["breaking_arms"] == ([[], []] if grid else [])
    assert list(read["schemes"]) == ["periodic", "fedelim", "exponential", "superexponential"]
    assert read["schemes"]["superexponential"]["parameter"] is None
    total = b.fedelim.summed.total
    assert read["schemes"]["fedelim"]["summed"]["total"] == (total.tolist() if grid else total)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.0}, "delta = 0: must lie strictly between 0 and 1"),
        ({"delta": [0.1, -0.5]}, "delta = -0.5: "),
        ({"delta": math.nan}, "delta = nan: "),
        ({"delta": []}, "delta: empty"),
        ({"delta": 1e-310}, "delta = 1e-310: too small"),
        ({"cost": -1.0}, "cost = -1: must be finite, from 0"),
        ({"cost": [1.0, math.nan]}, "cost = nan: "),
        ({"cost": [[1.0], [1.0, 2.0]]}, "cost = .*: must be a number"),
        ({"delta": [0.1, 0.2], "cost": [1.0, 2.0, 3.0]}, r"must broadcast; .* delta\[:, None\]"),
        ({"sigma": [1.0, 2.0]}, "sigma = "),
        ({"period": 0}, "period H = 0: must be a whole number"),
        ({"period": "often"}, "period H = 'often': "),
        ({"base": 1.0}, "base lambda = 1.0: must be a number above 1"),
        ({"base": math.inf}, "base lambda = inf: "),
        ({"sigma": 1e100}, "smallest gap 0.133 with sigma = 1e\\+100"),
        ({"sigma": 1e200}, "sigma = 1e\\+200: must lie from 1e-100 to 1e\\+100"),
    ],
)
def test_bad_input(synthetic: Instance, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        bounds(synthetic, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_instance_must_be_one() -> None:
    assert bounds("synthetic").T == bounds(Instance.load("synthetic")).T
    with pytest.raises(InputError, match=r"must be a fastfed\.Instance"):
        bounds(5)  # type: ignore[arg-type]
