"""Values of options that are wrong, and wrong usage: refused in one line that names them."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_input import refused_by_command
from helpers import SMALL

from fastfed.cli import app as cli

OPTIONS: dict[str, list[str]] = {
    "--delta": [
        "0",
        "1",
        "-0.1",
        "1.5",
        "nan",
        "inf",
        "abc",
        "",
        ",",
        "0.1;0.2",
        "1e-400",
        "0.1,x",
        "10%",
        "0x1",
        "5e-324",
        "1e-301",
    ],
    "--cost": ["-1", "nan", "inf", "-inf", "ten", "", "1,,x", "1e308", "1e101"],
    "--period": ["0", "-5", "1.5", "x", "9007199254740993", "nan", "inf"],
    "--schedule": [
        "fedelin",
        "periodic",
        "periodic:",
        "periodic:0",
        "periodic:x",
        "exponential:1",
        "exponential:0.5",
        "exponential:abc",
        "exponential:inf",
        "exponential:nan",
        "exponential:1.0000000001",
        "exponential:1e308",
        "at:",
        "at:5,1",
        "at:0,1",
        "at:1,1",
        "at:x",
        "fedelim:3",
        "superexponential:2",
        "",
        "fedelim,fedelim",
        "Periodic(100)",
        "at:1.5",
    ],
    "--trials": ["0", "-1", "1.5", "abc", "1e12", "nan", "inf", "", "1" * 5000],
    "--seed": ["-1", "1.5", "abc", "18446744073709551616", "nan", ""],
    "--threads": ["0", "-2", "many", "1.5", "5000", ""],
    "--engine": ["fast", "SKIP", "", "skip,dense"],
    "--sigma": ["0", "-1", "nan", "inf", "x"],
    "--max-steps": ["0", "-1", "abc", "1e17", "0.5", ""],
    "--target-rse": ["0", "1", "-0.1", "abc", "nan", "2", "inf", ""],
    "--instance": [
        "",
        "syntetic",
        "no such",
        "random:1",
        "random:a,b,c",
        "random:0,3,1",
        "random:3,0,1",
        "random:2,2,-1",
        "random:100000,100000,1",
        "random:2,2,1,1",
        "random:2000,2000,1",
        "random:501,500,1",
        "random:",
        "scaled:synthetic",
        "scaled:synthetic,0",
        "scaled:synthetic,-1",
        "scaled:synthetic,x",
        "scaled:nope,1",
        "scaled:,1",
        "scaled:synthetic,nan",
        "scaled:synthetic,1e-9",
        "scaled:synthetic,1e400",
        "scaled:synthetic,1e-400",
        "missing.csv",
        "missing.toml",
        "folder/missing.toml",
        "file.txt",
        "folder",
        "x" * 5000 + ".csv",
    ],
    "--spec": ["missing.toml", "missing.json", "", "x" * 5000],
    "--out": [
        "file.txt",
        "file.txt/below",
        "file.txt/below/deep",
        "/dev/null",
        "/dev/full/results",
        "/proc/no/such/folder",
        "x" * 5000,
        "dangling",
    ],
}

BOUNDS: dict[str, list[str]] = {
    "--delta": ["5e-324", "0", "x"],
    "--cost": ["1e308", "-1"],
    "--schedule": ["phases", "x"],
    "--sigma": ["0", "x", "nan"],
}

REPLAY: dict[str, list[str]] = {
    "--schedule": ["fedelin", "periodic:0", "fedelim,fedelim0", ""],
    "--delta": ["0", "1", "x", "0.1,0.2"],
    "--seed": ["-1", "x"],
    "--trial": ["-1", "1.5", "abc", "1e30", ""],
    "--sigma": ["0", "x"],
    "--max-steps": ["0", "x"],
}

USAGE: dict[str, tuple[list[str], str]] = {
    "unknown command": (["swep"], "swep"),
    "unknown option": (["sweep", "--trails", "10"], "--trails"),
    "unknown option of the program": (["--verbose", "sweep"], "--verbose"),
    "option without its value": (["sweep", "--trials"], "--trials"),
    "flag with a value": (["sweep", "--quiet=3"], "--quiet"),
    "stray argument of sweep": (["sweep", "synthetic"], "synthetic"),
    "summary of nothing": (["summary"], "DIR"),
    "summary of two": (["summary", "a", "b"], "b"),
    "summary in an unknown format": (["summary", "GOOD", "--format", "html"], "--format html"),
    "summary with a bad cost": (["summary", "GOOD", "--cost", "-1"], "-1"),
    "summary with a cost that is no number": (["summary", "GOOD", "--cost", "x"], "'x'"),
    "summary without costs": (["summary", "GOOD", "--cost", ""], "cost"),
    "reproduce with an empty seed": (["reproduce", "--seed", ""], "seed = ''"),
    "replay of nothing": (["replay"], "argument"),
    "replay of an unknown instance": (["replay", "syntetic"], "did you mean 'synthetic'"),
    "replay of a gap that is too small": (["replay", "gap.csv"], "gap 1e-09"),
    "stray argument of instances": (["instances", "all"], "all"),
    "two instances of one name": (
        ["sweep", "--instance", "small.toml", "--instance", "other/small.toml"],
        "'small'",
    ),
    "steps beyond counting": (
        ["sweep", "--instance", "random:60,60,1", "--max-steps", "4503599627370496"],
        "max_steps",
    ),
}


def _cases() -> dict[str, tuple[list[str], str]]:
    """Everything above as (arguments, what must be named)."""
    cases = dict(USAGE)
    for option, values in OPTIONS.items():
        for value in values:
            cases[f"{option} {value[:30]}"] = (["sweep", option, value], _named(option, value))
    for option, values in REPLAY.items():
        for value in values:
            cases[f"replay {option} {value[:30]}"] = (
                ["replay", "synthetic", option, value],
                _named(option, value),
            )
    for option, values in BOUNDS.items():
        for value in values:
            cases[f"bounds {option} {value}"] = (
                ["bounds", "synthetic", option, value],
                option.removeprefix("--"),
            )
    return cases


def _named(option: str, value: str) -> str:
    """Return what the message must name.

    That is the value (the last one of a list), or the option if the value is empty.
    """
    if value in ("scaled:nope,1", "scaled:,1"):  # the name is wrong, not the factor
        return "nope" if "nope" in value else "''"
    bare = value.split(",")[-1].split(":")[-1].strip()
    if not bare and value.strip(","):
        return value
    if not bare:
        return "." if option == "--spec" else option.removeprefix("--").replace("-", "_")
    return bare if len(bare) < 1000 else ""


CASES = _cases()


@pytest.mark.parametrize("case", CASES)
def test_bad_option(case: str, place: Path, good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, named = CASES[case]
    SMALL.save(place / "small.toml")
    (place / "other").mkdir()
    (place / "other" / "small.toml").write_text("means = [[0.1, 0.2], [0.7, 0.9]]\n")
    (place / "gap.csv").write_text("0.5,0.5\n0.500000001,0.9\n")
    ready = [str(good) if word == "GOOD" else word for word in arguments]
    refused_by_command(ready, named, place, capsys)


def test_option_of_other_commands_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """`errors --goal` suggested --sigma."""
    assert cli.run(["errors", "synthetic", "--goal", "top:2"]) == 2
    told = capsys.readouterr().err
    assert "errors has no --goal, which is one of sweep, " in told
    assert "--sigma" not in told
    assert cli.run(["errors", "synthetic", "--sigm", "2"]) == 2
    assert "--sigma" in capsys.readouterr().err
    assert cli.run(["errors", "synthetic", "--delta"]) == 2
    assert "requires an argument" in capsys.readouterr().err
