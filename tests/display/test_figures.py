"""Figures, judged by their artists: nothing cut off, nothing on top of another, no two alike."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from made_up_summary import DELTAS, LONG, SCHEDULES, made_up

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.display.layout import apart
from fastfed.display.series import MOST_LINES, chart, with_gaps
from fastfed.display.styles import style_of, styles
from fastfed.errors import InputError

pytest.importorskip("matplotlib")

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.text import Text

from fastfed.display.figures import chart_figure, file_stem, plot, plot_sweep
from fastfed.display.styles import label_of


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def texts(figure: Figure) -> list[Text]:
    """Every text that is drawn."""
    figure.draw_without_rendering()
    found = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    ticks = {
        id(label)
        for ax in figure.axes
        for axis in (ax.xaxis, ax.yaxis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        for label in (tick.label1, tick.label2)
    }
    # an axis keeps ticks beyond its ends, which it does not draw
    drawn = {
        id(label)
        for ax in figure.axes
        for axis in (ax.xaxis, ax.yaxis)
        for tick in axis._update_ticks()
        for label in (tick.label1, tick.label2)
    }
    return [text for text in found if id(text) not in ticks or id(text) in drawn]


def assert_readable(ax: Any) -> None:
    """No text outside the figure, none on top of another."""
    figure = ax.figure
    # of an annotation the text alone, without the line that leads to it
    boxes = [(text.get_text(), Text.get_window_extent(text)) for text in texts(figure)]
    assert len(boxes) > 5
    for text, box in boxes:
        assert box.x0 >= -0.5, text
        assert box.y0 >= -0.5, text
        assert box.x1 <= figure.bbox.x1 + 0.5, text
        assert box.y1 <= figure.bbox.y1 + 0.5, text
    for (one, a), (other, b) in combinations(boxes, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        along = min(a.y1, b.y1) - max(a.y0, b.y0)
        # boxes hold the whole height of a line: letters touch only if a third of it is shared
        assert across <= 0.5 or along <= 0.34 * min(a.height, b.height), (one, other)
    box = ax.get_window_extent()
    assert box.width / figure.dpi > 2.5
    assert box.height / figure.dpi > 1.5


def looks(ax: Any) -> list[tuple[object, ...]]:
    """Describe the style of each line that has points."""
    lines = [container.lines[0] for container in ax.containers]
    lines += [
        line
        for line in ax.lines
        if not line.get_label().startswith("_cut")
        and line not in lines
        and line.get_linestyle() != "None"
    ]
    return [
        (
            line.get_color(),
            line.get_marker(),
            line.get_markerfacecolor(),
            str(line._unscaled_dash_pattern),
        )
        for line in dict.fromkeys(lines)
    ]


# Everything is readable


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"errors": "std"},
        {"errors": "quantiles"},
        {"y": "pulls"},
        {"y": "communication"},
        {"y": "error_rate"},
        {"y": "steps"},
        {"x": "schedule"},
        {"x": "period"},
        {"x": "cost", "group": "schedule"},
    ],
    ids=str,
)
def test_sixty_characters_sixteen_schedules_twelve_deltas(options: dict[str, Any]) -> None:
    assert len(LONG) >= 60
    frame = made_up()
    if options.get("x") == "cost":
        frame = made_up(deltas=[0.1], costs=(0.0, 1.0, 10.0, 100.0, 1000.0))
    if options.get("x") == "period":
        frame = made_up(deltas=DELTAS[:6])
    ax = plot(frame, **options)
    assert_readable(ax)
    found = looks(ax)
    assert len(found) >= 12
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"x": "cost"},
        {"x": "period", "cost": 10.0},
        {"group": "delta", "x": "schedule"},
        {"y": "error_rate"},
    ],
    ids=str,
)
def test_few_lines_are_labelled_at_their_ends(options: dict[str, Any]) -> None:
    costs = (0.0, 1.0, 10.0, 100.0) if "x" in options and options["x"] == "cost" else (10.0,)
    frame = made_up(
        ["short"],
        ["fedelim", "fedelim0", "periodic:10", "periodic:1000"],
        [0.1] if len(costs) > 1 else [0.1, 0.01],
        costs,
    )
    ax = plot(frame, **options)
    assert_readable(ax)
    if options.get("x") != "schedule":
        assert ax.get_legend() is None
        assert "fedelim" in {text.get_text().split(",")[0] for text in ax.texts}


def test_title_tells_of_trials_that_did_not_end() -> None:
    """Means leave them out, quantiles and error rates do not."""
    frame = made_up(deltas=[0.01]).with_columns(truncated=pl.lit(0))
    frame[0, "truncated"] = 312
    for options, words in (
        ({"errors": "sem"}, "10,000 trials (means over those that ended; up to 312 did not)"),
        ({"errors": "quantiles"}, "10,000 trials (up to 312 did not end)"),
        ({"y": "error_rate"}, "10,000 trials (up to 312 did not end)"),
    ):
        title = " ".join(plot(frame, x="schedule", **options).get_title(loc="left").split())
        assert words in title, title


def test_points_over_a_category_stand_side_by_side() -> None:
    ax = plot(made_up(["a"], ["fedelim", "fedelim0"], DELTAS[:3], costs=(10.0,)), x="schedule")
    lines = [bars.lines[0].get_xdata() for bars in ax.containers]
    places = sorted(x for line in lines for x in line)
    assert len(places) == 6
    assert min(np.diff(places)) > 0.1
    np.testing.assert_allclose(places, [0, 0, 0, 1, 1, 1], atol=0.35)


def test_title_is_whole_and_dollars_are_no_mathematics() -> None:
    ax = plot(made_up(deltas=[0.01]), x="period", errors="std")
    title = " ".join(ax.get_title(loc="left").split())
    assert title == (f"{LONG}, delta 0.01, C = 10 mean ± one standard deviation, 10,000 trials")
    assert not any(text.get_parse_math() for text in texts(ax.figure) if "$" in text.get_text())


def test_very_long_names_and_odd_characters() -> None:
    names = ["_" + "x" * 300, "_" + "x" * 299 + "y", "a\x1b[31m\nb", "", "$", "例え 名前"]
    frame = made_up(names, ["fedelim"], [0.1, 0.01])
    ax = plot(frame, group="instance")
    assert_readable(ax)
    labels = [text.get_text() for text in ax.texts]
    assert len(set(labels)) == len(labels) >= 5
    ax = plot(made_up(["W" * 300], ["fedelim"], [0.1, 0.01]))
    assert_readable(ax)


def test_given_axes_are_drawn_into() -> None:
    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    frame = made_up()
    assert plot(frame, ax=axes[0]) is axes[0]
    plot(made_up(["short"], ["fedelim"]), y="pulls", ax=axes[1])
    assert axes[1].get_ylabel() == "pulls"
    assert tuple(figure.get_size_inches()) == (9, 4)
    figure.draw_without_rendering()
    box = axes[0].get_legend().get_window_extent()
    assert box.height <= figure.bbox.height
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize(
    "options", [{"x": "period"}, {"x": "schedule", "y": "error_rate"}, {"y": "error_rate"}], ids=str
)
def test_text_in_given_axes_stays_in_the_figure(options: dict[str, Any]) -> None:
    """In the figure of somebody else, which does not grow: 42 lines, or 16 long names below."""
    figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
    plot(made_up(deltas=DELTAS[: 6 if options.get("x") == "period" else 12]), ax=ax, **options)
    for text in texts(figure):
        box = Text.get_window_extent(text)
        assert box.x0 >= -0.5, text
        assert box.y0 >= -0.5, text
        assert box.x1 <= figure.bbox.x1 + 0.5, text
        assert box.y1 <= figure.bbox.y1 + 0.5, text
    legend = ax.get_legend()
    assert legend.get_window_extent().height <= ax.get_window_extent().height
    assert len({text.get_text() for text in ax.get_xticklabels()}) > 5


# Lines


def test_a_schedule_looks_the_same_in_every_figure() -> None:
    frame = made_up()
    for options in ({}, {"y": "pulls"}, {"y": "error_rate"}):
        for line in chart(frame, **options).lines:
            assert line.style in styles(SCHEDULES).values()
    some = frame.filter(pl.col("schedule").is_in(["fedelim", "periodic:500"]))
    few = chart(some, schedules=SCHEDULES)
    every = styles(SCHEDULES)
    assert [line.style for line in few.lines] == [every["fedelim"], every["periodic:500"]]
    level = {
        line.label: line.style
        for line in chart(frame.filter(pl.col("delta") == 0.1), x="period").lines
    }
    assert level["fedelim"] == style_of("fedelim")


def test_several_instances_and_sigmas_get_lines_of_their_own() -> None:
    frame = made_up(["a", "b"], ["fedelim", "fedelim0"], [0.1, 0.01], sigmas=(1.0, 2.0))
    ax = plot(frame)
    assert_readable(ax)
    found = looks(ax)
    assert len(found) == len(set(found)) == 8
    labels = {text.get_text() for text in ax.texts}
    assert "fedelim, a, sigma 1" in labels
    colours = {line.label.split(",")[0]: set() for line in chart(frame).lines}
    for line in chart(frame).lines:
        assert line.style is not None
        colours[line.label.split(",")[0]].add(line.style.colour)
    assert all(len(found) == 1 for found in colours.values())


def test_colours_follow_the_group_and_dashes_the_rest() -> None:
    frame = made_up(["a", "b", "c"], ["fedelim", "fedelim0"], [0.1, 0.01])
    lines = [(line.label.split(", "), line.style) for line in chart(frame, group="instance").lines]
    colours = {(names[0], style.colour) for names, style in lines if style}
    dashes = {(names[1], style.dash, style.marker) for names, style in lines if style}
    assert (len(colours), len(dashes)) == (3, 2)


@pytest.mark.parametrize("errors", ["sem", "std", "quantiles"])
def test_values_are_those_of_the_frame(errors: str) -> None:
    frame = made_up(["a"], ["fedelim"], [0.1, 0.01], spread=0.3)
    (line,) = chart(frame, errors=errors).lines
    low, high = line.ends()
    rows = frame.sort("delta").to_dicts()
    assert line.x == [0.01, 0.1]
    if errors == "quantiles":
        expected = [[row[f"total_{q}"] for row in rows] for q in ("q50", "q05", "q95")]
    else:
        expected = [
            [row["total_mean"] + sign * row[f"total_{errors}"] for row in rows]
            for sign in (0, -1, 1)
        ]
    np.testing.assert_allclose([line.y, low, high], expected)


def test_error_rate_has_its_exact_interval() -> None:
    frame = made_up(["a"], ["fedelim"], [0.1])
    (line,) = chart(frame, y="error_rate", errors="std").lines
    assert (line.y[0], line.ends()[0][0], line.ends()[1][0]) == (
        frame["error_rate"][0],
        frame["error_low"][0],
        frame["error_high"][0],
    )


def test_zeros_on_a_logarithmic_axis_are_said_to_be_zeros() -> None:
    frame = made_up(["a"], ["fedelim", "fedelim0"], [0.1, 0.01])
    assert "foot" not in plot(frame, y="error_rate").get_title(loc="left")
    none = frame.with_columns(error_rate=pl.lit(0.0), error_low=pl.lit(0.0))
    ax = plot(none, y="error_rate")
    assert ax.get_yscale() == "log"
    assert ax.get_title(loc="left").splitlines()[-1] == "points at the foot of the axis: 0"
    assert_readable(ax)


@pytest.mark.parametrize("spread", [0.1, 0.9, 1.2, 50.0])
def test_bars_stay_inside_logarithmic_axes(spread: float) -> None:
    ax = plot(made_up(spread=spread), y="communication", errors="std")
    assert ax.get_yscale() == "log"
    low, high = ax.get_ylim()
    for container in ax.containers:
        for bar in container.lines[2][0].get_segments():
            assert low <= bar[:, 1].min()
            assert bar[:, 1].max() <= high
    cut = [line for line in ax.lines if line.get_label() == "_cut"]
    assert bool(cut) == (spread > 0.5)


def test_points_that_are_not_joined_differ_without_their_dashes() -> None:
    frame = made_up(["a", "b"], ["fedelim", "periodic:100", "periodic:110"], [0.1, 0.01])
    frame = frame.with_columns(pl.lit("paper").alias("radius"))
    for x in ("radius", "schedule"):
        lines = chart(frame, x=x).lines
        assert not any(line.joined for line in lines)
        looks = {replace(line.style, dash="-") for line in lines if line.style}
        assert len(looks) == len(lines) > 3


def test_one_delta_has_schedules_along_x_and_no_legend(tmp_path: Path) -> None:
    """No stack of points at a single delta, and no label for what the title says."""
    frame = made_up(["a"], ["fedelim", "periodic:100"], [0.1])
    paths = plot_sweep(frame, tmp_path, ["svg"])
    names = sorted(path.name.rpartition("C")[2].partition("-")[2] for path in paths)
    assert [name for name in names if "schedule" in name]
    assert not [name for name in names if "-delta" in name]
    ax = plot(frame, x="schedule")
    assert ax.get_legend() is None
    assert "delta 0.1" in ax.get_title(loc="left")


def test_period_one_is_fedelim0() -> None:
    frame = made_up(["a"], ["fedelim0", "periodic:1", "periodic:10", "fedelim"], [0.1])
    assert [line.label for line in chart(frame).lines] == [
        "fedelim",
        "fedelim0",
        "periodic:10",
    ]
    curve, level = chart(frame, x="period").lines
    assert (curve.label, curve.x) == ("periodic:H", [1.0, 10.0])
    assert (level.label, level.plain) == ("fedelim", True)
    assert level.y[0] == frame.filter(pl.col("schedule") == "fedelim")["total_mean"][0]


def test_a_schedule_that_never_ended_has_no_line() -> None:
    frame = made_up(["a"], ["fedelim", "fedelim0"], [0.1]).with_columns(
        pl.when(pl.col("schedule") == "fedelim").then(pl.col("total_mean")).alias("total_mean")
    )
    assert [line.label for line in chart(frame).lines] == ["fedelim"]


@pytest.mark.parametrize("choice", ["radius", "goal", "uplink"])
def test_against_a_choice(choice: str) -> None:
    frame = made_up(["near"], ["fedelim", "fedelim0"], [0.1])
    both = pl.concat([frame.with_columns(pl.lit(name).alias(choice)) for name in ("b", "a:5000")])
    ax = plot(both, x=choice)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["b", "a:5000"]
    assert_readable(ax)


def test_against_the_gap() -> None:
    instances = {"near": ff.Instance([[0.6], [0.5]]), "far": ff.Instance([[0.9], [0.1]])}
    frame = made_up(["near", "far"], ["fedelim", "fedelim0"], [0.1])
    frame = frame.with_columns(goal=pl.lit("best"))
    drawn = chart(with_gaps(frame, instances), x="gap")
    assert [line.x for line in drawn.lines] == [pytest.approx([0.1, 0.8])] * 2


# Input


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"x": "detla"}, r"x = 'detla' \(did you mean 'delta'\?\)"),
        ({"y": "cost"}, "y = 'cost'"),
        ({"errors": "std_error"}, "errors = 'std_error'"),
        ({"group": "colour"}, "group = 'colour'"),
        ({"cost": 3.0}, "cost = 3: the summary has C = 1, 1,000"),
        ({}, "the summary has C = 1, 1,000: choose one"),
        ({"x": "gap", "cost": 1.0}, "no column 'gap'"),
        ({"x": "period", "cost": 1.0}, "no schedule has a period"),
    ],
)
def test_bad_choices(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        plot(made_up(["a"], ["fedelim"], [0.1], (1.0, 1000.0)), **options)


def test_nothing_to_plot() -> None:
    with pytest.raises(InputError, match="no rows"):
        plot(made_up().head(0))


# Files


def test_names_of_files_never_collide() -> None:
    names = [
        "a b",
        "a_b",
        "a-b",
        "A b",
        "A-B",
        "a/b",
        "",
        "x" * 41,
        "x" * 42,
        "con",
        "é",
        "e",
        "../up",
        "a_s1",
        "a-b~00000000",
        "nul.txt",
        ".",
    ]
    cells = [
        {"instance": name, "sigma": sigma, "cost": cost}
        for name in names
        for sigma in (1.0, 1.0000001)
        for cost in (0.0, 1000.0, 1e15)
    ]
    stems = {file_stem(cell).lower() for cell in cells}
    assert len(stems) == len(cells)
    for stem in stems:
        assert not set(stem) & set('/\\:*?"<>| \n')
        assert not stem.startswith(".")
        assert len(stem) < 120
    together = [
        {"instance": "a", "radius": "b", "goal": "c_d"},
        {"instance": "a", "radius": "b_c", "goal": "d"},
    ]
    assert len({file_stem(cell) for cell in together}) == 2


def test_figures_of_a_sweep(tmp_path: Path) -> None:
    frame = made_up(["a b", "a_b"], ["fedelim", "fedelim0", "periodic:10"], [0.1], (0.0, 10.0))
    paths = plot_sweep(frame, tmp_path / "figures", ["svg"])
    assert len(paths) == len(set(paths)) == 2 * (2 + 3)
    assert sorted(paths) == sorted((tmp_path / "figures").iterdir())
    for path in paths:
        text = path.read_text()
        assert (">a b, " in text) != (">a_b, " in text)
    again = plot_sweep(
        frame.filter(pl.col("instance") == "a b", pl.col("cost") == 10.0),
        tmp_path / "again",
        ["svg"],
    )
    assert len(again) == 3
    for path in again:
        assert path.read_bytes() == (tmp_path / "figures" / path.name).read_bytes()


def test_figures_against_delta_have_the_cheapest_of_many_schedules(tmp_path: Path) -> None:
    names = ["fedelim", *(f"periodic:{place}" for place in range(1, MOST_LINES + 1))]
    frame = made_up(["a"], names, [0.1, 0.01])
    cost = {name: place for place, name in enumerate(reversed(names))}
    errs = pl.col("schedule") == names[-1]
    frame = frame.with_columns(
        total_mean=pl.col("schedule").replace_strict(cost) + 1e5,
        error_rate=pl.when(errs).then(0.83).otherwise("error_rate"),
    )
    paths = {path.name: path.read_text() for path in plot_sweep(frame, tmp_path, ["svg"])}
    drawn = paths["a_s1_C10-total-delta.svg"]
    assert f"the cheapest of {len(names)} schedules" in drawn
    shown = {name for name in names if f">{name}<" in drawn}
    assert shown == {"fedelim", *names[-11:-1]}
    against_period = paths["a_s1_C10-total-period-d0.1.svg"]
    assert f"more errors than delta allows: {label_of(names[-1])}" in against_period
    assert "more errors" not in drawn


@pytest.mark.process
def test_no_screen_is_chosen_or_needed(tmp_path: Path) -> None:
    """Figures of a sweep leave a notebook's backend and its open figures alone."""
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "from made_up_summary import made_up\n"
        "import matplotlib; matplotlib.use('svg')\n"
        "import matplotlib.pyplot as plt; plt.figure()\n"
        "from fastfed.display.figures import plot_sweep\n"
        "plot_sweep(made_up(['a'], ['fedelim'], [0.1]), Path(sys.argv[1]), ['png'])\n"
        "assert matplotlib.get_backend() == 'svg'\n"
        "assert len(plt.get_fignums()) == 1\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), str(Path(__file__).parent), *sys.path],
        check=True,
    )


