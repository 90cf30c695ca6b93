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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from fastfed.files import open_regular, replacing

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 2**15
"""Rows of a row group: 1 MB in memory. A row group costs 3 kB of the footer."""

_MARK, _MARK2 = b"fastfed3", b"fastfed!"
_MOST_BYTES = 2**30  # no part comes near: it has at most half a million rows, and its instances
_TAIL = 2**16  # bytes that are read at first: most indices and footers are shorter


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


def encode(table: pa.Table) -> Encoded:
    """Encode rows, a row group for every `GROUP_ROWS` of them."""
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
        for first in range(0, max(1, table.num_rows), GROUP_ROWS):
            writer.write_table(table.slice(first, GROUP_ROWS), GROUP_ROWS)
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
        found, _ = _open(path, file)
    return found


def read_groups(
    opened: Opened, numbers: Sequence[int], columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Read and verify some row groups of a file, one by one, with those columns that it has.

    A file of format 2 counts as one row group.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_regular(opened.path, _MOST_BYTES) as file:
        found, footer = _open(opened.path, file)
        if found.content != opened.content:
            raise Damaged("changed while it was in use")
        with _damage():
            about = pq.read_metadata(pa.BufferReader(b"PAR1" + footer))
        if opened.groups and about.num_row_groups != len(opened.groups):
            raise Damaged("damaged (its row groups are not those of its index)")
        for number in numbers:
            start, pages = _pages(file, opened, number)
            with _damage():
                rows = pq.ParquetFile(
                    pa.PythonFile(_Window(pages, start), mode="r"),
                    metadata=about,
                    page_checksum_verification=True,
                )
                wanted = [number] if opened.groups else list(range(about.num_row_groups))
                there = None
                if columns is not None:
                    there = [one for one in columns if one in rows.schema_arrow.names]
                table = rows.read_row_groups(wanted, there, use_threads=False)
            yield table


def verify_groups(opened: Opened, numbers: Sequence[int]) -> None:
    """Verify some row groups of a file without decoding them."""
    with open_regular(opened.path, _MOST_BYTES) as file:
        for number in numbers:
            _pages(file, opened, number)


def _pages(file: IO[bytes], opened: Opened, number: int) -> tuple[int, bytes]:
    """Read and verify the pages of a row group; return them and their offset."""
    if not opened.groups:  # the whole file is verified whenever it is opened
        file.seek(0)
        return 0, file.read()
    start = opened.groups[number - 1].end if number else 0
    file.seek(start)
    pages = file.read(max(0, opened.groups[number].end - start))
    if hashlib.sha256(pages).hexdigest() != opened.groups[number].sha256:
        raise Damaged("damaged (its content does not fit its checksum)")
    return start, pages


def _open(path: Path, file: IO[bytes]) -> tuple[Opened, bytes]:
    """Verify the index of a file; return it, and the footer with all that follows."""
    size = file.seek(0, io.SEEK_END)
    tail = _read_tail(file, min(size, _TAIL))
    if len(tail) < 12 or tail[-4:] != b"PAR1":
        raise Damaged("damaged (cut short, or no Parquet at all)")
    footer = int.from_bytes(tail[-8:-4], "little") + 8
    if footer > size - 4:
        raise Damaged("damaged (cut short, or no Parquet at all)")
    if len(tail) < footer + 48:
        tail = _read_tail(file, min(size, footer + _TAIL))
    if tail[-footer - 8 : -footer] != _MARK:
        return _open_format_2(path, file, footer)
    length = int.from_bytes(tail[-footer - 16 : -footer - 8], "little")
    if length > size - footer - 48:
        raise Damaged("damaged (its content does not fit its checksum)")
    if len(tail) < footer + 48 + length:
        tail = _read_tail(file, footer + 48 + length)
    end = len(tail) - footer - 48
    index = tail[end - length : end]
    found = hashlib.sha256(index + tail[-footer:])
    if found.digest() != tail[end : end + 32]:
        raise Damaged("damaged (its content does not fit its checksum)")
    try:
        known = msgspec.json.decode(index, type=_Index)
    except msgspec.MsgspecError as error:
        raise Damaged(f"not a file of fastfed ({error})") from None
    opened = Opened(path, found.hexdigest(), tuple(known.groups), bytes(known.about))
    return opened, tail[-footer:]


def _open_format_2(path: Path, file: IO[bytes], footer: int) -> tuple[Opened, bytes]:
    """Verify every byte of a file of format 2, whose index is part of its footer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file.seek(0)
    data = memoryview(file.read())
    cut = len(data) - footer
    written = bytes(data[cut - 40 : cut]) if cut >= 40 else b""
    if not written.startswith(_MARK2):
        raise Damaged("damaged, or not written by this fastfed (it has no checksum)")
    found = hashlib.sha256(data[: cut - 40])
    found.update(data[cut:])
    if found.digest() != written[8:]:
        raise Damaged("damaged (its content does not fit its checksum)")
    tail = bytes(data[cut:])
    with _damage():
        # Arrow's own limit is 100 MB, and such a footer holds its instance twice
        about = pq.ParquetFile(
            pa.BufferReader(b"PAR1" + tail), thrift_string_size_limit=_MOST_BYTES
        ).metadata.metadata
        return Opened(path, found.hexdigest(), (), about[b"fastfed"]), tail


def _read_tail(file: IO[bytes], length: int) -> bytes:
    file.seek(-length, io.SEEK_END)
    return file.read(length)


class _damage:
    """Context in which an exception of Arrow means that a file is damaged."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        import pyarrow as pa

        # a lack of memory says nothing about the file, which must not be moved away
        if isinstance(error, OSError | pa.ArrowException | KeyError | TypeError) and not isinstance(
            error, MemoryError
        ):
            raise Damaged(f"not a file of fastfed ({type(error).__name__})") from None


class _Window(io.RawIOBase):
    """Some bytes of a file, at their place in it."""

    def __init__(self, content: bytes, start: int) -> None:
        self._content, self._start, self._at = content, start, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        ends = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size()}
        self._at = ends[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        first = max(0, self._at - self._start)
        found = self._content[first:] if size < 0 else self._content[first : first + size]
        self._at += len(found)
        return found

    def _size(self) -> int:
        return self._start + len(self._content)
