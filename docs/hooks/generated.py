"""Pages that are made when the site is built: the command line, and files that lie elsewhere.

The reference of the command line comes from the Typer application itself, so no option can be
missing from it. CONTRIBUTING.md and its neighbours are pages of the site, too. Links in them and
to them are written as they lead from file to file in the repository, and turned for the site.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]

ELSEWHERE = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "code-of-conduct.md": "CODE_OF_CONDUCT.md",
    "security.md": "SECURITY.md",
    "data.md": "data/README.md",
}
"""Pages of the site that are files of the repository."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to the files; MkDocs calls this after it has listed them."""
    made = {"reference/command-line.md": command_line()}
    made |= {page: from_elsewhere(source) for page, source in ELSEWHERE.items()}
    for page, content in made.items():
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links to files into links to pages of the site; MkDocs calls this for all pages."""
    here = posixpath.dirname(page.file.src_uri)
    pages = {path: name for name, path in ELSEWHERE.items()}

    def turned(found: re.Match[str]) -> str:
        target = pages.get(posixpath.normpath(posixpath.join("docs", here, found[1])))
        return found[0] if target is None else f"]({posixpath.relpath(target, here or '.')}"

    return re.sub(r"\]\(([^)#\s:]+)", turned, markdown)


def from_elsewhere(source: str) -> str:
    """Turn a file of the repository into a page, with links to pages where there are such."""
    pages = {path: page for page, path in ELSEWHERE.items()}

    def turned(found: re.Match[str]) -> str:
        target = found[2].removeprefix("docs/")
        return f"[{found[1]}]({pages.get(target, target)}{found[3] or ''})"

    text = (ROOT / source).read_text(encoding="utf-8")
    return re.sub(r"\[([^]\[]+)\]\(([^)#\s:]+)(#[^)\s]*)?\)", turned, text)


def command_line() -> str:
    """Write the reference of the command line, in Markdown."""
    from typer.main import get_command

    from fastfed.cli.app import app

    lines = [
        "# Command line",
        "",
        "This page is made from the commands themselves; `fastfed COMMAND --help` shows the same. "
        "The default of an option stands in square brackets at the end of its description. "
        "Options that take a LIST accept commas, repetition and, for numbers, "
        "[ranges](names.md#ranges-of-numbers).",
        "",
        "Results go to stdout, progress and errors to stderr. The exit status is 0 on success, "
        "1 if a sweep failed in part or a check is violated, 2 if the input or a file of a folder "
        "was refused, and 130 after Ctrl-C.",
    ]
    for name, command in commands(get_command(app)):
        lines += ["", f"## {name}", "", *_command(name, command)]
    return "\n".join(lines) + "\n"


def commands(group: Any, path: str = "fastfed") -> list[tuple[str, Any]]:
    """Every command with its full name, those of subgroups included."""
    found: list[tuple[str, Any]] = []
    for name, command in group.commands.items():
        here = f"{path} {name}"
        found += commands(command, here) if hasattr(command, "commands") else [(here, command)]
    return found


def _command(name: str, command: Any) -> list[str]:
    text, _, examples = inspect.cleandoc(command.help or "").partition("\b\n")
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [
        one
        for one in command.params
        if one.param_type_name == "option" and not getattr(one, "hidden", False)
    ]
    usage = " ".join(
        [
            name,
            *(
                f"{one.metavar or one.name.upper()}{'...' if one.nargs == -1 else ''}"
                for one in arguments
            ),
            "[OPTIONS]",
        ]
    )
    lines = [text.strip(), "", "```text", usage, "```"]
    if arguments:
        lines += ["", "| argument | meaning |", "|---|---|"]
        lines += [_row(f"`{one.metavar or one.name.upper()}`", one.help) for one in arguments]
    if options:
        lines += ["", "| option | meaning |", "|---|---|"]
        lines += [_row(_names(one), _meaning(one)) for one in options]
    if examples:
        lines += [
            "",
            "Examples:",
            "",
            "```text",
            *(line.strip() for line in examples.splitlines()[1:]),
            "```",
        ]
    return lines


def _names(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    return ", ".join(f"`{name}{value}`" for name in option.opts)


def _meaning(option: Any) -> str:
    default = option.default
    shown = "" if default in (None, False, ()) or option.is_flag else f" [{default}]"
    meaning = option.help or ""
    return f"{meaning}{shown}"


def _row(name: str, meaning: str | None) -> str:
    return f"| {name} | {(meaning or '').replace('|', chr(92) + '|')} |"
