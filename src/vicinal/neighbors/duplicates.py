"""Rows found by their content."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.rows import equal_rows, hash_rows


class SeenRows:
    """Finds rows by content: equal rows of the data it was made from, and new rows that equal one of them."""

    def __init__(self, X: Rows, n_jobs: int = -1) -> None:
        self._X = X
        hashes = hash_rows(X, n_jobs)
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]
        self.first = self.find(X, hashes)

    def find(self, X: Rows, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The first row with the same content as each row of ``X``, or -1."""
        n = X.shape[0]
        at = np.minimum(np.searchsorted(self._sorted, hashes), len(self._sorted) - 1)
        row = self._order[at]
        found = self._sorted[at] == hashes
        # A row is itself; any other is compared in full, since hashes can collide.
        own = (row == np.arange(n)) if X is self._X else np.zeros(n, dtype=bool)
        doubtful = np.flatnonzero(found & ~own)
        if doubtful.size:
            found[doubtful] = equal_rows(self._X[row[doubtful]], X[doubtful])
        return np.where(found, row, np.arange(n) if X is self._X else -1)
