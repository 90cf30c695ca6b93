"""The claims: in a made-up world where all of them hold, and in worlds where one does not."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from fastfed.paper import claims
from fastfed.paper.claims import Frames, judge
from fastfed.statistics.verdicts import Claim, conclude, measure, places

DELTAS = (0.1, 0.01, 0.001)
COSTS = (0.0, 10.0, 100.0)
PERIODS = (1, 5, 10, 100, 1_000, 10_000, 100_000)
NAMES = ("fedelim", "fedelim0", *(f"periodic:{h}" for h in PERIODS), "exponential:1.5",
         "superexponential")
World = Callable[[str, str, float], tuple[float, float]]


def good(instance: str, schedule: str, delta: float) -> tuple[float, float]:
    """Pulls and uplinks of a world that is as the paper says."""
    least = 1000 * math.log(1 / delta) + 5000
    if schedule.startswith("periodic:"):
        period = int(schedule.partition(":")[2])
        worse = 1 if instance == "synthetic" or period == 1 else 1.6
        return worse * least * (1 + (period - 1) / 4000), least / period + 3
    return {"fedelim": (1.4 * least, 20.0), "fedelim0": (least, least),
            "exponential:1.5": (1.3 * least, 35.0), "superexponential": (10 * least, 5.0)}[schedule]


def frame(world: World, instances: tuple[str, ...] = ("synthetic", "bernoulli", "movielens"), *,
          deltas: tuple[float, ...] = DELTAS, costs: tuple[float, ...] = COSTS, sigma: float = 1.0,
          relative: float = 1e-4, errors: float = 0.0) -> pl.DataFrame:
    """The world as a summary; every mean has the same relative standard error."""
    rows: list[dict[str, Any]] = []
    for instance in instances:
        for delta in deltas:
            means = {name: world(instance, name, delta) for name in NAMES}
            for name, (pulls, uplinks) in means.items():
                for cost in costs:
                    total = pulls + cost * uplinks
                    base = means["fedelim"][0] + cost * means["fedelim"][1]
                    values = {"pulls": pulls, "communication": cost * uplinks, "total": total}
                    ratios = {"over_fedelim": total / base, "more_pulls":
                              pulls / means["fedelim"][0], "more_uplinks":
                              uplinks / means["fedelim"][1], "over_pulls0":
                              total / means["fedelim0"][0]}
                    rows.append({
                        "instance": instance, "schedule": name, "delta": delta, "sigma": sigma,
                        "cost": cost, "trials": 1000, "error_rate": errors,
                        "error_low": errors * 0.9, "error_high": errors * 1.1 + 0.004,
                        **{f"{key}_mean": value for key, value in values.items()},
                        **{f"{key}_sem": value * relative for key, value in values.items()},
                        **ratios, **{f"{key}_sem": v * relative for key, v in ratios.items()},
                        "best_period": 100, "period_opt": 99.7, "base_opt": 1.1,
                    })
    return pl.DataFrame(rows)


def changed(schedule: str, pulls: float = 1.0, uplinks: float = 1.0, power: float = 1.0) -> World:
    """The good world, one schedule's pulls and uplinks multiplied."""
    def world(instance: str, name: str, delta: float) -> tuple[float, float]:
        a, b = good(instance, name, delta)
        return (a**power * pulls, b * uplinks) if name == schedule else (a, b)

    return world


def gaps(power: float) -> pl.DataFrame:
    """All gaps scaled, costs as 1/gap^(2 power)."""
    parts = []
    for gap in (0.8, 0.4, 0.2, 0.1):
        def world(instance: str, name: str, delta: float, gap: float = gap) -> tuple[float, float]:
            pulls, uplinks = good(instance, name, delta)
            return pulls / gap ** (2 * power), uplinks / 100

        parts.append(frame(world, ("synthetic",), deltas=(0.01,)).with_columns(
            pl.lit(gap).alias("gap")))
    return pl.concat(parts)


def scales(world: World) -> pl.DataFrame:
    return pl.concat(frame(world, ("bernoulli", "movielens"), sigma=sigma) for sigma in (1.0, 0.5))


def study(world: World) -> pl.DataFrame:
    return frame(world, ("synthetic",), deltas=(0.01,))


def found(claim: Callable[[pl.DataFrame], Claim | None], rows: pl.DataFrame) -> Claim:
    one = claim(rows)
    assert one is not None
    return one


def test_all_hold_in_the_good_world() -> None:
    world = Frames(frame(good), study(good), gaps(1.0), scales(good))
    verdicts = {one.key: one.verdict for one in judge(world)}
    assert len(verdicts) == len(claims.PANELS) + len(claims.STUDIES) + 2
    assert set(verdicts.values()) == {"holds"}, verdicts


