"""The memory that a data file takes once it is read, known before it is read.

A compressed file of a few kilobytes can hold gigabytes, and polars ends the process when memory runs out. The limit is
the free memory, or the environment variable ``VICINAL_READ_LIMIT`` (for example ``8GB``).
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from gzip import GzipFile
from pathlib import Path
from typing import IO, Any

from vicinal.files.data_table import ReadError
from vicinal.runtime.sizes import bytes_of, readable

LIMIT = "VICINAL_READ_LIMIT"
# A field of a text file takes the address of its text and a number, in addition to the text.
FIELD_BYTES = 24.0
BLOCK = 1 << 20


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
        least.append(own - float((proc / "self/statm").read_text().split()[0]) * resource.getpagesize())
    return max(0.0, min(least))


def file_size(path: Path) -> float:
    return float(path.stat().st_size)


def _text_size(path: Path) -> float:
    """Return the size of the texts and numbers of a file, by the number of fields in its first block."""
    with path.open("rb") as file:
        block = file.read(BLOCK)
    fields = max(block.count(mark) for mark in (b",", b";", b"\t", b"|")) + block.count(b"\n")
    return file_size(path) * (1 + FIELD_BYTES * fields / max(1, len(block)))


def _archive_size(path: Path) -> float:
    """Return the sizes that the entries of an archive state; its reader reads no more than that."""
    try:
        with zipfile.ZipFile(path) as archive:
            return float(sum(entry.file_size for entry in archive.infolist()))
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError):
        return file_size(path)  # the reader refuses it


def _frame_size(path: Path) -> float:
    """Return the size of the columns of a .parquet or .feather file by its numbers of rows, texts and list entries.

    The size of compressed columns says nothing: they also shrink by run lengths and dictionaries.
    """
    import polars as pl

    from vicinal.files.tabular_files import query_columnar

    schema: dict[str, Any] = {}

    def count(rows: pl.LazyFrame) -> pl.LazyFrame:
        schema.update(rows.collect_schema())
        return rows.select(pl.len())

    n = int(query_columnar(path, count).item())
    fixed = float(n) * sum(_width(kind) for kind in schema.values())
    varying = any(kind.is_nested() or kind in (pl.String, pl.Binary) for kind in schema.values())
    if not varying:
        return fixed
    return fixed + (_footer_size(path) if path.suffix.lower() == ".parquet" else file_size(path))


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


def _footer_size(path: Path) -> float:
    """Return the size of all columns by the footer of a .parquet file, which counts texts and entries of lists."""
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
        size = 0.0
        for group in CompactThrift(footer).struct()[4]:
            for column in group[1]:
                facts = column[3]
                size += max(0, facts[6], facts[5] * _PARQUET_WIDTHS[facts[1]])
        return size
    except (LookupError, TypeError, RecursionError) as error:
        raise ReadError(f"{path} is not a valid parquet file (its footer is broken)") from error


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
