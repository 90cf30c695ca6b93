"""Parts of other packages, which are found by their entry points.

A package that defines parts (`fastfed.model.part`) names the module in its ``pyproject.toml``:

    [project.entry-points."fastfed.parts"]
    mine = "my_package.my_module"

The modules are imported when a name is asked for that no family has yet. So every process in which
the package is installed knows its parts by name: the command line, and the workers of a cluster.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fastfed.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "fastfed.parts"


@cache
def packages() -> frozenset[str]:
    """Return the installed packages, by the name of their import, that have parts."""
    return frozenset(point.module.partition(".")[0] for point in _points())


@cache
def load() -> None:
    """Import the modules that installed packages name, so that their parts are known."""
    for point in _points():
        try:
            point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a module may end the process, too
            reason = " ".join(str(error).split()) or type(error).__name__
            package = point.dist.name if point.dist else "a package"
            raise InputError(
                f"entry point {point.name} = {point.value} of {package}: cannot be loaded "
                f"({reason}); mend or uninstall the package"
            ) from None


def _points() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points

    try:
        return tuple(entry_points(group=GROUP))
    except Exception as error:  # of whatever kind the parser raises
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"entry points of an installed package: cannot be read ({reason}); install the package "
            "with a damaged entry_points.txt again"
        ) from None
