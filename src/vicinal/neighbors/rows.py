"""Rows of data, dense or sparse: conversion for the core, checks of their values, content hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import Movable, Place, Placed, backend_of, cpu, is_on_gpu, placed, resolve_place
from vicinal.backends import usable_place as usable_place
from vicinal.neighbors.metrics import (
    Finite,
    FittedMetric,
    Rows,
    first_row,
    is_sparse,
    stored_values,
    widened,
    with_values,
)
from vicinal.runtime.cached import cached
from vicinal.runtime.inputs import ROW_TYPES, check_input, read_rows

# If memory ran out although the estimate of what is needed said that it would not, fewer rows than these fit.
SMALLER = 0.8


Self = TypeVar("Self", bound="HasRows")


class HasRows(Movable, arrays=("rows",)):
    """Base of values with rows. ``rows`` are the host's; rows of a device are copied when they are first read."""

    rows: Rows
    metric: Any = None

    def on(self: Self, place: Place) -> Self:
        """Return this value with its rows on a device, which works on float32, or with None on the host."""
        moved = super().on(place)
        rows = moved.held("rows")
        if isinstance(rows, Placed) and rows.there is None and not is_sparse(rows.here):
            rows.here = widened(rows.here)
        return moved

    @property
    def on_host(self) -> bool:
        """Whether the host has the rows, or a copy of them."""
        held = self.held("rows")
        return not isinstance(held, Placed) or held.here is not None

    @property
    def sparse(self) -> bool:
        """Whether the rows are sparse."""
        return is_sparse(self.anywhere("rows"))

    @property
    def on_device(self) -> bool:
        """Whether the rows themselves are worked on by a device: not if they are sparse or do not fit into it."""
        return self.place is not None and not self.sparse and not self.streamed

    @property
    def streamed(self) -> bool:
        """Whether dense rows of the host are too large for their device, and are sent to it group by group."""
        rows = self.anywhere("rows")
        if not self.on_host or self.sparse or rows.ndim != 2:
            return False
        return not backend_of(self.place).holds_rows(*rows.shape, self.metric)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        n, d = self.anywhere("rows").shape
        return int(n), int(d)

    def __getitem__(self, which: NDArray[np.int64]) -> Rows:
        """Return some rows on the host."""
        return backend_of(None if self.on_host else self.place).take_rows(self.anywhere("rows"), which)


@dataclass(frozen=True, eq=False)
class PlacedRows(HasRows):
    """Rows where they live, and the metric that compares them, if it is known: some metrics need a copy of the rows."""

    rows: Rows
    metric: Any = None


def place_of(X: Any, device: str | None = None) -> Place:
    """Return the device that works on X: the one that was asked for, or the one where X lives; None for the CPU."""
    return resolve_place(device, X)


def check_room(X: HasRows, k: int | None = None, metric: str = "euclidean", *, fit: bool = True) -> None:
    """Raise MemoryError if the rows are to be worked on by a device whose memory is too small for it.

    The work is a search of k neighbors by a metric of the core, and with ``fit`` the graph and the layout.
    """
    if X.on_device or X.streamed:
        backend_of(X.place).require_room(X.shape[0], _need(X, k, metric, fit))


def _need(X: HasRows, k: int | None, metric: str, fit: bool) -> Any:
    """Return what the work on rows allocates on their device."""
    rows = X.held("rows")
    held = isinstance(rows, Placed) and rows.there is not None
    need = backend_of(X.place).need(X.shape[1], k, metric, held=held)
    return replace(need, streamed=X.streamed, fit=fit)


@contextmanager
def explain_out_of_memory(X: Any, k: int | None = None) -> Iterator[None]:
    """Say in a MemoryError of the device of the rows, or of the data of a fit, how many rows would fit."""
    try:
        yield
    except MemoryError as error:
        if X.place is None or "would fit" in str(error):
            raise
        n, backend = X.shape[0], backend_of(X.place)
        fitting = min(backend.rows_that_fit(_need(X, k, "euclidean", True)), int(SMALLER * n))
        raise MemoryError(f"{error}; about {fitting} of {n} rows would fit") from None


