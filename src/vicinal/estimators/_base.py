"""What every estimator shares: checked input, seeds, the names of its outputs, rows seen before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal import _core
from vicinal.estimators._contract import Estimator, random_seed

MOST_ROWS = 2**31 - 1  # row numbers are 32-bit


class Embedding(Estimator):
    """Base of the estimators: fits ``embedding_`` [rows, components]."""

    embedding_: NDArray[np.float32]

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the map's columns: the estimator's name in small letters and a number."""
        self._check_is_fitted("embedding_")
        name = type(self).__name__.lower()
        return np.asarray([f"{name}{i}" for i in range(self._n_features_out)], dtype=object)

    def _check_rows(self, X: Any, *, reset: bool) -> NDArray[np.float32]:
        """``X`` as C-contiguous float32, not copied if it is that already; the first bad row is named."""
        rows: NDArray[np.float32] = self._check_array(
            X, reset=reset, dtype=np.float32, order="C", ensure_all_finite=False, accept_sparse=False
        )
        rows = np.require(rows, requirements=["C", "A"])  # a view into packed bytes may start anywhere
        if rows.shape[0] > MOST_ROWS:
            raise ValueError(f"X has {rows.shape[0]} rows; at most {MOST_ROWS} are possible")
        _, bad = _core.scan_rows(rows, self._jobs())
        if bad >= 0:
            what = "NaN" if np.isnan(rows[bad]).any() else "infinity (inf), or a value too large for float32"
            raise ValueError(f"Input X contains {what}, first in row {bad}.")
        return rows

    def _jobs(self) -> int:
        n_jobs = getattr(self, "n_jobs", -1)
        return -1 if n_jobs is None else int(n_jobs)

    @staticmethod
    def _seed(random_state: Any) -> int:
        """A 31-bit seed from anything scikit-learn takes for a random state."""
        return random_seed(random_state)


class SeenRows:
    """Finds rows by content: equal rows of the data it was made from, and new rows that equal one of them."""

    def __init__(self, X: NDArray[np.float32], n_jobs: int = -1) -> None:
        self._X = X
        hashes = _core.hash_rows(X, n_jobs)
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]
        self.first = self.find(X, hashes)

    def find(self, X: NDArray[np.float32], hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The first row with the same content as each row of ``X``, or -1."""
        at = np.minimum(np.searchsorted(self._sorted, hashes), len(self._sorted) - 1)
        row = self._order[at]
        found = self._sorted[at] == hashes
        # A row is itself; any other is compared in full, since hashes can collide.
        own = (row == np.arange(len(X))) if X is self._X else np.zeros(len(X), dtype=bool)
        doubtful = np.flatnonzero(found & ~own)
        found[doubtful] = (self._X[row[doubtful]] == X[doubtful]).all(axis=1)
        return np.where(found, row, np.arange(len(X)) if X is self._X else -1)
