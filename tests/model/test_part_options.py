"""Options of all parts: their limits, names that read back, and one wording of refusals."""

from __future__ import annotations

import re

import pytest
from helpers import built_in, refused

import fastfed as ff
from fastfed.model.part import Part
from fastfed.model.rewards import Rewards

KINDS: dict[str, type[Part]] = {
    one.kind: one for one in (ff.Schedule, ff.Radius, ff.Goal, ff.Uplink, ff.Participation, Rewards)
}

# the name with a hole for one option; values at its limits, or near one that is left out; and
# values beyond them
LIMITS = [
    ("periodic:{}", ("1", "10.0", "1e5", "4503599627370496"), ("0", "1.5", "4503599627370497")),
    ("exponential:{}", ("1.001", "1e100"), ("1", "0.9", "1.1e100")),
    ("adaptive:{}", ("1.1", "1e6"), ("1", "1000001")),
    ("adaptive:4,{}", ("1.0000001", "4"), ("1", "1000001")),
    ("adaptive:4,1.1,{}", ("1e-9", "1e6"), ("0", "1000001")),
    ("adaptive:4,1.1,2,{}", ("0", "1"), ("-0.1", "1.1")),
    ("rounds:{}", ("1.001", "1e100"), ("1", "1.1e100")),
    ("halving:{}", ("1", "1e15"), ("0", "1.5", "1000000000000001")),
    ("dp-se:{}", ("1e-9", "1e15"), ("0", "1.1e15")),
    ("oracle:{}", ("1.001", "1e15"), ("1", "1.1e15")),
    ("mixture:{}", ("1", "4503599627370496"), ("0", "1.5", "4503599627370497")),
    ("mixture-pairs:{}", ("1", "4503599627370496"), ("0", "1.5", "4503599627370497")),
    ("betting:{}", ("1", "64"), ("0", "1.5", "65")),
    ("top:{}", ("1", "10000000"), ("0", "-2", "1.5", "10000001")),
    ("eps:{}", ("1e-300", "1e100"), ("0", "-0.1", "1.1e100")),
    ("threshold:{}", ("-1e100", "-0.0", "1e100"), ("-1.1e100", "1.1e100")),
    ("threshold:0.5,{}", ("0", "1e100"), ("-0.1", "1.1e100")),
    ("dither:{}", ("1e-9", "1e6"), ("0", "1e-10", "1000001")),
    ("round:{}", ("1e-9", "1e6"), ("0", "1e-10", "1000001")),
    ("laplace:{}", ("1e-6", "1e6"), ("0", "1e-7", "1000001")),
    ("wait:{}", ("1e-6", "1"), ("0", "1e-7", "1.1")),
    ("random:{}", ("1e-6", "1"), ("0", "1e-7", "1.1")),
]


def kind_of(name: str) -> type[Part]:
    """Return the kind of part that a name is one of."""
    return next(kind for kind in KINDS.values() if name.partition(":")[0] in kind.families)


def test_every_option_has_its_limits_above() -> None:
    given = [re.sub("[^,]+$", "", name.partition(":")[2]).count(",") for name, *_ in LIMITS]
    listed = {
        (name.partition(":")[0], place) for (name, *_), place in zip(LIMITS, given, strict=True)
    }
    assert listed == {
        (family, place)
        for kind in KINDS.values()
        for family in built_in(kind)
        for place in range(len(kind.families[family].declared_options))
    }


@pytest.mark.parametrize(("name", "right", "wrong"), LIMITS, ids=lambda one: str(one)[:20])
def test_limits_of_options(name: str, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    kind, (family, _, options) = kind_of(name), name.partition(":")
    place = options.split(",").index("{}")
    for text in right:
        part = kind.parse(name.format(text))
        assert kind.parse(str(part)) == part
        assert hash(kind.parse(f" {part}")) == hash(part)
        assert part.option_values[place] == float(text)
    option = list(part.declared_options.values())[place]
    for text in (*wrong, "x", "nan", "inf", "1_0", "", "1e400"):
        if text or place:  # an empty text is no option
            given = name.format(text)
            words = (f"{kind.kind} {family}: {option.label} = {text!r}", "must be", part.example)
            refused(lambda given=given: kind.parse(given), *words)
    for value in (True, None, [1], "x"):
        values = [*part.option_values[:place], value]
        refused(lambda values=values: type(part)(*values), option.label, "must be")
    refused(lambda: kind.parse(f"{name.format(text)},1,1,1,1"), "and nothing else", part.example)
    if option.default is None:
        refused(lambda: kind.parse(family), f"{option.label} is missing", part.example)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (" fedelim ", "fedelim"),
        ("periodic: 10", "periodic:10"),
        ("exponential:1.50", "exponential:1.5"),
        ("at: 1, 5", "at:1,5"),
        ("at:1e0,1e3", "at:1,1000"),
        ("adaptive:4", "adaptive"),
        ("adaptive:8,1.10", "adaptive:8"),
        ("adaptive:4,1.25", "adaptive:4,1.25"),
        ("adaptive:4,1.1,2,0", "adaptive:4,1.1,2,0"),
        ("threshold:0.50,0.0", "threshold:0.5"),
        ("mixture:1000", "mixture"),
    ],
)
def test_names_are_canonical(given: str, name: str) -> None:
    kind = kind_of(given.strip())
    assert str(kind.parse(given)) == name
    assert kind.parse(kind.parse(name)) == kind.parse(given)


@pytest.mark.parametrize("base", [1.0000152587890625, 1 / 3 + 1, 2.5e-7 + 2, 1e17])
def test_numbers_read_back_exactly(base: float) -> None:
    assert ff.Schedule.parse(str(ff.Exponential(base))).base == base  # type: ignore[attr-defined]
    assert ff.Goal.parse(str(ff.Eps(base))).slack == base  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        ("schedule", "fedelm", "did you mean 'fedelim'"),
        ("schedule", "FEDELIM", "did you mean 'fedelim'"),
        ("schedule", "period:5", "did you mean 'periodic'"),
        ("schedule", "zzz", "fedelim, fedelim0"),
        ("schedule", "fedelim:3", "takes no option"),
        ("schedule", "at", "needs a value, as in at:1,5,25"),
        ("schedule", "adaptive:2,3", "HI = 2 is below LO = 3"),
        ("goal", "bst", "did you mean 'best'"),
        ("goal", "best:1", "takes no option"),
        ("uplink", "exakt", "did you mean 'exact'"),
        ("radius", "papr", "did you mean 'paper'"),
        ("participation", "wait", "wait:0.8"),
        *((kind, given, "must be one of") for kind in KINDS for given in ("", None, 3, True, [[]])),
    ],
)
def test_bad_names(kind: str, given: object, words: str) -> None:
    refused(lambda: KINDS[kind].parse(given), kind, words)
