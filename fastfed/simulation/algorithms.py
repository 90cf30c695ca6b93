"""Trials of algorithms that decide in rounds (`fastfed.model.schedules.algorithm`).

Trials of a batch advance together: at each round the algorithm decides for every trial that goes
on, then `fastfed.kernels.algorithms.advance` checks the decisions and looks up the walks. The
algorithm's function is compiled, or with ``engine="python"`` called as it is: nothing else differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.kernels import algorithms as kernel
from fastfed.kernels import trials
from fastfed.kernels.user_functions import NotCompiled, compiled_loop
from fastfed.model.schedules.algorithm import UNDECIDED, Algorithm, Answer, Seen, read_only
from fastfed.model.setting import Setting
from fastfed.validation import checked_whole

Ints = npt.NDArray[np.int64]

_BATCH_CELLS = 2**16  # K x M x trials that advance together: some 5 MB of state


class RoundRows(NamedTuple):
    """The rows of an algorithm's trials, as arrays."""

    ints: Ints  # (trials, columns)
    draws: Ints  # (trials,)
    pulls: Ints  # (trials, K, M)


Watcher = Callable[[int, kernel.Batch], None]
"""Called with the number of the round and the batch, after the decisions of each round."""


class BrokenRule(InputError):
    """A decision that broke a rule, with the number of its trial."""

    def __init__(self, text: str, trial: int = -1) -> None:
        super().__init__(text)
        self.trial = trial


class RoundsRunner:
    """An algorithm in a setting, ready to run."""

    def __init__(self, setting: Setting, algorithm: Algorithm) -> None:
        algorithm.refuse(setting)
        instance = setting.instance
        arms, clients = instance.shape
        self.algorithm, self._shape = algorithm, (arms, clients)
        self._law = setting.reward_kernel
        goal, averages = setting.goal, instance.averages
        self._terms = kernel.Terms(
            np.uint64(setting.seed),
            np.int64(setting.last_step),
            setting.max_steps is not None,
            np.stack([_right(goal, column) for column in instance.means.T], axis=1),
            _right(goal, averages),
            np.array(instance.available),
            np.array(instance.questions.candidates[0]),
        )
        self._open = goal.is_open(arms)
        self._given = _of_user(algorithm, "prepare", lambda: algorithm.kernel(setting))
        length = _of_user(algorithm, "memory", lambda: algorithm.memory(arms, clients))
        self._memory = checked_whole(f"algorithm {algorithm}: memory", length, 0, 10**9)
        self._plain = setting.engine == "python"
        self._per_batch = max(1, _BATCH_CELLS // (arms * clients))

    def run(
        self, first: int, count: int, control: trials.Control, watch: Watcher | None = None
    ) -> RoundRows:
        """Run trials first .. first + count - 1; those after a stop are left unfinished.

        Raises the `BrokenRule` of the lowest trial that has one, however trials are grouped.
        """
        parts = []
        for start in range(first, first + max(count, 1), self._per_batch):  # no trials: no rows
            end = min(start + self._per_batch, first + count)
            try:
                parts.append(self._run_batch(np.arange(start, end), control, watch))
            except BrokenRule as found:
                # a lower trial may break a rule too, at a later round
                if found.trial > start:
                    self.run(start, found.trial - start, control)
                raise
        return RoundRows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _run_batch(
        self, numbers: Ints, control: trials.Control, watch: Watcher | None
    ) -> RoundRows:
        batch = _new_batch(self._law, len(numbers), *self._shape)
        scratch = np.zeros((len(numbers), self._memory))
        cells = self._shape if self.algorithm.randomised else (0, 0)
        uniforms = np.zeros((len(numbers), *cells))
        law_memory = self._law.memory(0, *self._shape)
        if not self._open:  # a lone arm is declared without a pull
            batch.local_arms[:] = batch.global_arm[:] = 0
        going, round_number = len(numbers), 0
        while going and not control.stop[0]:
            if self._open:
                active = batch.active[:going]
                if self.algorithm.randomised:
                    kernel.draw_uniforms(self._terms.seed, numbers, active, round_number, uniforms)
                own = scratch, read_only(uniforms)
                self._decide(batch, active, round_number, own, numbers)
            if watch is not None:
                watch(round_number, batch)
            going = int(
                kernel.advance(
                    self._law, law_memory, self._terms, batch, numbers, going, round_number
                )
            )
            if going < 0:
                raise self._fault(batch.fault, round_number, numbers)
            round_number += 1
        return RoundRows(batch.ints, batch.draws, batch.counts)

    def _decide(
        self, batch: kernel.Batch, active: Ints, number: int, own: Any, trial_numbers: Ints
    ) -> None:
        """Let the algorithm decide for every active trial."""
        seen = tuple(
            map(read_only, (batch.counts, batch.sums, batch.received_counts, batch.received_sums))
        )
        answers = Answer(batch.targets, batch.sent, batch.local_arms, batch.global_arm)
        if not self._plain:
            given = tuple(self._given)  # Numba joins no named tuples
            self._run_compiled(active, np.int64(number), seen, given, own, answers)
            return
        for i in active:
            known = (number, *(one[i] for one in seen), *self._given, *(one[i] for one in own))
            try:
                with np.errstate(divide="raise", invalid="raise"):
                    self.algorithm.decide(Seen(*known), Answer(*(one[i] for one in answers)))
            except Exception as error:
                raise BrokenRule(
                    f"algorithm {self.algorithm}, round {number} of trial {trial_numbers[i]}: "
                    f"{_in_words(error)}",
                    int(trial_numbers[i]),
                ) from error

    def _run_compiled(self, *arguments: Any) -> None:
        """Decide by compiled code; say in one line what is wrong with it."""
        try:
            compiled_loop(_loop_of, type(self.algorithm).decide)(*arguments)
        except NotCompiled as error:
            raise InputError(
                f"algorithm {self.algorithm}: Numba cannot compile decide ({error}); "
                'engine="python" runs it uncompiled'
            ) from None
        except Exception as error:
            raise InputError(
                f"algorithm {self.algorithm}, round {arguments[1]}: {_in_words(error)}; "
                'engine="python" shows where'
            ) from None

    def _fault(self, fault: Ints, round_number: int, numbers: Ints) -> BrokenRule:
        """Say which rule a decision broke, in which trial."""
        code, place, arm, client, value, before = (int(one) for one in fault)
        arms = self._shape[0]
        target = f"target {value:,} of arm {arm} at client {client} is"
        unknown = f"{value}; arms count from 0 to {arms - 1} (-1: undecided, -2: abandoned)"
        changed = f"{before} and now {value}; a declaration is final"
        text = {
            kernel.TARGET_FALLS: f"{target} below its {before:,} pulls; targets never fall",
            kernel.TARGET_ABSENT: f"{target} above 0, and the client does not have the arm; see "
            "seen.available",
            kernel.LOCAL_ARM_ABSENT: f"client {client} declares arm {value}, which it does not "
            "have; see seen.available",
            kernel.GLOBAL_ARM_ABSENT: f"the server declares arm {value}, which no client with a "
            "weight has",
            kernel.TARGET_TOO_LARGE: f"{target} above the limit of {before:,} pulls; set max_steps "
            "to get truncated trials",
            kernel.LOCAL_ARM_UNKNOWN: f"client {client} declares arm {unknown}",
            kernel.GLOBAL_ARM_UNKNOWN: f"the server declares arm {unknown}",
            kernel.LOCAL_ARM_CHANGED: f"client {client} declared arm {changed}",
            kernel.GLOBAL_ARM_CHANGED: f"the server declared arm {changed}",
            kernel.NO_PULLS: "no target is above the present count, and not everybody has "
            "declared; a trial without pulls never ends",
            kernel.TOO_MANY_ROUNDS: f"more than {before:,} rounds; let targets grow faster",
        }[code]
        trial = int(numbers[place])
        return BrokenRule(
            f"algorithm {self.algorithm}, round {round_number} of trial {trial}: {text}", trial
        )


def _of_user(algorithm: Algorithm, name: str, call: Callable[[], Any]) -> Any:
    """Call a function that a user has written; say in one line what it raises."""
    try:
        return call()
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"algorithm {algorithm}: its {name} raises {_in_words(error)}") from error


