"""The cores of this machine as an executor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fastfed.simulation.machine import MANY_CELLS, Machine
from fastfed.sweeps import task as tasks
from fastfed.sweeps.task import Bundle, Done, Plan, Task

if TYPE_CHECKING:
    from fastfed.sweeps.grid import Grid


class Threads:
    """The cores of this machine. Kernels run without the GIL, so threads are enough."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def refuse_early(self, grid: Grid) -> None:
        large = [one for one in grid.settings if one.instance.means.size > MANY_CELLS]
        # the first setting of each instance, whose job is kept for its tasks
        for setting in {one.instance.name: one for one in reversed(large)}.values():
            tasks.need_of(Task(setting, tuple(grid.schedules), 0, 0))

    def _need(self, bundle: Bundle) -> int:
        """Return the bytes that a bundle of large trials takes; small ones fit into any machine."""
        large = [one for one in bundle.tasks if one.setting.instance.means.size > MANY_CELLS]
        return max(map(tasks.need_of, large), default=0)

    def run(self, plan: Plan) -> Iterator[Done | None]:
        from fastfed.simulation.job import new_control

        def offer() -> tuple[Bundle, int] | None:
            bundle = plan.next_bundle(self.workers)
            return None if bundle is None else (bundle, self._need(bundle))

        machine: Machine[Bundle] = Machine(self.workers)
        for done in machine.run(offer, tasks.perform, new_control()):
            if done is not None:
                plan.record(done)
            yield done
