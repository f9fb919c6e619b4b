"""Store arrays and a JSON document in the safetensors format; the reader checks every byte of a file.

    8 bytes   length of the header, little-endian
    header    JSON: {"__metadata__": {name: text}, array: {"dtype", "shape", "data_offsets": [begin, end]}, ...}
    data      the arrays, one after the other, without gaps

The metadata contain the document and a SHA-256 checksum of everything else. Nothing is allocated before the header has
been checked against the size of the file: the header has at most ``MOST_HEADER`` bytes, the arrays must fill the data
exactly, and the shape of an array without values is limited too. So reading takes at most ``MOST_EXPANSION`` times the
file's size, even for a malicious file. Most of this is the parsed JSON of the header; arrays are read in place. The
safetensors package can read these files; it is not used here because it cannot read metadata from memory and cannot
write without a second copy of the arrays.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vicinal.files.atomic import atomic_write

FORMAT = 2
MOST_HEADER = 1 << 24  # bytes; parsed JSON takes about 20 times its length: 350 MB at most
MOST_DIMENSIONS = 8
# The most memory that reading a file takes, as a multiple of its size. Parsed JSON takes up to 40 times its length.
MOST_EXPANSION = 64
# Dimensions of an array without values cost nothing in the file: at most the size of the file, or this.
LONGEST_EMPTY = 1 << 16
TYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "F16": "<f2", "U32": "<u4", "I32": "<i4",
    "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8",
}  # fmt: skip
NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}

Arrays = Mapping[str, NDArray[Any]]
Content = tuple[dict[str, NDArray[Any]], dict[str, Any]]


class ModelFileError(ValueError):
    """A file is not a complete, valid model file, or a model cannot be written to a file.

    See Also
    --------
    load : raises it.

    Examples
    --------
    >>> import vicinal
    >>> vicinal.load(__file__)
    Traceback (most recent call last):
        ...
    vicinal.files.container.ModelFileError: ...
    """


def packed(arrays: Arrays, document: Mapping[str, Any]) -> list[bytes | memoryview]:
    """Return the parts of a file in order; arrays are copied only if their memory layout differs."""
    from vicinal import __version__

    plain = {name: _plain(name, array) for name, array in arrays.items()}
    # arrays of wide types first, so that every array is aligned
    names = sorted(plain, key=lambda name: (-plain[name].itemsize, name))
    ends = np.cumsum([0, *(plain[name].nbytes for name in names)]).tolist()
    text = json.dumps(document, sort_keys=True, allow_nan=False)
    metadata = {"format": f"vicinal {FORMAT}", "version": __version__, "document": text}
    header: dict[str, Any] = {"__metadata__": metadata | {"sha256": _checksum(metadata, plain)}}
    for name, place in zip(names, pairwise(ends), strict=True):
        array = plain[name]
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": list(place)}
    written = json.dumps(header, separators=(",", ":")).encode()
    written += b" " * (-len(written) % 8)
    if len(written) > MOST_HEADER:
        raise ModelFileError(
            f"parameters, labels and names of the model take {len(written)} bytes; a file can have up to {MOST_HEADER}"
        )
    return [len(written).to_bytes(8, "little"), written, *(_bytes_of(plain[name]).data for name in names)]


def write_file(path: str | os.PathLike[str], arrays: Arrays, document: Mapping[str, Any]) -> None:
    """Write arrays and a document to a file atomically."""
    parts = packed(arrays, document)
    with atomic_write(Path(path)) as file:
        for part in parts:
            file.write(part)


def read_file(path: str | os.PathLike[str]) -> Content:
    """Read the arrays and the document of a file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a regular file")
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        length = _header_length(file.read(8), size, str(path))
        header = _header(file.read(length), size, str(path))
        data = np.fromfile(file, dtype=np.uint8, count=size - 8 - length)
    if len(data) < size - 8 - length:
        raise ModelFileError(f"{path} became shorter while it was being read")
    return _content(header, data, str(path))


def unpacked(content: NDArray[np.uint8]) -> Content:
    """Read arrays and document from the bytes of a file; the arrays are views of ``content`` if it is writable."""
    where, size = "the pickled model", content.nbytes
    length = _header_length(content[:8].tobytes(), size, where)
    header = _header(content[8 : 8 + length].tobytes(), size, where)
    data = content[8 + length :]
    return _content(header, data if data.flags.writeable else data.copy(), where)


