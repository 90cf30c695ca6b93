"""Signatures of functions that share options, as Python shows them: a Griffe extension.

Griffe reads the source, where such a function takes ``**options``. `fastfed.model.options.takes`
gives it a signature with a keyword for each option.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe


class Signatures(griffe.Extension):
    """Write out the shared options of every function that is decorated with `takes`."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Replace ``**options`` by the keywords of the signature."""
        if not any(str(one.value).startswith("takes(") for one in func.decorators):
            return
        found: Any = importlib.import_module(func.module.path)
        for name in func.path.removeprefix(f"{func.module.path}.").split("."):
            found = getattr(found, name)
        func.parameters = griffe.Parameters(
            *(one for one in func.parameters if one.kind is not griffe.ParameterKind.var_keyword),
            *(
                griffe.Parameter(
                    one.name,
                    annotation=one.annotation,
                    kind=griffe.ParameterKind.keyword_only,
                    default=repr(one.default),
                )
                for one in inspect.signature(found).parameters.values()
                if one.name not in func.parameters
            ),
        )
