"""Anything as input: exit status 0, 1 or 2, at most one line on stderr, no traceback, no warning.

A small run with fixed cases is a test; FASTFED_FUZZ=5000 sets how many cases each test has, then
with new ones at every run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import typed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastfed.cli import app as cli

pytestmark = pytest.mark.fuzz

CASES = int(os.environ.get("FASTFED_FUZZ", "40"))
fuzz = settings(
    max_examples=CASES,
    derandomize=CASES <= 100,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True, scope="module")
def elsewhere() -> Iterator[None]:
    """Whatever is written by accident is written where nobody minds."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


def assert_well_behaved(*arguments: str) -> int:
    """Assert that a command ends properly; an exception or a warning fails by itself."""
    shown, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(told):
        status = cli.run(list(arguments))
    lines = told.getvalue().split("\n")
    assert status in (0, 1, 2)
    assert len(lines) <= 2, lines
    assert lines[-1] == ""
    if status == 2:
        assert lines[0].startswith("fastfed: ")
        assert lines[0].isprintable()
        assert len(lines[0]) < 1000
        assert shown.getvalue() == ""
    return status


def assert_reads(content: bytes, ending: str) -> None:
    """Pass an instance in a file through the commands that read one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"case{ending}"
        path.write_bytes(content)
        for command in (
            ["bounds", str(path)],
            ["replay", str(path), "--max-steps", "50"],
            typed(
                f"sweep --instance {path} --trials 1 --max-steps 50 --schedule fedelim --delta "
                f"0.1 --threads 1 --cost 1 --out {folder}/out"
            ),
        ):
            assert_well_behaved(*command)


ODD = [
    *typed("0 -0.0 1 0.5 -1 1e-300 5e-324 1e100 1e101 1e308 -1e308 1e400 nan inf -inf true false"),
    *typed("[] [[0.1]] {} 1979-05-27 0x10 1_000 +1 .5 1e cauchy poisson finite sigma means arms"),
    *("", '"0.5"', '""', "1" + "0" * 400, "9" * 5000, "a" * 300),
    *("$\\frac{$", "[/x]", "\x1b[2J", "\r\n", "\u202e", "\x00", "%s", "\ud800"),
]
TOML = [
    """means = [[0.9, 0.1], [0.1, 0.4]]
arms = ["a", "b"]
clients = ["x", "y"]
description = "two towns"
weights = [2, 1]
""",
    """means = [[0.9, 0.1], [0.1, 0.4]]
[rewards]
kind = "gaussian"
sigma = [[1.0, 2.0], [0.5, 1]]
""",
    """means = [[2], [1], [0.5]]
[rewards]
kind = "poisson"
sigma = 2
""",
    """[rewards]
