"""Options of files with observed rewards, and the names in refusals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from fastfed.errors import InputError
from fastfed.model.rewards.finite import ABSENT
from fastfed.validation import number


class Reading(NamedTuple):
    """Options of files with observed rewards."""

    empty: float | str | None = None
    columns: Mapping[str, str] = {}
    drop_missing: bool = False

    @classmethod
    def of(
        cls, empty: Any, columns: Mapping[str, str] | None, drop_missing: bool = False
    ) -> Reading:
        """Make the options from what a user gives: ``empty`` is a number, "absent" or None."""
        rule = "must be a number, or 'absent' for arms that a client does not have"
        pays = empty if empty in (None, ABSENT) else number("empty", empty, rule)
        return cls(pays, columns or {}, drop_missing)

    @property
    def given(self) -> bool:
        """Tell whether any option is given."""
        return self.empty is not None or bool(self.columns) or self.drop_missing


@contextmanager
def named(source: object) -> Iterator[None]:
    """Name the source of whatever is refused inside."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
