"""Settings: everything that the rows of a run depend on, checked in one place.

A `Setting` carries objects and is what runs. Its `key` is a `Cell` (`model.cell`), which says the
same by names.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypedDict, Unpack

from fastfed.confidence import Confidence
from fastfed.errors import InputError
from fastfed.model.cell import Cell
from fastfed.model.choices import DEFAULTS, Choices, ChosenParts, parts_of
from fastfed.model.instance import Instance
from fastfed.model.options import takes
from fastfed.model.part import Part
from fastfed.validation import (
    checked_delta,
    checked_engine,
    checked_max_steps,
    checked_seed,
    checked_sigma,
)


def resolve_sigma(instance: Instance, sigma: object) -> float:
    """Return the confidence scale that an option stands for.

    The option is a number, "proxy" for half the range of rewards, or None for the instance's own
    scale.
    """
    if sigma is None:
        return instance.default_sigma
    checked = checked_sigma(sigma)
    return instance.proxy_sigma if isinstance(checked, str) else checked


class Radii(NamedTuple):
    """Confidence radii of a setting, at the clients and at the server.

    ``server`` belongs to the question with the largest effective number of clients, which has the
    smallest radius (`fastfed.model.weights`). `of` returns those of the other questions.
    """

    client: Confidence  # of an arm's empirical mean at one client
    means: Confidence  # of the value of an arm, if the server receives all means exactly
    server: Confidence  # of what the server receives of that: wider, if messages are coarse
    effective: tuple[float, ...]  # the effective number of clients in each question
    clients: int

    def of(self, question: int) -> Confidence:
        """Return the radius of what the server receives in a question."""
        return replace(self.server, walks=self.effective[question])

    @property
    def message_mass(self) -> float:
        """The largest sum of the weights of clients in a question, as the kernels scale them."""
        return math.sqrt(self.clients * self.means.walks)

    @property
    def sums(self) -> Confidence:
        """The radius whose boundary the kernels compare sums with, in every question."""
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

    @cached_property
    def radii(self) -> Radii:
        """The radii at a client and at the server."""
        (arms, clients), questions = self.instance.shape, self.instance.questions
        effective, pairs = questions.effective, self.goal.pairs(arms)
        means = self.radius.at_server(
            arms, float(effective.max()), self.delta * questions.server_share, self.sigma, pairs
        )
        return Radii(
            self.radius.at_client(arms, clients, self.delta, self.sigma, pairs),
            means,
            self.uplink.widened(means),
            tuple(effective.tolist()),
            clients,
        )

    @property
    def kernels(self) -> dict[str, Any]:
        """The choices as compiled code takes them."""
        return {kind: getattr(self, kind).kernel(self) for kind in DEFAULTS}

    @cached_property
    def reward_kernel(self) -> Any:
        """The rewards as compiled code takes them, made once."""
        return self.instance.rewards.kernel(self)

    def refuse_unfit(self) -> None:
        """Refuse a goal that has no answer on the instance, or that does not suit the radius."""
        self.goal.refuse_radius(self.radius)
        self.goal.check(self.instance)

    def refuse_endless(self) -> None:
        """Refuse gaps that the radii do not resolve before the last step of a trial."""
        instance, goal, limit = self.instance, self.goal, self.instance.most_steps
        if not goal.is_open(instance.shape[0]):
            return
        asked = [
            (float(gaps.min()), self.radii.of(question), instance.questions.text(question))
            for question, gaps in enumerate(goal.server_gaps(instance))
        ]
        if instance.questions.local:
            local_gaps = goal.local_gaps(instance)
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
