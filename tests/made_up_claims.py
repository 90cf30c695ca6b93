"""A made-up world in which the paper's claims hold, as evidence for its claims."""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from made_up_trials import halves_of

from fastfed.analysis.verdicts import Claim, computed, share
from fastfed.model.instance import Instance
from fastfed.paper.evidence import RADII, RUNS, Evidence, Place
from fastfed.paper.good_event import good_event
from fastfed.paper.optimum import tightness
from fastfed.paper.rules import claims, judge_claim

DELTAS = (0.1, 0.01, 0.001)
COSTS = (0.0, 10.0, 100.0)
PERIODS = (1, 5, 10, 100, 1_000, 10_000, 100_000)
NAMES = (
    "fedelim",
    "fedelim0",
    *(f"periodic:{h}" for h in PERIODS),
    "exponential:1.5",
    "superexponential",
    "adaptive",
)
UNIT = 1000  # so that rounding to whole pulls does not matter
World = Callable[[str, str, float], tuple[float, float]]


def good(instance: str, schedule: str, delta: float) -> tuple[float, float]:
    """Return pulls and uplinks of a world that is as the paper says."""
    least = 1000 * math.log(1 / delta) + 5000
    if schedule.startswith("periodic:"):
        period = int(schedule.partition(":")[2])
        worse = 1 if instance == "synthetic" or period == 1 else 1.6
        return worse * least * (1 + (period - 1) / 4000), least / period + 3
    return {
        "fedelim": (1.4 * least, 20.0),
        "fedelim0": (least, least),
        "exponential:1.5": (1.3 * least, 35.0),
        "superexponential": (10 * least, 5.0),
        "adaptive": (0.9 * least, 2.0),
    }[schedule]


