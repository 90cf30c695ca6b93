"""The code blocks of the README and the documentation, and how they are run.

Every block of Python or shell is run, page by page, from top to bottom, in an empty folder of the
page's own. A comment before a block says more about it:

    <!-- not run: REASON -->          the block is not run, and why
    <!-- file: NAME -->               the block is written to this file
    <!-- output -->                   the block is what the block before it printed to stdout;
                                      a line of three dots stands for any lines
    <!-- run with NEW for OLD -->     the block is run with OLD replaced by NEW, to save time
    <!-- before: COMMAND -->          this shell command is run first

``python tests/documentation.py`` runs all pages and writes what their blocks print into the output
blocks (those without a line of three dots); with names of pages, only those. Figures that a page
shows and that its blocks draw, under the same names, are written anew as well.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = ("python", "sh", "text", "toml", "csv", "r")
_COMMENT = re.compile(r"<!-- (not run|file|output|run with|before):? ?(.*?) ?-->")
_DOTS = "..."


def pages() -> list[Path]:
    """Everything that a reader is shown."""
    return [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


@dataclass
class Block:
    """A fenced block, with the comments that stand before it."""

    line: int  # of the opening fence, from 0
    language: str
    code: str
    comments: list[tuple[str, str]] = field(default_factory=list)

    def comment(self, kind: str) -> str | None:
        return next((text for one, text in self.comments if one == kind), None)

    @property
    def to_run(self) -> bool:
        return (
            self.language in ("python", "sh")
            and self.comment("not run") is None
            and (self.comment("output") is None)
            and self.comment("file") is None
        )

    @property
    def wanted(self) -> str:
        """The code that is run."""
        change = self.comment("run with")
        if change is None:
            return self.code
        new, _, old = change.partition(" for ")
        assert old in self.code, f"nothing to replace: {change}"
        return self.code.replace(old, new)


def blocks(path: Path) -> list[Block]:
    found: list[Block] = []
    comments: list[tuple[str, str]] = []
    inside: Block | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        if inside is not None:
            if line == "```":
                found.append(inside)
                inside, comments = None, []
            else:
                inside.code += line + "\n"
        elif line.startswith("```"):
            inside = Block(number, line[3:].strip(), "", comments)
        elif match := _COMMENT.fullmatch(line.strip()):
            comments.append((match[1], match[2]))
        elif line.strip() and not line.startswith("<!--"):
            comments = []
    assert inside is None, f"{path}:{inside and inside.line + 1}: the block does not end"
    return found


def same(shown: str, printed: str) -> bool:
    """Tell whether a page shows the output; three dots stand for any lines."""
    pieces = [
        re.escape(line.rstrip()) if line != _DOTS else "(.*\n)*?.*"
        for line in shown.rstrip().splitlines()
    ]
    lines = "\n".join(line.rstrip() for line in printed.rstrip().splitlines())
    return re.fullmatch("\n".join(pieces), lines) is not None


def run(path: Path, folder: Path) -> dict[int, str]:
    """Run a page in an empty folder; what its output blocks, by line, should show."""
    names: dict[str, Any] = {"__name__": "__main__"}
    outputs: dict[int, str] = {}
    printed = ""
    for block in blocks(path):
        where = f"{path.relative_to(ROOT)}:{block.line + 1}"
        if (first := block.comment("before")) is not None:
            _shell(first, folder, where)
        if (name := block.comment("file")) is not None:
            (folder / name).write_text(block.code, encoding="utf-8")
        elif block.comment("output") is not None:
            outputs[block.line] = printed
        elif block.to_run:
            run_one = _python if block.language == "python" else _shell
            printed = run_one(block.wanted, folder, where, *([names] if run_one is _python else []))
    return outputs


def _shell(code: str, folder: Path, where: str) -> str:
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join(paths),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "100",
        "MPLBACKEND": "agg",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{where}: exit status {done.returncode}\n{done.stderr}"
    return done.stdout


def _python(code: str, folder: Path, where: str, names: dict[str, Any]) -> str:
    import matplotlib

    matplotlib.use("agg")
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(compile(code, where, "exec"), names)
    return printed.getvalue()


def figures(path: Path) -> list[str]:
    """List the figures that a page shows, as it names them."""
    return re.findall(r"!\[[^]]*\]\(([^)]+)\)", path.read_text(encoding="utf-8"))


def _smaller(drawn: Path, target: Path) -> None:
    """Copy a figure with 64 colours, which halves its size and is not seen."""
    from PIL import Image

    target.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(drawn) as found:
        found.convert("RGB").quantize(64).save(target, "PNG", optimize=True)


def renew(path: Path) -> None:
    """Write what the blocks of a page print into its output blocks, and the figures they draw."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = run(path, Path(folder))
        for name in figures(path):
            if (drawn := Path(folder) / name).exists():
                _smaller(drawn, path.parent / name)
    lines = path.read_text(encoding="utf-8").splitlines()
    for block in sorted(blocks(path), key=lambda one: -one.line):
        if block.line in outputs and _DOTS not in block.code.splitlines():
            end = block.line + 1 + len(block.code.splitlines())
            lines[block.line + 1 : end] = [
                line.rstrip() for line in outputs[block.line].rstrip().splitlines()
            ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for page in [Path(name).resolve() for name in sys.argv[1:]] or pages():
        print(page.relative_to(ROOT))
        renew(page)
