"""The documentation: its code runs, its names are those of the package, its links lead somewhere.

`mkdocs build --strict`, which `.ci/run` runs, checks the links of the site; here are the checks
that it does not make.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import documentation
import pytest
from documentation import ROOT, blocks, pages, same
from test_layers import BASE, ROOMS

import fastfed as ff
from fastfed.engine import rows
from fastfed.goals import FAMILIES as GOALS
from fastfed.problem.rewards import KINDS as LAWS
from fastfed.problem.schedule import KINDS as SCHEDULES
from fastfed.radius import NAMES as RADII
from fastfed.statistics import summary
from fastfed.sweeps.manifest import FORMAT
from fastfed.sweeps.spec import SPEC_KEYS
from fastfed.uplinks import FAMILIES as UPLINKS

REFERENCE = ROOT / "docs" / "reference"
PAGES = [str(path.relative_to(ROOT)) for path in pages()]


def text_of(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def hook(name: str) -> ModuleType:
    """A script of the site."""
    sys.path.insert(0, str(ROOT / "docs" / "hooks"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def first_cells(text: str) -> set[str]:
    """What stands in backquotes in the first cells of the tables of a page."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize("name", PAGES)
def test_every_block_is_run_or_says_why_not(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"^[ \t]+```", text, re.MULTILINE), "indented blocks are not run"
    for block in blocks(ROOT / name):
        where = f"{name}:{block.line + 1}"
        assert block.language in documentation.LANGUAGES, f"{where}: which language?"
        reason = block.comment("not run")
        assert reason is None or len(reason) > 10, f"{where}: why not?"
        if block.language in ("toml", "csv"):
            assert reason is not None or block.comment("file") is not None, where


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in PAGES if blocks(ROOT / name)])
def test_every_block_runs_and_prints_what_is_shown(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastfed.problem.schedule.KINDS", dict(SCHEDULES))  # a page adds to them
    outputs = documentation.run(ROOT / name, tmp_path)
    for block in blocks(ROOT / name):
        if block.line in outputs:
            assert same(block.code, outputs[block.line]), (
                f"{name}:{block.line + 1} shows other output than\n{outputs[block.line]}\n"
                "python tests/documentation.py writes it anew"
            )


def test_the_comparison_of_outputs_would_notice() -> None:
    assert same("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not same("a\n...\nd\n", "a\nb\nc\n")
    assert not same("a\nb\n", "a\nc\n")


@pytest.mark.parametrize("name", ff.__all__)
def test_every_public_name_has_its_place(name: str) -> None:
    assert re.search(
        rf"^::: fastfed\.{name}$|`fastfed\.{name}`", text_of("python.md"), re.MULTILINE
    ), name


def test_every_option_has_its_place() -> None:
    """The page is generated: it must name every option that the help of its command names."""
    generated = hook("generated")
    from typer.main import get_command

    from fastfed.cli import app

    page = generated.command_line()
    sections = {part.splitlines()[0]: part for part in page.split("\n## ")[1:]}
    commands = generated.commands(get_command(app))
    assert [name for name, _ in commands] == list(sections)
    assert {"fastfed sweep", "fastfed movielens build"} < set(sections)
    for name, command in commands:
        for parameter in command.params:
            for option in parameter.opts if parameter.param_type_name == "option" else ():
                assert f"| `{option}" in sections[name], f"{name} {option}"
        assert len(command.help) > 20, name


@pytest.mark.parametrize("column", [*rows.COLUMNS, *summary.COLUMNS])
def test_every_column_has_its_place(column: str) -> None:
    assert column in first_cells(text_of("columns.md"))


def test_types_of_columns_are_those_of_the_rows() -> None:
    """The tables say what Polars says."""
    result = ff.simulate([[0.9], [0.1]], ["fedelim", "fedelim0"], delta=0.1, trials=2)
    rows_part, summary_part = text_of("columns.md").split("\n## Summaries\n")
    for part, frame in ((rows_part, result.frame), (summary_part, result.summary([1]))):
        told = {
            name: cells[2].strip()
            for line in part.splitlines()
            if line.startswith("|") and len(cells := line.split("|")) > 4
            for name in re.findall(r"`([^`]+)`", cells[1])
        }
        assert {name: str(kind) for name, kind in frame.schema.items()} == told


@pytest.mark.parametrize("name", [*SCHEDULES, *RADII, *LAWS, *GOALS, *UPLINKS])
def test_every_name_of_a_choice_has_its_place(name: str) -> None:
    assert name in {one.partition(":")[0] for one in first_cells(text_of("names.md"))}


@pytest.mark.parametrize("room", [*ROOMS, *BASE])
def test_the_picture_shows_every_room(room: str) -> None:
    picture = (ROOT / "docs" / "figures" / "rooms.svg").read_text(encoding="utf-8")
    assert re.search(rf"\b{room}\b", "".join(re.findall(r"<text[^>]*>[^<]*", picture))), room


@pytest.mark.parametrize("key", SPEC_KEYS)
def test_every_key_of_a_spec_file_has_its_place(key: str) -> None:
    assert key in first_cells(text_of("files.md"))


def test_versions_of_rows_and_folders_are_the_present_ones() -> None:
    assert (
        f"a *format* (now {FORMAT}), and the rows have a *version* (now {rows.VERSION})"
        in text_of("files.md")
    )
    unreleased = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n## ")[2]
    assert f"Rows are version {rows.VERSION}, folders have format {FORMAT}." in unreleased


@pytest.mark.parametrize("name", sorted({*PAGES, "CHANGELOG.md", "data/README.md"}))
def test_links_lead_from_file_to_file(name: str) -> None:
    """Also for whoever reads the files without the site; and those to a heading lead to one."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)", text):
        path = (ROOT / name).parent / target
        if path == REFERENCE / "command-line.md":  # which is made with the site
            continue
        assert path.exists(), f"{name}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {
                re.sub(r"[^\w\s-]", "", one).strip().lower().replace(" ", "-") for one in headings
            }
            assert anchor[1:] in slugs, f"{name}: {target}{anchor}"


def test_pages_that_the_code_names_are_there() -> None:
    """Docstrings and messages send readers to pages of the documentation."""
    sources = [
        path
        for folder in ("fastfed", "tests", "benchmarks", "data")
        for path in (ROOT / folder).rglob("*.py")
    ]
    named = {
        (path.relative_to(ROOT).as_posix(), page)
        for path in sources
        for page in re.findall(
            r"\bdocs/[\w/-]+\.(?:md|png|svg|ipynb)", path.read_text(encoding="utf-8")
        )
    }
    assert len(named) > 3
    for source, page in sorted(named):
        assert (ROOT / page).exists(), f"{source} names {page}"


def test_verdicts_are_written_between_their_markers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = hook("claims")
    page = tmp_path / "paper.md"
    page.write_text(f"a\n{claims.BEGIN}\nformer\n{claims.END}\nb\n")
    monkeypatch.setattr(claims, "PAGE", page)
    (tmp_path / "claims.json").write_text(
        json.dumps(
            {
                "trials": {"synthetic": 1000},
                "claims": [
                    {"key": "one", "claim": "A | B", "where": "Theorem 1", "verdict": "holds"}
                ],
            }
        )
    )
    claims.main(str(tmp_path))
    text = page.read_text()
    assert "| A \\| B | Theorem 1 | holds |" in text
    assert "1,000 of synthetic" in text
    assert "former" not in text
    assert text.startswith(f"a\n{claims.BEGIN}\n")
    assert text.endswith(f"{claims.END}\nb\n")
    assert claims.BEGIN in (ROOT / "docs" / "explanation" / "paper.md").read_text(encoding="utf-8")
