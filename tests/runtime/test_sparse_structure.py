"""Malformed sparse matrices are refused before SciPy's compiled code follows their indices, at every entry point."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csr_matrix

import vicinal
from vicinal.compat.umap_functions import reset_local_connectivity, simplicial_set_embedding
from vicinal.runtime.inputs import MOST_COLUMNS, check_structure

N = 120


def matrix(kind: str = "csr") -> Any:
    drawn = sparse.random(N, N, density=0.1, random_state=np.random.default_rng(0), dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparse.SparseEfficiencyWarning)
        return sparse.csr_array(drawn).asformat(kind)


def long_indptr(X: Any) -> None:
    X.indptr[5] = 10**6


def halved_end(X: Any) -> None:
    X.indptr[-1] //= 2


def long_end(X: Any) -> None:
    X.indptr[-1] *= 2


def late_start(X: Any) -> None:
    X.indptr[0] = 3


def negative_index(X: Any) -> None:
    X.indices[7] = -1


def very_negative_indices(X: Any) -> None:
    X.indices[:] = -(10**6)


def large_index(X: Any) -> None:
    X.indices[7] = N


def fewer_values(X: Any) -> None:
    X.data = X.data[:-3]


def short_indptr(X: Any) -> None:
    X.indptr = X.indptr[:-1].copy()


def fractional_indices(X: Any) -> None:
    X.indices = X.indices.astype(np.float64)


def values_in_two_dimensions(X: Any) -> None:
    X.data = X.data.reshape(-1, 1)


COMPRESSED = (
    long_indptr, halved_end, long_end, late_start, negative_index, very_negative_indices, large_index, fewer_values,
    short_indptr, fractional_indices, values_in_two_dimensions,
)  # fmt: skip


def fitted(**params: Any) -> vicinal.UMAP:
    return vicinal.UMAP(n_epochs=2, random_state=0, n_neighbors=5, **params).fit(matrix())


ENTRIES: dict[str, Callable[[Any], Any]] = {
    "fit": lambda X: vicinal.UMAP(n_epochs=2).fit(X),
    "fit of a t-SNE": lambda X: vicinal.TSNE(max_iter=2).fit(X),
    "transform": lambda X: fitted().transform(X),
    "update": lambda X: fitted().update(X),
    "find_neighbors": lambda X: vicinal.find_neighbors(X, 5),
    "fit with distances": lambda X: vicinal.UMAP(n_epochs=2, metric="precomputed").fit(X),
    "transform with distances": lambda X: fitted(metric="precomputed").transform(X),
    "update with distances": lambda X: fitted(metric="precomputed").update(X),
    "neighbors computed elsewhere": lambda X: vicinal.UMAP(n_epochs=2, precomputed_knn=X, n_neighbors=3).fit(
        np.arange(2.0 * N).reshape(N, 2)
    ),
    "transformer": lambda X: vicinal.KNeighborsTransformer().fit(X),
    "a graph": lambda X: simplicial_set_embedding(
        None, X, 2, 1.0, 1.5, 0.9, 1.0, 5, 2, "random", 0, "euclidean", {}, False, {}, False
    ),
    "a graph that is reset": reset_local_connectivity,
}


@pytest.mark.parametrize("damage", COMPRESSED, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_malformed_compressed_matrix_is_refused(kind: str, damage: Callable[[Any], None]) -> None:
    X = matrix(kind)
    check_structure(X)
    damage(X)
    with pytest.raises(ValueError, match="X is malformed"):
        check_structure(X)


@pytest.mark.parametrize("damage", [long_indptr, halved_end, very_negative_indices], ids=lambda one: one.__name__)
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_point_refuses_malformed_rows(entry: str, damage: Callable[[Any], None]) -> None:
    X = matrix()
    damage(X)
    before = X.indptr.copy(), X.indices.copy(), X.data.copy()
    with pytest.raises(ValueError, match="is malformed"):
        ENTRIES[entry](X)
    for array, old in zip((X.indptr, X.indices, X.data), before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_malformed_rows_of_other_formats_are_refused() -> None:
    coordinates, keys, lists, diagonals = matrix("coo"), matrix("dok"), matrix("lil"), matrix("dia")
    for X in (coordinates, keys, lists, diagonals):
        check_structure(X)
    coordinates.col[3] = 10**6
    # SciPy 1.11 has the entries in the matrix itself, which is a dict.
    dict.__setitem__(getattr(keys, "_dict", keys), (0, -5), np.float32(1))
    lists.data[2].append(1.0)
    diagonals.data = diagonals.data[:-1]
    for X in (coordinates, keys, lists, diagonals):
        with pytest.raises(ValueError, match="X is malformed"):
            vicinal.find_neighbors(X, 3)
    lists = matrix("lil")
    lists.rows[4][0] = -7
    with pytest.raises(ValueError, match="a column of row 4"):
        vicinal.find_neighbors(lists, 3)


def test_more_columns_than_the_core_can_number_are_refused() -> None:
    X = csr_matrix((np.ones(9, np.float32), (np.arange(9), np.arange(9))), shape=(9, MOST_COLUMNS + 1))
    with pytest.raises(ValueError, match=f"at most {MOST_COLUMNS}"):
        vicinal.find_neighbors(X, 3)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dok", "lil", "dia"])
def test_valid_matrices_of_every_format_give_the_same_neighbors(kind: str) -> None:
    expected, found = vicinal.find_neighbors(matrix("csr"), 5), vicinal.find_neighbors(matrix(kind), 5)
    np.testing.assert_array_equal(found.index, expected.index)
    np.testing.assert_array_equal(found.distance, expected.distance)
