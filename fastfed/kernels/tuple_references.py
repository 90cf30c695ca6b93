"""References: named tuples that kernels pass on as one address.

Numba passes a tuple by value: pointers, shapes and strides of every array in it, seven LLVM values
or more each, at every call that is not inlined. All memory of a pass is some 250 of them. As a
reference a tuple is one value. Reading a field loads that field alone; a field that is a named
tuple itself is read as a reference into the same memory. With references FedElim's trials take 14 %
less time, and compiling them a fifth less.

Arrays are read as `kernel_arrays`. A reference lives as long as the function that made it; if that
is inlined, as long as its body. So no function returns a reference that it made, nor a tuple
that holds one: it returns the tuple that is referred to, and its caller makes the reference.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
)

from fastfed.kernels.kernel_arrays import KernelArray, kernel_type, made_of, words_of

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
_WORD_BYTES = 8


class _Field(NamedTuple):
    """A field of a tuple, as a reference reads it."""

    place: int
    kind: Any
    lies_inside: bool  # a named tuple, which lies in the memory of the one that has it


class Reference(types.Type):
    """Numba's type of a reference to a named tuple."""

    def __init__(self, whole: Any) -> None:
        self.whole = whole
        self.instance_class = whole.instance_class  # generic functions choose by it
        # the name becomes part of every symbol, and a tuple's own has thousands of characters
        digest = hashlib.sha256(whole.name.encode()).hexdigest()[:12]
        super().__init__(f"Reference({whole.instance_class.__name__}, {digest})")
        self.offsets: list[int] = []  # set by `_offsets`
        self.fields = {
            name: _Field(place, Reference(kind), True)
            if isinstance(kind, types.BaseNamedTuple)
            else _Field(place, kernel_type(kind), False)
            for place, (name, kind) in enumerate(zip(whole.fields, whole.types, strict=True))
        }

    @property
    def key(self) -> Any:
        """The tuple's type: two classes of one name differ."""
        return self.whole


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, _BYTE.as_pointer())


@infer_getattr
class _ReferenceFields(AttributeTemplate):
    key = Reference

    def generic_resolve(  # type: ignore[override]
        self, kind: Reference, name: str
    ) -> Any:
        return kind.fields[name].kind if name in kind.fields else None


def _offsets(context: Any, kind: Reference) -> list[int]:
    """Return the offset of each field in bytes, and the size of all: every field begins a word."""
    if not kind.offsets:
        made = [0]
        for field in kind.fields.values():
            if field.lies_inside:
                size = _offsets(context, field.kind)[-1]
            else:
                size = context.get_abi_sizeof(context.get_value_type(field.kind))
            made.append(made[-1] + -(-size // _WORD_BYTES) * _WORD_BYTES)
        kind.offsets = made
    return kind.offsets


def _address_of(context: Any, builder: Any, kind: Reference, address: Any, place: int) -> Any:
    """Return the address of a field, as one of bytes."""
    offset = ir.Constant(_WORD, _offsets(context, kind)[place])
    return builder.gep(address, [offset], inbounds=True)


@lower_getattr_generic(Reference)
def _read_field(context: Any, builder: Any, kind: Reference, address: Any, name: str) -> Any:
    field = kind.fields[name]
    at = _address_of(context, builder, kind, address, field.place)
    if field.lies_inside:
        return at
    if not isinstance(field.kind, KernelArray):
        value = _load(builder, at, context.get_value_type(field.kind))
        # counts the owner of an array with strides, where Numba counts references
        return impl_ret_borrowed(context, builder, field.kind, value)
    data = context.get_data_type(field.kind.dtype).as_pointer()
    kinds = [data] + [_WORD] * field.kind.ndim
    words = [_load(builder, _word_at(builder, at, i), one) for i, one in enumerate(kinds)]
    return made_of(context, builder, field.kind, words)


def _word_at(builder: Any, address: Any, place: int) -> Any:
    return builder.gep(address, [ir.Constant(_WORD, place * _WORD_BYTES)], inbounds=True)


def _load(builder: Any, address: Any, kind: Any) -> Any:
    return builder.load(builder.bitcast(address, kind.as_pointer()))


def _store(builder: Any, value: Any, address: Any) -> None:
    at = builder.bitcast(address, value.type.as_pointer())
    builder.store(value, at)


def _write_fields(
    context: Any, builder: Any, kind: Reference, whole: Any, value: Any, address: Any
) -> None:
    for field, own in zip(kind.fields.values(), whole.types, strict=True):
        at = _address_of(context, builder, kind, address, field.place)
        part = builder.extract_value(value, field.place)
        if field.lies_inside:
            _write_fields(context, builder, field.kind, own, part, at)
        elif isinstance(field.kind, KernelArray):
            for i, word in enumerate(words_of(context, builder, own, part)):
                _store(builder, word, _word_at(builder, at, i))
        else:
            _store(builder, part, at)


def _by_reference(typing_context: Any, whole: Any) -> Any:
    """Return a reference to a named tuple."""
    kind = Reference(whole)

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = ir.ArrayType(_WORD, _offsets(context, kind)[-1] // _WORD_BYTES)
        address = builder.bitcast(cgutils.alloca_once(builder, words), _BYTE.as_pointer())
        _write_fields(context, builder, kind, whole, args[0], address)
        return address

    return kind(whole), make


by_reference: Any = intrinsic(_by_reference)