def as_placed_rows(
    X: Any, device: str | None = None, name: str = "X", metric: Any = None, *, typed: bool = False
) -> PlacedRows:
    """Convert rows of any library where ``device`` says, or where they live if it is None.

    They become float32; with ``typed``, rows of the host keep their type.
    """
    check_input(X, name)
    place = resolve_place(device, X)
    if not is_on_gpu(X):
        return PlacedRows(as_rows(X, name, typed=typed and place is None), metric).on(place)
    source = resolve_place(None, X)
    with source.active():
        rows = source.asarray(source.xp.from_dlpack(X), np.float32)
    if rows.ndim != 2:
        raise ValueError(f"{name} must be 2-D, got {rows.ndim} dimensions")
    return PlacedRows(placed(source, rows), metric).on(place)


def check_placed_rows(X: HasRows, n_jobs: int = -1, *, finite: Finite = True, name: str = "X") -> float:
    """Check the values, as ``check_rows`` does, where the rows live."""
    if X.on_host or finite is not True:
        return check_rows(X.rows, n_jobs, finite=finite, name=name)
    largest, bad = backend_of(X.place).scan_rows(X.array("rows"), n_jobs, False)
    if bad >= 0:
        return check_rows(X.rows, n_jobs, finite=finite, name=name)  # raises, with its message
    return float(largest)


def like_input(X: Any, values: NDArray[Any]) -> Any:
    """Return a result in the library of the input: an array on the same device if the input is one."""
    if not is_on_gpu(X):
        return values
    import importlib

    place = resolve_place(None, X)
    array = place.asarray(values)
    if isinstance(X, place.xp.ndarray):
        return array
    library = type(X).__module__.partition(".")[0]
    module = importlib.import_module("jax.numpy" if library.startswith("jax") else library)
    return module.from_dlpack(array)


def as_rows(X: Any, name: str = "X", *, typed: bool = False) -> Rows:
    """Convert to C-contiguous float32, or to CSR of float32 with ascending columns; no copy if X is that already.

    With ``typed``, dense rows of one of the ``ROW_TYPES`` keep their type. Malformed sparse rows raise ValueError;
    ``name`` is the name of the argument in its message.
    """
    X, _ = read_rows(X, name)
    if not hasattr(X, "tocsr"):
        rows = np.asarray(X)
        kept = typed and rows.dtype in ROW_TYPES
        return np.require(rows, dtype=rows.dtype if kept else np.float32, requirements=["C", "A"])
    rows = X.tocsr()
    if rows.dtype != np.float32:
        rows = rows.astype(np.float32)
    if not rows.has_canonical_format:
        rows = rows.copy() if rows is X else rows
        rows.sum_duplicates()
    return rows


def stack_rows(*pieces: Rows) -> Rows:
    """Join rows of the same kind and width."""
    if is_sparse(pieces[0]):
        from scipy.sparse import vstack

        return vstack(pieces, format="csr")
    same = len({piece.dtype for piece in pieces}) == 1
    return np.concatenate(pieces if same else [widened(piece) for piece in pieces])


def csr_parts(X: Rows) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int]:
    """Return (indptr, indices, values, number of columns) of sparse rows."""
    return (
        np.ascontiguousarray(X.indptr, dtype=np.int64),
        np.ascontiguousarray(X.indices, dtype=np.int32),
        np.ascontiguousarray(X.data, dtype=np.float32),
        int(X.shape[1]),
    )


def scan_rows(X: Rows, n_jobs: int = -1, *, allow_nan: bool = False) -> tuple[float, int]:
    """Return the largest magnitude, and the first row with infinity or (unless allowed) NaN, or -1."""
    if not is_sparse(X):
        return cpu.scan_rows(X, n_jobs, allow_nan)
    values = np.ascontiguousarray(X.data, dtype=np.float32)
    largest, bad = cpu.scan_rows(values.reshape(1, -1), n_jobs, allow_nan)
    if bad < 0:
        return largest, -1
    return largest, first_row(X, np.isinf(values) if allow_nan else ~np.isfinite(values))


def check_rows(X: Rows, n_jobs: int = -1, *, finite: Finite = True, name: str = "X") -> float:
    """Check the values of rows as ``as_rows`` returns them, in one pass, and return the largest magnitude.

    ``finite`` is True (all must be finite), "allow-nan" (NaN is accepted too) or False (anything is). A ValueError
    names the argument and the first bad row. ``NeighborIndex.from_checked`` and ``TrainingRows`` take the result as
    ``largest``, so that the rows are not scanned again.
    """
    allow_nan = finite is not True
    largest, bad = scan_rows(X, n_jobs, allow_nan=allow_nan)
    if bad >= 0 and finite:
        values = X.data[X.indptr[bad] : X.indptr[bad + 1]] if is_sparse(X) else X[bad]
        is_nan = bool(np.isnan(values).any()) and not allow_nan
        what = "NaN" if is_nan else "infinity (inf), or a value too large for float32"
        raise ValueError(f"Input {name} contains {what}, first in row {bad}.")
    return largest


