"""The schedule with which the server chooses when to communicate.

At a communication round n the server knows the means of all undecided arms. If these stayed as they
are, each arm would be decided at a step that can be computed, because the radius is known. The next
round is the least step n' >= LO n at which a share of the undecided arms would be decided so, and
HI n if there is none before. The first round is the least n with 2 alpha_g(n) <= FIRST sigma. Times
are kept to the grid of `fastfed.timegrid`. The next time travels on the downlink, which costs
nothing in the paper's model.

*The number of arms.* With U undecided arms the rule waits for ceil(SHARE (U - 1)) of them, at least
one: for the best arm there are U - 1 rivals. "Decided" is the goal's own rule
(`fastfed.model.goals`) at the radius alpha_g(n'), with the means of n: eliminated for `best`;
accepted or rejected for `top`; called above or below for `threshold`; eliminated, or ended by the
stop of the leader, for `eps`. So the rule needs nothing from a goal beyond its `decide`.

*Why delta holds.* The times depend on what was received, so the guarantee must hold at all n
together, and not at each n by itself. It does, for every choice of radius and uplink:

- `paper` is a union bound over all n >= 1: the probability that any mean leaves its radius at any n
  is at most delta, whichever of the n are looked at.
- `stitched`, `mixture` and a user's own bound whole walks: the guarantee in `fastfed.confidence` is
  for all n together. Radii per pair bound the walks of pairs in the same way.
- `exact` messages are the means themselves.
- `round` is off by C0 alpha_g(n) at most, surely, at every n: what is received lies within
  (1 + C0) alpha_g(n) wherever the mean lies within alpha_g(n).
- `dither` with the paper's radius: give every n its dither, whether a message is sent at n or not.
  The message that would be sent at n is then sub-Gaussian at each n, with the widened scale, and
  the union over all n >= 1 is that of the paper's radius. So all messages that could be sent are
  within the widened radius together, and the chosen ones among them. (That the dither at a chosen
  time is independent of the choice is true, and not needed.)
- `dither` with any other radius uses the sure bound D / 2, at every n.

Nothing has to be fixed beforehand, so nothing is refused. On the event of each line the server
eliminates no best arm, at whatever times it looks; the clients look at every step as ever.

*Why costs are bounded.* On the good event arm k is settled at the first round at or after n_k. Two
rounds are at most a factor HI apart, so that round is before HI n_k, or the first. Two rounds are
at least a factor LO apart, so at most 1 + log(n_k / n_1) / log(LO) rounds come before n_k:
`fastfed.theory.bounds` sums this up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.confidence import Confidence
from fastfed.errors import InputError
from fastfed.model.part import plain
from fastfed.model.part_options import option
from fastfed.model.schedules.base import Schedule, Timetable
from fastfed.timegrid import PARTS, place_from, place_until, step_at
from fastfed.validation import MAX_STEPS, shown

if TYPE_CHECKING:
    from fastfed.model.setting import Setting

HI, LO, FIRST, SHARE = 4.0, 1.1, 2.0, 0.3
"""The defaults: see docs/explanation/adaptive.md for the study that chose them."""
_MOST = 1e6  # of every option


class Choice(NamedTuple):
    """A chosen communication time."""

    step: int
    wanted: int
    """The number of arms that the server waits for."""
    reason: str
    """Empty if so many would be decided at the step and not before; "LO" if that is so at the least
    step allowed, "HI" if it is not so at the last step allowed."""


@dataclass(frozen=True, eq=False, repr=False)
class Adaptive(Schedule):
    """At times that the server chooses from the means that it has received.

    The server communicates next at the step at which a share of the undecided arms would be
    decided if all means stayed as they are; not before LO times the present step, and not after HI
    times it.

    Parameters
    ----------
    hi
        HI, the largest factor from one time to the next.
    lo
        LO, the smallest factor, above 1.
    first
        FIRST: the first time is the least n with 2 alpha(n) <= FIRST sigma, where alpha is the
        server's radius and sigma the confidence scale.
    share
        SHARE of the undecided arms that a time waits for, from 0 (one arm) to 1 (all but one).

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Adaptive()), str(ff.Adaptive(8)), str(ff.Adaptive(share=0))
    ('adaptive', 'adaptive:8', 'adaptive:4,1.1,2,0')
    >>> done = ff.simulate("synthetic", ["fedelim", "adaptive"], delta=0.01, trials=100)
    >>> pulls = done.summary(costs=[0])["pulls_mean"]
    >>> bool(pulls[1] < pulls[0])
    True
    """

    hi: float = field(default=HI, metadata=option("HI", 1.0, _MOST, above=True))
    lo: float = field(default=LO, metadata=option("LO", 1.0, _MOST, above=True))
    first: float = field(default=FIRST, metadata=option("FIRST", 0.0, _MOST, above=True))
    share: float = field(default=SHARE, metadata=option("SHARE", 0.0, 1.0))

    family = "adaptive"
    example = "adaptive:8,1.2"
    rank = 2
    chosen = True

    def check_options(self) -> None:
        if self.hi < self.lo:
            raise InputError(
                f"schedule adaptive: HI = {plain(self.hi)} is below LO = {plain(self.lo)}; times "
                "grow at least by LO and at most by HI"
            )

    @classmethod
    def given(cls, schedule: object) -> Adaptive:
        """Make the adaptive schedule that a name stands for; refuse other schedules."""
        found = Schedule.parse(schedule)
        if not isinstance(found, Adaptive):
            raise InputError(
                f"adaptive = {shown(schedule)}: must be an adaptive schedule, as in adaptive:8"
            )
        return found

    @property
    def options(self) -> tuple[float, float, float, float]:
        """The options HI, LO, FIRST and SHARE, as numbers."""
        return self.hi, self.lo, self.first, self.share

    @property
    def growth(self) -> float:
        """A factor by which no time exceeds the one before: HI, unless LO and the grid ask more."""
        return max(self.hi, (self.lo + 1.0) * (1.0 + 1.0 / PARTS))

    def times(self, until: int) -> npt.NDArray[np.int64]:
        raise InputError(f"{self} has no list of times: the server chooses them in each trial")

    def first_time(self, server: Confidence, sigma: float) -> int:
        """Return the first time, where ``server`` is the radius of what the server receives."""
        steps = server.resolved_by(2.0 * self.first * sigma)  # alpha <= FIRST sigma / 2
        return step_at(place_from(int(min(steps, MAX_STEPS))))

    def kernel(self, setting: Setting) -> Any:
        """Make the timetable, which has the first time alone; refuse several questions."""
        questions = len(setting.instance.questions)
        if questions > 1:
            raise InputError(
                f"schedule {self}: chooses the times of one question, and {setting.instance.name} "
                f"asks {questions}; give one row of weights, or take another schedule"
            )
        if setting.participation.at_random or setting.uplink.visits_rounds:
            raise InputError(
                f"schedule {self}: chooses its rounds by exact reports of all clients; with uplink "
                f"{setting.uplink} and participation {setting.participation} take another schedule"
            )
        limit = setting.last_step
        first = np.array([self.first_time(setting.radii.server, setting.sigma)])
        choice = (self.hi, self.lo, self.share)
        return Timetable(0, limit, first[first <= limit], limit, choice)

    def wanted(self, undecided: int) -> int:
        """Return the number of arms that the next time waits for."""
        return max(1, math.ceil(self.share * (undecided - 1)))

    def next_time(self, n: int, undecided: int, decided_at: Callable[[int], int]) -> Choice:
        """Choose the communication time after n.

        ``decided_at(n')`` is the number of arms that would be decided at n' with the means of n;
        it never falls with n'.
        """
        wanted = self.wanted(undecided)
        low = place_from(max(n + 1, math.ceil(self.lo * n)))
        high = max(low, place_until(math.floor(min(self.hi * n, 2.0 * MAX_STEPS))))
        if decided_at(step_at(low)) >= wanted:
            return Choice(step_at(low), wanted, "LO")
        if decided_at(step_at(high)) < wanted:
            return Choice(step_at(high), wanted, "HI")
        while high - low > 1:
            middle = (low + high) // 2
            if decided_at(step_at(middle)) >= wanted:
                high = middle
            else:
                low = middle
        return Choice(step_at(high), wanted, "")