def test_without_matplotlib_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`reproduce` ends in figures: its sweeps would take minutes before that is noticed."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # importing it fails, as if not installed
    assert cli.run(["reproduce", "--quick", "--out", str(tmp_path / "paper")]) == 2
    said = capsys.readouterr().err
    assert "figures need matplotlib" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "paper").exists()


# Labels


def test_labels_apart_move_as_little_as_possible() -> None:
    assert apart([0.2, 0.5, 0.9], 0.1) == pytest.approx([0.2, 0.5, 0.9])
    assert apart([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])
    assert apart([0.0, 0.0, 0.0], 0.1) == pytest.approx([0.0, 0.1, 0.2])
    assert apart([1.0, 1.0], 0.1) == pytest.approx([0.9, 1.0])
    rng = np.random.default_rng(1)
    for _ in range(50):
        moved = apart(sorted(rng.random(8)), 0.07)
        assert min(np.diff(moved)) >= 0.07 - 1e-12
        assert moved[0] >= 0
        assert moved[-1] <= 1 + 1e-12


def test_never_more_lines_than_can_be_told_apart() -> None:
    """Refuse, and say what to filter."""
    with pytest.raises(InputError, match=r"192 lines in one figure, at most 48: choose fewer"):
        plot(made_up(costs=(10.0,)), x="cost")
    with pytest.raises(InputError, match=r"--schedule \(16 values\) or --delta \(12 values\)"):
        plot(made_up(costs=(10.0,)), x="cost")


