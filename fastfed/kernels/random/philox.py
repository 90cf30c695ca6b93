"""Philox4x64-10, a counter-based random generator.

It is by Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).

A block is a bijection of (counter, key) to four 64-bit words: no state, so any word of any trial
can be had alone. Bit for bit what ``numpy.random.Philox`` gives; NumPy adds one to its counter
before it draws.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic

from fastfed.kernels.compiling import inner

_M0 = uint64(0xD2E7470EE14C6C93)
_M1 = uint64(0xCA5A826395121157)
_W0 = uint64(0x9E3779B97F4A7C15)
_W1 = uint64(0xBB67AE8584CAA73B)


@intrinsic
def multiply_wide(typing_context, a, b):
    """Return the (high, low) words of the 128-bit product, by one machine instruction."""
    signature = types.UniTuple(types.uint64, 2)(types.uint64, types.uint64)

    def generate(context, builder, signature, arguments):
        wide = ir.IntType(128)
        word = ir.IntType(64)
        a, b = (builder.zext(value, wide) for value in arguments)
        product = builder.mul(a, b)
        low = builder.trunc(product, word)
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return context.make_tuple(builder, signature.return_type, (high, low))

    return signature, generate


@inner
def philox(key0, key1, c0, c1, c2, c3):
    """Return the four words of counter (c0, c1, c2, c3) under the key (key0, key1); all uint64."""
    for _ in range(10):
        high0, low0 = multiply_wide(_M0, c0)
        high1, low1 = multiply_wide(_M1, c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ key0, low1, high0 ^ c3 ^ key1, low0
        key0 += _W0
        key1 += _W1
    return c0, c1, c2, c3
