"""Rows with equal content."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.rows import equal_rows, hash_rows


class DuplicateRows:
    """Find rows by content.

    Parameters
    ----------
    X : ndarray or CSR matrix
        The rows to search in.
    n_jobs : int, default=-1
        Number of threads.
    hashes : ndarray of uint64, shape (n,), optional
        ``hash_rows(X)``, if it is known.

    Attributes
    ----------
    first : ndarray of int64, shape (n,)
        For each row of X the first row with the same content.
    """

    def __init__(self, X: Rows, n_jobs: int = -1, hashes: NDArray[np.uint64] | None = None) -> None:
        self._X = X
        hashes = hash_rows(X, n_jobs) if hashes is None else hashes
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]
        self.first = self.find(X, hashes)

    def find(self, Q: Rows, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return for each row of Q the first row with the same content, or -1. ``hashes`` are ``hash_rows(Q)``."""
        n = Q.shape[0]
        at = np.minimum(np.searchsorted(self._sorted, hashes), len(self._sorted) - 1)
        row = self._order[at]
        found = self._sorted[at] == hashes
        # A row equals itself. Any other pair is compared in full, since hashes can collide.
        own = (row == np.arange(n)) if Q is self._X else np.zeros(n, dtype=bool)
        doubtful = np.flatnonzero(found & ~own)
        if doubtful.size:
            found[doubtful] = equal_rows(self._X[row[doubtful]], Q[doubtful])
        return np.where(found, row, np.arange(n) if Q is self._X else -1)