def hash_rows(X: Rows, n_jobs: int = -1) -> NDArray[np.uint64]:
    """Return a hash per row. It depends on the values of the row alone; stored zeros of sparse rows do not count."""
    if is_sparse(X):
        return cpu.hash_sparse_rows(*csr_parts(X), n_jobs)
    return cpu.hash_rows(as_rows(X, typed=True), n_jobs)


def equal_rows(A: Rows, B: Rows) -> NDArray[np.bool_]:
    """Tell for each i whether row i of A equals row i of B; NaN equals NaN."""
    if is_sparse(A):
        differences: NDArray[np.int64] = np.asarray((A != B).sum(axis=1)).reshape(-1)
        return np.equal(differences, 0)
    same = A == B
    if not same.all():
        same |= np.isnan(A) & np.isnan(B)
    equal: NDArray[np.bool_] = same.all(axis=1)
    return equal


class DuplicateRows:
    """Find rows of X, which may be on a device, by content; ``hashes`` are ``hash_rows(X)`` if they are known."""

    def __init__(self, X: Rows | HasRows, n_jobs: int = -1, hashes: NDArray[np.uint64] | None = None) -> None:
        self._X, self._n_jobs, self._hashes = X, n_jobs, hashes

    @property
    def _work(self) -> Any:
        return backend_of(self._X.place if isinstance(self._X, HasRows) else None)

    @cached
    def first(self) -> NDArray[np.int64]:
        """For each row the first row with the same content."""
        return self.find(self._X, self._index[2])

    @cached
    def _index(self) -> tuple[Any, Any, Any]:
        """The rows in the order of their hashes, these hashes in order, and as they are; where the rows are."""
        hashes = self._hashes
        if hashes is None and isinstance(self._X, HasRows):
            hashes = self._work.hash_rows(self._X.array("rows"), self._n_jobs)
        elif hashes is None:
            hashes = hash_rows(self._X, self._n_jobs)
        with self._work.active():
            order = self._work.xp.argsort(hashes, kind="stable")
            return order, hashes[order], hashes

    def _candidates(self, hashes: Any) -> NDArray[np.int64]:
        """Return for each hash the first row that has it, or -1; on the host."""
        work, (order, ordered, _) = self._work, self._index
        with work.active():
            wanted = work.asarray(hashes)
            at = work.xp.minimum(work.xp.searchsorted(ordered, wanted), len(ordered) - 1)
            rows: NDArray[np.int64] = work.to_numpy(work.xp.where(ordered[at] == wanted, order[at], -1))
            return rows.astype(np.int64, copy=False)

    def find(self, Q: Rows | HasRows, hashes: Any) -> NDArray[np.int64]:
        """Return for each row of Q the first row with the same content, or -1. ``hashes`` are ``hash_rows(Q)``."""
        n = Q.shape[0]
        row = self._candidates(hashes)
        # A row equals itself. Any other pair is compared in full, since hashes can collide.
        own = (row == np.arange(n)) if Q is self._X else np.zeros(n, dtype=bool)
        found = row >= 0
        doubtful = np.flatnonzero(found & ~own)
        if doubtful.size:
            found[doubtful] = equal_rows(self._X[row[doubtful]], Q[doubtful])
        return np.where(found, row, np.arange(n) if Q is self._X else -1)


Hashes = NDArray[np.uint64]
Numbers = NDArray[np.int32]


