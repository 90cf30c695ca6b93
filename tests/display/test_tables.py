"""Printed tables: rows that can be told apart, one notation, nothing constant said twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_trials import summary_frame

import fastfed as ff
from fastfed.display.bounds_tables import bounds_text
from fastfed.display.legends import SUMMARY
from fastfed.display.table import MOST, Column, Table, table_text
from fastfed.display.tables import summary_table
from fastfed.display.wording import told_apart
from fastfed.text import number, parameters, plain, printable, rate

pytestmark = pytest.mark.usefixtures("terminal")


def summary_text(*arguments: Any, **options: Any) -> str:
    return summary_table(*arguments, **options).text()


def body(text: str) -> list[str]:
    """Return the rows below the heading of the table, without the legend."""
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if "total ± sem" in line)
    return [line for line in lines[head + 1 :] if line not in SUMMARY.values()]


# Rows


@pytest.mark.parametrize(
    ("column", "one", "other"),
    [
        ("sigma", 1.0, 2.0),
        ("sigma", 1.0, 1.0000001),
        ("cost", 1000.0, 1001.0),
        ("delta", 0.1, 0.100001),
        ("instance", "scaled:synthetic,0.5", "scaled:synthetic,0.25"),
        ("instance", "x" * 60 + "a" + "y" * 60, "x" * 60 + "b" + "y" * 60),
        (
            "schedule",
            "at:" + ",".join(map(str, range(1, 90))) + ",1000",
            "at:" + ",".join(map(str, range(1, 89))) + ",91,1000",
        ),
        ("schedule", "exponential:1.0123456789012345", "exponential:1.0123456789012344"),
        ("trials", 1427, 1000),
        ("radius", "paper", "mixture:5000"),
        ("goal", "top:2", "top:3"),
        ("uplink", "dither:1", "round:0.1"),
    ],
)
def test_rows_that_differ_can_be_told_apart(column: str, one: object, other: object) -> None:
    rows = body(summary_text(summary_frame({column: one}, {column: other})))
    assert len(set(rows)) == 2
    assert max(map(len, rows)) <= 100


@pytest.mark.parametrize("column", ["delta", "cost", "trials", "schedule"])
def test_a_long_table_is_as_if_everyits_rows_were_written(column: str) -> None:
    """A value that differs far below the screen has its column, and cells are of the first rows."""
    last = {"delta": 0.05, "cost": 20.0, "trials": 7, "schedule": "periodic:9"}[column]
    frame = summary_frame(*[{"schedule": "fedelim"}] * 60, {column: last})
    found, whole = (summary_table(frame, most=most) for most in (20, None))
    assert {"cost": "C"}.get(column, column) in [one.head for one in found.columns]
    assert [one.head for one in found.columns] == [one.head for one in whole.columns]
    assert all(
        one.cells == every.cells[:20]
        for one, every in zip(found.columns, whole.columns, strict=True)
    )
    assert "20 of 61 rows; all of them: --all" in found.text().splitlines()


def test_what_is_constant_is_said_once_above() -> None:
    text = summary_text(summary_frame({"schedule": "fedelim"}, {"schedule": "fedelim0"}))
    above, head, *rows = text.splitlines()
    assert rows.pop() == SUMMARY["x FE0"]
    assert above == "all rows: here, delta 0.1, C 10, 1,000 trials"  # and no default
    assert head.split()[0] == "schedule"
    assert all("here" not in row for row in rows)


def test_trials_have_a_column_where_they_differ() -> None:
    rows = body(summary_text(summary_frame({"trials": 1427}, {"trials": 1000})))
    assert [row.split()[1] for row in rows] == ["1,427", "1,000"]


def test_value_error_cost_and_rate_in_one_notation() -> None:
    text = summary_text(summary_frame({"cost": 1000.0}, {"cost": 0.0}))
    assert "473,427 ± 1,260" in text
    assert "0.12 [0.033, 0.31]" in text
    assert [row.split()[0] for row in body(text)] == ["1,000", "0"]
    assert "e+" not in text


def test_law_stands_above_the_table() -> None:
    instances = {
        "here": ff.Instance([[0.9], [0.1]], rewards=ff.Bernoulli()),
        "there": ff.Instance([[0.9], [0.1]], rewards=ff.Gaussian(0.5)),
    }
    one = summary_text(summary_frame({}), instances).splitlines()
    assert one[0] == "rewards: Bernoulli()"
    two = summary_text(summary_frame({}, {"instance": "there"}), instances).splitlines()
    assert two[:2] == ["rewards: Bernoulli() (here)", "rewards: Gaussian(sigma=0.5) (there)"]


def test_trials_that_did_not_end_are_warned_of_above() -> None:
    text = summary_text(
        summary_frame(
            {"truncated": 20, "truncated_rate": 0.02},
            {"schedule": "fedelim0"},
            {
                "schedule": "periodic:5",
                "truncated": 1000,
                "truncated_rate": 1.0,
                "total_mean": None,
                "total_sem": None,
                "pulls_mean": None,
            },
        )
    )
    assert text.startswith("note: some trials did not end, up to 1,000 of 1,000")
    one, zero, five = body(text)
    assert "1,260*" in one
    assert "*" not in zero
    assert "none ended*" in five
    assert "note" not in summary_text(summary_frame({}))


def test_control_characters_do_not_reach_the_terminal() -> None:
    text = summary_text(summary_frame({"instance": "a\x1b[31mred\nline"}, {"instance": "b"}))
    assert "\x1b" not in text
    assert len(body(text)) == 2


def test_nothing_yet() -> None:
    assert summary_text(summary_frame({}).head(0)) == "no rows yet"


def test_numbers_are_never_cut() -> None:
    lines = table_text([Column("n", ["1" * 200]), Column("name", ["x" * 200], name=True)])
    assert "1" * 200 in lines[1]
    assert "…" in lines[1]


def test_names_are_cut_once() -> None:
    """Two columns of names give way in turn, and each is cut from the whole name."""
    times = [
        f"at:1,5,25,125,625,3125,15625,78125,390625,{last},5000000" for last in (1953125, 1953126)
    ]
    names = ["x" * 30 + "a", "x" * 30 + "b"]
    lines = table_text(
        [
            Column("one", names, name=True),
            Column("two", times, name=True),
            Column("three", names, name=True),
            Column("n", ["1" * 60] * 2),
        ]
    )
    assert max(map(len, lines)) <= 100
    assert [line.split()[1] for line in lines[1:]] == list(told_apart(times, 12).values())


def test_bounds_name_the_law_and_keep_names_apart() -> None:
    arms = [f"a treatment with a long name, dose {i}" for i in range(3)]
    one = ff.Instance(
        [[0.9, 0.2], [0.1, 0.8], [0.3, 0.3]],
        arms=arms,
        rewards=ff.Bernoulli(),
        clients=["the first of all hospitals A", "the first of all hospitals B"],
    )
    text = bounds_text([ff.bounds(one, delta=0.01, cost=1000)])
    assert "rewards Bernoulli()" in text
    assert "cost C 1,000" in text
    assert all(f"dose {i}" in text for i in range(3))
    assert "hospitals A" in text
    assert max(map(len, text.splitlines())) <= 100


def test_replay_keeps_whole_names() -> None:
    clients = [f"hospital {letter}" for letter in "ABCD"]
    told = ff.replay(
        ff.Instance(
            [[0.9, 0.1, 0.2, 0.1], [0.1, 0.9, 0.8, 0.9]],
            clients=clients,
            arms=["a drug with a long name, 1", "a drug with a long name, 2"],
        ),
        delta=0.1,
    )
    lines = str(told).splitlines()
    for name in clients:
        assert any(name in line for line in lines)
    assert "a drug with a long name, 2" in str(told)
    assert len({len(line) for line in lines[1:-2]}) == 1


def test_choices_that_somebody_made_are_named() -> None:
    rows = {"radius": "mixture", "sigma": 2.0}
    above = summary_text(summary_frame(rows, {**rows, "schedule": "fedelim0"})).splitlines()[0]
    assert above == "all rows: here, radius mixture, delta 0.1, sigma 2, C 10, 1,000 trials"


def test_the_scale_of_the_rewards_is_a_default() -> None:
    instances = {"here": ff.Instance([[0.9], [0.1]], rewards=ff.Gaussian(0.5))}
    assert "sigma 1" in summary_text(summary_frame({"sigma": 1.0}), instances)
    assert "sigma 0.5," not in summary_text(summary_frame({"sigma": 0.5}), instances)


def test_a_summary_fits_on_a_screen() -> None:
    frame = summary_frame(*({"delta": float(i)} for i in range(1, 251)))
    lines = summary_text(frame).splitlines()
    assert len(lines) <= 30
    assert f"{MOST} of 250 rows; all of them: --all" in lines
    assert len(summary_text(frame, most=None).splitlines()) > 250


# Notations


@pytest.mark.parametrize(
    ("name", "markdown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("[x](javascript:alert(1))", r"[x\](javascript:alert(1))"),
        ("![x](http://evil/x.png)", r"![x\](http:&#47;&#47;evil/x.png)"),
        ("[x]: http://evil", r"[x\]: http:&#47;&#47;evil"),
        ("www.evil.org", "www&#46;evil.org"),
        ("a|b_c*d`e\\f", r"a\|b\_c\*d\`e\\f"),
        ("0 [0, 0.37]", "0 [0, 0.37]"),
    ],
)
def test_markdown_shows_names_and_obeys_none(name: str, markdown: str) -> None:
    table = Table([Column("name", [name], left=True), Column("n", ["1"])], [name], [name])
    above, _, head, sides, row, _, below = table.markdown().splitlines()
    assert above == below == markdown
    assert (head, sides, row) == ("| name | n |", "| --- | ---: |", f"| {markdown} | 1 |")


def test_latex_rows_do_not_begin_with_an_option() -> None:
    table = Table([Column("name", ["[2cm] 5 % & $x$"], left=True)])
    assert r"{[}2cm] 5 \% \& \$x\$ \\" in table.latex().splitlines()


# Words and numbers


@given(
    st.lists(st.text(max_size=60), unique_by=printable, max_size=12),
    st.integers(min_value=8, max_value=40),
)
def test_shortened_names_stay_different(names: list[str], width: int) -> None:
    shown = told_apart(names, width)
    assert len(set(shown.values())) == len(names)
    assert all(len(text) <= width for text in shown.values())


@given(st.lists(st.text("ab", min_size=30, max_size=60), unique=True, max_size=40))
def test_names_of_two_letters_stay_different(names: list[str]) -> None:
    assert len(set(told_apart(names, 12).values())) == len(names)


@given(st.lists(st.floats(min_value=0, allow_infinity=False), unique=True, min_size=1))
def test_parameters_stay_different(values: list[float]) -> None:
    assert len(set(parameters(values).values())) == len(values)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_parameter_reads_back(value: float) -> None:
    assert float(plain(value).replace(",", "")) == value


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (473427.3, 1260.0, "473,427 ± 1,260"),
        (0.731, 0.0123, "0.731 ± 0.012"),
        (1.2345e20, 1.1e16, "(1.23450 ± 0.00011)e20"),
        (5.0, None, "5"),
        (5.0, 0.0, "5 ± 0"),
        (2.52e17, 3.0, "2.52e17 ± 0"),
        (None, None, ""),
        (1e-7, 1e-9, "(1.000 ± 0.010)e-7"),
        (0.0, 0.0, "0 ± 0"),
    ],
)
def test_value_and_error(value: float | None, error: float | None, text: str) -> None:
    assert number(value, error) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        ((0.0, 0.0, 0.00037), "0 [0, 0.037]"),
        ((1.0, 0.7, 1.0), "100 [70, 100]"),
        ((1e-7, 1e-9, 1e-6), "1e-5 [1e-7, 0.0001]"),
    ],
)
def test_share_in_percent(share: tuple[float, float, float], text: str) -> None:
    assert rate(*share) == text
