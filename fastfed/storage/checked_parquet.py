"""Parquet files with an index of ours and checksums: every flipped bit is noticed when it is read.

    PAR1 | row groups | index | 32 bytes | 8 bytes | "fastfed3" | footer | length | PAR1

The index is JSON. It has the end and the SHA-256 of every row group, and what the caller adds. The
32 bytes are the SHA-256 of index and footer, the 8 bytes are the length of the index. So the index
is verified when a file is opened, and a row group when it is read, without its neighbours. Readers
of Parquet find the footer from the end of the file and the pages by the offsets in it, so that
Polars, DuckDB, pandas and Arrow never look at the bytes in between.

Files of format 2 have one SHA-256 for all other bytes, and are verified as a whole.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct

from fastfed.files import open_regular, read_regular, replacing

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 2**15
"""Rows of a row group: 1 MB in memory. A row group costs 3 kB of the footer."""

_MARK, _MARK2 = b"fastfed3", b"fastfed!"
_MOST_BYTES = 2**30  # no part comes near: it has at most half a million rows, and its instances
_CUT = "damaged (cut short, or no Parquet at all)"
_OTHER_BYTES = "damaged (its content does not fit its checksum)"


class Damaged(Exception):
    """A file with other content than fastfed wrote; the message has the reason."""


class Group(Struct, frozen=True, array_like=True):
    """A row group: the offset at which it ends, and its SHA-256."""

    end: int
    sha256: str


class _Index(Struct):
    groups: list[Group]
    about: Raw


@dataclass(frozen=True)
class Encoded:
    """Rows as the bytes of a Parquet file, without an index."""

    pages: bytes
    groups: list[Group]
    footer: bytes


@dataclass(frozen=True)
class Opened:
    """A file whose index was verified."""

    path: Path
    content: str  # SHA-256 of index and footer, which have those of all rows
    groups: tuple[Group, ...]  # none: of format 2
    about: bytes


def encode(table: pa.Table, more: Iterable[pa.Table] = ()) -> Encoded:
    """Encode rows, and more of them as they come, a row group for every `GROUP_ROWS` of each."""
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    groups: list[Group] = []
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        # numbers seldom repeat: dictionaries of them would take time and room
        use_dictionary=[field.name for field in table.schema if str(field.type) == "string"],
        write_page_checksum=True,
        store_schema=False,
    ) as writer:
        start = 0
        for one in chain([table], more):
            for first in range(0, max(1, one.num_rows), GROUP_ROWS):
                writer.write_table(one.slice(first, GROUP_ROWS), GROUP_ROWS)
                with sink.getbuffer() as written:
                    groups.append(Group(len(written), hashlib.sha256(written[start:]).hexdigest()))
                start = groups[-1].end
    data = sink.getvalue()
    return Encoded(data[:start], groups, data[start:])


def write(
    path: Path, rows: Encoded, about: bytes, before: Callable[[], object] | None = None
) -> Opened:
    """Write rows with an index that has ``about``, which is JSON; ``before``: as of `replacing`."""
    index = msgspec.json.encode(_Index(rows.groups, Raw(about)))
    found = hashlib.sha256(index + rows.footer)
    with replacing(path, before) as file:
        for piece in (
            *(rows.pages, index, found.digest()),
            *(len(index).to_bytes(8, "little"), _MARK, rows.footer),
        ):
            file.write(piece)
    return Opened(path, found.hexdigest(), tuple(rows.groups), about)


def open_file(path: Path) -> Opened:
    """Open a file and verify its index: OSError if it cannot be read, `Damaged` if it is wrong."""
    with open_regular(path, _MOST_BYTES) as file:
        return _open(path, file)[0]


def read_group(opened: Opened, number: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Verify and read a row group, with those columns that it has.

    A file of format 2 counts as one row group.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_regular(opened.path, _MOST_BYTES) as file:
        found, footer = _open(opened.path, file)
        if found.content != opened.content:
            raise Damaged("changed while it was in use")
        _verify(file, opened, number)
        with _reading():
            about = pq.read_metadata(pa.BufferReader(b"PAR1" + footer))
            rows = pq.ParquetFile(file, metadata=about, page_checksum_verification=True)
            there = rows.schema_arrow.names
            wanted = there if columns is None else [one for one in columns if one in there]
            groups = [number] if opened.groups else range(about.num_row_groups)
            return rows.read_row_groups(groups, wanted, use_threads=False)


def read_whole(path: Path) -> tuple[Opened, IO[bytes]]:
    """Read a file into memory and verify all of it."""
    content = io.BytesIO(read_regular(path, _MOST_BYTES))
    opened = _open(path, content)[0]
    for number in range(len(opened.groups)):
        _verify(content, opened, number)
    content.seek(0)
    return opened, content


def verify(opened: Opened) -> None:
    """Verify all row groups of a file without decoding them."""
    with open_regular(opened.path, _MOST_BYTES) as file:
        for number in range(len(opened.groups)):
            _verify(file, opened, number)


def _verify(file: IO[bytes], opened: Opened, number: int) -> None:
    """Verify a row group; a file of format 2 is verified as a whole whenever it is opened."""
    if opened.groups:
        file.seek(opened.groups[number - 1].end if number else 0)
        pages = file.read(max(0, opened.groups[number].end - file.tell()))
        if hashlib.sha256(pages).hexdigest() != opened.groups[number].sha256:
            raise Damaged(_OTHER_BYTES)


def _open(path: Path, file: IO[bytes]) -> tuple[Opened, bytes]:
    """Verify the index of a file; return it, and the footer with all that follows."""
    size = file.seek(0, io.SEEK_END)

    def before(end: int, length: int) -> bytes:
        """Read the bytes before an offset; refuse a file that does not have as many."""
        if length > end:
            raise Damaged(_CUT)
        file.seek(end - length)
        return file.read(length)

    ending = before(size, 8)
    if ending[4:] != b"PAR1":
        raise Damaged(_CUT)
    footer = before(size, int.from_bytes(ending[:4], "little") + 8)
    end = size - len(footer)
    if before(end, 8) != _MARK:
        return _open_format_2(path, file, footer), footer
    length = int.from_bytes(before(end - 8, 8), "little")
    index = before(end - 48, length)
    found = hashlib.sha256(index + footer)
    if found.digest() != before(end - 16, 32):
        raise Damaged(_OTHER_BYTES)
    try:
        known = msgspec.json.decode(index, type=_Index)
    except msgspec.MsgspecError as error:
        raise Damaged(f"not a file of fastfed ({error})") from None
    return Opened(path, found.hexdigest(), tuple(known.groups), bytes(known.about)), footer


def _open_format_2(path: Path, file: IO[bytes], footer: bytes) -> Opened:
    """Verify every byte of a file of format 2, whose index is part of its footer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file.seek(0)
    data = file.read()
    pages, written = data[: -len(footer) - 40], data[-len(footer) - 40 : -len(footer)]
    if not written.startswith(_MARK2):
        raise Damaged("damaged, or not written by this fastfed (it has no checksum)")
    found = hashlib.sha256(pages + footer)
    if found.digest() != written[8:]:
        raise Damaged(_OTHER_BYTES)
    with _reading():
        # Arrow's own limit is 100 MB, and such a footer holds its instance twice
        about = pq.ParquetFile(
            pa.BufferReader(b"PAR1" + footer), thrift_string_size_limit=_MOST_BYTES
        ).metadata.metadata
        return Opened(path, found.hexdigest(), (), about[b"fastfed"])


@contextmanager
def _reading() -> Iterator[None]:
    """Say of an exception of Arrow that the file is damaged."""
    import pyarrow as pa

    try:
        yield
    except MemoryError:  # says nothing about the file; Arrow's is one of its exceptions, too
        raise
    except (OSError, pa.ArrowException, KeyError, TypeError) as error:
        raise Damaged(f"not a file of fastfed ({type(error).__name__})") from None
