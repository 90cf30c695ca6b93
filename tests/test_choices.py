"""Radius, goal and uplink by name: through a spec, a folder and the command line, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastfed as ff
from fastfed import cli
from fastfed.choices import USUAL, unusual, unusual_text
from fastfed.commands import options
from fastfed.sweeps.grid import Cell
from fastfed.sweeps.spec import make_spec

CELL = Cell("a", "digest", 0.1, 1.0, 0, "auto")


def test_only_what_differs_from_the_paper_is_said() -> None:
    assert unusual_text(USUAL) == ""
    assert unusual({**USUAL, "goal": "top:3"}) == {"goal": "top:3"}
    assert unusual_text({"radius": "mixture", "uplink": "dither:1"}) == (
        ", radius mixture, uplink dither:1")


@pytest.mark.parametrize("name", list(USUAL))
def test_a_choice_is_part_of_a_cells_identity(name: str) -> None:
    other = Cell("a", "digest", 0.1, 1.0, 0, "auto", **{name: "other"})  # type: ignore[arg-type]
    assert other.id != CELL.id
    assert other.names[name] == "other"
    assert f"{name} other" in str(other)


def test_a_spec_writes_down_what_is_not_usual() -> None:
    usual = make_spec({"goal": ["best"], "uplink": "exact", "radius": ["paper"]})
    assert usual == make_spec({})
    assert not set(usual.to_dict()) & set(USUAL)
    several = make_spec({"radius": ["paper", "mixture"]})
    assert make_spec(several.to_dict()) == several


@pytest.mark.parametrize(("kind", "given", "message"), [
    ("goal", "bset", "goal 'bset' (did you mean 'best'?): must be one of best"),
    ("goal", 7, "goal 7: must be one of best"),
    ("goal", "best:1", "goal 'best:1': best takes no option"),
    ("goal", [], "no goals: give at least one, as in best"),
    ("uplink", "exakt", "uplink 'exakt' (did you mean 'exact'?): must be one of exact"),
    ("uplink", "exact:1", "uplink 'exact:1': exact takes no option"),
    ("uplink", [], "no uplinks: give at least one, as in exact"),
])
def test_bad_choices_are_named(kind: str, given: object, message: str) -> None:
    with pytest.raises(ff.InputError) as caught:
        make_spec({kind: given})
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


def test_numbers_belong_to_the_goal_before_them() -> None:
    assert options.goals(["threshold:0.5,0.05,best", "top:2"]) == [
        "threshold:0.5,0.05", "best", "top:2"]
    assert options.goals(None) is None


def test_the_command_line_names_a_bad_goal(capsys: pytest.CaptureFixture[str], tmp_path: Path
                                           ) -> None:
    assert cli.run(["sweep", "--goal", "bets", "--out", str(tmp_path / "x")]) == 2
    assert "goal 'bets' (did you mean 'best'?)" in capsys.readouterr().err


def test_a_saved_result_keeps_its_radius(tmp_path: Path) -> None:
    """The folder's spec names the radius, so that a sweep with it finds the rows there."""
    result = ff.simulate([[0.9], [0.1]], delta=0.1, trials=5, radius="mixture")
    result.save(tmp_path)
    assert make_spec(ff.open_sweep(tmp_path)._record.spec.to_dict()).radii == ("mixture",)
