"""Rows of data, dense or sparse: conversion for the core, checks of their values, content hashes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, cpu, is_on_gpu, resolve_place
from vicinal.backends import usable_place as usable_place
from vicinal.neighbors.metrics import Finite, Rows, is_sparse
from vicinal.runtime.inputs import check_input
from vicinal.runtime.residence import Place, Resident

# If memory ran out although the estimate of what is needed said that it would not, fewer rows than these fit.
SMALLER = 0.8


class HasRows(Resident):
    """Base of values with rows where they live. ``rows`` are the host's, made when they are first read."""

    rows: Rows
    _resident: ClassVar[tuple[str, ...]] = ("rows",)

    @property
    def on_device(self) -> bool:
        """Whether the rows themselves are worked on by a device: not if they are sparse or do not fit into it."""
        return self.place is not None and not is_sparse(self.__dict__.get("rows")) and not self.streamed

    @property
    def streamed(self) -> bool:
        """Whether dense rows of the host are too large for their device, and are sent to it group by group."""
        rows = self.__dict__.get("rows")
        if self.place is None or rows is None or is_sparse(rows) or rows.ndim != 2:
            return False
        return not backend_of(self.place).holds_rows(*rows.shape, self.__dict__.get("metric"))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        n, d = (self.rows if "rows" in self.__dict__ else self.array("rows")).shape
        return int(n), int(d)

    def __getitem__(self, which: NDArray[np.int64]) -> Rows:
        """Return some rows on the host."""
        if "rows" in self.__dict__:
            return self.rows[which]
        return self.place.to_numpy(self.array("rows")[self.place.asarray(which)])


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
    held = "rows" in X.__dict__.get("_held", {})
    need = backend_of(X.place).need(X.shape[1], k, metric, held=held)
    return replace(need, streamed=X.streamed, fit=fit)


@contextmanager
def named_room(X: Any, k: int | None = None) -> Iterator[None]:
    """Say in a MemoryError of the device of the rows, or of the data of a fit, how many rows would fit."""
    try:
        yield
    except MemoryError as error:
        if X.place is None or "would fit" in str(error):
            raise
        n, backend = X.shape[0], backend_of(X.place)
        fitting = min(backend.rows_that_fit(_need(X, k, "euclidean", True)), int(SMALLER * n))
        raise MemoryError(f"{error}; about {fitting} of {n} rows would fit") from None


def as_placed_rows(X: Any, device: str | None = None, name: str = "X", metric: Any = None) -> PlacedRows:
    """Convert rows of any library to float32 where ``device`` says, or where they live if it is None."""
    check_input(X, name)
    place = resolve_place(device, X)
    if not is_on_gpu(X):
        return PlacedRows(as_rows(X, name), metric).on(place)
    source = resolve_place(None, X)
    with source.active():
        rows = source.asarray(source.xp.from_dlpack(X), np.float32)
    if rows.ndim != 2:
        raise ValueError(f"{name} must be 2-D, got {rows.ndim} dimensions")
    return PlacedRows.held(source, {"rows": rows}, metric=metric).on(place)


def check_placed_rows(X: HasRows, n_jobs: int = -1, *, finite: Finite = True, name: str = "X") -> float:
    """Check the values, as ``check_rows`` does, where the rows live."""
    if X.place is None or finite is not True or "rows" in X.__dict__:
        return check_rows(X.rows, n_jobs, finite=finite, name=name)
    rows = X.array("rows")
    largest, bad = backend_of(X.place).scan_rows(rows)
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


def as_rows(X: Any, name: str = "X") -> Rows:
    """Convert to C-contiguous float32, or to CSR of float32 with ascending columns; no copy if X is that already.

    Malformed sparse rows raise ValueError; ``name`` is the name of the argument in its message.
    """
    check_input(X, name)
    if not hasattr(X, "tocsr"):
        return np.require(X, dtype=np.float32, requirements=["C", "A"])
    rows = X.tocsr()
    if rows.dtype != np.float32:
        rows = rows.astype(np.float32)
    if not rows.has_canonical_format:
        rows = rows.copy() if rows is X else rows
        rows.sum_duplicates()
    return rows


def stack_rows(above: Rows, below: Rows) -> Rows:
    """Join rows of the same kind and width."""
    if is_sparse(above):
        from scipy.sparse import vstack

        return vstack([above, below], format="csr")
    return np.concatenate([above, below])


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
    faulty = np.isinf(values) if allow_nan else ~np.isfinite(values)
    return largest, int(np.searchsorted(X.indptr, int(np.argmax(faulty)), side="right")) - 1


def check_rows(X: Rows, n_jobs: int = -1, *, finite: Finite = True, name: str = "X") -> float:
    """Check the values, in one pass over the rows.

    Parameters
    ----------
    X : ndarray or CSR matrix
        Rows as ``as_rows`` returns them.
    n_jobs : int
        Number of threads, -1 for all processors.
    finite : bool or "allow-nan"
        True requires finite values, "allow-nan" accepts NaN too, False accepts anything.
    name : str
        Name of the argument in the error message.

    Returns
    -------
    float
        The largest magnitude. ``NeighborIndex.from_checked`` and ``TrainingRows`` take it as ``largest``, so that the
        rows are not scanned again.

    Raises
    ------
    ValueError
        If a value is infinite or an unexpected NaN. The message names the first such row.
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
    return cpu.hash_rows(X, n_jobs)


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
