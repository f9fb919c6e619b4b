"""Read Arrow data of any library through Arrow's C data interface.

DuckDB, Lance, polars, pandas, pyarrow and others hand out the addresses of their columns by the methods
``__arrow_c_stream__`` and ``__arrow_c_array__`` (https://arrow.apache.org/docs/format/CDataInterface.html). The
interface is three C structures that never change, so that no library of Arrow is needed to read it. Numbers, and
vectors of a fixed length, are not copied: an array keeps the memory of its batch alive.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_void_p
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from vicinal.runtime.inputs import NOT_NUMBERS

Values = NDArray[Any]

# NumPy's types of numbers by Arrow's formats. Dates and times follow; their unit is a part of the format.
NUMBERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8"}
NUMBERS |= {"e": "f2", "f": "f4", "g": "f8"}
UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}
# What columns hold that are neither numbers nor text, by the beginning of their format.
UNREADABLE = {"z": "bytes", "Z": "bytes", "vz": "bytes", "w:": "bytes", "tt": "times of a day", "ti": "intervals"}


class Schema(ctypes.Structure):
    """The type of a column."""


class Array(ctypes.Structure):
    """The values of a column."""


class Stream(ctypes.Structure):
    """A source of batches of the same type."""


Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(Schema))),
    ("dictionary", POINTER(Schema)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(Schema))),
    ("private_data", c_void_p),
]
Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(Array))),
    ("dictionary", POINTER(Array)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(Array))),
    ("private_data", c_void_p),
]
Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(c_int, POINTER(Stream), POINTER(Schema))),
    ("get_next", ctypes.CFUNCTYPE(c_int, POINTER(Stream), POINTER(Array))),
    ("get_last_error", ctypes.CFUNCTYPE(c_char_p, POINTER(Stream))),
    ("release", ctypes.CFUNCTYPE(None, POINTER(Stream))),
    ("private_data", c_void_p),
]


@dataclass(frozen=True)
class Field:
    """A column: its name, its format, the type of its entries if these are lists, and of what its codes stand for."""

    name: str
    format: str
    children: tuple[Field, ...] = ()
    dictionary: Field | None = None

    @classmethod
    def of(cls, schema: Any) -> Field:
        """Copy a structure, which lives only as long as its owner."""
        children = tuple(cls.of(schema.children[i].contents) for i in range(schema.n_children))
        codes = cls.of(schema.dictionary.contents) if schema.dictionary else None
        return cls((schema.name or b"").decode(), schema.format.decode(), children, codes)


class Owned:
    """A structure that a producer filled; it is released when nothing refers to it any more."""

    def __init__(self, kind: type[ctypes.Structure]) -> None:
        self.struct: Any = kind()
        weakref.finalize(self, _release, self.struct)


def _release(struct: Any) -> None:
    if struct.release:
        struct.release(byref(struct))


@dataclass(frozen=True)
class Batch:
    """Consecutive rows: their columns by position, with the names of the columns; None if there is only a column."""

    columns: list[Values]
    names: list[str] | None
    length: int


def read_batches(X: Any, name: str = "X") -> Iterator[Batch]:
    """Yield the batches of an object that hands out Arrow data, and at least one, which may have no rows.

    ValueError names the argument, the column and the row of what cannot be read.
    """
    first = 0
    for field, struct, owner in _arrays(X, name):
        reader = Reader(owner, name, first)
        is_table = field.format == "+s"
        start, columns = struct.offset, []
        for i, one in enumerate(field.children if is_table else (field,)):
            held = struct.children[i].contents if is_table else struct
            columns.append(reader.column(one, held, start if is_table else 0, struct.length))
        yield Batch(columns, [one.name for one in field.children] if is_table else None, struct.length)
        first += struct.length


def _arrays(X: Any, name: str) -> Iterator[tuple[Field, Any, Any]]:
    """Yield the type of the rows, a structure with some of them, and the owner of its memory."""
    if not hasattr(X, "__arrow_c_stream__"):
        schema, array = X.__arrow_c_array__()
        yield Field.of(_struct(schema, Schema, b"arrow_schema")), _struct(array, Array, b"arrow_array"), array
        return
    capsule = X.__arrow_c_stream__()
    stream = _struct(capsule, Stream, b"arrow_array_stream")
    described = Owned(Schema)
    _call(stream, stream.get_schema, described.struct, name)
    field, empty = Field.of(described.struct), True
    while True:
        batch = Owned(Array)
        _call(stream, stream.get_next, batch.struct, name)
        if not batch.struct.release:
            break
        empty = False
        yield field, batch.struct, batch
    if empty:
        yield field, _no_rows(field), None


def _struct(capsule: Any, kind: type[ctypes.Structure], name: bytes) -> Any:
    """Return the structure in a capsule, which the capsule releases when nothing refers to it any more."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    found: Any = kind.from_address(pointer(capsule, name))
    if not found.release:
        raise ValueError("the Arrow data was read already; it can be read once only")
    found.capsule = capsule
    return found


