"""The notebook as a page of the site: cells and saved outputs in Markdown, without a network.

MkDocs calls `on_files` and `on_page_markdown`. ``python docs/hooks/tour.py`` runs the notebook
and saves its outputs in it.
"""

from __future__ import annotations

import base64
import io
import json
import posixpath
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

TOUR = Path(__file__).resolve().parents[1] / "tour.ipynb"
PAGE = "tour.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page; the notebook itself stays beside it, to be downloaded."""
    files.append(File.generated(config, PAGE, content=markdown(TOUR)))
    return files


def on_page_markdown(text: str, page: Page, **_: Any) -> str:
    """Turn links to the notebook into links to its page, except on that page."""
    here = posixpath.dirname(page.file.src_uri)
    if page.file.src_uri == PAGE:
        return text

    def turned(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, found[1]))
        return f"]({posixpath.relpath(PAGE, here or '.')}" if target == TOUR.name else found[0]

    return re.sub(r"\]\(([^)#\s:]+)", turned, text)


def markdown(path: Path) -> str:
    """Write a notebook in Markdown."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    first, *rest = [part for cell in notebook["cells"] for part in _cell(cell)]
    where = f"This page is a notebook: [{path.name}]({path.name})."
    return "\n\n".join([first, where, *rest]) + "\n"


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield _output(output)


def _output(output: dict[str, Any]) -> str:
    """Show the richest form of an output: a picture, a table, or text."""
    shown = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in shown:
        data = "".join(shown["image/png"]).replace("\n", "")
        return f'<img alt="The figure that this cell draws" src="data:image/png;base64,{data}">'
    if "text/html" in shown:
        lines = "".join(shown["text/html"]).splitlines()
        # a blank line would end the block
        inside = "\n".join(line for line in lines if line.strip())
        return f'<div class="output">\n{inside}\n</div>'
    return f"```text\n{''.join(shown['text/plain']).rstrip()}\n```"


def renew() -> None:
    """Run the notebook in an empty folder and save its outputs, with small pictures."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(TOUR, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.clear()  # the times of the run
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = _smaller(output.data["image/png"])
    text = nbformat.writes(notebook)
    TOUR.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def _smaller(picture: str) -> str:
    """Write a picture with 64 colours, which a figure does not exceed."""
    from PIL import Image

    small = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(picture))) as found:
        found.convert("RGB").quantize(64).save(small, "PNG", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


if __name__ == "__main__":
    sys.exit(renew())