class _Place(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


# The metadata, and where each array is.
Header = tuple[Mapping[str, str], dict[str, _Place]]


def _header_length(prefix: bytes, size: int, where: str) -> int:
    length = int.from_bytes(prefix, "little")
    if len(prefix) < 8 or length > min(size - 8, MOST_HEADER):
        raise ModelFileError(f"{where} is not a complete model file")
    return length


def _header(written: bytes, size: int, where: str) -> Header:
    """Parse and check the header; all sizes are valid afterwards."""
    try:
        entries = json.loads(written)
        metadata = entries.pop("__metadata__")
        if not all(isinstance(metadata[name], str) for name in ("format", "version", "document", "sha256")):
            raise TypeError("metadata must be strings")
        places = {name: _place(entry) for name, entry in entries.items()}
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(f"{where} is not a complete model file: {type(error).__name__}") from error
    parts = sorted((place.begin, place.end) for place in places.values())
    if [0, *(end for _, end in parts)] != [*(begin for begin, _ in parts), size - 8 - len(written)]:
        raise ModelFileError(f"{where} is not a complete model file: its arrays do not match its size")
    if any(place.begin == place.end and max(place.shape) > max(size, LONGEST_EMPTY) for place in places.values()):
        raise ModelFileError(f"{where} is not a complete model file: an array without values is too long")
    kind, _, number = metadata["format"].partition(" ")
    if kind != "vicinal" or not (number.isascii() and number.isdecimal()) or len(number) > 9:
        raise ModelFileError(f"{where} is not a model file of vicinal")
    if int(number) > FORMAT:
        raise ModelFileError(f"{where} has format {number}, but this version reads up to {FORMAT}: update vicinal")
    return metadata, places


def _content(header: Header, data: NDArray[np.uint8], where: str) -> Content:
    metadata, places = header
    arrays = {name: _array(data, place) for name, place in places.items()}
    if metadata["sha256"] != _checksum(metadata, arrays):
        raise ModelFileError(f"{where} is corrupted: its checksum does not match")
    try:
        document = json.loads(metadata["document"])
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{where} does not describe a model: {type(error).__name__}") from error
    if not isinstance(document, dict):
        raise ModelFileError(f"{where} does not describe a model")
    return arrays, document


def _place(entry: Mapping[str, Any]) -> _Place:
    """Parse the entry of an array and check that its size in bytes matches its shape."""
    if set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError("an array must have a dtype, a shape and offsets")
    dtype, shape, (begin, end) = np.dtype(TYPES[entry["dtype"]]), entry["shape"], entry["data_offsets"]
    sizes = [*shape, begin, end]
    if not all(type(size) is int and 0 <= size < 2**62 for size in sizes) or len(shape) > MOST_DIMENSIONS:
        raise ValueError("sizes must be whole numbers")
    if end - begin != math.prod(shape) * dtype.itemsize or math.prod(size or 1 for size in shape) >= 2**59:
        raise ValueError("the size of an array must match its shape")
    return _Place(dtype, tuple(shape), begin, end)


def _array(data: NDArray[np.uint8], place: _Place) -> NDArray[Any]:
    part = data[place.begin : place.end]
    if place.dtype.kind == "b" and part.max(initial=0) > 1:
        raise ModelFileError("boolean values in a model file must be 0 or 1")
    if part.ctypes.data % place.dtype.itemsize:
        part = part.copy()  # files of other writers need not be aligned
    return part.view(place.dtype).reshape(place.shape)


def _plain(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Convert to a C-contiguous, little-endian array."""
    out = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    if out.dtype not in NAMES:
        raise ModelFileError(f"{name} is an array of {array.dtype}, which a model file cannot contain")
    return out


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _checksum(metadata: Mapping[str, str], arrays: Arrays) -> str:
    def encoded(text: str) -> bytes:
        return text.encode(errors="backslashreplace")  # JSON strings may contain unpaired surrogates

    digest = hashlib.sha256(encoded("|".join(metadata[name] for name in ("format", "version", "document"))))
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(encoded(f"|{name}|{NAMES[array.dtype]}|{array.shape}|"))
        digest.update(_bytes_of(array).data)
    return digest.hexdigest()
