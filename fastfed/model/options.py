"""Options that several functions share: written once, in a TypedDict, and shown by each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from fastfed.errors import nearest

_F = TypeVar("_F", bound=Callable[..., Any])


def takes(options: type, defaults: Mapping[str, Any]) -> Callable[[_F], _F]:
    """Make the keys of a TypedDict keyword parameters of a function that takes ``**options``.

    The function gets a value for each of them: the given one, or its default. `help` shows them as
    if they were written in the signature, and a name that is none of them is a `TypeError`.
    """

    def decorate(function: _F) -> _F:
        own = inspect.signature(function)
        named = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
        shared = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults[name],
                annotation=getattr(hint, "__forward_arg__", hint),
            )
            for name, hint in options.__annotations__.items()
        ]
        known = [one.name for one in (*named, *shared)]

        @wraps(function)
        def complete(*arguments: Any, **given: Any) -> Any:
            for name in given:
                if name not in known:
                    raise TypeError(
                        f"{function.__name__}() got an unexpected keyword argument {name!r}"
                        f"{nearest(name, known)}"
                    )
            return function(*arguments, **{one.name: defaults[one.name] for one in shared} | given)

        complete.__signature__ = own.replace(parameters=[*named, *shared])  # type: ignore[attr-defined]
        return complete  # type: ignore[return-value]

    return decorate
