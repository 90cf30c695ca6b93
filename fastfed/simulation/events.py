"""Events of a replayed trial."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """At ``step``, ``actor`` (a client's name, or "server") eliminates an arm or declares it.

    ``mean`` is the arm's empirical mean there (at the server, of what it has heard), ``leader`` the
    leader's among those that were left, ``threshold`` 2 alpha: an arm is eliminated when leader -
    mean >= threshold (what other goals than the best arm decide by is said in their files; with
    thresholds no arm has a leader). With goals whose answer is a set of arms, an arm is "accepted"
    into it or "rejected". ``pulls`` and ``uplinks`` are spent so far, this step included.

    A server that chooses its times has an event "next at N" for each choice. ``arm`` lists the arms
    that would be eliminated at N if all means stayed as they are, and ``threshold`` is that of N.
    "(LO)" or "(HI)" follows where the smallest or the largest factor decided.

    An algorithm that decides in rounds has an event "round N" for each round. ``arm`` lists the
    arms that some client pulls next, and ``step`` is the largest number of pulls of an arm.
    """

    step: int
    actor: str
    event: str
    arm: str
    mean: float | None = None
    leader: float | None = None
    threshold: float | None = None
    pulls: int = 0
    uplinks: int = 0
