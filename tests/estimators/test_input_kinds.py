"""Every kind of input works with every method, below and above 4,096 rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import pairwise_distances

from vicinal import UMAP, find_neighbors

NEW = 6


def distance(x: NDArray[np.float32], y: NDArray[np.float32]) -> float:
    return abs(float(x[0] - y[0])) + abs(float(x[1] - y[1])) + abs(float(x[2] - y[2]))


@dataclass
class Case:
    """A kind of input: ``fit`` and ``new`` hold the first and the other rows, ``more`` the latter for update."""

    params: dict[str, Any]
    fit: Any
    new: Any
    more: Any


def dense(X: NDArray[np.float32], n: int) -> Case:
    return Case({}, X[:n], X[n:], X[n:])


def csr(X: NDArray[np.float32], n: int) -> Case:
    rows = sparse.csr_matrix(np.where(X > 0, X, 0.0))
    return Case({}, rows[:n], rows[n:], rows[n:])


def called(X: NDArray[np.float32], n: int) -> Case:
    return Case({"metric": distance}, X[:n], X[n:], X[n:])


def distances(X: NDArray[np.float32], n: int) -> Case:
    D = pairwise_distances(X)
    return Case({"metric": "precomputed"}, D[:n, :n], D[n:, :n], D[n:])


def sparse_distances(X: NDArray[np.float32], n: int) -> Case:
    table = find_neighbors(X, 30)
    D = sparse.csr_matrix(
        (table.distance.reshape(-1), table.index.reshape(-1), np.arange(0, table.index.size + 1, table.k)),
        shape=(len(X), len(X)),
    )
    return Case({"metric": "precomputed"}, D[:n, :n], D[n:, :n], D[n:])


def table(X: NDArray[np.float32], n: int) -> Case:
    neighbors = find_neighbors(X[:n], 15)
    return Case({"precomputed_knn": (neighbors.index, neighbors.distance, None)}, X[:n], X[n:], X[n:])


KINDS: dict[str, Callable[[NDArray[np.float32], int], Case]] = {
    "dense": dense,
    "csr": csr,
    "callable": called,
    "precomputed dense": distances,
    "precomputed sparse": sparse_distances,
    "precomputed_knn": table,
}


@pytest.mark.parametrize("n", [50, 4095, 4096, 4097])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_input_works_with_every_method(kind: str, n: int, grouped: Any) -> None:
    case = KINDS[kind](grouped(n + NEW, 3), n)
    model = UMAP(n_epochs=6, random_state=0, init="random", **case.params).fit(case.fit)
    assert model.embedding_.shape == (n, 2)
    assert np.isfinite(model.embedding_).all()

    places = model.transform(case.new)
    assert places.shape == (NEW, 2)
    assert np.isfinite(places).all()
    np.testing.assert_array_equal(model.transform(case.new[2:3]), places[2:3])
    np.testing.assert_array_equal(model.transform(case.fit[:3]), model.embedding_[:3])

    twin = clone(model)
    assert not hasattr(twin, "embedding_")
    if n == 50:
        np.testing.assert_array_equal(twin.fit(case.fit).embedding_, model.embedding_)

    before, kept = model.embedding_, model.embedding_.copy()
    model.update(case.more)
    assert model.embedding_.shape == (n + NEW, 2)
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_array_equal(before, kept)  # an array that was returned does not change
    np.testing.assert_array_equal(model.transform(case.more[:2]), model.embedding_[n : n + 2])


GIVEN_FORMS = {
    "umap-learn's triple": lambda t: (t.index, t.distance, None),
    "cuML's pair": lambda t: (t.index, t.distance),
    "float64 and int64": lambda t: (t.index.astype(np.int64), t.distance.astype(np.float64)),
    "sparse graph": lambda t: sparse.csr_matrix(
        (t.distance.reshape(-1) + 1e-30, t.index.reshape(-1), np.arange(0, t.index.size + 1, t.k)), shape=(t.n, t.n)
    ),
    "more neighbors than needed": lambda t: (t.index, t.distance),
}


@pytest.mark.parametrize("form", GIVEN_FORMS)
def test_precomputed_neighbors_are_used(form: str, digits: NDArray[np.float32]) -> None:
    X = digits[:400]
    k = 15 if form != "more neighbors than needed" else 25
    given = GIVEN_FORMS[form](find_neighbors(X, k))
    model = UMAP(precomputed_knn=given, n_epochs=20, random_state=0).fit(X)
    expected = UMAP(n_epochs=20, random_state=0).fit(X)
    np.testing.assert_array_equal(model.graph_.toarray(), expected.graph_.toarray())
    # The given table is used, not a search: another table gives another graph.
    other = find_neighbors(X, 15, metric="chebyshev")
    differs = UMAP(precomputed_knn=(other.index, other.distance), n_epochs=0).fit(X)
    assert (differs.graph_ != expected.graph_).nnz > 0


def test_precomputed_distances_give_the_graph_of_the_rows(digits: NDArray[np.float32]) -> None:
    """Up to rounding: distances computed elsewhere differ in the last digits."""
    X = digits[:300]
    D = pairwise_distances(X.astype(np.float64))
    direct = UMAP(n_epochs=0, random_state=0).fit(X)
    for given in (D, D.astype(np.float32), sparse.csr_matrix(D), np.asfortranarray(D)):
        model = UMAP(metric="precomputed", n_epochs=0, random_state=0).fit(given)
        np.testing.assert_allclose(model.graph_.toarray(), direct.graph_.toarray(), atol=2e-5)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array])
def test_sparse_rows_give_the_graph_of_dense_rows(form: Any, digits: NDArray[np.float32]) -> None:
    X = digits[:300]
    for metric in ("euclidean", "cosine", "manhattan"):
        expected = UMAP(metric=metric, n_epochs=0, random_state=0).fit(X)
        model = UMAP(metric=metric, n_epochs=0, random_state=0).fit(form(X))
        np.testing.assert_allclose(model.graph_.toarray(), expected.graph_.toarray(), atol=2e-5)


def test_nan_euclidean_maps_rows_with_missing_values(digits: NDArray[np.float32]) -> None:
    X = digits[:300].astype(np.float64)
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    model = UMAP(metric="nan_euclidean", n_epochs=20, random_state=0).fit(X[:280])
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.transform(X[280:])).all()
    np.testing.assert_array_equal(model.transform(X[:5]), model.embedding_[:5])
    with pytest.raises(ValueError, match="NaN"):
        UMAP().fit(X)
