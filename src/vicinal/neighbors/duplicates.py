"""Rows with equal content."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.rows import HasRows, equal_rows, hash_rows
from vicinal.runtime.cached import cached


class DuplicateRows:
    """Find rows by content.

    Parameters
    ----------
    X : ndarray, CSR matrix, or rows on a device
        The rows to search in.
    n_jobs : int, default=-1
        Number of threads.
    hashes : ndarray of uint64, shape (n,), optional
        ``hash_rows(X)``, if it is known.
    """

    def __init__(self, X: Rows | HasRows, n_jobs: int = -1, hashes: NDArray[np.uint64] | None = None) -> None:
        self._X, self._n_jobs, self._hashes = X, n_jobs, hashes

    @property
    def _on_device(self) -> bool:
        return isinstance(self._X, HasRows)

    @cached
    def first(self) -> NDArray[np.int64]:
        """For each row the first row with the same content."""
        if not self._on_device:
            return self.find(self._X, self._index[2])
        first = np.arange(self._X.shape[0])
        pairs = backend_of(self._X.place).first_equal(self._X.array("rows"))
        if pairs is not None:
            row, earlier = pairs
            equal = equal_rows(self._X[row], self._X[earlier])
            first[row[equal]] = earlier[equal]
        return first

    @cached
    def _index(self) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]:
        """The rows in the order of their hashes, these hashes in order, and as they are."""
        hashes = hash_rows(self._X, self._n_jobs) if self._hashes is None else self._hashes
        order = np.argsort(hashes, kind="stable")
        return order, hashes[order], hashes

    @cached
    def _device_index(self) -> tuple[Any, Any]:
        """The hashes in order, and the rows in this order, on the device."""
        index: tuple[Any, Any] = backend_of(self._X.place).sorted_hashes(self._X.array("rows"))
        return index

    def _candidates(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return for each hash the first row that has it, if there is one, and whether there is one."""
        if self._on_device:
            row = backend_of(self._X.place).find_hashes(*self._device_index, hashes)
            return row, row >= 0
        order, ordered, _ = self._index
        at = np.minimum(np.searchsorted(ordered, hashes), len(ordered) - 1)
        return order[at], ordered[at] == hashes

    def find(self, Q: Rows, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return for each row of Q the first row with the same content, or -1. ``hashes`` are ``hash_rows(Q)``."""
        n = Q.shape[0]
        row, found = self._candidates(hashes)
        # A row equals itself. Any other pair is compared in full, since hashes can collide.
        own = (row == np.arange(n)) if Q is self._X else np.zeros(n, dtype=bool)
        doubtful = np.flatnonzero(found & ~own)
        if doubtful.size:
            found[doubtful] = equal_rows(self._X[row[doubtful]], Q[doubtful])
        return np.where(found, row, np.arange(n) if Q is self._X else -1)
