"""umap-learn's ``umap.utils``: the functions that other programs import."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from vicinal.neighbors.rows import as_rows, hash_rows
from vicinal.runtime.inputs import check_structure

__all__ = ["average_nn_distance", "csr_unique", "disconnected_vertices", "fast_knn_indices", "submatrix", "ts"]


def disconnected_vertices(model: Any) -> NDArray[np.bool_]:
    """Return for each row whether it has no edge in ``graph_``.

    Parameters
    ----------
    model : fitted model
        A model with ``graph_``. Rows that share a place with an equal one (``unique``) have the edges of that row.
    """
    check_is_fitted(model)
    alone = np.asarray(_strengths(model.graph_)[1] == 0)
    selection = getattr(getattr(model, "map_", None), "selection", None)
    if selection is None or selection.rows is None:
        return alone
    return np.asarray((selection.position >= 0) & alone[selection.position])


def average_nn_distance(dist_matrix: Any) -> NDArray[np.float64]:
    """Return the mean of the stored values of each row (of a graph or of distances); NaN, with a warning, if none."""
    check_structure(dist_matrix, "dist_matrix")
    total, count = _strengths(dist_matrix)
    if (count == 0).any():
        warnings.warn(
            f"{int((count == 0).sum())} rows have no neighbors: umap.utils.disconnected_vertices tells which",
            UserWarning,
            stacklevel=2,
        )
    mean: NDArray[np.float64] = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return mean


def _strengths(matrix: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the sum and the number of the values other than 0 of each row."""
    entries = matrix.tocoo()
    kept = entries.data != 0
    rows, n = entries.row[kept], matrix.shape[0]
    total = np.bincount(rows, entries.data[kept], minlength=n).astype(np.float64)
    return total, np.bincount(rows, minlength=n).astype(np.int64)


def csr_unique(
    matrix: Any, return_index: bool = True, return_inverse: bool = True, return_counts: bool = True
) -> tuple[NDArray[np.int64], ...]:
    """Return the first positions, the inverse and the counts of the distinct rows, as ``np.unique`` does."""
    check_structure(matrix, "matrix")
    asked = (return_index, return_inverse, return_counts)
    found = np.unique(hash_rows(as_rows(matrix)), return_index=True, return_inverse=True, return_counts=True)[1:]
    return tuple(part for part, wanted in zip(found, asked, strict=True) if wanted)


def fast_knn_indices(X: ArrayLike, n_neighbors: int) -> NDArray[np.int32]:
    """Return the columns of the ``n_neighbors`` smallest entries of each row, in ascending order of the entries."""
    return np.argsort(np.asarray(X), axis=1, kind="stable")[:, :n_neighbors].astype(np.int32)


def submatrix(dmat: ArrayLike, indices_col: ArrayLike, n_neighbors: int) -> NDArray[Any]:
    """Return the entries of each row in the first ``n_neighbors`` columns that ``indices_col`` lists for it."""
    return np.take_along_axis(np.asarray(dmat), np.asarray(indices_col)[:, :n_neighbors], axis=1)


def ts() -> str:
    """Return the current time as text."""
    return time.ctime()
