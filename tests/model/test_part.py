"""Radius, goal and uplink by name: through a spec, a folder and the command line, and back."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from helpers import built_in

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.model.cell import Cell
from fastfed.model.choices import (
    CHOICES,
    DEFAULTS,
    ChoiceFilters,
    Choices,
    ChosenNames,
    ChosenParts,
    GridChoices,
    base_of,
    choices_text,
    not_default,
)
from fastfed.model.spec import Spec

CELL = Cell("a", "digest", 0.1, 1.0, 0, "auto")


def test_only_what_differs_from_the_paper_is_said() -> None:
    assert choices_text(DEFAULTS) == ""
    assert not_default({**DEFAULTS, "goal": "top:3"}) == {"goal": "top:3"}
    assert choices_text({"radius": "mixture", "uplink": "dither:1"}) == (
        ", radius mixture, uplink dither:1"
    )


@pytest.mark.parametrize("kind", CHOICES)
def test_the_table_of_choices_agrees_with_their_classes(kind: str) -> None:
    one, base = CHOICES[kind], base_of(kind)
    assert one.plural == base.plural
    assert list(one.grammars) == [base.families[name].grammar for name in built_in(base)]
    for name in one.kernels:
        assert str(base.parse(name)) == name


def test_every_class_of_choices_has_every_choice() -> None:
    for typed in (Choices, ChoiceFilters, ChosenNames, ChosenParts):
        assert list(typed.__annotations__) == list(CHOICES)
    assert list(GridChoices.__annotations__) == [one.plural for one in CHOICES.values()]


@pytest.mark.parametrize("name", list(DEFAULTS))
def test_a_choice_is_part_of_a_cells_identity(name: str) -> None:
    other = Cell("a", "digest", 0.1, 1.0, 0, "auto", **{name: "other"})  # type: ignore[arg-type]
    assert other.id != CELL.id
    assert other.names[name] == "other"
    assert f"{name} other" in str(other)


def test_a_spec_writes_down_what_is_not_usual() -> None:
    usual = Spec.of({"goal": ["best"], "uplink": "exact", "radius": ["paper"]})
    assert usual == Spec.of({})
    assert not set(usual.to_dict()) & set(DEFAULTS)
    several = Spec.of({"radius": ["paper", "mixture"]})
    assert Spec.of(several.to_dict()) == several


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("goal", "bset", "goal 'bset' (did you mean 'best'?): must be one of best"),
        ("goal", [], "no goals: give at least one, as in best"),
        ("uplink", [], "no uplinks: give at least one, as in exact"),
    ],
)
def test_bad_choices_are_named(kind: str, given: object, message: str) -> None:
    with pytest.raises(ff.InputError) as caught:
        Spec.of({kind: given})
    assert str(caught.value).startswith(message)


def test_objects_and_names_are_the_same_choice(tmp_path: Path) -> None:
    means = [[0.9], [0.1]]
    by_name = ff.simulate(means, delta=0.1, trials=5, goal="best", uplink="exact")
    by_object = ff.simulate(means, delta=0.1, trials=5, goal=ff.Best(), uplink=ff.Exact())
    assert by_name == by_object
    kept = by_object.save(tmp_path / "kept")
    assert kept.replay(3, goal="best", uplink="exact").row == by_name.frame.row(3, named=True)
    with pytest.raises(ff.InputError, match="goal 'wrst'"):
        kept.replay(3, goal="wrst")


def test_a_saved_result_keeps_its_radius(tmp_path: Path) -> None:
    """The folder's spec names the radius, so that a sweep with it finds the rows there."""
    result = ff.simulate([[0.9], [0.1]], delta=0.1, trials=5, radius="mixture")
    result.save(tmp_path)
    assert Spec.of(ff.open_sweep(tmp_path)._record.spec.to_dict()).radius == ["mixture"]


