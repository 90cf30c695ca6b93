"""`Bounds` as frames and as plain data: no formula lives here."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import polars as pl

from fastfed.errors import InputError, nearest
from fastfed.theory.bounds import Bounds
from fastfed.theory.schemes import Costs, Scheme

VARIANTS = ("as_stated", "summed", "sharp")
_COSTS = tuple(field.name for field in fields(Costs))
_PER_PAIR = ("local_gaps", "T_km", "n_km", "allocation")
_PER_ARM = ("global_gaps", "T_k", "n_k", "condition")
_PER_CELL = (
    "T",
    "T_sharp",
    "lower",
    "lower_as_stated",
    "T_star",
    "T_star_time",
    "least_pulls",
    "three_T_follows",
    "period_opt",
    "base_opt",
)
_SCHEMA = {
    "instance": pl.String,
    "delta": pl.Float64,
    "cost": pl.Float64,
    "sigma": pl.Float64,
    "radius": pl.String,
    "goal": pl.String,
    "scheme": pl.String,
    "variant": pl.String,
    "quantity": pl.String,
    "arm": pl.Int32,
    "client": pl.Int32,
    "value": pl.Float64,
}


def table(b: Bounds, variant: str = "summed") -> pl.DataFrame:
    """Make one row for each delta, cost and scheme: see `Bounds.table`.

    ``total_over_T`` is the factor that the paper speaks of; null where T is 0.
    """
    if variant not in VARIANTS:
        raise InputError(
            f"variant {variant!r}{nearest(str(variant), VARIANTS)}: must be one of "
            f"{', '.join(VARIANTS)}"
        )
    T = np.ravel(b.T)
    parts = []
    for scheme in b.schemes:
        parameter = None if scheme.parameter is None else np.ravel(scheme.parameter)
        costs = getattr(scheme, variant)
        part = pl.DataFrame(
            {
                "instance": [b.instance.name] * len(T),
                "delta": np.ravel(b.delta),
                "cost": np.ravel(b.cost),
                "cell": np.arange(len(T)),
                "scheme": [scheme.name] * len(T),
                "parameter": pl.Series(
                    [None] * len(T) if parameter is None else parameter, dtype=pl.Float64
                ),
                **{name: np.ravel(getattr(costs, name)) for name in _COSTS},
                "T": T,
            }
        )
        parts.append(part)
    over_T = pl.when(pl.col("T") > 0).then(pl.col("total") / pl.col("T")).alias("total_over_T")
    # a stable sort keeps the schemes in their order within each cell
    return pl.concat(parts).sort("cell", maintain_order=True).with_columns(over_T).drop("cell", "T")


def to_frame(b: Bounds) -> pl.DataFrame:
    """Make the long form: one number in each row.

    ``scheme`` and ``variant`` are null for what belongs to no scheme, ``arm`` and ``client`` where
    a number is not theirs alone; truths are 1 and 0.
    """
    arms, clients = b.instance.shape
    arm, client = (index.ravel() for index in np.indices((arms, clients)))
    parts = [_rows(b, name, getattr(b, name), arm, client) for name in _PER_PAIR]
    parts += [_rows(b, name, getattr(b, name), np.arange(arms)) for name in _PER_ARM]
    parts += [_rows(b, name, getattr(b, name)) for name in _PER_CELL]
    for scheme in b.schemes:
        if scheme.parameter is not None:
            parts.append(_rows(b, "parameter", scheme.parameter, scheme=scheme.name))
        for variant in VARIANTS:
            costs = getattr(scheme, variant)
            parts += [
                _rows(b, name, getattr(costs, name), scheme=scheme.name, variant=variant)
                for name in _COSTS
            ]
    return pl.concat(parts)


def _rows(
    b: Bounds,
    quantity: str,
    values: Any,
    arm: Any = None,
    client: Any = None,
    scheme: str | None = None,
    variant: str | None = None,
) -> pl.DataFrame:
    """Make the rows of one quantity: by cell of the grid, then by arm, then by client."""
    cells = np.size(b.delta)
    each = 1 if arm is None else len(arm)
    if values is None:  # a lower bound without a number here: ``notes`` has the reason
        return pl.DataFrame(schema=_SCHEMA)
    count = cells * each

    def index(one: Any) -> pl.Series:
        return pl.Series([None] * count if one is None else np.tile(one, cells), dtype=pl.Int32)

    # gaps do not depend on the cell, and stand in each all the same: a filter by cell has all
    flat = np.broadcast_to(np.reshape(values, (-1, each)), (cells, each)).astype(np.float64)
    return pl.DataFrame(
        {
            "instance": [b.instance.name] * count,
            "delta": np.repeat(np.ravel(b.delta), each),
            "cost": np.repeat(np.ravel(b.cost), each),
            "sigma": [b.sigma] * count,
            "radius": [b.radius] * count,
            "goal": [b.goal] * count,
            "scheme": [scheme] * count,
            "variant": [variant] * count,
            "quantity": [quantity] * count,
            "arm": index(arm),
            "client": index(client),
            "value": flat.ravel(),
        },
        schema=_SCHEMA,
    )


def to_dict(b: Bounds) -> dict[str, Any]:
    """Make plain data of bounds: schemes by name, grids as nested lists. See `Bounds.to_dict`."""
    names = ("delta", "cost", "sigma", *_PER_PAIR, *_PER_ARM, "breaking_arms", *_PER_CELL)
    return {
        "instance": b.instance.name,
        "radius": b.radius,
        "goal": b.goal,
        "arms": list(b.instance.arms),
        "clients": list(b.instance.clients),
        **{name: plain(getattr(b, name)) for name in names},
        "notes": list(b.notes),
        "schemes": {scheme.name: _scheme(scheme) for scheme in b.schemes},
    }


def _scheme(scheme: Scheme) -> dict[str, Any]:
    return {
        "parameter": plain(scheme.parameter),
        **{variant: plain(vars(getattr(scheme, variant))) for variant in VARIANTS},
    }


def plain(value: Any) -> Any:
    """Return lists and Python numbers; None for infinity, which JSON does not know."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
