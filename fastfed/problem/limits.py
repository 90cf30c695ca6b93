"""What a run may ask of an instance: confidence scales, and how far a trial can be followed."""

from __future__ import annotations

from fastfed.errors import InputError
from fastfed.problem.instance import Instance
from fastfed.radius import Radius
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


def refuse_endless(
    instance: Instance, delta: float, sigma: float, radius: Radius, uplink: Uplink
) -> None:
    """Gaps that the confidence radii cannot resolve before the last step that we can count."""
    arms, clients = instance.shape
    if arms == 1:
        return
    limit = most_steps(instance)
    client = int(instance.local_gaps.min(axis=0).argmin())
    for gap, confidence, where in (
        (float(instance.local_gaps.min()), radius.at_client(arms, clients, delta, sigma),
         f"client {instance.clients[client]}"),
        (float(instance.global_gaps.min()),
         uplink.widened(radius.at_server(arms, clients, delta, sigma)),
         "the mean over clients"),
    ):
        steps = confidence.resolved_by(gap)
        if steps > limit:
            raise InputError(
                f"gap {gap:.3g} between the best two arms of {where} in {instance.name}: too "
                f"small, a trial could need {steps:.2g} steps and the limit is {limit:,}; make the "
                "gap larger, or set max_steps to get truncated trials"
            )
