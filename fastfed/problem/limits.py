"""What a run may ask of an instance: confidence scales, and how far a trial can be followed."""

from __future__ import annotations

from fastfed.errors import InputError
from fastfed.goals import Goal
from fastfed.problem.instance import Instance
from fastfed.radius import Confidence, Radius
from fastfed.validation import checked_sigma


def resolve_sigma(instance: Instance, sigma: object) -> float:
    """The confidence scale: the instance's own, half the range ("proxy"), or the number given."""
    if sigma is None:
        return instance.default_sigma
    checked = checked_sigma(sigma)
    return instance.proxy_sigma if isinstance(checked, str) else checked


def most_steps(instance: Instance) -> int:
    """The last step that a trial may reach: beyond it an int64 could not count the pulls."""
    arms, clients = instance.shape
    return int(min(instance.rewards.most_steps, (2**63 - 1) // (arms * clients)))


def resolve_radii(
    instance: Instance, delta: float, sigma: float, radius: Radius, goal: Goal
) -> tuple[Confidence, Confidence]:
    """The radii at a client and at the server."""
    arms, clients = instance.shape
    pairs = goal.pairs(arms)
    return (radius.at_client(arms, clients, delta, sigma, pairs),
            radius.at_server(arms, clients, delta, sigma, pairs))


def refuse_unfit(instance: Instance, radius: Radius, goal: Goal) -> None:
    """A goal that asks what the instance does not answer, or does not go with the radius."""
    goal.refuse_radius(radius)
    goal.check(instance)


def refuse_endless(
    instance: Instance, delta: float, sigma: float, radius: Radius, goal: Goal
) -> None:
    """Gaps that the confidence radii cannot resolve before the last step that we can count."""
    if not goal.is_open(instance.shape[0]):
        return
    limit = most_steps(instance)
    client, server = resolve_radii(instance, delta, sigma, radius, goal)
    local_gaps, global_gaps = goal.local_gaps(instance), goal.global_gaps(instance)
    hardest = int(local_gaps.min(axis=0).argmin())
    for gap, confidence, where in (
        (float(local_gaps.min()), client, f"client {instance.clients[hardest]}"),
        (float(global_gaps.min()), server, "the mean over clients"),
    ):
        steps = confidence.resolved_by(gap)
        if steps > limit:
            raise InputError(
                f"gap {gap:.3g} {goal.gap_text} of {where} in {instance.name}: too "
                f"small, a trial could need {steps:.2g} steps and the limit is {limit:,}; make the "
                "gap larger, or set max_steps to get truncated trials"
            )