FALSE = [
    (claims.delta_pac, frame(good, errors=0.5), "does not hold"),
    (claims.delta_pac, frame(good, errors=0.05), "holds only for synthetic (fedelim, fedelim0 at"),
    (claims.total_three, frame(changed("fedelim", pulls=3)), "does not hold"),
    (claims.total_any_cost, frame(good, costs=(*COSTS, 1e4)), "holds only for all but"),
    (claims.pulls_two, frame(changed("fedelim", pulls=1.5)), "does not hold"),
    (claims.fedelim0_cheaper, frame(changed("fedelim0", pulls=1.5)), "does not hold"),
    (claims.communication, frame(changed("fedelim", uplinks=1e4)), "does not hold"),
    (claims.communication, frame(changed("periodic:10", uplinks=1e-3)),
     "holds only for all but synthetic (H = 10)"),
    (claims.communication_falls, frame(changed("periodic:5", uplinks=1e-3)), "holds only for"),
    (claims.sweet_spot, frame(changed("periodic:1", uplinks=1e-3)), "does not hold"),
    (claims.sweet_spot, frame(changed("periodic:100000", pulls=1e-3)), "does not hold"),
    (claims.spot_at_100, frame(changed("periodic:100", pulls=2)), "does not hold"),
    (claims.periodic_beats, frame(changed("periodic:1000", pulls=2)),
     "holds only for synthetic (H = 100)"),
    (claims.periodic_beats, frame(changed("fedelim", pulls=0.5)), "does not hold"),
    (claims.almost_best, frame(changed("fedelim", pulls=2)), "does not hold"),
    (claims.minimum_movielens, frame(changed("periodic:100", pulls=0.5)), "does not hold"),
    (claims.minimum_any_period, frame(changed("periodic:5", pulls=0.5, uplinks=0.1)),
     "does not hold"),
    (claims.minimum_bernoulli, frame(changed("periodic:1000", pulls=0.1)), "does not hold"),
    (claims.minimum_everywhere, scales(changed("periodic:100", pulls=0.5)), "holds only for"),
    (claims.linear_in_log, frame(changed("fedelim0", power=12)), "holds only for"),
    (claims.inverse_square, gaps(1.5), "does not hold"),
    (claims.trade_off, study(changed("superexponential", uplinks=100)), "holds only for all but"),
    (claims.trade_off, study(changed("fedelim", pulls=0.1)), "holds only for"),
    (claims.near_best_period, study(changed("fedelim", pulls=2)), "holds only for"),
    (claims.base_two, study(changed("exponential:1.5", pulls=0.5)), "does not hold"),
]


@pytest.mark.parametrize(("claim", "rows", "verdict"), FALSE)
def test_the_verdict_turns(claim: Callable[[pl.DataFrame], Claim | None], rows: pl.DataFrame,
                           verdict: str) -> None:
    assert found(claim, rows).verdict.startswith(verdict)


def test_every_claim_has_a_false_world() -> None:
    tried = {claim for claim, _, _ in FALSE}
    assert tried == {*claims.PANELS, *claims.STUDIES, claims.minimum_everywhere,
                     claims.inverse_square}


def test_the_figure_and_its_error_come_from_the_frame() -> None:
    rows = frame(changed("fedelim", pulls=1.2), ("synthetic",), relative=0.01)
    one = found(claims.pulls_two, rows)
    assert one.value == pytest.approx(1.4 * 1.2)
    assert one.sem == pytest.approx(1.4 * 1.2 * 0.01)
    assert one.firmness == pytest.approx((2 - 1.68) / 0.0168)
    assert one.measured == ["synthetic, delta = 0.1, C = 0: 1.680 ± 0.017"]


def test_what_is_near_the_limit_is_undecided() -> None:
    rows = frame(changed("fedelim", pulls=2 / 1.4), relative=0.01)
    assert found(claims.pulls_two, rows).verdict.startswith("undecided")
    some = [measure({"instance": "a", "delta": d}, v, 1.0, 0.1)
            for d, v in ((0.1, 0.5), (0.01, 0.95), (0.001, 1.5))]
    one = conclude("k", "t", "w", "c", some)
    assert one is not None
    assert one.verdict == ("holds only for a (delta = 0.1); undecided for a (delta = 0.01)")


def test_no_error_of_a_single_trial_decides_nothing() -> None:
    rows = frame(good).with_columns(pl.lit(math.nan).alias("over_pulls0_sem"))
    assert found(claims.pulls_two, rows).verdict.startswith("undecided")


def test_a_tie_is_no_loss_and_no_gain() -> None:
    tie = changed("fedelim0", pulls=1.4)
    rows = frame(tie, relative=0.0)
    assert found(claims.fedelim0_cheaper, rows).verdict == "does not hold"
    rows = rows.filter(pl.col("schedule").is_in(["fedelim", "periodic:1"])).with_columns(
        pl.lit(7.0).alias("total_mean"))
    assert found(claims.minimum_bernoulli, rows).verdict == "holds"


def test_places_are_brief() -> None:
    every = [{"instance": name, "delta": d, "cost": c} for name in ("a", "b")
             for d in (0.1, 0.01, 0.001) for c in (0.0, 10.0)]
    assert places(every, every) == "a, b"
    assert places([c for c in every if c["delta"] < 0.1], every) == (
        "a (C = 0, 10 at delta <= 0.01), b (C = 0, 10 at delta <= 0.01)")
    assert places([c for c in every if c["instance"] == "a" or c["cost"] == 0], every) == (
        "a, b (C = 0)")
    assert places(every[:1], every) == "a (C = 0 at delta = 0.1)"


def test_no_rows_no_claim() -> None:
    nothing = pl.DataFrame()
    assert judge(Frames(nothing, nothing, nothing, nothing)) == []
    only = judge(Frames(frame(good, ("bernoulli",)), nothing, nothing, nothing))
    assert not {"minimum-movielens", "spot-at-100", "trade-off"} & {one.key for one in only}


def test_claims_are_json() -> None:
    for one in judge(Frames(frame(good), study(good), gaps(1.0), scales(good))):
        assert json.loads(json.dumps(one.to_dict(), allow_nan=False))["verdict"] == "holds"
