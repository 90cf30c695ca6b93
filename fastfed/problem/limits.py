"""What follows from an instance and the choices of a run: its confidence scale, its radii, how far
a trial can be followed, and which combinations are refused."""

from __future__ import annotations

from typing import NamedTuple

from fastfed.errors import InputError
from fastfed.goals import Goal
from fastfed.problem.instance import Instance
from fastfed.radius import Confidence, Radius
from fastfed.uplinks import Uplink
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


class Rules(NamedTuple):
    """What a run has chosen: see `fastfed.choices`."""

    radius: Radius
    goal: Goal
    uplink: Uplink


class Radii(NamedTuple):
    """The radii of a run."""

    client: Confidence  # of an arm's empirical mean at one client
    means: Confidence  # of the mean over all clients, if the server heard it exactly
    server: Confidence  # of what the server hears of that mean: wider, if messages are coarse


def resolve_radii(instance: Instance, delta: float, sigma: float, rules: Rules) -> Radii:
    """The radii at a client and at the server."""
    arms, clients = instance.shape
    pairs = rules.goal.pairs(arms)
    means = rules.radius.at_server(arms, clients, delta, sigma, pairs)
    return Radii(
        rules.radius.at_client(arms, clients, delta, sigma, pairs),
        means,
        rules.uplink.widened(means),
    )


def refuse_unfit(instance: Instance, rules: Rules) -> None:
    """Refuse a goal that has no answer on the instance, or that does not go with the radius."""
    rules.goal.refuse_radius(rules.radius)
    rules.goal.check(instance)


def refuse_endless(instance: Instance, delta: float, sigma: float, rules: Rules) -> None:
    """Refuse gaps that the confidence radii do not resolve before the last step that a trial may
    reach."""
    goal = rules.goal
    if not goal.is_open(instance.shape[0]):
        return
    limit = most_steps(instance)
    radii = resolve_radii(instance, delta, sigma, rules)
    local_gaps, global_gaps = goal.local_gaps(instance), goal.global_gaps(instance)
    hardest = int(local_gaps.min(axis=0).argmin())
    for gap, confidence, where in (
        (float(local_gaps.min()), radii.client, f"client {instance.clients[hardest]}"),
        (float(global_gaps.min()), radii.server, "the mean over clients"),
    ):
        steps = confidence.resolved_by(gap)
        if steps > limit:
            raise InputError(
                f"gap {gap:.3g} {goal.gap_text} of {where} in {instance.name}: too "
                f"small, a trial could need {steps:.2g} steps and the limit is {limit:,}; make the "
                "gap larger, or set max_steps to get truncated trials"
            )
