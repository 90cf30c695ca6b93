"""References: named tuples that kernels pass on as one address.

Numba passes a tuple by value: pointers, shapes and strides of every array in it, seven LLVM values
or more each, at every call that is not inlined. All memory of a pass is some 250 of them. As a
reference a tuple is one value. Reading a field loads that field alone; a field that is a named
tuple itself is read as a reference into the same memory. With references FedElim's trials take 14 %
less time, and compiling them a fifth less.

What a kernel writes might overlap with a tuple, as far as LLVM knows: so a field that a loop reads
becomes a local name ahead of the loop. A reference lives as long as the function that made it; if
that is inlined, as long as its body. So no function returns a reference that it made, nor a tuple
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
            else _Field(place, kind, False)
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
    value = builder.load(builder.bitcast(at, context.get_value_type(field.kind).as_pointer()))
    return impl_ret_borrowed(context, builder, field.kind, value)  # where references are counted


def _write_fields(context: Any, builder: Any, kind: Reference, value: Any, address: Any) -> None:
    for field in kind.fields.values():
        at = _address_of(context, builder, kind, address, field.place)
        part = builder.extract_value(value, field.place)
        if field.lies_inside:
            _write_fields(context, builder, field.kind, part, at)
        else:
            builder.store(part, builder.bitcast(at, part.type.as_pointer()))


def _by_reference(typing_context: Any, whole: Any) -> Any:
    """Return a reference to a named tuple."""
    kind = Reference(whole)

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = ir.ArrayType(_WORD, _offsets(context, kind)[-1] // _WORD_BYTES)
        address = builder.bitcast(cgutils.alloca_once(builder, words), _BYTE.as_pointer())
        _write_fields(context, builder, kind, args[0], address)
        return address

    return kind(whole), make


by_reference: Any = intrinsic(_by_reference)
