"""Observed rewards: names of columns, cells without a reward, doubtful gaps, the bootstrap."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers import refused

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.errors import UncertainWarning
from fastfed.model.observed import with_samples

HEADS = "hospital,drug,day,outcome\n"
ROLES = {"arm": "drug", "client": "hospital", "reward": "outcome"}


def observations(path: Path, lead: float = 0.5, count: int = 40, leave_out: str = "") -> Path:
    """Write observed rewards of two drugs at two hospitals; drug b is better by ``lead``."""
    rng = np.random.default_rng(3)
    lines = [
        f"{hospital},{drug},2024-01-{day % 28 + 1:02d},{round(float(value), 1)}\n"
        for hospital in ("north", "south")
        for drug in ("a", "b")
        if f"{drug}@{hospital}" != leave_out
        for day, value in enumerate(rng.normal(lead * (drug == "b"), 1.0, count))
    ]
    path.write_text(HEADS + "".join(lines))
    return path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_other_names_of_columns(capsys: pytest.CaptureFixture[str]) -> None:
    path = observations(Path("trial.csv"), 5.0)
    refused(lambda: ff.Instance.load(path), "hospital, drug, day, outcome", "--columns", "arm=")
    one = ff.Instance.load(path, columns=ROLES)
    assert (one.arms, one.clients) == (("a", "b"), ("north", "south"))
    frame = pl.read_csv(path)
    frame.write_parquet("trial.parquet")
    assert ff.Instance.load("trial.parquet", columns=ROLES) == one
    assert one.means[1, 0] == pytest.approx(
        frame.filter(drug="b", hospital="north")["outcome"].mean()
    )
    wrong = {**ROLES, "reward": "outcom"}
    refused(lambda: ff.Instance.load(path, columns=wrong), "outcom", "did you mean 'outcome'")
    refused(lambda: ff.Instance.load(path, columns={"am": "drug"}), "am=drug", "'arm'")
    refused(lambda: ff.Instance.load("synthetic", columns=ROLES), "no observed rewards")
    text = ",".join(f"{role}={name}" for role, name in ROLES.items())
    assert cli.run(["instance", "trial.csv", "--columns", text]) == 0
    assert "2 arms, 2 clients" in capsys.readouterr().out
    assert cli.run(["instance", "trial.csv", "--columns", "drug"]) == 2
    assert "arm=drug,client=hospital" in capsys.readouterr().err


def test_cells_without_a_reward_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    path = observations(Path("trial.csv"), 5.0, leave_out="a@south")
    refused(lambda: ff.Instance.load(path, columns=ROLES), "arm 'a' at client 'south'", "empty=0")
    one = ff.Instance.load(path, columns=ROLES, empty=1.5)
    assert one.means[0, 1] == 1.5
    ask = ["instance", "trial.csv", "--columns", "arm=drug,client=hospital,reward=outcome"]
    ask += ["--out", "filled.toml"]
    assert cli.run(ask) == 2
    assert "client 'south'" in capsys.readouterr().err
    assert not Path("filled.toml").exists()
    assert cli.run([*ask, "--empty", "1.5"]) == 0
    assert "fastfed sweep --instance filled.toml" in capsys.readouterr().out
    filled = ff.Instance.load("filled.toml")
    assert filled.name == "filled"
    assert filled.means.tolist() == one.means.tolist()
    assert filled.rewards == one.rewards


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_missing_values_are_counted_and_left_out_on_request(ending: str) -> None:
    lines = observations(Path("whole.csv"), 5.0).read_text().splitlines()
    frame = pl.read_csv("whole.csv")
    number = pl.int_range(pl.len())
    holed = frame.with_columns(
        outcome=pl.when(number % 40 < 3).then(None).otherwise(pl.col("outcome")),
        drug=pl.when(number == 7).then(None).otherwise(pl.col("drug")),
    )
    path = Path(f"holes.{ending}")
    if ending == "csv":  # three ways to write that a number is missing
        for row, missing in ((row, row % 40) for row in range(160) if row % 40 < 3):
            head = lines[row + 1].rpartition(",")[0]
            lines[row + 1] = f"{head},{('', 'NA', 'NaN')[missing]}"
        lines[8] = lines[8].replace("a,", ",", 1)
        path.write_text("\n".join(lines))
    else:
        holed.write_parquet(path)
    told = ("13 of 160 rows", "1 in arm", "12 in reward", "--drop-missing")
    refused(lambda: ff.Instance.load(path, columns=ROLES), *told)
    with pytest.warns(UncertainWarning, match=r"13 of 160 rows .*left out"):
        one = ff.Instance.load(path, columns=ROLES, drop_missing=True)
    holed.drop_nulls().write_csv("kept.csv")
    kept = ff.Instance.load("kept.csv", columns=ROLES)
    assert one.means.tolist() == kept.means.tolist()
    assert one.rewards == kept.rewards
    refused(lambda: ff.Instance.load("synthetic", drop_missing=True), "no observed rewards")


def test_doubtful_gaps_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    observations(Path("near.csv"), 0.0)
    with pytest.warns(UncertainWarning, match=r"inside (its|their) standard error.*leads"):
        ff.Instance.load("near.csv", columns=ROLES)
    observations(Path("far.csv"), 5.0)
    with warnings.catch_warnings(action="error"):
        ff.Instance.load("far.csv", columns=ROLES)
    columns = ",".join(f"{role}={name}" for role, name in ROLES.items())
    assert cli.run(["instance", "near.csv", "--columns", columns]) == 0
    error = capsys.readouterr().err
    assert error.startswith("fastfed: warning: near: ")
    assert error.count("\n") == 1


def test_resampling_draws_as_many_rewards_as_were_observed() -> None:
    seen = ff.Instance.load(observations(Path("far.csv"), 5.0), columns=ROLES)
    samples = [seen.resample(np.random.default_rng(number)) for number in range(200)]
    assert all(one.rewards.weights.sum(axis=2).tolist() == [[40, 40]] * 2 for one in samples)  # type: ignore[attr-defined]
    means = np.array([one.means for one in samples])
    values = seen.rewards.weights @ seen.rewards.values**2 / 40 - seen.means**2  # type: ignore[attr-defined]
    error = np.sqrt(values / 40)  # of one sample's mean; chance of 6 errors: 1e-8 for four cells
    assert (np.abs(means.mean(axis=0) - seen.means) < 6 * error / np.sqrt(200)).all()
    assert (np.abs(means.std(axis=0) / error - 1) < 0.3).all()  # 6 standard errors of 200 draws
    refused(lambda: ff.Instance([[1.0], [0.0]]).resample(np.random.default_rng(0)), "not observed")
    halves = ff.Instance(rewards=ff.Finite([0, 1], [[[0.5, 0.5]], [[0.1, 0.9]]]))
    refused(lambda: halves.resample(np.random.default_rng(0)), "no counts")


def test_minus_zero_is_zero() -> None:
    """Both are one reward, and which of them was kept changed from one reading to the next."""
    for first, second in (("-0.0", "0.0"), ("0.0", "-0.0")):
        Path("z.csv").write_text(f"arm,client,reward\na,x,{first}\na,x,{second}\nb,x,9\nb,x,9\n")
        values = ff.Instance.load("z.csv").rewards.values
        assert not np.signbit(values).any()


def test_a_sweep_of_samples() -> None:
    observations(Path("far.csv"), 5.0)
    make = ["instance", "far.csv", "--columns", "arm=drug,client=hospital,reward=outcome"]
    assert cli.run([*make, "--bootstrap", "2"]) == 2  # there is no file to write them to
    assert cli.run([*make, "--bootstrap", "2", "--out", "boot.toml"]) == 0
    assert cli.run([*make, "--bootstrap", "2", "--out", "again.toml"]) == 0
    assert ff.Instance.load("again#2.toml").rewards == ff.Instance.load("boot#2.toml").rewards
    assert ff.Instance.load("again#1.toml").rewards != ff.Instance.load("boot#2.toml").rewards
    ask = ["sweep", "--instance", "boot*.toml", "--trials", "5", "--delta", "0.1"]
    ask += ["--schedule", "fedelim,fedelim0", "--quiet", "--threads", "1"]
    assert cli.run(ask) == 0
    swept = ff.open_sweep("results")
    assert list(swept.instances) == ["boot", "boot#1", "boot#2"]
    means = {name: one.means.tolist() for name, one in swept.instances.items()}
    assert len(set(map(str, means.values()))) == 3
    assert cli.run(ask) == 0  # the same samples again: nothing is left to do
    assert cli.run([*ask[:2], "toot*.toml", *ask[3:]]) == 2


def test_samples_with_ties_are_drawn_again() -> None:
    """Ten rewards 0 or 1 tie in about every fifth sample, and no trial of it would end."""
    few = ff.Instance(rewards=ff.Finite([0, 1], [[[3, 7]], [[5, 5]]]), name="few")
    drawn = [few.resample(np.random.default_rng([0, number])) for number in range(1, 41)]
    tied = [one.means[0] == one.means[1] for one in drawn]
    assert 2 < sum(tied) < 20
    instance, *samples = with_samples(few, 40, 0)
    assert instance is few
    for number, (one, first, tie) in enumerate(zip(samples, drawn, tied, strict=True), 1):
        assert one.name == f"few#{number}"
        assert one.means[0] != one.means[1]
        assert tie or one.means.tolist() == first.means.tolist()
    even = ff.Instance(rewards=ff.Finite([0, 1], [[[5, 5]], [[5, 5]]]))
    assert any(one.means[0] == one.means[1] for one in with_samples(even, 40, 0)[1:])


def test_rewards_of_simulate() -> None:
    means = [[0.9, 0.2], [0.3, 0.4]]
    one = ff.simulate(means, delta=0.1, trials=5, rewards="bernoulli", threads=1)
    two = ff.simulate(ff.Instance(means, ff.Bernoulli()), delta=0.1, trials=5, threads=1)
    assert one == two
    refused(lambda: ff.simulate("synthetic", delta=0.1, trials=1, rewards="bernoulli"), "leave it")
    refused(lambda: ff.simulate(means, delta=0.1, trials=1, rewards="bernouli"), "bernoulli")
