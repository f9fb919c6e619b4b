"""Rows that arrive over time: stored as they were given, ranked in pairs by a function or as sparse rows.

A store may hold rows beyond those of its owner, if an insertion was interrupted: the owner truncates it to the rows
that it counts, before it appends others. So an insertion takes effect when the owner counts its rows.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.neighbors.metrics import FittedMetric, Rows
from vicinal.neighbors.rows import csr_parts
from vicinal.runtime.growing_array import GrowingArray

# SciPy's functions want row pointers and columns of the same type.
MOST_STORED = np.iinfo(np.int32).max
# Sparse rows wider than a sketch are sketched by sums of their values: each column is added to COPIES of the sums,
# with signs, which keeps squared distances on average.
COPIES, BLOCK_ROWS = 4, 4096


class GivenRows(Protocol):
    """Rows as they were given."""

    def first(self, n: int) -> Rows:
        """Return the first ``n`` rows. Later insertions do not change them."""

    def append(self, rows: Rows) -> None: ...
    def truncate(self, n: int) -> None: ...


class GivenDense:
    """Dense rows."""

    def __init__(self, columns: int) -> None:
        self._values = GrowingArray(np.empty((0, columns), np.float32))

    def first(self, n: int) -> NDArray[np.float32]:
        """Return the first ``n`` rows, which cannot be written to."""
        rows = self._values.view[:n]
        rows.flags.writeable = False
        return rows

    def append(self, rows: Rows) -> None:
        """Add rows."""
        self._values.append(rows)

    def truncate(self, n: int) -> None:
        """Remove all rows from row ``n`` on."""
        self._values.truncate(n)


class GivenSparse:
    """Sparse rows."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._values, self._indices = GrowingArray(np.empty(0, np.float32)), GrowingArray(np.empty(0, np.int32))
        self._ends = GrowingArray(np.zeros(1, np.int32))

    def first(self, n: int) -> Rows:
        """Return the first ``n`` rows as a CSR matrix, whose arrays cannot be written to."""
        from scipy.sparse import csr_matrix

        ends = self._ends.view[: n + 1]
        parts = self._values.view[: ends[-1]], self._indices.view[: ends[-1]], ends
        for part in parts:
            part.flags.writeable = False
        rows = csr_matrix(parts, shape=(n, self._columns), copy=False)
        rows.has_canonical_format = True  # as_rows made them so; SciPy would look at all of them again
        return rows

    def append(self, rows: Rows) -> None:
        """Add rows."""
        last = int(self._ends.view[-1])
        if last + int(rows.indptr[-1]) > MOST_STORED:
            raise ValueError(f"sparse rows must have at most {MOST_STORED} stored values in all")
        self._values.append(rows.data)
        self._indices.append(rows.indices)
        self._ends.append(last + rows.indptr[1:])

    def truncate(self, n: int) -> None:
        """Remove all rows from row ``n`` on."""
        self._ends.truncate(n + 1)
        for column in (self._values, self._indices):
            column.truncate(int(self._ends.view[-1]))


class StreamPairs:
    """Ranks of pairs that the core computes from the rows that it holds: there is nothing to store."""

    def append(self, prepared: Rows) -> None:
        """Add prepared rows."""

    def truncate(self, n: int) -> None:
        """Remove all rows from row ``n`` on."""

    def of_rows(self) -> cpu.PairMetric | None:
        """Return the ranks of two of the rows; None if the core knows them."""
        return None

    def of_queries(self, prepared: Rows) -> cpu.PairMetric | None:
        """Return the ranks of prepared queries and the rows; None if the core knows them."""
        return None