def test_categories_are_points_in_the_order_of_the_spec() -> None:
    order = ["periodic:10", "fedelim", "adaptive"]
    ax = plot(made_up(schedules=order, deltas=[0.1, 0.01]), x="schedule")
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == [label_of(name) for name in order]
    assert {bars[0].get_linestyle() for bars in ax.containers} == {"None"}


def test_constants_stand_in_the_title() -> None:
    """One schedule, two scales: labels are the scales, the title has the schedule."""
    ax = plot(made_up(schedules=["fedelim"], sigmas=(1.0, 2.0)))
    labels = [text.get_text() for text in ax.texts] or [
        text.get_text() for text in ax.get_legend().get_texts()
    ]
    assert not [label for label in labels if "fedelim" in label]
    assert "fedelim" in ax.get_title(loc="left") + ax.get_title()


@pytest.mark.parametrize(("style", "width"), [("paper", 3.4), ("paper-wide", 7.0)])
def test_figures_for_a_paper_have_the_width_of_its_columns(style: str, width: float) -> None:
    drawn = chart(made_up(schedules=["fedelim", "fedelim0"], names=["synthetic"]))
    figure = chart_figure(drawn, style)
    assert figure.get_size_inches()[0] == pytest.approx(width)
    for text in texts(figure):
        box = Text.get_window_extent(text)
        assert box.x0 >= -1
        assert box.x1 <= figure.bbox.width + 1
    with pytest.raises(InputError, match="figure style 'slide': must be one of screen"):
        chart_figure(drawn, "slide")
