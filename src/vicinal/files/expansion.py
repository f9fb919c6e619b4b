"""The memory that reading a data file takes, known before it is read.

A compressed file of a few kilobytes can hold gigabytes, and polars ends the process when memory runs out. The limit is
the free memory, or the environment variable ``VICINAL_READ_LIMIT`` (for example ``8GB``).
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Callable
from gzip import GzipFile
from pathlib import Path
from typing import IO, Any, BinaryIO

from vicinal.files.data_table import ReadError
from vicinal.runtime.sizes import bytes_of, readable

LIMIT = "VICINAL_READ_LIMIT"
# A field of a text file takes the address of its text and a number, in addition to the text.
FIELD_BYTES = 24.0
# Columns are copied while they are recognized and converted: peaks are 2.6 to 3 times the size of columns of numbers.
COPIES = 3.0
# What a text takes in addition while it is looked at, as an object of Python among others.
TEXT_BYTES = 100.0
# Allocators reserve address space, which a limit on it counts, in large blocks.
RESERVED = 128.0 * 2**20
BLOCK = 1 << 20
# The end of a .feather file: the length of its footer, and its name.
ARROW_TAIL = b"\0\0\0\0ARROW1"


def require_memory(path: Path, size: float | None = None) -> None:
    """Raise ReadError if reading a whole file, or ``size`` bytes of it, would take more memory than the limit."""
    size = _SIZES.get(path.suffix.lower(), file_size)(path) if size is None else size
    if size > most_read():
        raise ReadError(_refusal(path, f"about {readable(size)} of memory, more"))


def unpack(path: Path, source: IO[bytes] | GzipFile, target: IO[bytes], *, streamed: bool = False) -> None:
    """Copy the bytes of a compressed file or a pipe; raise ReadError if they exceed the limit.

    ``streamed`` bytes are read in batches later, so that only the disk limits them.
    """
    left = float("inf") if streamed else most_read()
    while block := source.read(BLOCK):
        left -= len(block)
        if left < 0:
            raise ReadError(_refusal(path, "more memory"))
        target.write(block)


def most_read() -> float:
    """Return the limit in bytes."""
    given = os.environ.get(LIMIT)
    if given is None:
        return free_memory()
    try:
        return bytes_of(given)
    except ValueError as error:
        raise ReadError(f"{LIMIT} must be a size such as 8GB, got {given!r}") from error


def _refusal(path: Path, amount: str) -> str:
    limit = f"{LIMIT}={os.environ[LIMIT]}" if LIMIT in os.environ else f"the free {readable(most_read())}"
    return f"{path} takes {amount} than {limit}; {LIMIT} sets another limit, and vicinal stream reads in batches"


def free_memory() -> float:
    """Return the bytes that this process may still allocate: of the machine, its control group and its own limit."""
    least = [float("inf")]
    proc = Path("/proc")
    if (proc / "meminfo").exists():
        fields = dict(line.split(":", 1) for line in (proc / "meminfo").read_text().splitlines())
        least.append(1024.0 * int(fields["MemAvailable"].split()[0]))
    group = Path("/sys/fs/cgroup")
    if (group / "memory.max").exists() and (most := (group / "memory.max").read_text().strip()) != "max":
        least.append(float(most) - float((group / "memory.current").read_text()))
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return min(least)
    own, _ = resource.getrlimit(resource.RLIMIT_AS)
    if own != resource.RLIM_INFINITY and (proc / "self/statm").exists():
        held = float((proc / "self/statm").read_text().split()[0]) * resource.getpagesize()
        least.append(own - held - RESERVED)
    return max(0.0, min(least))


def file_size(path: Path) -> float:
    return float(path.stat().st_size)


def _text_size(path: Path) -> float:
    """Return the size of the texts and numbers of a file, by the number of fields in its first block."""
    import polars as pl

    pl.read_csv(b"a\n1\n")  # the first call starts threads, which take memory: the limit is what is left then
    with path.open("rb") as file:
        block = file.read(BLOCK)
    fields = max(block.count(mark) for mark in (b",", b";", b"\t", b"|")) + block.count(b"\n")
    return COPIES * file_size(path) * (1 + FIELD_BYTES * fields / max(1, len(block)))


def _archive_size(path: Path) -> float:
    """Return the sizes that the entries of an archive state; its reader reads no more than that."""
    try:
        with zipfile.ZipFile(path) as archive:
            return float(sum(entry.file_size for entry in archive.infolist()))
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError):
        return file_size(path)  # the reader refuses it


def _frame_size(path: Path) -> float:
    """Return what the columns of a .parquet or .feather file take: their numbers of rows, texts and list entries.

    The size of compressed columns says nothing: they also shrink by run lengths and dictionaries.
    """
    import polars as pl
    import polars.selectors as cs

    from vicinal.files.tabular_files import query_columnar

    schema: dict[str, Any] = {}

    def count(rows: pl.LazyFrame) -> pl.LazyFrame:
        schema.update(rows.collect_schema())
        return rows.select(pl.len())

    n = int(query_columnar(path, count).item())
    texts = [name for name, kind in schema.items() if kind in (pl.String, pl.Binary)]
    fixed = float(n) * (sum(_width(kind) for kind in schema.values()) + TEXT_BYTES * len(texts))
    parquet = path.suffix.lower() == ".parquet"
    stated = _footer_size(path) if parquet else 0.0
    if not texts and not any(kind.is_nested() for kind in schema.values()):
        return COPIES * fixed
    size = fixed + (stated if parquet else arrow_size(path))
    if texts and COPIES * size <= most_read():
        # A file may hold a repeated text once. To count the texts takes less memory than to read them.
        lengths = (cs.string() | cs.binary()).cast(pl.Binary).bin.size().sum()
        size += float(sum(query_columnar(path, lambda rows: rows.select(lengths)).row(0)))
    return COPIES * size


def _width(kind: Any) -> float:
    """Return the bytes of one value of a polars type, without the text or the list that it refers to."""
    if getattr(kind, "fields", None):
        return sum(_width(field.dtype) for field in kind.fields)
    if getattr(kind, "shape", None):  # arrays of a fixed length
        return _width(kind.inner) * float(kind.size)
    return 16.0 if str(kind) in ("String", "Binary") else 8.0


# Bytes of one value in memory by the physical type of a parquet column: boolean, int32, int64, int96, float, double,
# texts and bytes of any or of a fixed length.
_PARQUET_WIDTHS = (1, 4, 8, 12, 4, 8, 16, 16)
# Fields of the header of a page by its kind, and bytes that a header may have.
_DATA, _DICTIONARY, _DATA_2 = 5, 7, 8
MOST_PAGE_HEADER = 1 << 16


def _footer_size(path: Path) -> float:
    """Return the size of all columns by the footer of a .parquet file, which counts texts and entries of lists.

    Raise ReadError for a page that polars would end the process for.
    """
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        end = file.tell()
        file.seek(max(0, end - 8))
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != b"PAR1" or length > end - 8:
            return float(end)  # the reader refuses it
        file.seek(end - 8 - length)
        footer = file.read(length)
        try:
            columns = [column[3] for group in CompactThrift(footer).struct()[4] for column in group[1]]
            size = float(sum(max(0, facts[6], facts[5] * _PARQUET_WIDTHS[facts[1]]) for facts in columns))
        except (LookupError, TypeError, RecursionError) as error:
            raise ReadError(f"{path} is not a valid parquet file (its footer is broken)") from error
        if not all(_are_pages_possible(file, facts) for facts in columns):
            raise ReadError(f"{path} is not a valid parquet file (a page claims more values than its column has)")
        return size


def _are_pages_possible(file: BinaryIO, facts: dict[int, Any]) -> bool:
    """Return whether no page of a column of a .parquet file claims more values than the column, or fewer than none."""
    try:
        at = begin = facts.get(11) or facts[9]  # a dictionary is the first page
        while at < begin + facts[7]:
            thrift = CompactThrift(_read_at(file, at, MOST_PAGE_HEADER))
            page = thrift.struct()
            claims = page.get(_DATA) or page.get(_DATA_2) or page.get(_DICTIONARY, {})
            least = min(page[2], page[3], *(one for one in claims.values() if isinstance(one, int)))
            if least < 0 or (_DICTIONARY not in page and claims.get(1, 0) > facts[5]):
                return False
            at += thrift.at + page[3]
    except (AttributeError, LookupError, OSError, OverflowError, RecursionError, TypeError):
        pass  # the reader refuses it
    return True


def arrow_size(path: Path) -> float:
    """Return the size of the buffers of a .feather file once they are decompressed, which each of them states."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        tail = _read_at(file, end - len(ARROW_TAIL), len(ARROW_TAIL))
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != ARROW_TAIL[4:] or length > end:
            return float(end)  # the reader refuses it
        try:
            footer = FlatTable.root(_read_at(file, end - len(ARROW_TAIL) - length, length))
            blocks = [block for field in (2, 3) for block in footer.structs(field, "<qi4xq")]
            if sum(metadata for _, metadata, _ in blocks) > end or min((min(block) for block in blocks), default=0) < 0:
                raise LookupError("the parts overlap")
            return float(sum(_batch_size(file, begin, metadata) for begin, metadata, _ in blocks))
        except (LookupError, OSError, ValueError, struct.error) as error:
            raise ReadError(f"{path} is not a valid feather file (its footer is broken)") from error