class FunctionPairs(StreamPairs):
    """Distances by a Python function, or by a compiled one."""

    def __init__(self, metric: FittedMetric, columns: int) -> None:
        self._metric = metric
        self._rows: list[NDArray[np.float32]] = []
        self._matrix = GivenDense(columns)

    def append(self, prepared: Rows) -> None:
        """Add prepared rows."""
        if self._metric.calls_python:
            self._rows.extend(prepared.copy())
        else:
            self._matrix.append(prepared)

    def truncate(self, n: int) -> None:
        """Remove all rows from row ``n`` on."""
        del self._rows[n:]
        self._matrix.truncate(n)

    def of_rows(self) -> cpu.PairMetric:
        """Return the ranks of two of the rows."""
        return self._pairs(self._rows) if self._metric.calls_python else self._compiled(self._all())

    def of_queries(self, prepared: Rows) -> cpu.PairMetric:
        """Return the ranks of prepared queries and the rows."""
        return self._pairs(list(prepared.copy())) if self._metric.calls_python else self._compiled(prepared)

    def _pairs(self, heads: list[NDArray[np.float32]]) -> cpu.PairMetric:
        return cpu.PythonPairs(heads, self._rows, partial(self._metric.function, **self._metric.keywords))

    def _compiled(self, heads: NDArray[np.float32]) -> cpu.PairMetric:
        return cpu.ForeignPairs(heads, self._all(), self._metric.function)

    def _all(self) -> NDArray[np.float32]:
        return self._matrix.first(MOST_STORED)


class SparseStreamPairs(StreamPairs):
    """Distances of sparse rows."""

    def __init__(self, metric: FittedMetric, columns: int) -> None:
        self._metric, self._columns = metric, columns
        self._rows = cpu.GrowingSparseRows(columns, metric.core)

    def append(self, prepared: Rows) -> None:
        """Add prepared rows."""
        self._rows.append(*csr_parts(prepared))

    def truncate(self, n: int) -> None:
        """Remove all rows from row ``n`` on."""
        self._rows.truncate(n)

    def of_rows(self) -> cpu.PairMetric:
        """Return the ranks of two of the rows."""
        return cpu.SparsePairs(self._rows, self._rows, self._metric.power)

    def of_queries(self, prepared: Rows) -> cpu.PairMetric:
        """Return the ranks of prepared queries and the rows."""
        queries = cpu.GrowingSparseRows(self._columns, self._metric.core)
        queries.append(*csr_parts(prepared))
        return cpu.SparsePairs(queries, self._rows, self._metric.power)


def stream_pairs(metric: FittedMetric, columns: int, sparse: bool) -> StreamPairs:
    """Return how pairs of rows that arrive over time are ranked."""
    if sparse:
        return SparseStreamPairs(metric, columns)
    return StreamPairs() if metric.function is None else FunctionPairs(metric, columns)


def sparse_likeness(metric: FittedMetric, prepared: Rows) -> NDArray[np.float32]:
    """Return short dense rows whose euclidean neighbors are likely neighbors of the sparse ones.

    A row depends on its own values only, and has at most the width of a sketch.
    """
    rows = metric.likeness(prepared)
    blocks = [
        _summed_columns(rows[begin : begin + BLOCK_ROWS]) for begin in range(0, max(rows.shape[0], 1), BLOCK_ROWS)
    ]
    short: NDArray[np.float64] = np.concatenate(blocks)
    if metric.core in ("cosine", "correlation", "hellinger"):
        length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64)).reshape(-1, 1)
        short = short / np.where(length > 0, length, 1.0)
    return np.ascontiguousarray(short, dtype=np.float32)


def _summed_columns(rows: Rows) -> NDArray[np.float64]:
    n, width = rows.shape[0], cpu.SKETCH_WIDTH
    if rows.shape[1] <= width:
        return np.asarray(rows.toarray(), dtype=np.float64)
    at = np.repeat(np.arange(n), np.diff(rows.indptr)) * width
    sums = np.zeros(n * width)
    for copy in range(COPIES):
        mixed = _mixed(rows.indices.astype(np.uint64) * np.uint64(COPIES) + np.uint64(copy))
        sign = 1.0 - 2.0 * (mixed >> np.uint64(63)).astype(np.float64)
        bucket = (mixed % np.uint64(width)).astype(np.int64)
        sums += np.bincount(at + bucket, weights=sign * rows.data, minlength=n * width)
    short: NDArray[np.float64] = (sums / np.sqrt(COPIES)).reshape(n, width)
    return short


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return random-looking 64-bit numbers, a function of the numbers (the finalizer of splitmix64)."""
    z = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))
