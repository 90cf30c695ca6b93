"""The grid of a sweep: its settings and schedules, laid out from a spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastfed.model.schedules import Schedule
from fastfed.model.setting import Setting
from fastfed.model.spec import Spec, as_list, loaded


@dataclass(frozen=True)
class Grid:
    """A spec with its settings and schedules as objects."""

    spec: Spec
    settings: list[Setting]
    schedules: list[Schedule]

    @staticmethod
    def of(options: Mapping[str, Any]) -> Grid:
        """Make a grid from the keys of a spec file or the options of a sweep.

        Settings that cannot be run are refused before anything runs. Instances that are given as
        objects are used as they are.
        """
        given = options.get("instance")
        instances = as_list("synthetic" if given is None else given)
        spec = Spec.of({**options, "instance": instances})
        settings = spec.settings(map(loaded, instances))
        return Grid(spec, settings, Schedule.parse_all(spec.schedule))
