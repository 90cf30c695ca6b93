"""Calls of compiled functions by their addresses.

An address is a number, so a kernel that receives one is not compiled anew for another function.
Whoever hands an address over must keep the function alive, and must know its arguments.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


@intrinsic
def call_formula(typing_context: Any, address: Any, n: Any, budget: Any) -> Any:
    """Call the C function double f(double n, double budget) at an address."""
    number = types.float64

    def call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        double = ir.DoubleType()
        pointer = ir.FunctionType(double, [double, double]).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], pointer), arguments[1:])

    return number(types.int64, number, number), call
