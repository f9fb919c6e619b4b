"""umap-learn's ``umap.sparse``: distances of two sparse vectors, given by indices and values of their entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from vicinal.compat.distances import SPELLINGS, given_keywords
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import METRICS, canonical_metric

Vector = tuple[NDArray[Any], NDArray[Any]]


class SparseDistance(str):
    """The name of a metric, which can be called with two sparse vectors and the values of the metric's keywords."""

    __slots__ = ()

    def __call__(self, ind1: Any, data1: Any, ind2: Any, data2: Any, *values: Any, **keywords: Any) -> float:
        """Return the distance of two vectors; those in ``sparse_need_n_features`` take the columns first."""
        ind1, ind2 = np.asarray(ind1, dtype=np.int64), np.asarray(ind2, dtype=np.int64)
        columns = 1 + int(max(ind1.max(initial=0), ind2.max(initial=0)))
        if self in sparse_need_n_features:
            if values:
                columns, *rest = values
            else:
                columns, rest = keywords.pop("n_features"), []
        else:
            rest = list(values)
        pair = csr_matrix(
            (
                np.concatenate([np.asarray(data1), np.asarray(data2)]).astype(np.float32),
                np.concatenate([ind1, ind2]),
                [0, len(ind1), len(ind1) + len(ind2)],
            ),
            shape=(2, int(columns)),
        )
        given = given_keywords(METRICS[canonical_metric(self)].keywords, rest, keywords, int(columns))
        return float(NeighborIndex(pair[1:], str(self), metric_kwds=given).distances(pair[:1])[0, 0])


_NAMES = [
    "euclidean", "manhattan", "l1", "taxicab", "chebyshev", "linf", "linfty", "linfinity", "minkowski", "canberra",
    "ll_dirichlet", "braycurtis", "hamming", "jaccard", "dice", "matching", "kulsinski", "rogerstanimoto", "russellrao",
    "sokalmichener", "sokalsneath", "cosine", "correlation", "hellinger",
]  # fmt: skip
sparse_named_distances = {name: SparseDistance(name) for name in _NAMES}
sparse_need_n_features = (
    "hamming",
    "matching",
    "kulsinski",
    "rogerstanimoto",
    "russellrao",
    "sokalmichener",
    "correlation",
)


def arr_unique(arr: ArrayLike) -> NDArray[Any]:
    """Return the distinct values of an array in ascending order."""
    return np.unique(np.asarray(arr))


def arr_union(ar1: ArrayLike, ar2: ArrayLike) -> NDArray[Any]:
    """Return the values that are in one of two arrays."""
    return np.union1d(np.asarray(ar1), np.asarray(ar2))


def arr_intersect(ar1: ArrayLike, ar2: ArrayLike) -> NDArray[Any]:
    """Return the values that are in both arrays."""
    return np.intersect1d(np.asarray(ar1), np.asarray(ar2))


def sparse_sum(ind1: ArrayLike, data1: ArrayLike, ind2: ArrayLike, data2: ArrayLike) -> Vector:
    """Return indices and values of the entries of the sum that are not 0."""
    return _combined(np.add, ind1, data1, ind2, data2)


def sparse_diff(ind1: ArrayLike, data1: ArrayLike, ind2: ArrayLike, data2: ArrayLike) -> Vector:
    """Return indices and values of the entries of the difference that are not 0."""
    return _combined(np.subtract, ind1, data1, ind2, data2)


def sparse_mul(ind1: ArrayLike, data1: ArrayLike, ind2: ArrayLike, data2: ArrayLike) -> Vector:
    """Return indices and values of the entries of the product that are not 0."""
    return _combined(np.multiply, ind1, data1, ind2, data2)


def _combined(
    operation: Callable[..., Any], ind1: ArrayLike, data1: ArrayLike, ind2: ArrayLike, data2: ArrayLike
) -> Vector:
    columns = arr_union(ind1, ind2)
    left, right = np.zeros((2, len(columns)), dtype=np.float32)
    left[np.searchsorted(columns, ind1)], right[np.searchsorted(columns, ind2)] = data1, data2
    values = operation(left, right)
    return columns[values != 0], values[values != 0]


_FUNCTIONS = {f"sparse_{name}": distance for name, distance in sparse_named_distances.items()} | {
    f"sparse_{spelling}": sparse_named_distances[metric] for spelling, metric in SPELLINGS.items()
}
globals().update(_FUNCTIONS)

__all__ = [
    "arr_intersect",
    "arr_union",
    "arr_unique",
    "sparse_diff",
    "sparse_mul",
    "sparse_named_distances",
    "sparse_need_n_features",
    "sparse_sum",
    *sorted(_FUNCTIONS),
]
