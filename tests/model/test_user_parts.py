"""Parts that a user defines: known by name from their definition on, wherever a name is taken."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers import SMALL, refused

import fastfed as ff
from fastfed.model.part import Part
from fastfed.storage import manifest


@pytest.fixture(autouse=True)
def own_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test defines."""
    for kind in (ff.Schedule, ff.Radius, ff.Goal, ff.Uplink):
        monkeypatch.setattr(kind, "families", dict(kind.families))


def squares() -> type[ff.Schedule]:
    class Squares(ff.Schedule):
        """At 1, 4, 9, ..."""

        family = "squares"

        def times(self, until: int) -> np.ndarray:
            return np.arange(1, min(math.isqrt(until), 10_000) + 1, dtype=np.int64) ** 2

    return Squares


def union() -> type[ff.Radius]:
    class Union(ff.Radius):
        """The paper's radius under another name."""

        family = "union"

        def __init__(self) -> None:
            super().__init__(_union, name="union")

    return Union


def _union(n: float, a: float) -> float:
    return math.log(4 / a) + 2 * math.log(n)


def nearly() -> type[ff.Goal]:
    class Nearly(ff.Eps):
        """`eps` with a fixed slack."""

        family = "nearly"

        def __init__(self) -> None:
            super().__init__(0.1)

        @property
        def name(self) -> str:
            return self.family

    return Nearly


def coarse() -> type[ff.Uplink]:
    class Coarse(ff.Dither):
        """`dither` by tenths."""

        family = "coarse"
        grammar = "coarse:TENTHS"

        @classmethod
        def from_options(cls, options: str) -> Coarse:
            return cls(float(options) / 10)

        @property
        def name(self) -> str:
            return f"coarse:{round(10 * self.kappa)}"

    return Coarse


CASES = [
    (squares, "squares", {}),
    (union, "union", {"radius": "union"}),
    (nearly, "nearly", {"goal": "nearly"}),
    pytest.param(coarse, "coarse:5", {"uplink": "coarse:5"}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("define", "name", "choice"), CASES)
def test_a_part_of_ones_own_is_known_everywhere(
    define: object, name: str, choice: dict[str, str], tmp_path: Path
) -> None:
    family = define()  # type: ignore[operator]
    part: Part = family.parse(name) if ":" in name else family()
    assert str(part) == name
    assert type(part).parse(part) is part
    schedules = ["fedelim", "fedelim0", *([name] if not choice else [])]
    objects = dict.fromkeys(choice, part)
    options = {"delta": 0.1, "trials": 30, "seed": 3}
    by_object = ff.simulate(
        SMALL, [*schedules[:2], part] if not choice else schedules, **options, **objects
    )
    result = ff.simulate(SMALL, schedules, **options, **choice)
    assert result == by_object
    several = {f"{kind}s" if kind != "radius" else "radii": value for kind, value in choice.items()}
    sweep = ff.sweep(
        instances=SMALL,
        deltas=[0.1],
        schedules=schedules,
        trials=30,
        seed=3,
        out=tmp_path / "s",
        progress=False,
        costs=[10],
        **several,
    )
    assert sweep.frame.sort("schedule", "trial").equals(result.frame.sort("schedule", "trial"))
    for one in (result, sweep, ff.open_sweep(tmp_path / "s")):
        assert set(one.summary(costs=[10])["schedule"]) == set(schedules)
        assert set(one.best(costs=[10])["winner"]) <= set(schedules)
        one.plot(cost=10)
        one.report(tmp_path / "report.html")
        assert not one.check().violated
        for schedule in schedules:
            row = one.replay(7, schedule=schedule).row
            assert (
                row["pulls"]
                == result.frame.row(
                    by_predicate=(pl.col("schedule") == schedule) & (pl.col("trial") == 7),
                    named=True,
                )["pulls"]
            )


def test_a_name_that_is_taken_is_refused() -> None:
    squares()

    def other() -> None:
        class Other(ff.Schedule):
            family = "squares"

    refused(other, "schedule family 'squares'", "taken by", "Squares")

    def built_in() -> None:
        class Mine(ff.Goal):
            family = "top"

    refused(built_in, "goal family 'top'", "taken by fastfed.model.goals.top.Top")


@pytest.mark.parametrize("name", ["", "a:b", "a,b", "a b", "a\n", None])
def test_a_family_is_a_plain_word(name: object) -> None:
    refused(lambda: type("Odd", (ff.Schedule,), {"family": name}), "family", "printable text")


def test_a_class_that_is_defined_again_replaces_itself() -> None:
    first, second = squares(), squares()
    assert first is not second
    assert ff.Schedule.families["squares"] is second
    assert type(ff.Schedule.parse("squares")) is second
    assert ff.Schedule.parse("squares") == second() != first()  # whose times may be others


def test_a_class_without_a_name_of_its_own_is_refused() -> None:
    class Unnamed(ff.Top):
        pass

    class Bare(ff.Schedule):
        pass

    refused(lambda: ff.Goal.parse(Unnamed(2)), "Unnamed", "no name of its own", "family")
    refused(lambda: ff.Schedule.parse(Bare()), "Bare", "no name of its own")


def test_radii_are_equal_by_name_and_function() -> None:
    one, two = ff.Radius(_union, name="mine"), ff.Radius(_union, name="mine")
    assert one == two
    assert hash(one) == hash(two)
    assert one != ff.Radius(lambda n, a: 1.0, name="mine")
    assert one != ff.Radius(_union, name="other")


def test_a_cluster_does_not_know_a_part_of_ones_own(tmp_path: Path) -> None:
    """Said before anything is connected or written."""
    from fastfed.sweeps.dask import Dask
    from fastfed.sweeps.grid import Grid
    from fastfed.sweeps.run import iterate

    squares()
    grid = Grid.of({"instance": SMALL, "schedule": ["squares"]})
    refused(
        lambda: next(iterate(grid, tmp_path / "s", executor=Dask("tcp://127.0.0.1:9"))),
        "schedule squares",
        "workers of a cluster",
    )
    assert not (tmp_path / "s").exists()


def test_a_folder_with_a_part_that_is_not_known_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squares()
    ff.simulate(SMALL, ["squares"], delta=0.1, trials=5).save(tmp_path / "s")
    others = {name: one for name, one in ff.Schedule.families.items() if name != "squares"}
    monkeypatch.setattr(ff.Schedule, "families", others)
    manifest._known_schedules.cache_clear()
    refused(
        lambda: ff.open_sweep(tmp_path / "s").summary(),
        "schedule 'squares'",
        "must be defined, or its module imported",
    )


def test_a_class_that_is_defined_again_runs_as_it_is_now(tmp_path: Path) -> None:
    """As in a notebook: the same name, other times."""

    def rounds(step: int) -> int:
        class Often(ff.Schedule):
            """Every `step` steps."""

            family = "often"

            def times(self, until: int) -> np.ndarray:
                return np.arange(step, min(until, 10**6), step, dtype=np.int64)

        swept = ff.sweep(
            instances=[SMALL],
            deltas=[0.1],
            schedules=[Often()],
            trials=1,
            out=tmp_path / str(step),
            threads=1,
        )
        return int(swept.frame["rounds"][0])

    assert rounds(1) > 3 * rounds(10)
