"""What every estimator shares: checked input, seeds, the names of its outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators._contract import Estimator, random_seed
from vicinal.maps.memory import Ledger, Table, check_limit
from vicinal.neighbors.metrics import Rows, is_sparse
from vicinal.neighbors.rows import as_rows, scan_rows

MOST_ROWS = 2**31 - 1  # row numbers are 32-bit


class Embedding(Estimator):
    """Base of the estimators: fits ``embedding_`` [rows, components]."""

    embedding_: NDArray[np.float32]

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the map's columns: the estimator's name in small letters and a number."""
        self._check_is_fitted("_n_features_out")
        name = type(self).__name__.lower()
        return np.asarray([f"{name}{i}" for i in range(self._n_features_out)], dtype=object)

    def _validate_params(self) -> None:
        super()._validate_params()
        if getattr(self, "n_jobs", -1) == 0:
            raise ValueError("n_jobs must not be 0; -1 uses all processors")

    def _check_rows(
        self, X: Any, *, reset: bool, sparse: bool = False, allow_nan: bool = False, check_finite: bool = True
    ) -> Rows:
        """``X`` as C-contiguous float32 or CSR, not copied if it is that already; the first bad row is named."""
        table = self._within_limit(Table.of(X)) if reset else None
        rows = self._check_array(
            X,
            reset=reset,
            dtype=np.float32,
            order="C",
            ensure_all_finite=False,
            accept_sparse=["csr", "csc", "coo"] if sparse else False,
        )
        rows = as_rows(rows)
        if reset and table is None:
            self._within_limit(Table.of(rows))
        if rows.shape[0] > MOST_ROWS:
            raise ValueError(f"X has {rows.shape[0]} rows; at most {MOST_ROWS} are possible")
        bad = scan_rows(rows, self._jobs(), allow_nan=allow_nan)[1] if check_finite else -1
        if bad >= 0:
            values = rows[bad].data if is_sparse(rows) else rows[bad]
            unknown = np.isnan(values).any() and not allow_nan
            what = "NaN" if unknown else "infinity (inf), or a value too large for float32"
            raise ValueError(f"Input X contains {what}, first in row {bad}.")
        return rows

    def _within_limit(self, table: Table | None) -> Table | None:
        """``table`` itself, or MemoryError if a fit of it would take more than ``memory_limit``."""
        if table is not None and getattr(self, "memory_limit", None) is not None:
            check_limit(self, table)
        return table

    def _add_memory(self, ledger: Ledger, table: Table) -> None:
        """Adds what a fit takes, part by part (:mod:`vicinal.maps.memory`)."""
        raise NotImplementedError(f"the memory of {type(self).__name__} is not known beforehand")

    def explore(self, labels: Any = None, **described: Any) -> Any:
        """The map as a page inside a notebook; its ``selection`` holds the ids (vicinal.viewer.notebook.explore)."""
        from vicinal.viewer.notebook import explore

        self._check_is_fitted("embedding_")
        return explore(self, labels, **described)

    def _repr_html_(self) -> str:
        from vicinal.viewer.notebook import summary

        return summary(self)

    def _jobs(self) -> int:
        n_jobs = getattr(self, "n_jobs", -1)
        return -1 if n_jobs is None else int(n_jobs)

    @staticmethod
    def _seed(random_state: Any) -> int:
        """A 31-bit seed from anything scikit-learn takes for a random state."""
        return random_seed(random_state)
