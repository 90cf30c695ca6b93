"""The peak of memory during one benchmark. Imports nothing heavy: fresh processes use it too."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path

STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def watch() -> Callable[[], dict[str, float]]:
    """Begin to watch this process; the function returned tells the peak since, as `extra_info`.

    Linux can forget its peak so far. Elsewhere the peak is the whole process's, and called so.
    """
    try:
        CLEAR_REFS.write_text("5")
        before = _peak_on_linux()
    except OSError:
        return lambda: {"peak_memory_of_process_MB": _peak_of_process()}
    return lambda: {"peak_memory_MB": max(before, _peak_on_linux()), "memory_before_MB": before}


def _peak_on_linux() -> float:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def _peak_of_process() -> float:
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
