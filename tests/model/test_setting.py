"""Settings: one border, one identity."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from helpers import OTHER, SMALL, refused

import fastfed as ff
from fastfed.api.sweep import SWEEP, SweepOptions
from fastfed.model.cell import CELL, Cell
from fastfed.model.choices import DEFAULTS
from fastfed.model.schedules import FedElim
from fastfed.model.setting import RUN, Options, Setting
from fastfed.model.spec import GRID, KEYS, GridOptions, Spec, option_of
from fastfed.simulation.rows import frame
from fastfed.sweeps.task import Task, compute

CHANGES: list[dict[str, Any]] = [
    {"delta": 0.2},
    {"sigma": 2.0},
    {"seed": 5},
    {"engine": "dense"},
    {"max_steps": 1000},
    {"radius": "mixture"},
    {"goal": "eps:0.1"},
    {"uplink": "dither:1"},
]


@pytest.mark.parametrize("change", CHANGES, ids=[next(iter(one)) for one in CHANGES])
def test_every_field_is_part_of_the_identity(change: dict[str, Any]) -> None:
    one = Setting.of(SMALL, delta=0.1)
    other = Setting.of(SMALL, **{"delta": 0.1, **change})
    assert one != other
    assert one.key != other.key
    assert one.key.id != other.key.id


def test_the_instance_is_part_of_the_identity() -> None:
    assert Setting.of(SMALL, delta=0.1).key.id != Setting.of(OTHER, delta=0.1).key.id


def test_names_and_objects_make_equal_settings() -> None:
    by_name = Setting.of(SMALL, delta=0.1, radius="mixture:500", goal="eps:0.1", uplink="round:0.1")
    by_object = Setting.of(
        SMALL,
        delta=0.1,
        radius=ff.Radius.parse("mixture:500"),
        goal=ff.Eps(0.1),
        uplink=ff.Round(0.1),
    )
    assert by_name == by_object
    assert hash(by_name) == hash(by_object)
    assert by_name.key == by_object.key


def test_a_setting_travels() -> None:
    """To a worker of a cluster, with the same rows there."""
    for uplink in ("exact", "dither:1"):
        setting = Setting.of(SMALL, delta=0.1, radius="stitched", goal="top:1", uplink=uplink)
        task = Task(setting, (FedElim(),), 0, 5)
        again = pickle.loads(pickle.dumps(task))
        assert again == task
        assert again.setting.key.id == setting.key.id
        if uplink == "exact":  # the other kernel is not compiled for this
            assert frame(compute(again)[0]).equals(frame(compute(task)[0]))


def test_options_are_the_fields_of_a_setting() -> None:
    taken = inspect.signature(Setting.of).parameters
    assert set(taken) == {"instance", "delta", *Options.__annotations__}
    assert {one.name for one in fields(Setting)} == set(taken)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (ff.simulate, Options),
        (ff.replay, Options),
        (ff.sweep, SweepOptions),
        (ff.sweep_parts, SweepOptions),
    ],
)
def test_functions_show_the_options_that_they_share(
    function: Callable[..., object], options: type
) -> None:
    """Every option is a keyword of the signature, with a default; another name is refused."""
    shown = inspect.signature(function).parameters
    assert not any(one.kind is one.VAR_KEYWORD for one in shown.values())
    for name in options.__annotations__:
        assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert shown[name].default is not inspect.Parameter.empty
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'sede' .*'seed'"):
        function(sede=1)


def test_options_of_a_sweep_are_the_keys_of_a_spec() -> None:
    assert {option_of(key) for key in KEYS} == set(GRID) == set(GridOptions.__annotations__)
    assert set(SWEEP) == set(SweepOptions.__annotations__)
    assert set(RUN) == set(Options.__annotations__)
    assert Spec.of({}) == Spec.of({key: GRID[option_of(key)] for key in KEYS})


def test_columns_of_a_cell() -> None:
    key = Setting.of(SMALL, delta=0.1, radius="mixture").key
    assert isinstance(key, Cell)
    assert tuple(key.names) == CELL
    assert str(key) == "small, delta 0.1, sigma 1, radius mixture"
    assert Setting.of(SMALL, delta=0.1).choices == DEFAULTS


def test_the_border_refuses() -> None:
    refused(lambda: Setting.of("synthetic", delta=0.1), "must be a fastfed.Instance")  # type: ignore[arg-type]
    refused(lambda: Setting.of(SMALL, delta=2), "delta = 2")
    refused(lambda: Setting.of(SMALL, delta=0.1, goal="top:9"), "top:9")
    near = ff.Instance([[1e-9], [0.0]])
    refused(lambda: Setting.of(near, delta=0.1), "gap 1e-09", "max_steps")
    assert Setting.of(near, delta=0.1, max_steps=10).last_step == 10
    pairs = replace(Setting.of(SMALL, delta=0.1), radius=ff.Radius.parse("mixture-pairs"))
    refused(replace(pairs, goal=ff.Threshold(0.3)).refuse_unfit, "no pairs of arms")
