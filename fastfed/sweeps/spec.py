"""What a sweep is asked to do: the grid, from options, from a file, and back."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastfed.choices import PLURAL, USUAL
from fastfed.errors import InputError, nearest
from fastfed.files import read_regular, valid_unicode
from fastfed.goals import parse_all as parse_goals
from fastfed.problem.instance import Instance
from fastfed.problem.schedule import parse_all
from fastfed.radius import NAMES
from fastfed.radius import parse_all as parse_radii
from fastfed.uplinks import parse_all as parse_uplinks
from fastfed.validation import (
    MOST_FILE,
    checked_costs,
    checked_delta,
    checked_engine,
    checked_max_steps,
    checked_seed,
    checked_sigma,
    checked_trials,
    number,
    shown,
)

DEFAULT_DELTAS = (0.1, 0.05, 0.01, 0.005, 0.001)
DEFAULT_COSTS = (0.0, 10.0, 100.0)
DEFAULT_SCHEDULES = ("fedelim", "fedelim0")
DEFAULT_PERIODS = (5, 1, 10, 100, 1_000, 10_000, 100_000)


@dataclass(frozen=True)
class Spec:
    """The whole grid. Instances are given by name or file, or as objects."""

    instances: tuple[str | Instance, ...] = ("synthetic",)
    deltas: tuple[float, ...] = DEFAULT_DELTAS
    costs: tuple[float, ...] = DEFAULT_COSTS
    schedules: tuple[str, ...] = (*DEFAULT_SCHEDULES, *(f"periodic:{h}" for h in DEFAULT_PERIODS))
    trials: int = 10_000
    seed: int = 0
    engine: str = "auto"
    sigmas: tuple[float | str | None, ...] = (None,)
    max_steps: int | None = None
    target_rse: float | None = None
    radii: tuple[str, ...] = (USUAL["radius"],)
    goals: tuple[str, ...] = (USUAL["goal"],)
    uplinks: tuple[str, ...] = (USUAL["uplink"],)
    bit_costs: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As in a spec file: what `make_spec` reads back."""
        named = [
            valid_unicode(one) if isinstance(one, str) else _inline(one) for one in self.instances
        ]
        content: dict[str, Any] = {
            "instance": named,
            "delta": list(self.deltas),
            "cost": list(self.costs),
            "schedule": list(self.schedules),
            "trials": self.trials,
            "seed": self.seed,
            "engine": self.engine,
            "sigma": [s for s in self.sigmas if s is not None],
            "max_steps": self.max_steps,
            "target_rse": self.target_rse,
            **{
                name: written_choices(name, getattr(self, several))
                for name, several in PLURAL.items()
            },
            "bit_cost": list(self.bit_costs),
        }
        return {key: value for key, value in content.items() if value not in (None, [])}


SPEC_KEYS = (
    "instance",
    "delta",
    "cost",
    "schedule",
    "period",
    "trials",
    "seed",
    "engine",
    "sigma",
    "max_steps",
    "target_rse",
    *USUAL,
    "bit_cost",
)


def make_spec(options: dict[str, Any]) -> Spec:
    """A spec from the keys of a spec file or the options of the command line, all checked."""
    unknown = sorted(set(options) - set(SPEC_KEYS))
    if unknown:
        raise InputError(
            f"unknown key {unknown[0]!r}{nearest(unknown[0], SPEC_KEYS)} in the spec: "
            f"known are {', '.join(SPEC_KEYS)}"
        )
    given = {key: value for key, value in options.items() if value is not None}
    schedules = _schedules(_texts(given.get("schedule")), _texts(given.get("period")))
    deltas = _distinct(
        "delta", [checked_delta(d) for d in _list(given.get("delta", DEFAULT_DELTAS))]
    )
    sigmas = [checked_sigma(s) for s in _list(given.get("sigma", ()))]
    target = _checked_target(given.get("target_rse"))
    instances = _list(given.get("instance", ("synthetic",)))
    if not instances:
        raise InputError("no instances: give at least one, as in synthetic")
    most, of_bits = given.get("max_steps"), _list(given.get("bit_cost"))
    return Spec(
        instances=tuple(_from_inline(one) for one in instances),
        deltas=tuple(deltas),
        costs=tuple(checked_costs(_list(given.get("cost", DEFAULT_COSTS)))),
        schedules=tuple(schedules),
        trials=checked_trials(given.get("trials", 10_000)),
        seed=checked_seed(given.get("seed", 0)),
        engine=checked_engine(given.get("engine", "auto")),
        sigmas=tuple(_distinct("sigma", sigmas)) or (None,),
        max_steps=None if most is None else checked_max_steps(most),
        target_rse=target,
        radii=tuple(_radii(given.get("radius", USUAL["radius"]))),
        goals=tuple(map(str, parse_goals(given.get("goal", USUAL["goal"])))),
        uplinks=tuple(map(str, parse_uplinks(given.get("uplink", USUAL["uplink"])))),
        bit_costs=tuple(checked_costs(of_bits, "a bit")) if of_bits else (),
    )


