"""Results of tasks that are kept: as files in a directory that all workers can reach, or in memory.

What passes from task to task is a handle. Files are read by position, not mapped into memory: pages of a mapped file
count as memory of the process until it is unmapped.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.neighbors.cells import joined_rows
from vicinal.neighbors.metrics import Rows, is_sparse

Array = NDArray[Any]
WRITTEN_BYTES = 1 << 22  # bytes of rows that are put in order at a time while they are written


@dataclass(frozen=True)
class Stored:
    """Named arrays that a task has made: in memory, or in the files ``path``.name.npy."""

    arrays: dict[str, Array] | None
    path: str | None = None

    def load(self, name: str, first: int = 0, stop: int | None = None) -> Array:
        """Return the entries ``first : stop`` of an array; only these are read."""
        if self.arrays is not None:
            return self.arrays[name][first:stop]
        return joined_pieces([Piece(self, first, self.length(name) if stop is None else stop)], name)

    def length(self, name: str) -> int:
        """Return the number of entries of an array."""
        return len(self.arrays[name]) if self.arrays is not None else int(_layout(self.file(name))[1][0])

    def has(self, name: str) -> bool:
        return name in self.arrays if self.arrays is not None else os.path.exists(self.file(name))

    def load_rows(self, first: int, stop: int) -> Rows:
        """Return rows that were kept as :func:`rows_as_arrays`."""
        if self.has("values"):
            return self.load("values", first, stop)
        from scipy.sparse import csr_matrix

        indptr = self.load("indptr", first, stop + 1)
        begin, end = int(indptr[0]), int(indptr[-1])
        parts = (self.load("data", begin, end), self.load("indices", begin, end), indptr - begin)
        return csr_matrix(parts, shape=(stop - first, int(self.load("columns")[0])))

    def file(self, name: str) -> str:
        return f"{self.path}.{name}.npy"


@lru_cache(maxsize=4096)
def _layout(path: str) -> tuple[int, tuple[int, ...], np.dtype[Any]]:
    """Return where the entries of a .npy file begin, its shape and its type. A file of this name never changes."""
    with open(path, "rb") as file:
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        return file.tell(), shape, dtype


@dataclass(frozen=True)
class Piece:
    """Some consecutive entries of what a task kept, for one other task."""

    kept: Stored
    first: int
    stop: int

    @property
    def entries(self) -> int:
        return self.stop - self.first


@dataclass(frozen=True)
class Pieces:
    """What a task kept, divided for other tasks: entries ``bounds[i] : bounds[i + 1]`` for task i."""

    kept: Stored
    bounds: Array

    def __getitem__(self, at: int) -> Piece:
        return Piece(self.kept, int(self.bounds[at]), int(self.bounds[at + 1]))


def joined_pieces(pieces: Sequence[Piece], name: str) -> Array:
    """Return an array of several pieces, one behind the other, read without a second copy."""
    if pieces[0].kept.arrays is not None:
        return np.concatenate([piece.kept.load(name, piece.first, piece.stop) for piece in pieces])
    _, shape, dtype = _layout(pieces[0].kept.file(name))
    out, filled = np.empty((sum(piece.entries for piece in pieces), *shape[1:]), dtype), 0
    for piece in pieces:
        _read_into(out[filled : filled + piece.entries], piece.kept.file(name), piece.first)
        filled += piece.entries
    return out


def _read_into(out: Array, path: str, first: int) -> None:
    """Read the entries of a file from ``first`` on into a contiguous array."""
    if out.size:
        with open(path, "rb") as file:
            file.seek(_layout(path)[0] + first * (out.nbytes // len(out)))
            if file.readinto(out.reshape(-1).view(np.uint8).data) != out.nbytes:
                raise OSError(f"{path} ends before entry {first + len(out)}")


def joined_piece_rows(pieces: Sequence[Piece]) -> Rows:
    """Return the rows of several pieces, one behind the other."""
    if pieces[0].kept.has("values"):
        return joined_pieces(pieces, "values")
    some = [piece for piece in pieces if piece.entries] or pieces[:1]
    return joined_rows([piece.kept.load_rows(piece.first, piece.stop) for piece in some])


def rows_as_arrays(rows: Rows) -> dict[str, Array]:
    """Return rows, dense or sparse, as named arrays."""
    if not is_sparse(rows):
        return {"values": rows}
    columns = np.array([rows.shape[1]])
    return {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr.astype(np.int64), "columns": columns}


@dataclass(frozen=True)
class Store:
    """Keeps results of tasks: in ``directory``, or in the memory of the worker if that is None."""

    directory: str | None = None

    def keep(self, name: str, arrays: dict[str, Array]) -> Stored:
        """Keep arrays under a name that says what they are; writing the same twice does no harm."""
        if self.directory is None:
            return Stored({key: np.ascontiguousarray(array) for key, array in arrays.items()})
        path = os.path.join(self.directory, name)
        for key, array in arrays.items():
            self._write(f"{path}.{key}.npy", array)
        return Stored(None, path)

    def pieces(
        self, name: str, arrays: dict[str, Array], bounds: Array, rows: Rows = None, order: Array | None = None
    ) -> Pieces | list[Piece]:
        """Keep arrays, and ``rows[order]`` beside them: task i gets the entries ``bounds[i] : bounds[i + 1]``."""
        if self.directory is None:  # each piece travels alone
            made = []
            for first, stop in pairwise(bounds.tolist()):
                own = {key: array[first:stop].copy() for key, array in arrays.items()}
                own |= {} if order is None else rows_as_arrays(rows[order[first:stop]])
                made.append(Piece(self.keep(name, own), 0, stop - first))
            return made
        if is_sparse(rows):
            arrays, rows = arrays | rows_as_arrays(rows[order]), None
        kept = self.keep(name, arrays)
        if rows is not None:
            self._write(kept.file("values"), rows, order)
        return Pieces(kept, np.asarray(bounds, dtype=np.int32))

    def discard(self, kind: str) -> None:
        """Remove the files of all results of a kind, that is whose names begin so."""
        if self.directory is not None:
            for file in Path(self.directory).glob(f"{kind}-*"):
                file.unlink(missing_ok=True)

    def _write(self, path: str, array: Array, order: Array | None = None) -> None:
        handle, unfinished = tempfile.mkstemp(dir=self.directory, suffix=".npy")
        try:
            with os.fdopen(handle, "wb") as file:
                if order is None:
                    np.save(file, np.ascontiguousarray(array))
                else:
                    _save_ordered(file, array, order)
            os.replace(unfinished, path)
        except OSError as error:
            Path(unfinished).unlink(missing_ok=True)
            raise OSError(error.errno, f"{path} could not be written: {error.strerror}") from error


def _save_ordered(file: Any, rows: Array, order: Array) -> None:
    """Write ``rows[order]`` as .npy without making it in memory."""
    shape = (len(order), *rows.shape[1:])
    header = {"descr": np.lib.format.dtype_to_descr(rows.dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    step = max(1, WRITTEN_BYTES // max(1, rows.itemsize * rows.size // max(1, len(rows))))
    for first in range(0, len(order), step):
        file.write(rows[order[first : first + step]].data)
