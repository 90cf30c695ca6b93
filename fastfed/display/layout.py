"""Text in figures: all of it inside the figure, none of it on top of another.

Names come from users: a dollar sign in one is a dollar sign, not mathematics, and a name of 60
or 300 characters is broken into lines or shortened, never cut off by the figure's edge. What fits
is measured, not guessed: each function lays the figure out and looks at the boxes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from fastfed.display.wording import told_apart

NO_BREAK = "\u00a0"
"""A space at which a title is not broken."""
_SMALL = 6.5  # points
_LEAST_AXES = (3.4, 2.4)  # inches that are left for the axes in a figure of our own
_MOST_DIRECT = 8  # labels at the lines' ends; more go into a legend
_LABEL_WIDTH = 34  # characters
_TITLE_LINES = 5
_LEGEND_ROWS = 32


def lay_out(figure: Any) -> None:
    """Put everything in its place, as saving the figure will."""
    engine = figure.get_layout_engine()
    if engine is None:
        figure.draw_without_rendering()
    else:
        engine.execute(figure)  # the layout alone: drawing takes half as long again


def write_title(ax: Any, lines: Sequence[str]) -> None:
    """Write a title of several lines, to the left, wrapped where the figure ends."""
    figure = ax.figure  # laid out already: the title moves the axes down, but not to the side
    for characters in (100, 80, 64, 52, 42, 34, 27, 20):
        wrapped = [
            part
            for line in lines
            for part in textwrap.wrap(line, characters, break_on_hyphens=False) or [""]
        ]
        if len(wrapped) > _TITLE_LINES:
            wrapped = [*wrapped[: _TITLE_LINES - 1], wrapped[-1]]
            wrapped[-2] = f"{wrapped[-2][: characters - 1]}…"
        text = "\n".join(wrapped).replace(NO_BREAK, " ")
        title = ax.set_title(text, loc="left", parse_math=False)
        if title.get_window_extent().x1 <= figure.bbox.x1 - 2:
            return


def room_for_axes(ax: Any) -> None:
    """Make a figure of our own larger until its axes have room beside all the text."""
    figure = ax.figure
    for _ in range(3):
        lay_out(figure)
        box = ax.get_window_extent()
        lack = [
            least - size / figure.dpi
            for least, size in zip(_LEAST_AXES, (box.width, box.height), strict=True)
        ]
        if max(lack) <= 0.02:
            return
        width, height = figure.get_size_inches()
        figure.set_size_inches(width + max(0.0, lack[0]), height + max(0.0, lack[1]))


def name_lines(
    ax: Any,
    handles: Sequence[Any],
    labels: Sequence[str],
    ends: Sequence[tuple[float, float]] | None,
    own: bool,
) -> None:
    """Say what the lines are: at their right ends, or in a legend beside the axes.

    ``ends`` are the lines' last points, None where lines have no common direction. ``own`` says
    that the figure is ours and grows; elsewhere the letters of a long legend are smaller.
    """
    if not labels:
        return
    shown = told_apart(labels, _LABEL_WIDTH)
    texts = [shown[label] for label in labels]
    makes_room = own or ax.figure.get_layout_engine() is not None
    if ends is not None and len(labels) <= _MOST_DIRECT and makes_room:
        _label_ends(ax, handles, texts, ends)
        return
    if ends is not None:  # from top to bottom, as the lines end
        order = sorted(range(len(texts)), key=lambda i: -_height(ax, ends[i][1]))
        handles, texts = [handles[i] for i in order], [texts[i] for i in order]
    columns = -(-len(texts) // _LEGEND_ROWS)
    rows, size = -(-len(texts) // columns), _SMALL
    if own:  # the figure grows by its legend
        width, height = ax.figure.get_size_inches()
        wider = columns * (0.5 + 0.055 * max(map(len, texts)))
        ax.figure.set_size_inches(width + wider, max(height, 0.9 + 0.16 * rows))
    else:
        points = ax.get_window_extent().height / ax.figure.dpi * 72
        size = min(_SMALL, 0.7 * points / rows)
    place: dict[str, Any] = {"loc": "best"}
    if makes_room:
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    # a legend leaves out labels that begin with an underscore: the texts are set afterwards
    legend = ax.legend(
        handles, ["line"] * len(texts), ncols=columns, fontsize=size, handlelength=3.6, **place
    )
    for written, text in zip(legend.get_texts(), texts, strict=True):
        written.set_parse_math(False)
        written.set_text(text)


def _label_ends(
    ax: Any, handles: Sequence[Any], texts: Sequence[str], ends: Sequence[tuple[float, float]]
) -> None:
    line_height = 1.3 * _SMALL / 72 * ax.figure.dpi / max(ax.get_window_extent().height, 1)
    order = sorted(range(len(texts)), key=lambda i: _height(ax, ends[i][1]))
    places = apart([_height(ax, ends[i][1]) for i in order], line_height)
    for index, place in zip(order, places, strict=True):
        handle = handles[index]
        colour = (handle[0] if isinstance(handle, tuple) else handle).get_color()
        ax.annotate(
            texts[index],
            ends[index],
            xycoords="data",
            xytext=(1.035, place),
            textcoords="axes fraction",
            va="center",
            ha="left",
            fontsize=_SMALL,
            color=colour,
            annotation_clip=False,
            parse_math=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.5,
                "alpha": 0.6,
                "shrinkA": 1,
                "shrinkB": 2,
                "relpos": (0, 0.5),
            },
        )


def _height(ax: Any, y: float) -> float:
    """Return the place of a value on the axis: 0 at the foot, 1 at the top."""
    scale: Callable[[float], float] = ax.yaxis.get_transform().transform
    low, high = (float(scale(end)) for end in ax.get_ylim())
    return (float(scale(y)) - low) / (high - low)


def apart(places: Sequence[float], least: float, top: float = 1.0) -> list[float]:
    """Move ascending places apart: neighbours at least ``least``, all from 0 to ``top``.

    The sum of the squared moves is as small as possible.

    Without the distances the places would have to be in order and no more, which pooling
    neighbours that are not achieves; so the distances are taken off first and put back after.
    """
    pools: list[tuple[float, int]] = []  # mean and size
    for index, place in enumerate(places):
        mean, size = place - index * least, 1
        while pools and pools[-1][0] > mean:
            before, count = pools.pop()
            mean, size = (mean * size + before * count) / (size + count), size + count
        pools.append((mean, size))
    flat = [mean for mean, size in pools for _ in range(size)]
    highest = max(0.0, top - least * (len(flat) - 1))
    return [min(max(mean, 0.0), highest) + index * least for index, mean in enumerate(flat)]


def _roundness(text: str) -> tuple[int, str]:
    """Sort key of numbers: those with few digits first, and of these powers of ten."""
    digits = text.strip("0,.kM")
    return len(digits), digits


def thin_ticks(ax: Any) -> None:
    """Write only as many numbers along the x axis as fit.

    The numbers at the ends come first, then the roundest. Every tick stays.
    """
    lay_out(ax.figure)
    left, right = sorted(ax.get_xlim())
    inside = [left <= place <= right for place in ax.get_xticks()]
    places = [place for place, seen in zip(ax.get_xticks(), inside, strict=True) if seen]
    labels = [label for label, seen in zip(ax.get_xticklabels(), inside, strict=True) if seen]
    texts = [label.get_text() for label in labels]
    boxes = [label.get_window_extent() for label in labels]
    written = [i for i, text in enumerate(texts) if text]
    if not written:
        return
    ends = (min(written, key=lambda i: boxes[i].x0), max(written, key=lambda i: boxes[i].x1))
    kept: list[int] = []
    for i in sorted(written, key=lambda i: (i not in ends, *_roundness(texts[i]), i)):
        if all(boxes[i].x1 + 3 < boxes[j].x0 or boxes[j].x1 + 3 < boxes[i].x0 for j in kept):
            kept.append(i)
    ax.set_xticks(
        places, parse_math=False, labels=[text if i in kept else "" for i, text in enumerate(texts)]
    )
