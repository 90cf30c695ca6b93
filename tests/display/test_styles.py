"""One style for each schedule: distinct by construction, the same everywhere."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest

from fastfed.display.styles import (
    COLOURS,
    FEDELIM,
    FEDELIM0,
    MARKERS,
    numbered,
    style_of,
    styles,
    variant,
)

FORTY = [
    "fedelim",
    "fedelim0",
    "superexponential",
    *(f"periodic:{digit}{'0' * zeros}" for zeros in range(7) for digit in (1, 2, 5)),
    *(f"exponential:{base}" for base in (1.1, 1.2, 1.5, 1.75, 2, 2.5, 3, 4, 10)),
    *(f"at:1,{n},1000" for n in range(2, 9)),
]


def test_forty_schedules_and_no_two_alike() -> None:
    assert len(FORTY) == 40
    assert len(set(styles(FORTY).values())) == 40


@pytest.mark.parametrize(
    "names",
    [
        [f"periodic:{n}" for n in range(100, 300)],
        [f"at:1,{n}" for n in range(2, 202)],
        [f"exponential:{1 + n / 100}" for n in range(1, 201)],
    ],
)
def test_many_of_one_kind_and_no_two_alike(names: list[str]) -> None:
    assert len(set(styles(names).values())) == len(names)


def test_the_order_of_schedules_does_not_matter() -> None:
    assert styles(FORTY) == styles(reversed(FORTY))
    assert styles(FORTY)["fedelim"] == FEDELIM


def test_paper_schedules_have_fixed_looks() -> None:
    assert style_of("fedelim") == FEDELIM
    assert style_of("fedelim0") == FEDELIM0
    solid = [name for name, style in styles(FORTY).items() if style.dash == "-"]
    assert sorted(solid) == ["fedelim", "fedelim0"]


def test_kinds_do_not_share_dashes() -> None:
    by_kind: dict[str, set[object]] = {}
    for name, style in styles(FORTY).items():
        by_kind.setdefault(name.partition(":")[0].rstrip("0"), set()).add(style.dash)
    for one, other in combinations(by_kind.values(), 2):
        assert not one & other


@pytest.mark.process
def test_style_is_the_same_in_another_process() -> None:
    script = f"from fastfed.display.styles import styles\nprint(list(styles({FORTY!r}).values()))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == str(list(styles(FORTY).values()))


def test_numbered_styles_differ() -> None:
    assert len(set(numbered(120))) == 120


def test_variants_keep_colour_and_dash() -> None:
    found = [variant(FEDELIM, place) for place in range(2 * len(MARKERS))]
    assert found[0] == FEDELIM
    assert len(set(found)) == len(found)
    assert {(one.colour, one.dash) for one in found} == {(FEDELIM.colour, FEDELIM.dash)}


def test_colours_differ_for_every_common_kind_of_colour_vision() -> None:
    """Simulate complete dichromacy by the matrices of Machado, Oliveira and Fernandes (2009).

    The matrices act on linear RGB. The distance is that of CIE 1976: about 2.3 is just noticeable.
    """
    simulated = {
        "normal": np.eye(3),
        "protanopia": [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        "deuteranopia": [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        "tritanopia": [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    }
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    rgb = np.array([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in COLOURS])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    for vision, matrix in simulated.items():
        seen = np.clip(linear @ np.array(matrix).T, 0, 1) @ to_xyz.T / to_xyz.sum(axis=1)
        f = np.where(seen > 0.008856, np.cbrt(seen), 7.787 * seen + 16 / 116)
        lab = np.stack(
            [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1
        )
        for (i, one), (j, other) in combinations(enumerate(lab), 2):
            apart = float(np.linalg.norm(one - other))
            assert apart > 11, (vision, COLOURS[i], COLOURS[j], apart)


def test_eight_schedules_have_eight_colours() -> None:
    """The default sweep has nine schedules, of which two communicate at the same steps."""
    periods = [f"periodic:{h}" for h in (1, 5, 10, 100, 1000, 10_000, 100_000)]
    looks = styles(["fedelim", "fedelim0", *periods])
    assert len({look.colour for look in looks.values()}) == len(COLOURS) == 8
    assert looks["fedelim0"].colour == looks["periodic:1"].colour
    for count in range(1, 9):
        some = styles([f"exponential:{1.1 + one / 10}" for one in range(count)])
        assert len({look.colour for look in some.values()}) == count