def columns(
    rng: np.random.Generator,
    pulls: float,
    uplinks: float,
    trials: int,
    relative: float,
    errors: float,
) -> dict[str, np.ndarray]:
    """Trials whose means are given, with this relative standard error, in each half alike."""
    noise = rng.normal(size=(trials // 2, 1))
    noise = (noise - noise.mean()) / noise.std(ddof=1) * relative * math.sqrt(trials)
    factor = 1 + np.broadcast_to(noise, (trials // 2, 2)).ravel()
    return {
        "trial": np.arange(trials),
        "pulls": np.rint(UNIT * pulls * factor).astype(np.int64),
        "uplinks": np.rint(UNIT * uplinks * factor).astype(np.int64),
        "correct": np.arange(trials) >= errors * trials,
        "truncated": np.zeros(trials, bool),
    }


def place_of(batch: dict[str, Any], instance: str = "synthetic") -> Place:
    """Make a place at delta = 0.1 at which every cost meets the condition of Theorem 4."""
    halves = halves_of(batch, tuple(batch))
    return Place(instance, 0.1, 1.0, halves, dict.fromkeys(COSTS, True), T=1e6)


def frame(
    world: World,
    instances: tuple[str, ...] = ("synthetic", "bernoulli", "movielens"),
    *,
    deltas: tuple[float, ...] = DELTAS,
    costs: tuple[float, ...] = COSTS,
    sigma: float = 1.0,
    relative: float = 1e-4,
    errors: float = 0.0,
    trials: int = 200,
) -> list[Place]:
    """Return the world as trials; every mean has the same relative standard error."""
    found = []
    for instance in instances:
        for delta in deltas:
            batch = {}
            for name in NAMES:
                rng = np.random.default_rng(zlib.crc32(f"{instance} {delta} {name}".encode()))
                pulls, uplinks = world(instance, name, delta)
                batch[name] = columns(rng, pulls, uplinks, trials, relative, errors)
            found.append(
                Place(
                    instance,
                    delta,
                    sigma,
                    halves_of(batch, NAMES),
                    {cost: cost < 1000 for cost in costs},
                    T=1e6,
                    best_period=100,
                )
            )
    return found


def changed(schedule: str, pulls: float = 1.0, uplinks: float = 1.0, power: float = 1.0) -> World:
    """Multiply one schedule's pulls and uplinks in the good world."""

    def world(instance: str, name: str, delta: float) -> tuple[float, float]:
        a, b = good(instance, name, delta)
        return (a**power * pulls, b * uplinks) if name == schedule else (a, b)

    return world


def gaps(power: float, talk: float = 0.0) -> list[Place]:
    """All gaps scaled, costs as 1/gap^(2 power), uplinks as 1/gap^(2 talk)."""
    found = []
    for gap in (0.8, 0.4, 0.2, 0.1):

        def world(instance: str, name: str, delta: float, gap: float = gap) -> tuple[float, float]:
            pulls, uplinks = good(instance, name, delta)
            return pulls / gap ** (2 * power), uplinks / 100 / gap ** (2 * talk)

        for place in frame(world, ("synthetic",), deltas=(0.01,)):
            found.append(dataclasses.replace(place, T=1e5 / gap**2, gap=gap))
    return found


def scales(world: World) -> list[Place]:
    return [
        place
        for sigma in (1.0, 0.5)
        for place in frame(world, ("bernoulli", "movielens"), sigma=sigma)
    ]


def study(world: World) -> list[Place]:
    return frame(world, ("synthetic",), deltas=(0.01,))


def line(claim: str, schedule: str, broken: int = 0, of: int = 10_000) -> dict[str, Any]:
    """Make a line of a check, as `fastfed.analysis.check` returns it."""
    return {
        "claim": claim,
        "schedule": schedule,
        "instance": "synthetic",
        "delta": 0.1,
        "verdict": "holds",
        "cost": 10.0 if "total" in claim else None,
        **share(broken, 0, of, 0.1),
    }


def checked(broken: int = 0) -> list[dict[str, Any]]:
    return [
        line("pulls <= T", "fedelim0", broken),
        line("mean pulls >= Theorem 3", "fedelim0", broken),
        line("pulls <= 2T", "fedelim", broken),
        line("total <= 3T", "fedelim", broken),
    ]


def found(key: str, given: Sequence[Any]) -> Claim:
    """Judge the claim with this key."""
    one = judge_claim(next(row for row in claims() if row["key"] == key), given)
    assert one is not None
    return one


def radii_places(wrong: float = 0.0, **factors: float) -> list[Place]:
    """Make a place at which each radius but the paper's saves some, times ``factors``."""
    rng = np.random.default_rng(4)
    cheap = dict(zip(RADII, (1.0, 0.7, 0.6, 0.5, 0.4), strict=True))
    batch = {
        f"{schedule} {name}": columns(
            rng, 1e4 * cheap[name] * factors.get(name, 1.0), 10.0, 200, 1e-3, wrong
        )
        for name in RADII
        for schedule in ("fedelim", "fedelim0")
    }
    return [Place("synthetic", 0.1, 1.0, halves_of(batch, list(batch)))]


def optimum_place(pairs: float) -> Place:
    """Make a place where FedElim needs 6 times the least pulls, and so many with pair radii."""
    rng = np.random.default_rng(3)
    batch = {
        run: columns(rng, factor * 1000, 10.0, 200, 1e-3, 0.0)
        for run, factor in zip(RUNS, (6.0, 5.0, pairs, 0.8 * pairs), strict=True)
    }
    halves = halves_of(batch, list(batch))
    return Place("synthetic", 0.01, 1.0, halves, least=1000.0 * UNIT, proportions=1.25)


def whole(world: World) -> Evidence:
    return {
        "panels": frame(world),
        "scales": scales(world),
        "studies": study(world),
        "gaps": gaps(1.0),
        "checked": checked(),
        "good_event": good_event(Instance.load("synthetic"), (0.5, 0.1), 200),
        "doubling": [{"instance": "synthetic", "delta": 0.01, **share(0, 0, 2000, 0.01)}],
        "tightness": tightness(),
        "radii": radii_places(),
        "improvements": [{"instance": "two arms", "what": "M = 2", **computed(1.0, 1.0)}],
        "limits": [{"instance": "synthetic", "what": "paper", **computed(2.0, 8.0)}],
        "optimum": [optimum_place(2.0)],
    }
