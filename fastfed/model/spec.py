"""Specs: the grid of a sweep, from options, from a file, and back."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypedDict

from msgspec import Meta, Struct, defstruct, to_builtins

from fastfed.errors import InputError, nearest
from fastfed.files import read_text, valid_unicode
from fastfed.model.cell import Cell
from fastfed.model.choices import CHOICES, DEFAULTS, GridChoices, base_of
from fastfed.model.counts import checked_prices
from fastfed.model.instance import Instance
from fastfed.model.part import Part
from fastfed.model.schedules import Schedule
from fastfed.model.setting import RUN, Setting
from fastfed.validation import (
    MOST_TRIALS,
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

DELTAS = (0.1, 0.05, 0.01, 0.005, 0.001)
COSTS = (0.0, 10.0, 100.0)
SCHEDULES = ("fedelim", "fedelim0")
PERIODS = (5, 1, 10, 100, 1_000, 10_000, 100_000)


Instances = Sequence[str | Path | Instance] | str | Path | Instance


class _Grid(TypedDict, total=False):
    instances: Instances
    deltas: Sequence[float] | float
    costs: Sequence[float]
    bit_costs: Sequence[float]
    prices: Mapping[str, float]
    schedules: Sequence[str | Schedule] | str | Schedule | None
    periods: Sequence[int] | None
    trials: int
    seed: int
    engine: str
    sigma: float | str | Sequence[float | str] | None
    max_steps: int | None
    target_rse: float | None
    until_separated: bool


class GridOptions(_Grid, GridChoices, total=False):
    """Options of a sweep that its grid depends on: the keys of a spec, by their plurals."""


GRID: dict[str, Any] = {
    "instances": ("synthetic",),
    "deltas": DELTAS,
    "costs": COSTS,
    "bit_costs": (),
    "prices": {},
    "schedules": None,
    "periods": None,
    "trials": 10_000,
    "seed": RUN["seed"],
    "engine": RUN["engine"],
    "sigma": None,
    "max_steps": None,
    "target_rse": None,
    "until_separated": False,
    **{one.plural: (one.default,) for one in CHOICES.values()},
}
"""Defaults of `GridOptions`."""


def option_of(key: str) -> str:
    """Name the option of `GridOptions` that a key of a spec stands for."""
    plural = CHOICES[key].plural if key in CHOICES else f"{key}s"
    return plural if plural in GRID else key


class InlineInstance(Struct, frozen=True, forbid_unknown_fields=True):
    """An instance that was given as an object: its name and its TOML."""

    name: str
    toml: str


_Chosen: Any = defstruct(
    "_Chosen", [(kind, list[str], []) for kind in CHOICES], frozen=True, kw_only=True
)


class Spec(_Chosen, Struct, omit_defaults=True, forbid_unknown_fields=True):  # type: ignore[misc]
    """The whole grid by names: the keys of a spec file, all in their canonical form.

    A choice that is empty is the paper's.
    """

    instance: list[str | InlineInstance]
    delta: list[float]
    cost: list[float]
    schedule: list[str]
    trials: Annotated[int, Meta(ge=1, le=MOST_TRIALS)]
    seed: Annotated[int, Meta(ge=0)]
    engine: str
    sigma: list[float | str] = []
    max_steps: Annotated[int, Meta(ge=1)] | None = None
    target_rse: float | None = None
    until_separated: bool = False
    bit_cost: list[float] = []
    price: dict[str, float] = {}

    @staticmethod
    def of(options: Mapping[str, Any]) -> Spec:
        """Make a spec from the keys of a spec file or the options of a sweep, all checked."""
        _refuse_unknown(options, "spec")
        given = {key: GRID[option_of(key)] for key in KEYS}
        given |= {key: value for key, value in options.items() if value is not None}
        instances = as_list(given["instance"])
        if not instances:
            raise InputError("no instances: give at least one, as in synthetic")
        deltas = list(dict.fromkeys(map(checked_delta, as_list(given["delta"]))))
        if not deltas:
            raise InputError("no deltas: give at least one, as in 0.01")
        most, of_bits = given["max_steps"], as_list(given["bit_cost"])
        return Spec(
            instance=[_written(one) for one in instances],
            delta=deltas,
            cost=checked_costs(as_list(given["cost"])),
            schedule=_schedules(given["schedule"], given["period"]),
            trials=checked_trials(given["trials"]),
            seed=checked_seed(given["seed"]),
            engine=checked_engine(given["engine"]),
            sigma=list(dict.fromkeys(map(checked_sigma, as_list(given["sigma"])))),
            max_steps=None if most is None else checked_max_steps(most),
            target_rse=_checked_target(given["target_rse"]),
            until_separated=_checked_truth(given["until_separated"]),
            bit_cost=checked_costs(of_bits, "a bit") if of_bits else [],
            price=checked_prices(given["price"]),
            **{kind: _choices(kind, given[kind]) for kind in CHOICES},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the content of a spec file, which `Spec.of` reads back."""
        content: dict[str, Any] = to_builtins(self)
        return content

    @property
    def stops_early(self) -> bool:
        """Tell whether cells may end before they have all trials."""
        return self.target_rse is not None or self.until_separated

    @property
    def hash(self) -> str:
        """Hash of the spec, by which it is told from others."""
        return spec_hash(self.to_dict())

    def choices(self, kind: str) -> list[str]:
        """List the names of a choice, with the default."""
        return getattr(self, kind) or [DEFAULTS[kind]]

    def settings(self, instances: Iterable[Instance] | None = None) -> list[Setting]:
        """Make the settings of the grid, each once; refuse those that cannot be run.

        ``instances`` are those of the spec, if they are loaded already.
        """
        found: dict[Cell, Setting] = {}
        digests: dict[str, str] = {}
        for instance in map(loaded, self.instance) if instances is None else instances:
            if valid_unicode(instance.name) != instance.name:
                raise InputError(
                    f"instance name {instance.name!r}: not valid Unicode; give it another name"
                )
            digest = instance.digest
            if digests.setdefault(instance.name, digest) != digest:
                raise InputError(f"two instances are called {instance.name!r}: names must differ")
            parts: list[list[Any]] = [
                base_of(kind).parse_all(self.choices(kind)) for kind in DEFAULTS
            ]
            scales: list[Any] = [*self.sigma] or [None]
            for delta, sigma, *chosen in product(self.delta, scales, *parts):
                setting = Setting.of(
                    instance,
                    delta=delta,
                    sigma=sigma,
                    seed=self.seed,
                    engine=self.engine,
                    max_steps=self.max_steps,
                    **dict(zip(DEFAULTS, chosen, strict=True)),
                )
                found.setdefault(setting.key, setting)
        return list(found.values())