def _right(goal: Any, values: Any) -> npt.NDArray[np.bool_]:
    right = goal.right(values)
    return np.array([right.allows({k}) for k in range(len(values))])


def _new_batch(law: Any, count: int, arms: int, clients: int) -> kernel.Batch:
    cells = (count, arms, clients)
    keeps = hasattr(law, "kept_spine")

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, np.int64)

    return kernel.Batch(
        ints(*cells),
        np.zeros(cells),
        ints(*cells),
        np.zeros(cells),
        ints(*cells),
        np.ones(cells, np.bool_),
        np.full((count, clients), UNDECIDED, np.int64),
        np.full((count, 1), UNDECIDED, np.int64),
        np.full((count, clients), UNDECIDED, np.int64),
        np.full((count, 1), UNDECIDED, np.int64),
        ints(count, clients),
        ints(count),
        ints(count, trials.COLUMNS),
        ints(count),
        np.arange(count),
        ints(6),
        law.kept_spine(*cells) if keeps else ints(0, 0, 0, 0, 0),
    )


def _loop_of(decide: Any) -> Any:
    """Return a function that decides for every active trial."""

    def decide_all(active, number, seen, given, own, answers):  # type: ignore[no-untyped-def]
        scratch, uniforms = own
        counts, sums, received_counts, received_sums = seen
        for j in range(active.shape[0]):
            i = active[j]
            values = (counts[i], sums[i], received_counts[i], received_sums[i])
            known = (number, *values) + given + (scratch[i], uniforms[i])  # noqa: RUF005
            decide(
                Seen(*known),
                Answer(
                    answers.targets[i],
                    answers.sent[i],
                    answers.local_arms[i],
                    answers.global_arm[i],
                ),
            )

    return decide_all


def _in_words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
