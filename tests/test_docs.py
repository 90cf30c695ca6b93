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
from helpers import built_in
from test_layers import BASE, LAYERS

import fastfed as ff
from fastfed.analysis import summary
from fastfed.model.goals import Goal
from fastfed.model.participations import Participation
from fastfed.model.radii import Radius
from fastfed.model.rewards import Rewards
from fastfed.model.schedules import Schedule
from fastfed.model.spec import KEYS
from fastfed.model.uplinks import Uplink
from fastfed.simulation import rows
from fastfed.storage.manifest import FORMAT
from fastfed.version import ROWS

REFERENCE = ROOT / "docs" / "reference"
PAGES = [str(path.relative_to(ROOT)) for path in pages()]


def text_of(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def hook(name: str) -> ModuleType:
    """Import a script of the site."""
    sys.path.insert(0, str(ROOT / "docs" / "hooks"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def first_cells(text: str) -> set[str]:
    """Return the text in backquotes in the first cells of the tables of a page."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_block_is_run_or_says_why_not() -> None:
    for name in PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"^[ \t]+```", text, re.MULTILINE), "indented blocks are not run"
        for block in blocks(ROOT / name):
            where = f"{name}:{block.line + 1}"
            assert block.language in documentation.LANGUAGES, f"{where}: which language?"
            reason = block.comment("not run")
            assert reason is None or len(reason) > 10, f"{where}: why not?"
            if block.language in ("toml", "csv"):
                assert reason is not None or block.comment("file") is not None, where


@pytest.mark.docs
@pytest.mark.parametrize("name", [name for name in PAGES if blocks(ROOT / name)])
def test_every_block_runs_and_prints_what_is_shown(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Schedule, "families", dict(Schedule.families))  # a page adds to them
    outputs = documentation.run(ROOT / name, tmp_path)
    for block in blocks(ROOT / name):
        if block.line in outputs:
            assert same(block.code, outputs[block.line]), (
                f"{name}:{block.line + 1} shows other output than\n{outputs[block.line]}\n"
                "python tests/documentation.py writes it anew"
            )
    if name == "docs/gallery.md":  # every figure is drawn by the code beside it
        shown = documentation.figures(ROOT / name)
        assert len(shown) > 5
        assert [one for one in shown if not (tmp_path / one).exists()] == []


def test_the_notebook_is_a_page_with_its_outputs() -> None:
    """Every cell is on the page, with tables and a figure that need no network."""
    tour = hook("tour")
    page = tour.markdown(ROOT / "docs" / "tour.ipynb")
    cells = json.loads(tour.TOUR.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        assert "".join(cell["source"]) in page
    silent = [cell for cell in cells if cell["cell_type"] == "code" and not cell["outputs"]]
    assert silent == [], "python docs/hooks/tour.py saves the outputs"
    assert page.count("<table") >= 4
    assert page.count('src="data:image/png;base64,') == 1
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert len(page) < 300_000


def test_the_comparison_of_outputs_would_notice() -> None:
    assert same("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not same("a\n...\nd\n", "a\nb\nc\n")
    assert not same("a\nb\n", "a\nc\n")


def test_every_public_name_has_its_place() -> None:
    for name in ff.__all__:
        pages = [path.name for path in (ROOT / "docs/reference").glob("python*.md")]
        places = [
            page
            for page in pages
            if re.search(rf"^::: fastfed\.{name}$|`fastfed\.{name}`", text_of(page), re.MULTILINE)
        ]
        assert len(places) == 1, (name, places)


def test_links_of_the_first_page_lead_to_files_of_the_repository() -> None:
    page = ROOT / "README.md"
    links = re.findall(r"\]\(([^)#:\s]+)", page.read_text(encoding="utf-8"))
    assert len(links) > 20
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_option_has_its_place() -> None:
    """The page is generated: it must name every option that the help of its command names."""
    generated = hook("generated")
    from typer.main import get_command

    from fastfed.cli.app import app

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


def test_every_column_has_its_place() -> None:
    columns = {*rows.COLUMNS, *summary.SUMMARY_COLUMNS}
    assert columns - first_cells(text_of("columns.md")) == set()


def test_types_of_columns_are_those_of_the_rows() -> None:
    """The tables say what Polars says."""
    questions = ff.Instance.personalised([[0.9, 0.8], [0.1, 0.2]])  # rows with all columns
    result = ff.simulate(questions, ["fedelim", "fedelim0"], delta=0.1, trials=2)
    rows_part, summary_part = text_of("columns.md").split("\n## Summaries\n")
    for part, frame in ((rows_part, result.frame), (summary_part, result.summary([1]))):
        told = {
            name: cells[2].strip()
            for line in part.splitlines()
            if line.startswith("|") and len(cells := line.split("|")) > 4
            for name in re.findall(r"`([^`]+)`", cells[1])
        }
        assert {name: str(kind) for name, kind in frame.schema.items()} == told


def test_every_name_of_a_choice_has_its_place() -> None:
    known = {one.partition(":")[0] for one in first_cells(text_of("names.md"))}
    for family in (Schedule, Radius, Rewards, Goal, Uplink, Participation):
        assert set(built_in(family)) - known == set()


def test_the_picture_shows_every_layer() -> None:
    for layer in (*LAYERS, *BASE):
        picture = (ROOT / "docs" / "figures" / "layers.svg").read_text(encoding="utf-8")
        assert re.search(rf"\b{layer}\b", "".join(re.findall(r"<text[^>]*>[^<]*", picture))), layer


def test_every_key_of_a_spec_file_has_its_place() -> None:
    assert set(KEYS) - first_cells(text_of("files.md")) == set()


def test_versions_of_rows_and_folders_are_the_present_ones() -> None:
    assert f"a *format* (now {FORMAT}), and the rows have a *version* (now {ROWS})" in text_of(
        "files.md"
    )
    newest = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n## ")[2]
    assert f"Rows are version {ROWS}, folders have format {FORMAT}." in newest


def test_version_is_the_same_everywhere() -> None:
    newest = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n## ")[2]
    assert newest.startswith(f"{ff.__version__}\n")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {ff.__version__}\n" in citation


def test_links_lead_from_file_to_file() -> None:
    """Also for whoever reads the files without the site; and those to a heading lead to one."""
    for name in sorted({*PAGES, "CHANGELOG.md", "CODE_OF_CONDUCT.md", "data/README.md"}):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)", text):
            path = (ROOT / name).parent / target
            if path == REFERENCE / "command-line.md":  # which is made with the site
                continue
            assert path.exists(), f"{name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
                slugs = {
                    re.sub(r"[^\w\s-]", "", one).strip().lower().replace(" ", "-")
                    for one in headings
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


def test_pieces_of_files_are_included() -> None:
    """Every include names a section of a file; a formatter once turned them into comparisons."""
    text = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    included = re.findall(r'^--8<-- "([\w/.]+):(\w+)"$', text, re.MULTILINE)
    assert len(included) == text.count("--8") > 5
    for path, section in included:
        assert f"[start:{section}]" in (ROOT / path).read_text(encoding="utf-8")


def test_files_that_a_page_names_are_there() -> None:
    for name in PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        for named in re.findall(r"`((?:fastfed|tests|benchmarks|docs)/[\w/.-]+\.\w+)`", text):
            assert (ROOT / named).exists(), f"{name} names {named}"