KEYS = tuple(
    name
    for field in Spec.__struct_fields__
    for name in ((field, "period") if field == "schedule" else (field,))
)
"""The keys of a spec file: those of a spec, and periods, which become schedules."""


def loaded(one: Any) -> Instance:
    """Load an instance as a spec or its options give it: a name, a file, an object or a table."""
    from fastfed.model.instance_files.toml_files import from_toml

    if isinstance(one, Instance):
        return one
    if isinstance(one, InlineInstance):
        return from_toml(one.toml, one.name)
    if isinstance(one, str | Path):
        return Instance.load(str(one))
    if isinstance(one, Mapping) and isinstance(one.get("toml"), str):
        return from_toml(one["toml"], str(one.get("name", "custom")))
    raise InputError(f"instance {shown(one)}: must be a name, a file, or a table of name and toml")


def _written(one: Any) -> str | InlineInstance:
    """Write down an instance: by its name or file, or with its TOML."""
    from fastfed.model.instance_files.toml_files import to_toml

    if isinstance(one, str | Path):
        return valid_unicode(str(one))
    instance = loaded(one)
    return InlineInstance(valid_unicode(instance.name), to_toml(instance))


def _choices(kind: str, given: Any) -> list[str]:
    """Return the names of a choice for a spec file; none if only the default is chosen."""
    parts = base_of(kind).parse_all(given)
    for one in parts:
        if not hasattr(one, "family"):  # a function's name does not bring it back
            raise InputError(
                f"{kind} {one}: a sweep knows {one.plural} by name only, one of {one.known()}; "
                "simulate takes a function"
            )
    return written_choices(kind, map(str, parts))


def written_choices(name: str, chosen: Iterable[str]) -> list[str]:
    """Return the choices for a spec file, without those that have only the default."""
    found = list(chosen)
    return [] if found == [DEFAULTS[name]] else found


def _schedules(given: Any, periods: Any) -> list[str]:
    """Return the names of the schedules and periods; None for those that were not given.

    Without schedules, FedElim and FedElim0 are taken, and the default periods only then.
    """
    if given is None and periods is None:
        periods = PERIODS
    named = SCHEDULES if given is None else as_list(given)
    every = [*named, *(f"periodic:{period}" for period in as_list(periods))]
    return [str(one) for one in Schedule.parse_all(every)]


def _checked_target(given: Any) -> float | None:
    if given is None:
        return None
    target = number("target_rse", given)
    if not 0 < target < 1:
        raise InputError(f"target_rse = {target!r}: must lie strictly between 0 and 1, as in 0.002")
    return target


def _checked_truth(given: Any) -> bool:
    if not isinstance(given, bool):
        raise InputError(f"until_separated = {shown(given)}: must be true or false")
    return given


def read_spec(path: Path) -> dict[str, Any]:
    """Read the keys of a spec file: TOML, or the sweep.json of an earlier sweep."""
    text = read_text(path)
    try:
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise InputError(f"{path}: not valid {kind}: {error}") from None
    if path.suffix == ".json":
        whole = content if isinstance(content, dict) else {}
        content = whole.get("spec")
        if isinstance(content, dict) and whole.get("spec_hash", spec_hash(content)) != spec_hash(
            content
        ):
            raise InputError(
                f"{path}: its spec does not fit its spec_hash; it is damaged, or edited by hand: "
                "give what you changed as options"
            )
    if not isinstance(content, dict):
        raise InputError(f"{path}: no sweep's spec in it")
    _refuse_unknown(content, path)
    return content


def spec_hash(spec: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a spec, which does not depend on the order of its keys."""
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()


def _refuse_unknown(content: Mapping[str, Any], source: object) -> None:
    """Refuse a key that no spec has."""
    for key in sorted(set(content) - set(KEYS)):
        raise InputError(
            f"{source}: unknown key {key!r}{nearest(key, KEYS)}; known are {', '.join(KEYS)}"
        )


def as_list(value: Any) -> list[Any]:
    """Make a list of one value or several; a text and a table are one value."""
    if isinstance(value, str | Part) or not isinstance(value, Iterable):
        return [] if value is None else [value]
    return [value] if isinstance(value, Mapping) else list(value)
