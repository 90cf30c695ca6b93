"""Values of options that are wrong, and wrong usage: refused in one line that names them."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_input import refused_by_command
from helpers import SMALL

from fastfed.cli import app as cli

OPTIONS: dict[str, list[str]] = {
    "--delta": ["1.5", "abc", "", ",", "0.1;0.2", "0.1,x", "10%", "0x1", "1e-301"],
    "--cost": ["-1", "nan", "ten", "", "1,,x", "1e308"],
    "--period": ["0", "1.5", "x", "9007199254740993"],
    "--price": ["rounds", "rounds=", "=3", "rounds=1,rounds=2"],
    "--schedule": [
        "fedelin",
        "periodic:",
        "at:1,1",
        "",
        "fedelim,fedelim",
        "Periodic(100)",
        "exponential:1e308",
    ],
    "--trials": ["0", "abc", "1e12", "", "1" * 5000],
    "--seed": ["-1", "18446744073709551616", ""],
    "--threads": ["0", "many", "5000", ""],
    "--engine": ["fast", "", "skip,dense"],
    "--sigma": ["0", "nan", "x"],
    "--max-steps": ["0", "1e17", "0.5", ""],
    "--target-rse": ["0", "1", "abc", "nan", ""],
    "--instance": [
        "",
        "syntetic",
        "no such",
        "random:1",
        "random:2000,2000,1",
        "random:501,500,1",
        "scaled:nope,1",
        "scaled:,1",
        "scaled:synthetic,1e-9",
        "missing.csv",
        "folder/missing.toml",
        "file.txt",
        "folder",
        "x" * 5000 + ".csv",
    ],
    "--spec": ["missing.toml", "missing.json", "", "x" * 5000],
    "--out": [
        "file.txt",
        "file.txt/below/deep",
        "/dev/null",
        "/dev/full/results",
        "/proc/no/such/folder",
        "x" * 5000,
        "dangling",
    ],
}
"""What their parsers refuse in more ways is tried there."""

REPLAY: dict[str, list[str]] = {
    "--schedule": ["fedelin", "periodic:0", "fedelim,fedelim0", ""],
    "--delta": ["0", "1", "x", "0.1,0.2"],
    "--seed": ["-1", "x"],
    "--trial": ["-1", "1.5", "abc", "1e30", ""],
    "--sigma": ["0", "x"],
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
    assert cli.run(["errors", "synthetic", "--json"]) == 2
    assert "write --format json" in capsys.readouterr().err
    assert cli.run(["errors", "synthetic", "--sigm", "2"]) == 2
    assert "--sigma" in capsys.readouterr().err
    assert cli.run(["errors", "synthetic", "--delta"]) == 2
    assert "requires an argument" in capsys.readouterr().err
