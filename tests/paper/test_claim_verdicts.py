"""Verdicts of the paper's claims: few trials, ties, trials that did not end, many cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from made_up_claims import NAMES, columns, found, frame, good, place_of
from scipy.stats import false_discovery_control

from fastfed.analysis.verdict_words import describe, sentence, status
from fastfed.analysis.verdicts import (
    DOES_NOT_APPLY,
    HOLDS,
    NOT_ENOUGH_TRIALS,
    NOT_REFUTED,
    VIOLATED,
    conclude,
    decide,
    normal,
    share,
)
from fastfed.paper.rules import claims, judge_claim


def test_false_discoveries_are_controlled() -> None:
    """Test a thousand true null hypotheses.

    Two standard errors would reject fifty. The procedure rejects none in 19 of 20 runs. The
    verdicts are those of SciPy's adjusted p-values.
    """
    rng = np.random.default_rng(5)
    cells = [normal(1 + z, 1.0, 1.0) for z in rng.normal(size=1000)]
    assert sum(min(cell["p_below"], cell["p_above"]) < 0.025 for cell in cells) > 30
    assert {cell["verdict"] for cell in decide(cells)} == {NOT_ENOUGH_TRIALS}
    cells = [normal(1 + z, 1.0, 1.0) for z in rng.normal(size=100) - 4.0 * (np.arange(100) < 50)]
    p = [2 * min(cell["p_below"], cell["p_above"]) for cell in cells]
    adjusted = false_discovery_control(p, method="by")
    assert [cell["adjusted_p"] for cell in decide(cells)] == pytest.approx(adjusted, rel=1e-14)
    kept = adjusted <= 0.05
    assert [cell["verdict"] != NOT_ENOUGH_TRIALS for cell in decide(cells)] == kept.tolist()
    assert 20 < kept.sum() < 60


def test_one_rule_for_few_trials() -> None:
    """No error in 20 trials says nothing of delta = 1e-6; the power says so."""
    (cell,) = decide([share(0, 0, 20, 1e-6)])
    assert cell["verdict"] == NOT_REFUTED
    assert cell["power"] < 1e-4
    assert [decide([share(k, 0, 100, 0.1)])[0]["verdict"] for k in (3, 7, 14, 30)] == [
        HOLDS,
        NOT_REFUTED,
        NOT_ENOUGH_TRIALS,
        VIOLATED,
    ]
    assert decide([{**share(9, 0, 9, 0.1), "verdict": DOES_NOT_APPLY}])[0]["holds"] is None


FEW = "Not refuted, but too few trials to confirm it, on a"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ((0, 0), "Holds on a."),
        ((0, 0, 0, 0), f"Holds on a at delta >= 0.2. {FEW} at delta <= 0.01."),
        ((0, 0, 50), "Holds on a, except on a at delta = 0.01."),
        ((0, 0, 50, 0), f"Holds on a, except on a at delta = 0.01. {FEW} at delta = 0.001."),
        ((0, 14), "Holds on a at delta = 0.5. Undecided on a at delta = 0.2."),
    ],
)
def test_holds_alone_is_said_only_of_all_cells(wrong: tuple[int, ...], said: str) -> None:
    """Trials that could show nothing at small deltas do not make a claim hold there."""
    cells = [
        {"instance": "a", "delta": delta, **share(count, 0, 50, delta)}
        for delta, count in zip((0.5, 0.2, 0.01, 0.001), wrong, strict=False)
    ]
    one = conclude("k", "t", "w", "c", cells)
    assert one is not None
    assert one.sentence == said


def test_descriptions_are_brief() -> None:
    every = [
        {"instance": name, "delta": d, "cost": c}
        for name in ("a", "b", "c")
        for d in (0.1, 0.01, 0.001)
        for c in (0.0, 10.0, 1000.0)
    ]

    def words(keep: Callable[[dict[str, Any]], bool]) -> str:
        return describe([cell for cell in every if keep(cell)], every)

    assert words(lambda cell: True) == "on all three instances"
    assert words(lambda cell: cell["instance"] != "b") == "on a and c"
    assert words(lambda cell: cell["delta"] < 0.1) == "at delta <= 0.01"
    assert words(lambda cell: cell["cost"] > 0) == "at C >= 10"
    assert words(lambda cell: cell["cost"] == 1000 and cell["instance"] == "a") == (
        "on a at C = 1,000"
    )
    assert words(lambda cell: cell["cost"] == 0 or cell["instance"] == "a") == (
        "on a and on b and c at C = 0"
    )
    assert words(lambda cell: cell["cost"] == 0 and cell["delta"] == 0.1) == (
        "on a, b and c in 1 of 9 cells"
    )
    alone = [{"instance": "a", "delta": 0.5}, {"instance": "a", "delta": 0.1}]
    assert describe(alone[:1], [*alone, {"instance": "b", "delta": 0.1}]) == "on a at delta = 0.5"
    names = [{"instance": "a", "schedule": name} for name in ("fedelim", "periodic:5", "adaptive")]
    assert describe(names[:2], names) == "on a for fedelim and H = 5"


def test_a_verdict_is_a_sentence_to_quote() -> None:
    def cells(*verdicts: str) -> list[dict[str, Any]]:
        return [
            {"instance": name, "delta": 0.1, "cost": cost, "verdict": verdict}
            for name, verdict in zip("abcd", verdicts, strict=True)
            for cost in (10.0, 1000.0)
        ]

    every = cells(HOLDS, HOLDS, HOLDS, HOLDS)
    assert sentence(every) == "Holds on all four instances."
    every[1] = {**every[1], "verdict": VIOLATED}
    assert status(every) == "holds in part"
    assert sentence(every) == "Holds on all four instances, except on a at C = 1,000."
    assert sentence(cells(VIOLATED, VIOLATED, HOLDS, VIOLATED)) == (
        "Fails on all four instances, except on c."
    )
    assert sentence(cells(HOLDS, NOT_REFUTED, NOT_ENOUGH_TRIALS, DOES_NOT_APPLY)) == (
        "Holds on a. Not refuted, but too few trials to confirm it, on b. Undecided on c. "
        "Does not apply on d."
    )


def test_a_single_trial_decides_nothing() -> None:
    every = columns(np.random.default_rng(1), 100.0, 10.0, 4, 0.0, 0.0)
    first = {key: values[:1] for key, values in every.items()}
    alone = place_of(dict.fromkeys(NAMES, first))
    for row in claims():
        one = judge_claim(row, [alone]) if row["cells"] == "panels" else None
        assert one is None or one.verdict.startswith(("undecided", "not refuted"))


def test_a_tie_decides_nothing() -> None:
    """Schedules that cost the same in every trial: no certainty about the trials not seen."""
    batch = columns(np.random.default_rng(1), 100.0, 10.0, 500, 0.01, 0.0)
    tie = place_of(dict.fromkeys(NAMES, batch), "bernoulli")
    for claim in ("fedelim0-cheaper", "minimum-bernoulli"):
        one = found(claim, [tie])
        assert one.verdict.startswith("undecided")
        assert "equal in all" in one.measured[0]


def test_near_ties_show_the_difference() -> None:
    """Show a difference of 0.3 % in three of a hundred trials, where the ratio reads 1.0000.

    31 differing trials decide nothing, 1,819 do.
    """
    for trials, verdict in ((1_000, "undecided"), (60_000, "holds")):
        base = columns(np.random.default_rng(1), 1000.0, 10.0, trials, 0.0, 0.0)
        more = {**base, "pulls": base["pulls"] + 3000 * (base["trial"] % 33 == 0)}
        place = place_of({**dict.fromkeys(NAMES, base), "fedelim": more}, "movielens")
        one = found("fedelim0-cheaper", [place])
        assert one.verdict.startswith(verdict)
        assert "difference -9" in one.measured[0]
        few = trials == 1_000
        assert ("31 of 1,000 trials differ, 59 are needed" in one.measured[0]) == few


def test_the_best_is_chosen_by_other_trials_than_judge_it() -> None:
    """Compare fifteen noisy periods that cost as much as FedElim.

    The least of their means lies below that of FedElim. Yet no period is found cheaper more often
    than chance allows.
    """
    names = ("fedelim", *(f"periodic:{10**p}" for p in range(15)))
    none = np.zeros(400, bool)
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        batch = {
            name: {
                "trial": np.arange(400),
                "uplinks": none.astype(int),
                "correct": ~none,
                "truncated": none,
                "pulls": np.rint(1e6 + 1e5 * rng.normal(size=400) * (name != "fedelim")).astype(
                    np.int64
                ),
            }
            for name in names
        }
        place = place_of(batch, "bernoulli")
        alarms += found("minimum-bernoulli", [place]).verdict == "does not hold"
    assert alarms < 6  # at 2.5 % each, 6 of 40 have a probability of 5e-4; without halves it was 9


def test_trials_that_did_not_end_leave_the_mean_alone() -> None:
    """One trial in a hundred that ran to 2^52 steps, as a lost best arm among ties brings it."""
    given = frame(good, ("synthetic",))
    for place in given:
        for half in (place.halves.even, place.halves.odd):
            assert half.ended("fedelim") == 100
    batch = columns(np.random.default_rng(2), 5000.0, 20.0, 200, 1e-4, 0.0)
    cut = batch["trial"] == 7
    lost = {**batch, "pulls": np.where(cut, 2**55, batch["pulls"]), "truncated": cut}
    place = place_of({**dict.fromkeys(NAMES, batch), "fedelim": lost})
    one = found("pulls-two", [place])
    assert one.verdict == "holds"
    assert one.value == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(("wrong", "verdict"), [(0, "undecided"), (60, "does not hold")])
def test_a_trial_that_did_not_end_is_neither_right_nor_wrong(wrong: int, verdict: str) -> None:
    batch = columns(np.random.default_rng(2), 5000.0, 20.0, 200, 1e-4, 0.0)
    lost = {**batch, "truncated": batch["trial"] < 50, "correct": batch["trial"] >= 50 + wrong}
    place = place_of(dict.fromkeys(NAMES, lost))
    one = found("delta-pac", [place])
    assert (one.value, one.verdict) == (wrong / 200, verdict)
    assert one.cells[0]["reason"] == "some trials did not end"
    assert "and 50 did not end" in one.measured[0]


def test_a_schedule_that_does_not_end_is_neither_best_nor_compared() -> None:
    """It would be by far the cheapest over the trials that it ended."""
    rng = np.random.default_rng(4)
    batch = {
        name: columns(rng, pulls, 10.0, 200, 1e-3, 0.0)
        for name, pulls in (("fedelim", 3.0), ("periodic:10", 2.0), ("periodic:100", 1.0))
    }
    periods = ("periodic:10", "periodic:100")

    assert place_of(batch).cheapest(periods, 10.0) == "periodic:100"
    row = {"key": "k", "claim": "t", "where": "w", "criterion": "c", "rule": "compare"}
    row |= {"cells": "panels", "one": "fedelim", "other": "periodic:100", "price": "total"}
    first = judge_claim({**row, "limit": 1.0}, [place_of(batch)])
    assert first is not None
    assert first.cells[0]["verdict"] == VIOLATED
    batch["periodic:100"]["truncated"] = np.arange(200) % 2 == 0
    assert place_of(batch).cheapest(periods, 10.0) == "periodic:10"
    then = judge_claim({**row, "limit": 1.0}, [place_of(batch)])
    assert then is not None
    assert then.cells[0]["verdict"] == DOES_NOT_APPLY
    assert "periodic:100: 50 % of 200 trials did not end" in then.cells[0]["text"]
    (best,) = found("almost-best", [place_of(batch)]).cells
    assert "best H = 10," in best["text"]
