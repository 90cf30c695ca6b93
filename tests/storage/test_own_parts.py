"""Folders refuse rows of other code under the same name."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import SMALL, refused

import fastfed as ff
from fastfed.storage.folder import Store

OFTEN = 3
TABLE = np.array([1, 2])


@pytest.fixture(autouse=True)
def own_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test defines."""
    monkeypatch.setattr(ff.Schedule, "families", dict(ff.Schedule.families))


def pulls() -> int:
    return OFTEN


def algorithm(decide: Any = None, *, memory: int = 0, often: float = 1.0) -> ff.Algorithm:
    """Define the family "changing" anew."""

    def usual(seen: Any, answer: Any) -> None:
        """Pull a few times, and guess."""
        answer.targets[:] = pulls() + TABLE[0]
        if seen.round:
            answer.local_arms[:] = answer.global_arm[0] = 0

    made = decide or usual
    made.__qualname__ = "changing"
    return ff.Algorithm.define("changing", memory=memory, often=often)(made)()


def other(seen: Any, answer: Any) -> None:
    answer.targets[:] = 4 + seen.round
    if seen.round == 2:
        answer.local_arms[:] = answer.global_arm[0] = 0


def sweep(folder: Path, one: ff.Algorithm, trials: int) -> ff.Sweep:
    return ff.sweep(
        instances=[SMALL], deltas=[0.1], schedules=[one], trials=trials, out=folder,
        engine="python", progress=False,
    )  # fmt: skip


def test_changed_function_is_not_mixed(tmp_path: Path) -> None:
    """Without a fingerprint the folder held 4, 4, 6, 6 pulls of each arm."""
    folder = tmp_path / "own"
    sweep(folder, algorithm(), 2)
    words = ("schedule changing", "code or a constant", "--out")
    refused(lambda: sweep(folder, algorithm(other), 4), "own: holds rows", *words)
    refused(
        lambda: ff.simulate(
            SMALL, algorithm(other), delta=0.1, trials=4, engine="python"
        ).save(folder),
        *words,
    )  # fmt: skip
    grown = sweep(folder, algorithm(), 4)  # defined again, as it was
    assert grown.scan().collect()["pulls"].to_list() == [16] * 4


def test_lost_record_and_merged_folders_keep_the_fingerprint(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    sweep(one, algorithm(), 2)
    kept = Store(one).record().own_parts
    assert list(kept) == ["schedule changing"]
    (one / "sweep.json").unlink()
    refused(lambda: sweep(one, algorithm(other), 2), "version of your own schedule changing")
    assert not (one / "sweep.json").exists()
    sweep(one, algorithm(), 2)
    assert Store(one).record().own_parts == kept
    sweep(two, algorithm(other), 2)
    refused(lambda: ff.merge([one, two], tmp_path / "both"), "one: holds rows", "two (its code")


def test_fingerprint_follows_what_rows_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code, constants, defaults, closures and called functions count; docstrings do not."""

    def code(*given: Any, **options: Any) -> str | None:
        return algorithm(*given, **options).code_fingerprint()

    first = code()
    assert first is not None
    assert code() == first
    assert len({first, code(other), code(memory=1), code(often=2.0)}) == 4
    monkeypatch.setitem(globals(), "OFTEN", 4)
    changed = code()
    monkeypatch.setitem(globals(), "TABLE", np.array([2, 2]))
    assert len({first, changed, code()}) == 3
    assert ff.Schedule.parse("phases").code_fingerprint() is None


def test_another_process_with_other_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sent(ff.Algorithm):
        family = "sent-test"
        decide = staticmethod(other)

    Sent.__qualname__ = "Sent"
    monkeypatch.setitem(globals(), "Sent", Sent)
    content = pickle.dumps(Sent())
    assert pickle.loads(content) == Sent()
    monkeypatch.setattr(Sent, "code_fingerprint", classmethod(lambda cls: "other"))
    refused(lambda: pickle.loads(content), "sent-test", "other code", "workers")
