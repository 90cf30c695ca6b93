"""The picture of the report in the documentation: ``python tests/report_picture.py`` draws it anew.

It needs Chromium, and shows the page of the default sweep from its title to its last figure.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path

from browsing import Opened, launched

import fastfed as ff

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "report.png"
WIDTH = 1300


def draw(target: Path, trials: int = 10_000) -> None:
    """Sweep, report, open the page and take its picture."""
    with tempfile.TemporaryDirectory() as place, contextmanager(launched)() as browser:
        sweep = ff.sweep(trials=trials, out=Path(place) / "results")
        opened = Opened(browser, sweep.report(Path(place) / "report.html"), WIDTH)
        charts = opened.page.locator("#charts").bounding_box()
        height = charts["y"] + charts["height"] + 12
        opened.page.screenshot(
            path=target, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}
        )


if __name__ == "__main__":
    draw(PICTURE)