# What is shown of rows with several choices


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with three goals, two radii and trials that err."""
    folder = tmp_path_factory.mktemp("several") / "made"
    tied = ff.Instance([[0.9, 0.2], [0.3, 0.7], [-0.4, 0.1]], name="small")
    ff.sweep(
        instances=[tied],
        deltas=[0.1],
        sigma=0.3,
        schedules=["fedelim"],
        trials=60,
        goals=["best", "threshold:0.4,0.05", "threshold:0.45,0.1"],
        radii=["paper", "mixture"],
        out=folder,
        progress=False,
    )
    return folder


def test_bounds_on_the_page_are_those_of_the_cell(several: Path, tmp_path: Path) -> None:
    sweep = ff.open_sweep(several)
    text = sweep.report(tmp_path / "page.html").read_text(encoding="utf-8")
    held = list(sweep._trials.held())
    found = {
        round(float(ff.bounds(sweep.instances["small"], 0.1, 0.0, cell.sigma, **cell.choices).T), 3)
        for cell in held
    }
    assert len(found) == len(held) == 6
    shown = {round(float(one), 3) for one in re.findall(r'"T": ?([0-9.e+]+)', text)}
    assert shown == {float(f"{one:.9g}") for one in found}
    assert len(re.findall(r'"lower": ?[0-9]', text)) == 2  # Theorem 3 is about the best arm


def test_guides_of_a_figure_are_those_of_the_cell() -> None:
    import polars as pl

    from fastfed.display.guides import bound_lines

    instance = ff.Instance([[0.9, 0.2], [0.3, 0.7], [-0.4, 0.1]])
    chosen = {"radius": "mixture", "goal": "eps:0.1", "uplink": "dither:1"}
    rows = {"instance": "a", "schedule": "fedelim", "delta": [0.1, 0.01], "sigma": 1.0}
    found = bound_lines(pl.DataFrame(rows | chosen | {"cost": 0.0}), {"a": instance})
    lines = {line.label: line for line in found}
    expected = ff.bounds(instance, [0.01, 0.1], 0.0, 1.0, **chosen).T  # type: ignore[arg-type]
    assert lines["T (fedelim0, pulls)"].y == pytest.approx(expected.tolist())
    assert "lower bound (pulls)" not in lines


def test_ties_that_eps_allows_have_a_page_and_bounds(tmp_path: Path) -> None:
    tied = ff.Instance([[0.5, 0.2], [0.5, 0.1], [0.0, -0.3]])
    done = ff.simulate(tied, ["fedelim"], delta=0.1, trials=4, goal="eps:0.2")
    assert done.report(tmp_path / "page.html").exists()


def test_wrong_rows_are_asked_for_by_any_spelling(several: Path) -> None:
    sweep = ff.open_sweep(several)
    some = sweep.wrong(goal="threshold:0.40,0.05", radius="mixture:1e3")
    assert len(some) > 0
    assert some["goal"].unique().to_list() == ["threshold:0.4,0.05"]
    assert some["radius"].unique().to_list() == ["mixture"]
    assert len(some) < len(sweep.wrong(goal="threshold:0.4,0.05")) < len(sweep.wrong())
    for which in ({"goal": "top:1"}, {"uplink": "round:0.1"}, {"delta": 0.7}):
        with pytest.raises(ff.InputError, match="the rows have"):
            sweep.wrong(**which)  # type: ignore[arg-type]


def test_the_story_that_is_suggested_can_be_told(
    several: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["replay", str(several), "--wrong"]) == 0
    shown = capsys.readouterr().out
    law, same, head = shown.splitlines()[:3]
    assert law.startswith("rewards: ")
    assert same.startswith("all rows")
    assert head.split()[:2] == ["radius", "goal"]
    command = shlex.split(shown.splitlines()[-1])[1:]
    assert cli.run(command) == 0
    assert "not every answer right" in capsys.readouterr().out


def test_numbers_of_numpy_are_numbers() -> None:
    assert str(ff.Dither(np.int64(1))) == str(ff.Dither(np.float32(1))) == "dither:1"


def test_one_cost_is_as_good_as_a_list_and_a_bad_one_says_of_what() -> None:
    result = ff.simulate([[0.9], [0.1]], delta=0.1, trials=5)
    assert result.summary(bit_costs=0.1).equals(result.summary(bit_costs=[0.1]))
    assert result.summary([], bit_costs=[0.1]).equals(result.summary(bit_costs=[0.1]))
    assert result.summary([10], bit_costs=[]).equals(result.summary([10]))
    for none in ({"costs": []}, {"bit_costs": []}, {"costs": [], "bit_costs": []}):
        with pytest.raises(ff.InputError, match="no costs: give at least one"):
            result.summary(**none)
    assert result.summary(costs=3).equals(result.summary(costs=[3]))
    with pytest.raises(ff.InputError, match="the cost of a bit must lie"):
        result.summary(bit_costs=[-1])
    with pytest.raises(ff.InputError, match="the cost of an uplink must lie"):
        result.summary(costs=[-1])