def written_choices(name: str, chosen: Iterable[str]) -> list[str]:
    """As a spec is written down: nothing where only the usual is chosen."""
    found = list(chosen)
    return [] if found == [USUAL[name]] else found


def _schedules(names: list[str] | None, periods: list[str] | None) -> list[str]:
    """Schedules by name and periods, where None is for what was not given. FedElim and FedElim0
    stand for names that were not given; the usual periods only if no names were given either."""
    if names is None and periods is None:
        periods = [str(h) for h in DEFAULT_PERIODS]
    if names is None:
        names = list(DEFAULT_SCHEDULES)
    return [str(one) for one in parse_all([*names, *(f"periodic:{h}" for h in periods or ())])]


def _checked_target(given: Any) -> float | None:
    if given is None:
        return None
    target = number("target_rse", given)
    if not 0 < target < 1:
        raise InputError(f"target_rse = {target!r}: must lie strictly between 0 and 1, as in 0.002")
    return target


def _radii(given: Any) -> list[str]:
    """Names of radii; a folder's rows must be told apart by them, so functions are rejected."""
    found = parse_radii(given)
    for one in found:
        if one.function is not None:
            raise InputError(
                f"radius {one}: a sweep knows radii by name only, one of "
                f"{', '.join(NAMES)}; simulate takes a function"
            )
    return [str(one) for one in found]


def read_spec(path: Path) -> dict[str, Any]:
    """The keys of a spec file: TOML, or the sweep.json of an earlier sweep."""
    try:
        text = read_regular(path, MOST_FILE).decode("utf-8-sig")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise InputError(f"{path}: not valid {kind}: {error}") from None
    if path.suffix == ".json":
        content = content.get("spec") if isinstance(content, dict) else None
    if not isinstance(content, dict):
        raise InputError(f"{path}: no sweep's spec in it")
    unknown = sorted(set(content) - set(SPEC_KEYS))
    if unknown:
        raise InputError(
            f"{path}: unknown key {unknown[0]!r}{nearest(unknown[0], SPEC_KEYS)}; "
            f"known are {', '.join(SPEC_KEYS)}"
        )
    return content


def _list(value: Any) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [] if value is None else [value]
    return [value] if isinstance(value, dict) else list(value)


def _texts(value: Any) -> list[str] | None:
    return None if value is None else [str(one) for one in _list(value)]


def _distinct(name: str, values: list[Any]) -> list[Any]:
    if not values and name == "delta":
        raise InputError("no deltas: give at least one, as in 0.01")
    return list(dict.fromkeys(values))


def _inline(instance: Instance) -> dict[str, Any]:
    from fastfed.problem.instance_files import to_toml

    return {"name": instance.name, "toml": to_toml(instance)}


def _from_inline(one: Any) -> str | Instance:
    from fastfed.problem.instance_files import from_toml

    if isinstance(one, str | Instance):
        return one
    if isinstance(one, Path):
        return str(one)
    if isinstance(one, dict) and isinstance(one.get("toml"), str):
        return from_toml(one["toml"], str(one.get("name", "custom")))
    raise InputError(f"instance {shown(one)}: must be a name, a file, or a table of name and toml")
