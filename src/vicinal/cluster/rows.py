"""The rows of a Dask array: what they must be like, and how tasks read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.neighbors.cells import joined_rows
from vicinal.neighbors.metrics import Rows, is_sparse
from vicinal.neighbors.rows import as_rows, scan_rows

MOST_ROWS = 2**31 - 1  # row numbers are 32-bit
BLOCK_BYTES = 1 << 24  # chunks are joined up to this size


@dataclass(frozen=True)
class Span:
    """Where some chunks lie in the array: their numbers, and the number of the first row of each."""

    chunks: tuple[int, ...]
    firsts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class DaskRows:
    """A checked Dask array, in blocks of some chunks each. ``blocks`` holds the chunks as delayed values."""

    array: Any
    blocks: list[list[Any]]
    spans: list[Span]

    @property
    def rows(self) -> Any:
        return self.array

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    @property
    def n(self) -> int:
        return int(self.array.shape[0])

    @property
    def d(self) -> int:
        return int(self.array.shape[1])

    @property
    def sparse(self) -> bool:
        return hasattr(self.array._meta, "tocsr")

    @property
    def chunks(self) -> list[Any]:
        """The chunks as delayed values, without those that have no rows."""
        return [chunk for block in self.blocks for chunk in block]

    @property
    def largest_chunk(self) -> int:
        """Bytes of the largest chunk as float32."""
        return 4 * self.d * int(max(self.array.chunks[0]))

    @classmethod
    def of(cls, X: Any) -> DaskRows:
        """Check shape, type and chunks of a Dask array or data frame; nothing is computed but unknown chunk sizes."""
        if hasattr(X, "to_dask_array"):
            X = X.to_dask_array(lengths=True)
        if not hasattr(X, "to_delayed") or not hasattr(X, "chunks"):
            raise TypeError(f"X must be a Dask array or data frame, got {type(X).__module__}.{type(X).__name__}")
        if X.ndim != 2:
            raise ValueError(f"X must be 2-D, got a Dask array of {X.ndim} dimensions")
        if any(np.isnan(size) for size in X.chunks[0]):
            raise ValueError("X has chunks of unknown size; call X.compute_chunk_sizes() first")
        if X.dtype.kind not in "fiub":
            raise ValueError(f"X must hold real numbers, got a Dask array of {X.dtype}")
        if X.shape[0] > MOST_ROWS:
            raise ValueError(f"X has {X.shape[0]} rows; at most {MOST_ROWS} are possible")
        if X.shape[0] < 2 or X.shape[1] < 1:
            raise ValueError(f"X must have at least two rows and one column, got shape {X.shape}")
        if len(X.chunks[1]) > 1:
            X = X.rechunk({1: -1})
        chunks = X.to_delayed(optimize_graph=True).ravel().tolist()
        blocks, spans = _blocks(chunks, X.chunks[0], 4 * X.shape[1])
        return cls(X, blocks, spans)


def _blocks(chunks: list[Any], sizes: tuple[int, ...], row_bytes: int) -> tuple[list[list[Any]], list[Span]]:
    """Join small chunks; chunks without rows are left out."""
    firsts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    groups: list[list[int]] = []
    held = 0.0
    for number, size in enumerate(sizes):
        if size == 0:
            continue
        if not groups or held + size * row_bytes > BLOCK_BYTES:
            groups.append([])
            held = 0.0
        groups[-1].append(number)
        held += size * row_bytes
    spans = [Span(tuple(group), tuple(firsts[number] for number in group)) for group in groups]
    return [[chunks[number] for number in group] for group in groups], spans


def read_block(chunks: list[Any]) -> Rows:
    """Return the rows of some chunks as float32, dense or CSR; blocks of CuPy are copied from the device."""
    with np.errstate(over="ignore"):  # a value that float32 cannot hold becomes infinite, and is reported as such
        return joined_rows([as_rows(chunk.get() if _on_device(chunk) else chunk) for chunk in chunks])


def _on_device(chunk: Any) -> bool:
    return type(chunk).__module__.split(".")[0] in ("cupy", "cupyx")


def scan_block(chunks: list[Any], span: Span, wanted: NDArray[np.int64]) -> Rows:
    """Check the values of some chunks and return those of their rows whose numbers are wanted.

    The error names chunk and row.
    """
    taken = []
    for chunk, number, first in zip(chunks, span.chunks, span.firsts, strict=True):
        rows = read_block([chunk])
        _, bad = scan_rows(rows)
        if bad >= 0:
            values = rows[[bad]].data if is_sparse(rows) else rows[bad]
            what = "NaN" if np.isnan(values).any() else "infinity (inf), or a value too large for float32"
            raise ValueError(f"Input X contains {what}, first in row {first + bad} (chunk {number}, row {bad} of it).")
        low, high = np.searchsorted(wanted, [first, first + rows.shape[0]])
        taken.append(rows[wanted[low:high] - first])
    return joined_rows(taken)
