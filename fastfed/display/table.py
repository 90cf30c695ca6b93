"""One table with all its notations: text, Markdown, LaTeX, CSV, JSON and HTML.

Names in cells come from files of other people, so each notation escapes what its reader would obey.
"""

from __future__ import annotations

import html
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from fastfed.display.wording import told_apart
from fastfed.errors import InputError, nearest
from fastfed.text import printable, printable_json, short, spreadsheet_cell

if TYPE_CHECKING:
    import polars as pl

FORMATS = ("text", "markdown", "latex", "csv", "json")
"""Notations of the option ``--format``."""
MOST = 22
"""Rows that a table on a screen may have, unless all are asked for."""
LINES = 28
"""Lines of a screen: with all its text, a table has no more."""
WIDTH = 120
"""Columns of a screen."""
BEST = " ★"
"""Mark of a best arm."""
_CLOSE = 100  # a table that is wider has one space between its columns, not two
_LEAST_ROWS = 5  # whatever stands around them
_LEAST_NAME = 12  # columns that a shortened name keeps
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "…": r"\dots{}",
    "<": r"$<$",
    ">": r"$>$",
    "[": "{[}",  # behind the \\ of the row before it would begin an option
    **{sign: f"\\{sign}" for sign in "&%$#_"},
}
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, its cells, and how it stands in its place."""

    head: str
    cells: list[str]
    left: bool = False
    """Names stand to the left, numbers to the right."""
    name: bool = False
    """Whether cells may be shortened where the table is too wide."""


@dataclass(frozen=True)
class Table:
    r"""Columns, lines of text around them, and the frame that a program reads in their place.

    Examples
    --------
    >>> table = Table([Column("arm", ["a|b"], left=True), Column("pulls", ["1,000"])])
    >>> print(table.markdown())
    | arm | pulls |
    | --- | ---: |
    | a\|b | 1,000 |
    """

    columns: Sequence[Column]
    above: Sequence[str] = ()
    below: Sequence[str] = ()
    frame: pl.DataFrame | None = None
    """What CSV and JSON print: every row, and numbers with all their digits."""
    most: int | None = None
    """Rows that text and HTML show; None: all."""
    rest: str = ""
    """The way to all rows."""
    total: int | None = None
    """The number of rows, where columns have the cells of the first ones only."""

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        cells = len(self.columns[0].cells) if self.columns else 0
        return cells if self.total is None else self.total

    def first(self, most: int | None, rest: str) -> Table:
        """Show the first rows, as many as fit, and say what has the ``rest``; None: show all."""
        return replace(self, most=most, rest=rest)

    def on_a_screen(self, wrapped: bool = True) -> Table:
        """Return the table as it is shown: lines wrapped, and no more rows than fit.

        A browser wraps lines itself.
        """
        above, below = (
            [piece for line in some for piece in _wrapped(line)]
            for some in (self.above, self.below)
        )
        whole = replace(self, above=above, below=below) if wrapped else self
        if self.most is None or self.rows <= min(self.most, LINES - 1 - len(above) - len(below)):
            return whole
        room = max(_LEAST_ROWS, min(self.most, LINES - 2 - len(above) - len(below)))
        if self.rows <= room:
            return whole
        kept = [replace(one, cells=one.cells[:room]) for one in self.columns]
        line = f"{room} of {self.rows:,} rows; all of them: {self.rest}"
        return replace(whole, columns=kept, below=[line, *whole.below], total=None)

    def written(self, form: str) -> str:
        """Write the table in one of `FORMATS`."""
        return str(getattr(self, form)())

    def text(self, width: int | None = None) -> str:
        """Align the columns; names are shortened to a screen, or to ``width``.

        A table with all its rows is as wide as the terminal, and has no limit in a file or a pipe.
        """
        shown = self.on_a_screen()
        room = width if width is not None or self.most is None else min(_room(), WIDTH)
        lines = table_text(shown.columns, room) if shown.columns else []
        return "\n".join([*shown.above, *lines, *shown.below])

    def markdown(self) -> str:
        """Write Markdown: no name in it is markup, a link or an image."""

        def row(cells: Sequence[str]) -> str:
            return f"| {' | '.join(map(_markdown, cells))} |"

        sides = ["---" if one.left else "---:" for one in self.columns]
        table = [row([one.head for one in self.columns]), f"| {' | '.join(sides)} |"]
        table += map(row, zip(*(one.cells for one in self.columns), strict=True))
        above, below = (list(map(_markdown, some)) for some in (self.above, self.below))
        return "\n".join(
            [*(line for text in above for line in (text, ""))]
            + table
            + [line for text in below for line in ("", text)]
        )

    def latex(self) -> str:
        """Write LaTeX for the package booktabs; lines of text are comments."""

        def row(cells: Sequence[str]) -> str:
            escaped = ("".join(_LATEX.get(sign, sign) for sign in cell) for cell in cells)
            return f"{' & '.join(escaped)} \\\\"

        def comments(lines: Sequence[str]) -> list[str]:
            return [f"% {printable(line)}" for text in lines for line in text.splitlines()]

        sides = "".join("l" if one.left else "r" for one in self.columns)
        return "\n".join(
            [
                *comments(self.above),
                f"\\begin{{tabular}}{{{sides}}}",
                r"\toprule",
                row([one.head for one in self.columns]),
                r"\midrule",
                *(row(cells) for cells in zip(*(one.cells for one in self.columns), strict=True)),
                r"\bottomrule",
                r"\end{tabular}",
                *comments(self.below),
            ]
        )

    def json(self) -> str:
        """Write the rows of the frame as JSON."""
        assert self.frame is not None
        return printable_json(self.frame.write_json())

    def csv(self) -> str:
        """Write the frame as CSV, without a cell that a spreadsheet would run."""
        import polars as pl

        assert self.frame is not None
        text = pl.col(pl.String).map_elements(spreadsheet_cell, return_dtype=pl.String)
        flat = self.frame.with_columns(
            pl.col(pl.List(pl.String)).list.join(" "),
            *(
                pl.col(name).list.eval(pl.element().cast(pl.String)).list.join(" ")
                for name, kind in self.frame.schema.items()
                if isinstance(kind, pl.List) and kind != pl.List(pl.String)
            ),
        )
        return flat.with_columns(text).write_csv().removesuffix("\n")

    def html(self) -> str:
        """Write HTML for a notebook, in the colours of the page around it, light or dark.

        Names are escaped, so that markup in them is shown and not obeyed. Best arms are bold.
        """
        shown = self.on_a_screen(wrapped=False)

        def cell(tag: str, one: Column, text: str) -> str:
            look = f"text-align:{'left' if one.left else 'right'}"
            look += ";font-weight:bold" if text.endswith(BEST) else ""
            return f"<{tag} style='{look}'>{_escaped(text)}</{tag.split()[0]}>"

        head = "".join(cell("th scope='col'", one, one.head) for one in shown.columns)
        rows = (
            "".join(cell("td", one, one.cells[row]) for one in shown.columns)
            for row in range(shown.rows)
        )
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        above = "".join(f"<div>{_escaped(line)}</div>" for line in shown.above if line)
        below = "".join(f"<div><small>{_escaped(line)}</small></div>" for line in shown.below)
        return f"<div class='fastfed'>{above}{table if shown.columns else ''}{below}</div>"


def of_frame(frame: pl.DataFrame, above: Sequence[str] = ()) -> Table:
    """Show every column of a frame, numbers in at most nine characters."""
    columns = [
        Column(
            name,
            [_cell(value) for value in frame[name].to_list()],
            left=not frame[name].dtype.is_numeric(),
        )
        for name in frame.columns
    ]
    return Table(columns, above, frame=frame)


def checked_format(name: str) -> str:
    """Return the name of a notation, or refuse it."""
    if name not in FORMATS:
        raise InputError(
            f"--format {name}{nearest(name, FORMATS)}: must be one of {', '.join(FORMATS)}"
        )
    return name


def table_text(columns: Sequence[Column], width: int | None = None) -> list[str]:
    """Align the heading and the rows.

    On a terminal, or with a ``width``, names are shortened, the longest first, until the table
    fits. Numbers never are, so that a table of very long ones is wider than asked.
    """
    room = _room() if width is None else width
    columns = _fitted(list(columns), room)
    wide = [_width(column) for column in columns]
    gap = "  " if sum(wide) + 2 * (len(wide) - 1) <= min(room, _CLOSE) else " "
    lines = []
    for row in zip(*([column.head, *column.cells] for column in columns), strict=True):
        cells = (
            f"{text:<{size}}" if column.left else f"{text:>{size}}"
            for text, size, column in zip(row, wide, columns, strict=True)
        )
        lines.append(gap.join(cells).rstrip())
    return lines


def fits(columns: Sequence[Column]) -> bool:
    """Tell whether a table fits on a screen with all its names in full."""
    return sum(map(_width, columns)) + len(columns) - 1 <= min(_room(), WIDTH)


def _room() -> int:
    """Return the width of the terminal; a file or a pipe has no limit."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return shutil.get_terminal_size((_CLOSE, 0)).columns if terminal else sys.maxsize