def _batch_size(file: BinaryIO, begin: int, metadata: int) -> int:
    """Return the decompressed size of the buffers of one batch of rows, or of one dictionary."""
    content = _read_at(file, begin, metadata)
    message = FlatTable.root(content[8:] if content[:4] == b"\xff\xff\xff\xff" else content[4:])
    batch = message.table(2)
    if message.number(1, "<B") == 2:  # a dictionary
        batch = batch.table(1)
    size = 0
    for position, length in batch.structs(2, "<qq"):
        stated = -1
        if batch.has(3) and length >= 8:  # compressed; -1 says that this buffer is not
            (stated,) = struct.unpack("<q", _read_at(file, begin + metadata + position, 8))
        size += max(stated, length)
    return size


def _read_at(file: BinaryIO, position: int, length: int) -> bytes:
    file.seek(max(0, position))
    return file.read(length)


class FlatTable:
    """A table in the format of FlatBuffers, whose fields are numbered."""

    def __init__(self, content: bytes, at: int) -> None:
        self.content, self.at = content, at

    @classmethod
    def root(cls, content: bytes) -> FlatTable:
        return cls(content, struct.unpack_from("<I", content)[0])

    def has(self, field: int) -> bool:
        return self._place(field) > 0

    def number(self, field: int, form: str) -> int:
        found: int = struct.unpack_from(form, self.content, self._place(field))[0] if self.has(field) else 0
        return found

    def table(self, field: int) -> FlatTable:
        return FlatTable(self.content, self._target(field))

    def structs(self, field: int, form: str) -> list[tuple[int, ...]]:
        """Return the entries of a vector of structures."""
        if not self.has(field):
            return []
        begin = self._target(field)
        (n,) = struct.unpack_from("<I", self.content, begin)
        size = struct.calcsize(form)
        if begin + 4 + n * size > len(self.content):
            raise LookupError("the end is missing")
        return [struct.unpack_from(form, self.content, begin + 4 + a * size) for a in range(n)]

    def _target(self, field: int) -> int:
        """Return where the table or the vector of a field begins: fields hold distances to them."""
        place = self._place(field)
        if not place:
            raise LookupError(f"field {field} is missing")
        return place + int(struct.unpack_from("<I", self.content, place)[0])

    def _place(self, field: int) -> int:
        """Return where a field is, or 0 if the table does not have it."""
        fields = self.at - struct.unpack_from("<i", self.content, self.at)[0]
        if fields < 0 or 4 + 2 * field >= struct.unpack_from("<H", self.content, fields)[0]:
            return 0
        offset = struct.unpack_from("<H", self.content, fields + 4 + 2 * field)[0]
        return self.at + int(offset) if offset else 0


class CompactThrift:
    """Decode the compact protocol of Apache Thrift: structures become dictionaries by field number."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def struct(self) -> dict[int, Any]:
        found: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._signed()
            found[number] = self._value(head & 15) if head & 15 > 2 else head & 15 == 1
        return found

    def _value(self, kind: int) -> Any:
        if kind in (1, 2, 3):  # within a list a truth value is a byte, too
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._varint())
        if kind in (9, 10):
            head = self._byte()
            n = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15) for _ in range(n)]
        if kind == 12:
            return self.struct()
        raise LookupError(f"unknown type {kind}")

    def _byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _bytes(self, n: int) -> bytes:
        self.at += n
        if self.at > len(self.content):
            raise LookupError("the end is missing")
        return self.content[self.at - n : self.at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise LookupError("a number has more than 64 bits")

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


_SIZES: dict[str, Callable[[Path], float]] = {
    ".csv": _text_size,
    ".tsv": _text_size,
    ".jsonl": _text_size,
    ".npz": _archive_size,
    ".xlsx": _archive_size,
    ".ods": _archive_size,
    ".feather": _frame_size,
    ".parquet": _frame_size,
    ".h5ad": lambda path: 0.0,  # its reader knows which matrix it reads
}