def _call(stream: Any, function: Callable[..., int], target: Any, name: str) -> None:
    if function(byref(stream), byref(target)):
        said = stream.get_last_error(byref(stream)) or b"the source failed without a message"
        raise ValueError(f"{name} cannot be read: {said.decode(errors='replace').strip().splitlines()[0]}")


def _no_rows(field: Field) -> Any:
    """Return a structure without rows."""
    struct = Array()
    children = [_no_rows(one) for one in field.children]
    struct.n_children = len(children)
    struct.children = (POINTER(Array) * len(children))(*map(ctypes.pointer, children))
    struct.buffers = (c_void_p * 3)()
    if field.dictionary is not None:
        struct.dictionary = ctypes.pointer(_no_rows(field.dictionary))
    return struct


class Memory:
    """Memory of a producer, as NumPy reads it; the array that NumPy makes of it keeps ``owner`` alive."""

    def __init__(self, address: int, dtype: np.dtype[Any], count: int, owner: Any) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (address, True), "shape": (count,), "typestr": dtype.str, "version": 3,
        }  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """Reads columns of a batch, of which ``first`` is the number of the first row."""

    owner: Any
    argument: str
    first: int

    def column(self, field: Field, array: Any, begin: int, length: int) -> Values:
        """Return some values: numbers (NaN if missing), truth values, dates (NaT), texts (None), or vectors as rows."""
        start = array.offset + begin
        if field.format.startswith("+"):
            return self._vectors(field, array, start, length)
        missing = self._missing(array, start, length)
        if field.dictionary is None:
            values = self._values(field, array, start, length)
        else:
            codes = self._buffer(array, 1, NUMBERS[field.format], start, length).astype(np.int64)
            words = array.dictionary.contents
            meant = self.column(field.dictionary, words, 0, words.length)
            values = meant[codes if missing is None else np.where(missing, 0, codes)] if len(meant) else meant[:0]
        if missing is None:
            return values
        if not len(values):
            return np.full(length, None, dtype=object)
        values = values.astype(np.float64) if values.dtype.kind in "iub" else values.copy()
        values[missing] = {"f": np.nan, "M": np.datetime64("NaT"), "m": np.timedelta64("NaT")}.get(values.dtype.kind)
        return values

    def _values(self, field: Field, array: Any, start: int, length: int) -> Values:
        kind = field.format
        if kind in NUMBERS:
            return self._buffer(array, 1, NUMBERS[kind], start, length)
        if kind == "b":
            return self._bits(array, 1, start, length)
        if kind == "n":
            return np.full(length, np.nan, np.float32)
        if kind in ("u", "U"):
            return self._texts(array, "i4" if kind == "u" else "i8", start, length)
        if kind == "vu":
            return self._text_views(array, start, length)
        if kind.startswith("d:"):
            return self._decimals(field, array, start, length)
        if kind == "tdD":
            return self._buffer(array, 1, "i4", start, length).astype("i8").view("M8[D]")
        if kind[:2] in ("ts", "tD") or kind == "tdm":
            unit = "ms" if kind == "tdm" else UNITS[kind[2]]
            return self._buffer(array, 1, "i8", start, length).view(f"{'m' if kind[1] == 'D' else 'M'}8[{unit}]")
        what = next((text for begin, text in UNREADABLE.items() if kind.startswith(begin)), f"values of type {kind!r}")
        self._refuse(field, f"holds {what}")

    def _refuse(self, field: Field, why: str) -> NoReturn:
        column = f"column {field.name!r} of {self.argument}" if field.name else self.argument
        raise ValueError(f"{column} {why}; select or convert the columns first")

    def _buffer(self, array: Any, which: int, dtype: str, start: int, count: int) -> Values:
        """Return ``count`` numbers of a buffer from number ``start`` on."""
        kind = np.dtype(dtype)
        address = array.buffers[which] if count else None
        if not address:
            return np.zeros(count, kind)
        return np.asarray(Memory(address + start * kind.itemsize, kind, count, self.owner))

    def _bits(self, array: Any, which: int, start: int, count: int) -> Values:
        packed = self._buffer(array, which, "u1", start // 8, (start % 8 + count + 7) // 8 if count else 0)
        return np.unpackbits(packed, bitorder="little")[start % 8 : start % 8 + count].view(np.bool_)

    def _missing(self, array: Any, start: int, count: int) -> NDArray[np.bool_] | None:
        if array.null_count == 0 or not array.n_buffers or not count or not array.buffers[0]:
            return None
        missing = ~self._bits(array, 0, start, count)
        return missing if missing.any() else None

    def _vectors(self, field: Field, array: Any, start: int, length: int) -> Values:
        """Return lists of one length as the rows of a matrix."""
        kind = field.format
        if kind not in ("+l", "+L", "+vl", "+vL") and not kind.startswith("+w:"):
            what = {"+s": "structures", "+m": "maps"}.get(kind, f"values of type {kind!r}")
            self._refuse(field, f"holds {what}")
        entry, held = field.children[0], array.children[0].contents
        if entry.format not in (*NUMBERS, "b") or entry.dictionary is not None:
            self._refuse(field, f"holds lists of something other than numbers (type {entry.format!r})")
        missing = self._missing(array, start, length)
        if missing is not None:
            self._refuse(field, f"has no vector in row {self.first + int(np.argmax(missing))}")
        if kind.startswith("+w:"):
            width = int(kind[3:])
            return self.column(entry, held, start * width, length * width).reshape(length, width)
        if not length:
            return np.empty((0, 0), NUMBERS.get(entry.format, "?"))
        begins, sizes = self._lists(array, "i8" if kind[-1] == "L" else "i4", start, length, views=kind[1] == "v")
        width = int(sizes[0])
        other = np.flatnonzero(sizes != width)
        if other.size:
            row, size = self.first + int(other[0]), int(sizes[other[0]])
            self._refuse(field, f"has {size} numbers in row {row}, but {width} in row {self.first}")
        low, high = int(begins.min()), int(begins.max())
        values = self.column(entry, held, low, high - low + width)
        if (np.diff(begins) == width).all():
            return values.reshape(length, width)
        found: Values = values[(begins - low)[:, None] + np.arange(width)]
        return found

    def _lists(
        self, array: Any, kind: str, start: int, length: int, *, views: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where each list begins, and its length."""
        if views:
            begins, sizes = (self._buffer(array, i, kind, start, length).astype(np.int64) for i in (1, 2))
            return begins, sizes
        offsets = self._buffer(array, 1, kind, start, length + 1).astype(np.int64)
        return offsets[:-1], np.diff(offsets)

    def _texts(self, array: Any, offset_type: str, start: int, length: int) -> Values:
        offsets = self._buffer(array, 1, offset_type, start, length + 1 if length else 0).tolist()
        texts = np.full(length, None, dtype=object)
        if length:
            letters = self._buffer(array, 2, "u1", 0, offsets[-1]).tobytes()
            texts[:] = [letters[a:b].decode() for a, b in pairwise(offsets)]
        return texts

    def _text_views(self, array: Any, start: int, length: int) -> Values:
        """Read texts of 16 bytes each: the length, then up to 12 letters, or the first 4, the buffer and the offset."""
        views = self._buffer(array, 1, "u1", 16 * start, 16 * length).reshape(length, 16)
        sizes, number, offset = (views.view("<i4")[:, i].tolist() for i in (0, 2, 3)) if length else ([], [], [])
        short, texts = views.tobytes(), np.full(length, None, dtype=object)
        missing = self._missing(array, start, length)
        for i, size in enumerate(sizes):
            if missing is not None and missing[i]:
                continue
            if size <= 12:
                texts[i] = short[16 * i + 4 : 16 * i + 4 + size].decode()
            else:
                texts[i] = ctypes.string_at(array.buffers[2 + number[i]] + offset[i], size).decode()
        return texts

    def _decimals(self, field: Field, array: Any, start: int, length: int) -> Values:
        """Return decimal numbers as float64: whole numbers of 32, 64 or 128 bits, divided by a power of ten."""
        _, scale, width = [*map(int, field.format[2:].split(",")), 128][:3]
        if width not in (32, 64, 128):
            self._refuse(field, f"holds decimal numbers of {width} bits")
        if width < 128:
            return self._buffer(array, 1, f"i{width // 8}", start, length).astype(np.float64) / 10.0**scale
        words = self._buffer(array, 1, "i8", 2 * start, 2 * length)
        low, high = words[0::2], words[1::2]
        wide = low.view(np.uint64).astype(np.float64) + high * 2.0**64
        return np.where(high == low >> 63, low.astype(np.float64), wide) / 10.0**scale


def row_batches(
    X: Any, name: str = "X", kept: tuple[np.dtype[Any], ...] = ()
) -> Iterator[tuple[Values, list[str] | None]]:
    """Yield the rows of each batch as a matrix of numbers with the names of its columns, at least once.

    The columns are numbers, or there is a single one, of vectors. Types other than the ``kept`` ones become float32.
    """
    first, width, empty = 0, None, None
    for batch in read_batches(X, name):
        rows, names = _matrix(batch, name, kept)
        if not batch.length:
            empty = rows, names
            continue
        if width not in (None, rows.shape[1]):
            raise ValueError(f"{name} has vectors of {rows.shape[1]} numbers from row {first} on, before of {width}")
        first, width = first + batch.length, rows.shape[1]
        yield rows, names
    if width is None and empty is not None:
        yield empty


def _matrix(batch: Batch, name: str, kept: tuple[np.dtype[Any], ...]) -> tuple[Values, list[str] | None]:
    if batch.names is None and batch.columns[0].ndim == 1:
        raise ValueError(f"{name} must have columns or vectors, got a single column without a name")
    columns, names = batch.columns, batch.names or [""]
    vectors = [one for one, column in zip(names, columns, strict=True) if column.ndim == 2]
    if vectors and len(columns) > 1:
        others = [one for one in names if one != vectors[0]][:3]
        raise ValueError(
            f"{name} has vectors in column {vectors[0]!r} beside other columns ({', '.join(map(repr, others))}); "
            "select the column of vectors, or columns of numbers"
        )
    for one, column in zip(names, columns, strict=True):
        if column.dtype.kind in NOT_NUMBERS:
            what = NOT_NUMBERS[column.dtype.kind]
            raise ValueError(f"column {one!r} of {name} holds {what}, not numbers; select the columns of numbers")
    types = {column.dtype for column in columns}
    dtype = types.pop() if len(types) == 1 else np.dtype(np.float32)
    dtype = dtype if dtype in kept else np.dtype(np.float32)
    with np.errstate(over="ignore"):  # becomes infinite, and is reported as such
        if vectors:
            named = [f"{names[0]}[{a}]" for a in range(columns[0].shape[1])]
            return columns[0].astype(dtype, copy=False), named if batch.names else None
        rows = np.empty((batch.length, len(columns)), dtype)
        for a, column in enumerate(columns):
            rows[:, a] = column
    return rows, names


def read_column(X: Any, name: str) -> Values:
    """Return a single column in its own type, or several columns of numbers as a matrix."""
    parts = []
    for batch in read_batches(X, name):
        if len(batch.columns) > 1:
            _matrix(batch, name, ())  # names a column that holds no numbers
        parts.append(np.column_stack(batch.columns) if len(batch.columns) > 1 else batch.columns[0])
    filled = [part for part in parts if len(part)]
    return np.concatenate(filled) if filled else parts[0]


def read_table(X: Any, name: str = "X") -> list[tuple[str, Values]]:
    """Return all columns with their names; that of a single column without a name is empty."""
    batches = list(read_batches(X, name))
    filled = [batch for batch in batches if batch.length] or batches[:1]
    columns = [np.concatenate(parts) for parts in zip(*(batch.columns for batch in filled), strict=True)]
    return list(zip(batches[0].names or [""], columns, strict=True))


def join_rows(parts: list[Values]) -> Values:
    """Return the rows of all parts, which are removed from the list one by one, so that memory is not taken twice."""
    if len(parts) == 1:
        return parts.pop()
    n, types = sum(map(len, parts)), {part.dtype for part in parts}
    rows = np.empty((n, parts[0].shape[1]), types.pop() if len(types) == 1 else np.float32)
    begin = 0
    while parts:
        part = parts.pop(0)
        rows[begin : begin + len(part)] = part
        begin += len(part)
    return rows