class FirstEqualRows:
    """Find for each row the first row with the same content.

    Distinct hashes are kept in blocks of sorted arrays, each less than half as long as the one before: a batch costs
    time proportional to its rows, times the logarithm of the number of all rows.
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[Hashes, Numbers]] = []

    def find(self, new: Rows, begin: int, rows: Callable[[Numbers], Rows], n_jobs: int = -1) -> tuple[Numbers, Hashes]:
        """Return the first equal row of each row of ``new``, and their hashes, which ``add`` takes.

        The rows follow the ``begin`` rows that were added, of which ``rows`` returns those of given numbers.
        """
        hashes = hash_rows(new, n_jobs)
        first = (begin + DuplicateRows(new, n_jobs, hashes).first).astype(np.int32)
        known = self._lookup(hashes)
        found = np.flatnonzero(known >= 0)
        if found.size:
            found = found[equal_rows(rows(known[found]), new[found])]
            first[found] = known[found]
        return first, hashes

    def add(self, hashes: Hashes, begin: int) -> None:
        """Add the rows that follow the ``begin`` rows that were added."""
        distinct, at = np.unique(hashes, return_index=True)
        is_new = self._lookup(distinct) < 0
        block = distinct[is_new], (at[is_new] + begin).astype(np.int32)
        while self._blocks and 2 * len(block[0]) >= len(self._blocks[-1][0]):
            last = self._blocks.pop()
            joined = np.concatenate([last[0], block[0]])
            order = np.argsort(joined, kind="stable")
            block = joined[order], np.concatenate([last[1], block[1]])[order]
        if len(block[0]):
            self._blocks.append(block)

    def keep(self, number: Numbers) -> None:
        """Replace each row that is the first of its content by its ``number``; -1 if no row of that content stays."""
        kept = [(hashes[number[rows] >= 0], number[rows[number[rows] >= 0]]) for hashes, rows in self._blocks]
        self._blocks = [block for block in kept if len(block[0])]

    def _lookup(self, hashes: Hashes) -> Numbers:
        """Return the row that was added with each hash, or -1."""
        found = np.full(len(hashes), -1, np.int32)
        for known, numbers in self._blocks:
            at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            found = np.where(known[at] == hashes, numbers[at], found)
        return found


# If the largest magnitude lies outside [SMALLEST_SAFE, LARGEST_SAFE], squares of float32 numbers overflow or underflow,
# and the data is multiplied by a power of two. Rows of a query are clipped at FARTHEST.
LARGEST_SAFE, SMALLEST_SAFE, FARTHEST = 1e15, 1e-12, 1e17


@dataclass(frozen=True)
class Preparation:
    """A metric, and the power of two by which its rows are multiplied."""

    metric: FittedMetric
    scale: float = 1.0
    n_jobs: int = -1

    @classmethod
    def of(
        cls, metric: FittedMetric, X: Rows, n_jobs: int = -1, largest: float | None = None
    ) -> tuple[Preparation, Rows]:
        """Choose the scale for X. Return the preparation and the prepared rows.

        ``largest`` is the largest magnitude in X if it is known; otherwise, and if the metric transforms the rows, they
        are scanned.
        """
        prepared, scale = metric.prepare(X), 1.0
        if metric.facts.degree is not None:
            if largest is None or prepared is not X:
                largest, _ = scan_rows(prepared, n_jobs, allow_nan=True)
            if not is_safe(largest):
                scale = float(2.0 ** -np.floor(np.log2(float(largest))))
        preparation = cls(metric, scale, n_jobs)
        return preparation, prepared if scale == 1.0 else preparation._scale_rows(prepared)

    def rows(self, X: Rows, largest: float | None = None) -> Rows:
        """Prepare further rows; ``largest`` is their largest magnitude if it is known."""
        prepared = self.metric.prepare(X)
        if self.metric.facts.degree is None:
            return prepared
        if self.scale == 1.0:
            if largest is None or prepared is not X:
                largest, _ = scan_rows(prepared, self.n_jobs, allow_nan=True)
            if largest <= FARTHEST:
                return prepared
        return self._scale_rows(prepared)

    def likeness(self, prepared: Rows) -> Rows:
        """Return dense rows to sketch: their euclidean distances show which rows are likely neighbors."""
        return np.ascontiguousarray(self.metric.likeness(prepared))

    def distances(self, index: NDArray[np.int32], distance: NDArray[np.float32]) -> NDArray[np.float32]:
        """Convert distances of scaled rows to distances of the rows as they were given."""
        degree = self.metric.facts.degree
        if self.scale == 1.0 or not degree:
            return distance
        largest = np.finfo(np.float32).max
        unscaled = distance.astype(np.float64) / self.scale**degree
        return np.where(index < 0, np.inf, np.minimum(unscaled, largest)).astype(np.float32)

    def _scale_rows(self, prepared: Rows) -> Rows:
        scaled = np.clip(stored_values(prepared).astype(np.float64) * self.scale, -FARTHEST, FARTHEST)
        return with_values(prepared, scaled)


def is_safe(largest: float | None) -> bool:
    """Tell whether rows of this largest magnitude are compared as they are."""
    return largest is not None and (largest == 0.0 or SMALLEST_SAFE <= largest <= LARGEST_SAFE)
