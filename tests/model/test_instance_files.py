"""Files of instances: what is saved is loaded again, files by hand, and files that are refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from helpers import refused
from hypothesis import assume, given
from hypothesis import strategies as st

import fastfed as ff

NAN = math.nan
PAPER = [[0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.1, 0.9], [0.5, 0.5, 0.5]]
CHAIN = [[1.0, NAN], [0.5, 0.5], [NAN, 0.0]]
AWKWARD = [
    'say "hi"',
    "back\\slash",
    "tab\tand, comma",
    "line\nbreak",
    "héllo",
    "#none",
    "5",
    "arm",
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@st.composite
def instances(draw: st.DrawFn) -> ff.Instance:
    """Draw an instance of any rewards, weights, questions and names, in which cells may lack."""
    arms, clients = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    cells = arms * clients
    kind = draw(st.sampled_from(["gaussian", "noises", "bernoulli", "poisson", "finite"]))
    size = 1.0 if kind in ("bernoulli", "poisson") else 1e9
    number = st.floats(0.0 if size == 1.0 else -size, size)
    means = np.array(draw(st.lists(number, min_size=cells, max_size=cells))).reshape(arms, clients)
    lacks = np.array(draw(st.lists(st.booleans(), min_size=cells, max_size=cells)))
    lacks = lacks.reshape(arms, clients)
    if kind == "finite":
        weights = draw(st.lists(st.integers(1, 9), min_size=2 * cells, max_size=2 * cells))
        each = np.where(lacks[..., None], 0, np.array(weights).reshape(arms, clients, 2))
        values = draw(st.lists(number, min_size=2, max_size=2, unique=True))
        given: dict[str, object] = {"rewards": ff.Finite(values, each, "absent")}
    else:
        noises = 0.1 + np.arange(cells).reshape(arms, clients)
        given = {
            "means": np.where(lacks, NAN, means),
            "rewards": {
                "gaussian": ff.Gaussian(draw(st.sampled_from([1.0, 0.1 + 0.2]))),
                "noises": ff.Gaussian(noises),
                "bernoulli": ff.Bernoulli(),
                "poisson": ff.Poisson(sigma=2.5),
            }[kind],
        }
    weight = st.sampled_from([0.0, 1.0, 3.0, 1 / 3])
    rows = draw(st.integers(0, 2))
    if rows:
        row = st.lists(weight, min_size=clients, max_size=clients).filter(any)
        given["weights"] = draw(st.lists(row, min_size=rows, max_size=rows))
    names = draw(st.sampled_from([TEXT, st.sampled_from(AWKWARD)]))
    for what, count in (("arms", arms), ("clients", clients)):
        if draw(st.booleans()):
            given[what] = draw(st.lists(names, min_size=count, max_size=count, unique=True))
    try:
        return ff.Instance(
            **given,  # type: ignore[arg-type]
            local=draw(st.booleans()),
            own=draw(st.booleans()) and rows < 2,
            name=draw(st.sampled_from(["custom", "mine"])),
            description=draw(st.just("one\ntwo \x7f") | TEXT),
        )
    except ff.InputError:  # an arm without clients, a client without arms, or without weights
        assume(False)
        raise


@given(instances())
def test_what_is_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, one: ff.Instance
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.TOML"
    one.save(path)
    back = ff.Instance.load(path)
    assert (back, back.rewards, back.description) == (one, one.rewards, one.description)
    assert back.name == ("any" if one.name == "custom" else one.name)
    np.testing.assert_array_equal(back.means, one.means)
    table = path.with_suffix(".csv")
    plain = [*one.arms, *one.clients] == [name.strip() for name in [*one.arms, *one.clients]]
    if one.rewards != ff.Gaussian() or not one.questions.local:
        refused(lambda: one.save(table), ".toml")
    elif plain and "weights" not in map(str.lower, one.arms):  # a .csv strips names
        one.save(table)
        assert ff.Instance.load(str(table)) == one


@pytest.mark.parametrize("means", [PAPER, [[0.25]], [[1.5, -2.5]], [[0.5], [1e-17]], CHAIN])
@pytest.mark.parametrize("weights", [None, [[1.0], [2.0]]])
def test_tables_of_means(tmp_path: Path, means: list[list[float]], weights: object) -> None:
    rows = None if weights is None else np.array([[1.0], [2.0]]) * np.arange(1, len(means[0]) + 1)
    one = ff.Instance(means, weights=rows)
    one.save(tmp_path / "x.csv")
    back = ff.Instance.load(tmp_path / "x.csv")
    assert (back, back.name) == (one, "x")
    refused(lambda: one.save(tmp_path / "x.json"), ".json", ".toml", ".csv")
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def read(tmp_path: Path, name: str, text: str | bytes) -> ff.Instance:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return ff.Instance.load(path)


def test_toml_by_hand(tmp_path):
    inst = read(
        tmp_path,
        "x.toml",
        """
        means = [[1, 0.5], [0, 2e-1]]   # whole numbers are numbers too
        arms = ["a", "b"]
        [rewards]
        kind = "gaussian"
        sigma = 2
    """,
    )
    assert inst == ff.Instance([[1, 0.5], [0, 0.2]], ff.Gaussian(2.0), arms=["a", "b"])
    assert read(tmp_path, "y.toml", "means = [[1.0], [2.0]]") == ff.Instance([[1.0], [2.0]])
    text = 'means = [[1.0, ""], [0.5, 0.5], [nan, 0.0]]'
    assert read(tmp_path, "z.toml", text) == ff.Instance(CHAIN)


FOUR = [[1, 2], [3, 1]]


@pytest.mark.parametrize(
    ("text", "means", "names"),
    [
        ("1,2\n3,1\n", FOUR, {}),
        ("1, 2 \r\n 3,1", FOUR, {}),
        ("\ufeff1,2\n\n3,1\n\n", FOUR, {}),
        ("x,y\n1,2\n3,1\n", FOUR, {"clients": "xy"}),
        ("a,1,2\nb,3,1\n", FOUR, {"arms": "ab"}),
        ("arm,x,y\na,1,2\nb,3,1\n", FOUR, {"arms": "ab", "clients": "xy"}),
        (",x,y\na,1,2\nb,3,1\n", FOUR, {"arms": "ab", "clients": "xy"}),
        ("arm,8,9\n5,1,2\n7,3,1\n", FOUR, {"arms": "57", "clients": "89"}),
        ("x\n1\n2\n", [[1], [2]], {"clients": "x"}),
        ("1\n2\n", [[1], [2]], {}),
        ("-1e-3,+.5\n2.,0\n", [[-1e-3, 0.5], [2, 0]], {}),
        ('"a, b",1,2\nc,3,1\n', FOUR, {"arms": ["a, b", "c"]}),
        ("1.0,\n0.5,0.5\n,0.0\n", CHAIN, {}),
        ("a,b\n1.0,\n0.5,0.5\n,0.0\n", CHAIN, {"clients": "ab"}),
        ("x,1.0, \ny,0.5,0.5\nz,,0.0\n", CHAIN, {"arms": "xyz"}),
        ("arm,0,1\n0,1.0,\n1,0.5,0.5\n2,,0.0\nweights,1,2\n", CHAIN, {"weights": [1, 2]}),
        ("1.0,NA\n0.5,0.5\n", [[0.5, 0.5]], {"clients": ["1.0", "NA"]}),
    ],
)
def test_csv_by_hand(tmp_path, text, means, names):
    given = {key: list(value) for key, value in names.items()}
    assert read(tmp_path, "x.csv", text) == ff.Instance(means, **given)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x.toml", "means = [[1, 2], [3", ["not valid TOML"]),
        ("x.toml", "menas = [[1], [2]]", ["unknown key 'menas'", "did you mean 'means'"]),
        ("x.toml", "arms = ['a']", ["no 'means'"]),
        ("x.toml", "means = [[1], [2]]\ndescription = 5", ["description", "string"]),
        ("x.toml", "means = [[1], [2]]\narms = 2", ["arm names", "list"]),
        ("x.toml", "means = [[1], [2]]\nrewards = 1", ["rewards", "table"]),
        ("x.toml", "means = [[1], [2]]\n[rewards]\nkind = 'cauchy'", ["'cauchy'", "gaussian"]),
        ("x.toml", "means = [[1], [2]]\n[rewards]\nsgima = 1", ["unknown key 'sgima'"]),
        ("x.toml", "means = 1", ["0-dimensional"]),
        ("x.toml", b"means = [[1], [2]] # \xff", ["not UTF-8"]),
        ("x.csv", "", ["empty"]),
        ("x.csv", "\n\n", ["empty"]),
        ("x.csv", "1,2\n3\n", ["row 2 has 1 cells, row 1 has 2"]),
        ("x.csv", "x,y\n", ["header and no means"]),
        ("x.csv", "1,2\n3,nan\n", ["row 2", "'nan' is not a number"]),
        ("x.csv", "x,y\n1,2\n3,abc\n", ["row 3", "'abc' is not a number"]),
        ("x.csv", "a,1\na,2\n", ["'a'", "twice"]),
        ("x.csv", "ad,site,click\nA,1,1\nA,2,0\n", ["one row for each arm", "--columns arm="]),
        ("x.csv", b"1,\xff\n", ["not UTF-8"]),
        ("x.csv", ",0.5\n0.4,0.5\n", ["first cell is empty", "header"]),
        ("x.csv", "x,1.0,2\ny,0.5,?\n", ["not a number", "empty"]),
        ("x.csv", "arm,a,b\nx,1.0,\ny,0.5,0.5\nweights,1,\n", ["row 4", "not a number"]),
        ("x.csv", "arm,a,b\nx,,\ny,0.5,0.5\n", ["arm 0 (x)", "no client has it"]),
        ("x.csv", "arm,a,b\nweights,1,2\n", ["weights and no means"]),
        ("x.csv", '"1,2\n', ["not valid CSV"]),
    ],
)
def test_bad_files_name_the_file_and_the_rule(tmp_path, name, text, words):
    refused(lambda: read(tmp_path, name, text), name, *words)
