"""A real browser for the pages' tests: opened without a network, and everything it says noted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason=("Playwright is not installed: pip install 'fastfed[browser]'")
)

BROWSER = next(
    filter(
        None,
        map(
            shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
        ),
    ),
    None,
)
NEEDS_BROWSER = pytest.mark.skipif(
    BROWSER is None,
    reason=(
        "no Chromium is installed (apt-get install chromium): the page is not tested in a browser"
    ),
)

PATIENCE = 180_000  # milliseconds, also on a machine that has much else to do

EVIL = "<script>alert(1)</script> \"q\" 'r' & \x1b[31m <img src=x onerror=alert(2)> " + "x" * 300
"""A name that would like to be markup, and is too long besides."""


def launched() -> Iterator[Any]:
    """Launch the browser, for a fixture."""
    with playwright.sync_playwright() as started:
        # as root, as in containers, Chromium starts only without its sandbox
        arguments = ["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else []
        opened = started.chromium.launch(executable_path=BROWSER, args=arguments, timeout=PATIENCE)
        yield opened
        opened.close()


class Opened:
    """A page, and everything that it said or asked for."""

    def __init__(
        self, browser: Any, path: Path, width: int, ready: str = "#trade-off svg", **options: Any
    ) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, offline=True, accept_downloads=True, **options
        )
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append("dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.resolve().as_uri())
        self.page.wait_for_selector(ready)

    def rows(self, table: str = "table") -> list[list[str]]:
        found: list[list[str]] = self.page.evaluate(
            "id => [...document.querySelectorAll(`#${id} tbody tr`)].map("
            "row => [...row.cells].map(cell => cell.textContent))",
            table,
        )
        return found

    def choose(self, label: str, place: int) -> None:
        self.page.locator("#choices label", has_text=label).locator("select").select_option(
            index=place
        )

    def type_cost(self, cost: str) -> None:
        self.page.fill("#cost", cost)
