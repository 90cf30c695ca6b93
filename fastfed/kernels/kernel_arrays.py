"""Arrays as kernels see them: an address and a shape.

A reference (`tuple_references`) hands arrays on as this type. Numba's own arrays carry their owner,
strides and sizes as well, and every index may be below 0, to count from the end. Kernels need
none of that: their arrays are contiguous, are kept by the caller, and have indices of 0 or more. An
element of a matrix is then one multiplication, one addition and one load, and LLVM has 30 % fewer
instructions to optimise.

Supported are full indices, fewer indices (a view of the rest), ``shape`` and `fill`. Where the
environment has NUMBA_BOUNDSCHECK=1, indices are checked, and those below 0 are refused.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_global,
    signature,
)
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_builtin,
    lower_getattr,
    models,
    register_model,
)


class KernelArray(types.Type):
    """Numba's type of an array of kernels."""

    def __init__(self, dtype: Any, ndim: int, mutable: bool) -> None:
        self.dtype, self.ndim, self.mutable = dtype, ndim, mutable
        super().__init__(f"{'' if mutable else 'readonly '}KernelArray({dtype}, {ndim})")


def kernel_type(kind: Any) -> Any:
    """Return the type by which kernels read a field: contiguous arrays become `KernelArray`."""
    if isinstance(kind, types.Array) and kind.layout == "C" and kind.aligned and kind.ndim > 0:
        return KernelArray(kind.dtype, kind.ndim, kind.mutable)
    return kind


@register_model(KernelArray)
class _KernelArrayModel(models.StructModel):
    def __init__(self, manager: Any, kind: KernelArray) -> None:
        shape = types.UniTuple(types.intp, kind.ndim)
        super().__init__(manager, kind, [("data", types.CPointer(kind.dtype)), ("shape", shape)])


def words_of(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """Return the address and the shape of an array, as LLVM values."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        return [array.data, *cgutils.unpack_tuple(builder, array.shape, kind.ndim)]
    return [
        builder.extract_value(value, 0),
        *(builder.extract_value(value, (1, i)) for i in range(kind.ndim)),
    ]


def made_of(context: Any, builder: Any, kind: KernelArray, words: list[Any]) -> Any:
    """Make an array of its address and its shape."""
    value = builder.insert_value(
        ir.Constant(context.get_value_type(kind), ir.Undefined), words[0], 0
    )
    for i, length in enumerate(words[1:]):
        value = builder.insert_value(value, length, (1, i))
    return value


@infer_getattr
class _Attributes(AttributeTemplate):
    key = KernelArray

    def resolve_shape(self, array: KernelArray) -> Any:
        return types.UniTuple(types.intp, array.ndim)


@lower_getattr(KernelArray, "shape")
def _shape(context: Any, builder: Any, kind: KernelArray, value: Any) -> Any:
    return builder.extract_value(value, 1)


def _indices(index: Any) -> tuple[Any, ...]:
    """Return the types of the indices; empty if they are no integers."""
    found = index.types if isinstance(index, types.Tuple | types.UniTuple) else (index,)
    return found if all(isinstance(one, types.Integer) for one in found) else ()


@infer_global(operator.getitem)
class _Get(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        array, index = args
        if isinstance(array, KernelArray) and 0 < (count := len(_indices(index))) <= array.ndim:
            rest = array.ndim - count
            found = KernelArray(array.dtype, rest, array.mutable) if rest else array.dtype
            return signature(found, array, index)
        return None


@infer_global(operator.setitem)
class _Set(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        array, index, _ = args
        if not (isinstance(array, KernelArray) and array.mutable):
            return None
        if len(_indices(index)) == array.ndim:
            return signature(types.none, array, index, array.dtype)
        return None


def _find(context: Any, builder: Any, kinds: Any, values: Any) -> tuple[Any, list[Any]]:
    """Return the address of an element, or of the first of a view, and the shape of the view."""
    array, index = kinds[:2]
    data, *shape = words_of(context, builder, array, values[0])
    places = [values[1]]
    if isinstance(index, types.BaseTuple):
        places = cgutils.unpack_tuple(builder, values[1], len(index))
    offset = None
    for kind, place, length in zip(_indices(index), places, shape, strict=False):
        step = context.cast(builder, place, kind, types.intp)
        if context.enable_boundscheck:  # NUMBA_BOUNDSCHECK=1
            cgutils.do_boundscheck(context, builder, step, length)
        if offset is not None:
            step = builder.add(builder.mul(offset, length, flags=("nsw",)), step, flags=("nsw",))
        offset = step
    rest = shape[len(places) :]
    for length in rest:
        offset = builder.mul(offset, length, flags=("nsw",))
    return builder.gep(data, [offset], inbounds=True), rest


@lower_builtin(operator.getitem, KernelArray, types.Integer)
@lower_builtin(operator.getitem, KernelArray, types.BaseTuple)
def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    at, rest = _find(context, builder, sig.args, args)
    if rest:
        return made_of(context, builder, sig.return_type, [at, *rest])
    value = builder.load(at)
    return context.data_model_manager[sig.return_type].from_data(builder, value)


@lower_builtin(operator.setitem, KernelArray, types.Integer, types.Any)
@lower_builtin(operator.setitem, KernelArray, types.BaseTuple, types.Any)
def _set(context: Any, builder: Any, sig: Any, args: Any) -> None:
    at, _ = _find(context, builder, sig.args, args)
    _store(context, builder, sig.args[0], args[2], at)


def _store(context: Any, builder: Any, array: KernelArray, value: Any, at: Any) -> None:
    stored = context.data_model_manager[array.dtype].as_data(builder, value)
    builder.store(stored, at)


def _fill(typing_context: Any, array: Any, value: Any) -> Any:
    """Set all elements of an array to a value."""
    if not (isinstance(array, KernelArray) and array.mutable):
        return None

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data, *shape = words_of(context, builder, array, args[0])
        with cgutils.for_range(builder, reduce(builder.mul, shape)) as loop:
            _store(context, builder, array, args[1], builder.gep(data, [loop.index], inbounds=True))
        return context.get_dummy_value()

    return types.none(array, array.dtype), write


fill: Any = intrinsic(_fill)