def _wrapped(line: str) -> list[str]:
    """Break a long line of text; one that begins with a space, such as a command, stays whole."""
    if len(line) <= WIDTH or line.startswith(" "):
        return [line]
    return wrap(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _fitted(columns: list[Column], width: int) -> list[Column]:
    whole = [column.cells for column in columns]
    while True:
        wide = [_width(column) for column in columns]
        over = sum(wide) + len(wide) - 1 - width
        names = [i for i, column in enumerate(columns) if column.name and wide[i] > _LEAST_NAME]
        if over <= 0 or not names:
            return columns
        widest = max(names, key=lambda i: wide[i])
        room = max(_LEAST_NAME, len(columns[widest].head), wide[widest] - over)
        if room >= wide[widest]:
            return columns
        # as equals: a name gives way only as far as it is longer than the others
        others = [wide[i] for i in names if i != widest]
        room = max([room, *(size - 1 for size in others if room < size < wide[widest])])
        column = columns[widest]
        shown = told_apart(whole[widest], room)  # of what is cut already little can be told
        columns[widest] = replace(column, cells=[shown[cell] for cell in whole[widest]])


def _width(column: Column) -> int:
    return max(map(len, [column.head, *column.cells]))


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def _markdown(text: str) -> str:
    """Escape HTML, the signs of Markdown, and what a reader would turn into a link."""
    escaped = re.sub(r"([|\\`*_~$])", r"\\\1", printable(text))
    escaped = "".join(_HTML.get(sign, sign) for sign in escaped)
    # a bracket is part of a link only before one of these; intervals stay as they are
    escaped = re.sub(r"\](?=\s*[(\[:])", r"\\]", escaped)
    return re.sub(r"(?i)\bwww\.", "www&#46;", escaped.replace("://", ":&#47;&#47;"))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(printable(str(one)) for one in value)
    return short(value) if isinstance(value, float) else printable(str(value))
