"""Texts and tables of the cheapest schedules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from made_up_trials import CELL, envelope_of, simulated
from scipy import stats

from fastfed.analysis.cheapest import Cheapest
from fastfed.display.cheapest_text import best_table, cheapest_table
from fastfed.display.table import WIDTH
from fastfed.text import digits

RNG = np.random.default_rng


def test_one_row_for_each_cell() -> None:
    pulls, uplinks = simulated(np.random.default_rng(17), 2000, 3)
    one = envelope_of(pulls, uplinks, cell=CELL)
    other = envelope_of(pulls[1:], uplinks[1:], names=("periodic:10", "fedelim"), cell=CELL)
    title, shared, head, *rows = str(Cheapest((one, other))).splitlines()
    assert title == "The cheapest schedule by the cost C of an uplink."
    assert shared == "all rows: here, delta 0.1, 2,000 trials"
    assert head.split() == ["fedelim0", "periodic:10", "fedelim"]
    starts = [digits(piece.low) for piece in one.pieces]
    assert rows[0].split() == starts
    assert rows[1].split() == ["0", digits(other.pieces[1].low)]
    assert rows[2].startswith("A number is the C from which the schedule above it is the cheapest")
    assert str(Cheapest(())) == "no rows yet"


def test_many_winners_have_columns_of_costs() -> None:
    names = [f"periodic:{2**i}" for i in range(12)]
    pulls = np.array([[100.0 * 1.3**i] * 100 for i in range(12)])
    uplinks = np.array([[4000.0 / 2**i] * 100 for i in range(12)])
    found = Cheapest((envelope_of(pulls, uplinks, names=names, cell=CELL),))
    lines = str(found).splitlines()
    assert "C = 0" in lines[2]
    assert "C = 1,000" in lines[2]
    row = lines[3].split()
    assert row[0] == "periodic:1"
    assert row[2] == found.at([10.0])["winner"][0]


def test_long_names_of_winners_have_columns_of_fewer_costs() -> None:
    """Their headings would make the table wider than a screen."""
    pulls, uplinks = simulated(np.random.default_rng(17), 2000, 3)
    names = ("fedelim0", "periodic:10", f"at:{'1,' * 30}10000")
    one = envelope_of(pulls, uplinks, names=names, cell={**CELL, "instance": "x" * 50})
    other = envelope_of(pulls, uplinks, names=names, cell=CELL)
    lines = str(Cheapest((one, other))).splitlines()
    assert max(map(len, lines)) <= WIDTH
    heads = [text.strip() for text in lines[2].split("C = ")[1:]]
    assert heads == ["0", "10", "1,000"]


def test_screen_lists_one_inseparable_schedule_and_counts_the_others() -> None:
    pulls, uplinks = (np.repeat(some, 4, axis=0) for some in simulated(RNG(18), 500, 1))
    pulls = pulls + RNG(19).normal(0, 1, pulls.shape)
    names = ("fedelim", "periodic:10", "periodic:20", "periodic:30")
    best = Cheapest((envelope_of(pulls, uplinks, names=names, cell=CELL),))
    rivals = best.at([1.0])["rivals"][0]
    assert len(rivals) == 3
    few, every = (best_table(best, [1.0], most=most).text().splitlines() for most in (22, None))
    assert few[-2].endswith(f"{rivals[0]} and 2 more")
    assert every[-2].endswith(", ".join(rivals))
    assert few[-1] == "compared over trials that all answered rightly"  # which no trial failed
    same = Cheapest((envelope_of(pulls[[0] * 4], uplinks, names=names, cell=CELL),))
    assert "fedelim (= 3 others)" in best_table(same, [1.0]).text()
    assert f"fedelim (= {', '.join(names[1:])})" in best_table(same, [1.0], most=None).text()


def test_all_pieces_of_a_cell() -> None:
    pulls, uplinks = simulated(np.random.default_rng(17), 2000, 3)
    found = Cheapest((envelope_of(pulls, uplinks, cell=CELL),))
    title, shared, head, *rows = cheapest_table(found, every=True).text().splitlines()
    assert title == "The cheapest schedule by the cost C of an uplink."
    assert shared == "all rows: here, delta 0.1, 2,000 trials"
    assert head.split("  ")[-1].strip() == "not separable"
    pieces = found.envelopes[0].pieces
    for row, piece in zip(rows, pieces, strict=False):
        assert row.split()[0] == digits(piece.low)
        assert piece.winner in row
        for one in piece.rivals:
            assert one.schedule in row
    before = pieces[0].high_interval
    assert before is not None
    assert f"[{digits(before[0])}, {digits(before[1])}] {pieces[1].winner}" in " ".join(
        rows[1].split()
    )
    assert rows[len(pieces)].startswith("95 %: interval of the C at which")
    assert str(found.envelopes[0]) == cheapest_table(found, every=True).text()


def test_table_for_given_costs() -> None:
    pulls, uplinks = simulated(np.random.default_rng(18), 500, 3)
    given = ([*pulls, pulls[0]], [*uplinks, uplinks[0]])
    names = ("fedelim0", "periodic:10", "fedelim", "periodic:1")
    cells = (CELL, {**CELL, "delta": 0.01})
    best = Cheapest(tuple(envelope_of(*given, names=names, cell=cell) for cell in cells))
    above, head, *rows, below = best_table(best, [0.0, 1000.0]).text().splitlines()
    assert below == "compared over trials that all answered rightly"
    assert above == "all rows: here"
    assert head.split()[:3] == ["delta", "C", "cheapest"]
    assert [row.split()[:3] for row in rows] == [
        ["0.1", "0", "fedelim0"],
        ["0.1", "1,000", "fedelim"],
        ["0.01", "0", "fedelim0"],
        ["0.01", "1,000", "fedelim"],
    ]
    assert "fedelim0 (= periodic:1)" in rows[0]
    margin = pulls[1] - pulls[0]
    assert f"{margin.mean():.1f} ± {stats.sem(margin):.1f}" in rows[0]
    assert rows[0].endswith("none")
    assert best_table(Cheapest(()), [1.0]).text() == "no rows yet"


def test_long_names_in_the_table_stay_different() -> None:
    """Three columns of schedules are shortened to a screen; papers and programs get whole names."""
    pulls, uplinks = simulated(np.random.default_rng(18), 500, 3)
    long = [
        f"at:1,5,25,125,625,3125,15625,78125,390625,{last},5000000" for last in (1953125, 1953126)
    ]
    names = ("fedelim0", *long)
    cells = ({**CELL, "instance": "x" * 60}, CELL)
    best = Cheapest(tuple(envelope_of(pulls, uplinks, names=names, cell=cell) for cell in cells))
    table = best_table(best, [0.0, 1000.0])
    lines = table.text().splitlines()
    assert max(map(len, lines)) <= WIDTH
    first, second = (cell for cell in table.columns if cell.head in ("cheapest", "next best"))
    assert {*first.cells, *second.cells} >= set(long)
    assert all(name in table.latex() for name in long)


def test_a_winner_over_choices_has_columns_for_them() -> None:
    pulls, uplinks = simulated(np.random.default_rng(18), 500, 3)
    made = {
        "fedelim0, paper": {"schedule": "fedelim0", "radius": "paper"},
        "fedelim0, mixture": {"schedule": "fedelim0", "radius": "mixture"},
        "fedelim, paper": {"schedule": "fedelim", "radius": "paper"},
    }
    cell = {key: value for key, value in CELL.items() if key != "radius"}
    one = replace(envelope_of(pulls, uplinks, names=tuple(made), cell=cell), over=made)
    table = best_table(Cheapest((one,)), [0.0])
    shown = {column.head: column.cells[0] for column in table.columns}
    assert (shown["cheapest"], shown["radius"]) == ("fedelim0", "paper")
    assert shown["next best"] in ("fedelim0, mixture", "fedelim")