kind = "finite"
values = [0, 0.5, 1]
weights = [[[1, 2, 0], [0, 1, 1]], [[0, 0, 2], [3, 0, 0]]]
empty = 0.25
""",
]
CSV = [
    "0.9,0.1\n0.1,0.4\n",
    "arm,x,y\na,0.9,0.1\nb,0.1,0.4\n",
    "arm,client,reward,count\na,x,1,3\na,x,0,1\nb,x,0.5,2\n",
]


@st.composite
def slips(draw: st.DrawFn, sound: list[str]) -> bytes:
    """Draw a sound file with something odd in the place of some of its words and signs."""
    words = re.findall(r"[\w.+-]+|[^\w.+-]", draw(st.sampled_from(sound)))
    for _ in range(draw(st.integers(0, 4))):
        odd = draw(st.sampled_from(ODD) | st.floats(-2, 2).map(repr) | st.text(max_size=8))
        words[draw(st.integers(0, len(words) - 1))] = odd
    mark = draw(st.sampled_from(["", "", "\ufeff"]))
    return (mark + "".join(words)).encode("utf-8", "surrogatepass")


@fuzz
@given(slips(TOML) | st.binary(max_size=60))
def test_toml(content: bytes) -> None:
    assert_reads(content, ".toml")


@fuzz
@given(slips(CSV) | st.binary(max_size=60))
def test_csv(content: bytes) -> None:
    assert_reads(content, ".csv")


names = st.sampled_from(["a", "b", "c", None, "", "\x1b[2J", "a" * 300]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=5
)
rewards = st.sampled_from([0.0, 1.0, 0.5, 0.1, -1.0, 1e308, float("nan"), float("inf"), None])
columns = st.sampled_from(
    [
        (names, pa.string()),
        (names, pa.large_string()),
        (names, pa.dictionary(pa.int32(), pa.string())),
        (st.integers(0, 3), pa.int64()),
        (rewards, pa.float64()),
        (rewards, pa.float32()),
        (st.booleans(), pa.bool_()),
        (st.binary(max_size=3), pa.binary()),
        (st.lists(st.integers(0, 3), max_size=2), pa.list_(pa.int64())),
        (st.decimals(0, 9, places=2), pa.decimal128(10, 2)),
        (st.none(), pa.null()),
        (st.dates(), pa.date32()),
        (st.integers(0, 2**64 - 1), pa.uint64()),
    ]
)


@st.composite
def parquet(draw: st.DrawFn) -> bytes:
    """Draw a table of observed rewards, sound or not, whole or damaged."""
    height = draw(st.integers(0, 12))
    sound = {
        "arm": (st.sampled_from("ab"), pa.string()),
        "client": (st.sampled_from("xy"), pa.string()),
        "reward": (st.sampled_from([0.0, 0.5, 1.0]), pa.float64()),
        "count": (st.integers(0, 5), pa.int64()),
    }
    arrays, headings = [], []
    for name, default in sound.items():
        if draw(st.integers(0, 9)) == 0:
            continue
        values, kind = draw(columns) if draw(st.integers(0, 3)) == 0 else default
        arrays.append(pa.array([draw(values) for _ in range(height)], kind))
        headings.append(name if draw(st.integers(0, 9)) else "arm")
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays, names=headings), sink)
    content = bytearray(sink.getvalue())
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    return bytes(content[: draw(st.sampled_from([len(content)] * 5 + [20, len(content) - 9]))])


@fuzz
@given(parquet())
def test_parquet(content: bytes) -> None:
    assert_reads(content, ".parquet")


values = st.sampled_from(
    [
        *("", " ", ",", ",,", "9" * 400, "1" * 30, "x" * 5000),
        *("\x1b[2J", "$\\frac{$", "[/x]", "\u202e", "a\nb", "\x00", "\udcff"),
        *typed("0 1 -1 0.1 0.5 1.5 1e-300 5e-324 1e100 1e308 nan inf 0.1,0.2 0.1,,0.1 abc"),
        *typed("synthetic bernoulli scaled:synthetic,0.1 random:2,2,1 random:2000,2000,1"),
        *typed("scaled:random:2,2,1,1e308 scaled:synthetic,1e-308 random:1,1,1 missing.toml"),
        *typed("fedelim fedelim0 periodic:1e9 periodic:nan exponential:1e308 exponential:1.001"),
        *typed("superexponential at:1,5 at:9,1 proxy skip dense auto paper zero png svg,pdf"),
        *typed("/dev/zero /dev/null /dev/full . .. 1/2 3/2 tcp://127.0.0.1:1 local:0 -- -h"),
    ]
)
options = {
    "sweep": typed(
        "--instance --delta --cost --period --schedule --seed --threads --engine "
        "--sigma --target-rse --shard --spec --quiet --nonsense"
    ),
    "summary": ["--cost", "--format", "--all"],
    "plot": ["--cost", "--format", "--bounds"],
    "bounds": ["--delta", "--cost", "--schedule", "--sigma", "--format"],
    "check": ["--cost", "--format"],
    "replay": ["--schedule", "--delta", "--seed", "--trial", "--sigma", "--format"],
    "merge": ["--out"],
    "instances": [],
    "movielens": ["build", "--out"],
}
FLAGS = ("--quiet", "--all", "--bounds", "build")


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Draw a command with odd values; the last options keep its run short."""
    command = draw(st.sampled_from(sorted(options)))
    line = [command]
    if command not in ("sweep", "instances") and draw(st.integers(0, 9)):
        line.append(draw(values))
    for _ in range(draw(st.integers(0, 3))):
        if options[command]:
            option = draw(st.sampled_from(options[command]))
            line += [option] if option in FLAGS else [option, draw(values)]
    if command == "sweep":
        line += ["--trials", "1", "--out", "out"]
    if command in ("sweep", "replay"):
        line += ["--max-steps", "20"]
    return line


@fuzz
@given(command_lines())
def test_command_lines(line: list[str]) -> None:
    assert_well_behaved(*line)
