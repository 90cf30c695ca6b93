"""Settings: everything that the rows of a run depend on, checked in one place.

A `Setting` carries objects and is what runs. Its `key` is a `Cell` (`model.cell`), which says the
same by names.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from fastfed.confidence import Confidence
from fastfed.errors import InputError
from fastfed.model.cell import Cell
from fastfed.model.choices import DEFAULTS, Choices, ChosenParts, parts_of
from fastfed.model.goals import Goal
from fastfed.model.instance import Instance
from fastfed.model.options import takes
from fastfed.model.part import Part
from fastfed.model.radii import Betting
from fastfed.model.weights import ArmScales
from fastfed.validation import (
    checked_delta,
    checked_engine,
    checked_max_steps,
    checked_seed,
    checked_sigma,
    refuse_odd_scale,
)

Floats = npt.NDArray[np.float64]


def resolve_sigma(instance: Instance, sigma: object) -> float:
    """Return the confidence scale that an option stands for.

    The option is a number, "proxy" for half the range of rewards, or None for the instance's own
    scale.
    """
    if sigma is None:
        return instance.default_sigma
    checked = checked_sigma(sigma)
    if not isinstance(checked, str):
        return checked
    half = instance.proxy_sigma
    refuse_odd_scale(half, half, "half the range of the rewards must be above 0; give a number")
    return half


def small_scale(settings: Iterable[Setting]) -> str | None:
    """Say that the confidence scale of some settings is too small for their rewards, if it is.

    It is too small below the default scale of the rewards and below the scale for which the
    guarantee is proved.
    """
    for one in settings:
        if isinstance(one.radius, Betting):  # it has no scale
            continue
        needed = one.instance.default_sigma
        with contextlib.suppress(InputError):  # Poisson rewards have no scale that is proved
            needed = min(needed, one.instance.proxy_sigma)
        if one.sigma < needed:
            return (
                f"sigma {one.sigma:g} is too small for the rewards of {one.instance.name}, which "
                f"need {needed:g}: answers may be wrong more often than delta allows"
            )
    return None


class Radii(NamedTuple):
    """Confidence radii of a setting, at the clients and at the server.

    ``server`` belongs to the question with the largest effective number of clients, which has the
    smallest radius and the largest boundary in sums (`fastfed.model.weights`). `of` returns those
    of the other questions.
    """

    client: Confidence  # of an arm's empirical mean at one client
    means: Confidence  # of the value of an arm, if the server receives all means exactly
    server: Confidence  # of what the server receives of that: wider, if messages are coarse
    questions: tuple[Confidence, ...]  # the same for each question
    clients: int

    def of(self, question: int) -> Confidence:
        """Return the radius of what the server receives in a question."""
        return self.questions[question]

    @property
    def message_mass(self) -> float:
        """The largest sum of the weights of clients in a question, as the kernels scale them."""
        return math.sqrt(self.clients * self.means.walks)

    @property
    def sums(self) -> tuple[Confidence, ...]:
        """The radii whose boundaries the kernels compare the sums of questions with."""
        return tuple(replace(one, walks=float(self.clients)) for one in self.questions)

    @property
    def largest_sums(self) -> Confidence:
        """The radius that has the largest of these boundaries."""
        return replace(self.server, walks=float(self.clients))


class _Run(TypedDict, total=False):
    seed: int
    engine: str
    sigma: float | str | None
    max_steps: int | None


class Options(_Run, Choices, total=False):
    """Options of a run that all its rows have in common, for every function that runs trials."""


RUN: dict[str, Any] = {"seed": 0, "engine": "auto", "sigma": None, "max_steps": None, **DEFAULTS}
"""Defaults of `Options`."""


_LAST = 64
"""Settings whose radii and kernels are remembered, those that were used last: 1 kB each."""


@dataclass(frozen=True)
class Setting(ChosenParts):
    """All that the rows of a run depend on, besides schedules and trials."""

    instance: Instance
    delta: float
    sigma: float
    seed: int = 0
    engine: str = "auto"
    max_steps: int | None = None

    @classmethod
    @takes(Options, RUN)
    def of(cls, instance: Instance, *, delta: float, **options: Unpack[Options]) -> Setting:
        """Make a setting from what a user gives; refuse what cannot be run."""
        if not isinstance(instance, Instance):
            raise InputError(
                f"instance {instance!r}: must be a fastfed.Instance; "
                "Instance.load(...) makes one from a name or a file"
            )
        max_steps = options["max_steps"]
        made = cls(
            instance,
            checked_delta(delta),
            resolve_sigma(instance, options["sigma"]),
            checked_seed(options["seed"]),
            checked_engine(options["engine"]),
            None if max_steps is None else checked_max_steps(max_steps, instance.most_steps),
            **parts_of(options),
        )
        made.refuse_unfit()
        if max_steps is None:
            made.refuse_endless()
        return made

    @cached_property
    def key(self) -> Cell:
        """The setting by names."""
        return Cell(
            self.instance.name,
            self.instance.digest,
            self.delta,
            self.sigma,
            self.seed,
            self.engine,  # type: ignore[arg-type]
            self.max_steps,
            **self.choices,
        )

    @property
    def choices(self) -> dict[str, str]:
        """Names of the choices."""
        return {name: str(getattr(self, name)) for name in DEFAULTS}

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts: rewards and choices."""
        return (self.instance.rewards, *(getattr(self, name) for name in DEFAULTS))

    @property
    def last_step(self) -> int:
        """The step at which a trial is cut off, or beyond which it cannot be followed."""
        return self.instance.most_steps if self.max_steps is None else self.max_steps

    @property
    @lru_cache(maxsize=_LAST)  # noqa: B019 - it holds few settings, and a grid may have 100,000
    def radii(self) -> Radii:
        """The radii at a client and at the server."""
        (arms, clients), questions = self.instance.shape, self.instance.questions
        sizes = questions.candidates.sum(axis=1).tolist()
        at_size = {  # the budget of a question is shared among its own candidates
            size: self.radius.at_server(
                size, 1.0, self.delta * questions.server_share, self.sigma, self.goal.pairs(size)
            )
            for size in set(sizes)
        }
        each = [
            replace(at_size[size], walks=one)
            for size, one in zip(sizes, questions.effective.tolist(), strict=True)
        ]
        means = each[int(np.argmax(questions.effective))]
        return Radii(
            self.radius.at_client(arms, clients, self.delta, self.sigma, self.goal.pairs(arms)),
            means,
            self.uplink.widened(means),
            tuple(map(self.uplink.widened, each)),
            clients,
        )

    def scales(self, question: int) -> ArmScales:
        """Return the factors by which arms that not every client has widen a question's radius."""
        return self.instance.questions.scales(question, self.radius.pairs)

    @property
    def kernels(self) -> dict[str, Any]:
        """The choices as compiled code takes them."""
        return {kind: getattr(self, kind).kernel(self) for kind in DEFAULTS}

    @property
    @lru_cache(maxsize=_LAST)  # noqa: B019
    def reward_kernel(self) -> Any:
        """The rewards as compiled code takes them, made once."""
        return self.instance.rewards.kernel(self)

    def refuse_unfit(self) -> None:
        """Refuse parts that do not go with each other, or with the instance."""
        for part in self.parts:
            part.refuse(self)
        if not self.instance.questions.full and (
            self.participation.at_random or self.uplink.visits_rounds
        ):
            chosen = "participation" if self.participation.at_random else "uplink"
            raise InputError(
                f"{self.instance.name}: some clients lack arms, and {chosen} "
                f"{getattr(self, chosen)} is for clients that have all of them; use "
                f"{DEFAULTS[chosen]}"
            )

    def _hardest(self, question: int, gaps: Floats) -> tuple[float, Confidence]:
        """Return the gap and the radius of the arm of a question that takes most steps."""
        wide = self.bound_scales(question)
        hardest = int(np.argmin(gaps / wide))
        return float(gaps[hardest]), self.radii.of(question).scaled(float(wide[hardest]))

    def bound_scales(self, question: int) -> Floats:
        """Return the factor of alpha with which each arm's gap bounds its steps, (K,)."""
        values = self.instance.values[question]
        there = np.flatnonzero(~np.isnan(values))
        found = np.ones(len(values))
        scales = self.scales(question)
        if scales.arms is not None and self.goal.is_open(len(there)):
            some = scales._replace(arms=scales.arms[there])
            found[there] = self.goal.bound_scales(values[there], some)
        return found

    def refuse_endless(self) -> None:
        """Refuse gaps that the radii do not resolve before the last step of a trial."""
        instance, goal, limit = self.instance, self.goal, self.instance.most_steps
        if not goal.is_open(instance.shape[0]):
            return
        if isinstance(self.radius, Betting):
            self.radius.refuse_endless(self)
            return
        server_gaps, local_gaps = _gaps(goal, instance)
        asked = [
            (*self._hardest(question, gaps), instance.questions.text(question))
            for question, gaps in enumerate(server_gaps)
        ]
        if local_gaps is not None:
            hardest = instance.clients[int(local_gaps.min(axis=0).argmin())]
            asked.insert(0, (float(local_gaps.min()), self.radii.client, f"client {hardest}"))
        for gap, confidence, where in asked:
            steps = confidence.resolved_by(gap)
            if steps > limit:
                raise InputError(
                    f"gap {gap:.3g} {goal.gap_text} of {where} in {instance.name}: too "
                    f"small, a trial could need {steps:.2g} steps and the limit is {limit:,}; make "
                    "the gap larger, or set max_steps to get truncated trials"
                )


@lru_cache(maxsize=4)
def _gaps(goal: Goal, instance: Instance) -> tuple[Floats, Floats | None]:
    """Return the gaps of the server and those of the clients, which are the same for all deltas."""
    local = goal.local_gaps(instance) if instance.questions.local else None
    return goal.server_gaps(instance), local
