"""Training data: rows or distances with the same methods, immutable, without hidden state."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from vicinal import Neighbors, find_neighbors, fuzzy_graph
from vicinal.neighbors import search as policy
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.rows import as_rows, check_rows
from vicinal.neighbors.training_data import TrainingData, TrainingDistances, TrainingRows, recognize

Rows = NDArray[np.float32]
K = 8


def distances(X: Rows, Y: Rows) -> NDArray[np.float64]:
    return cdist(X.astype(np.float64), Y.astype(np.float64))


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch, grouped: Any) -> Rows:
    """Return rows that are too many for an exact search, under lower limits."""
    monkeypatch.setattr(policy, "EXACT_ROWS", 300)
    monkeypatch.setattr(policy, "EXACT_ROWS_PER_NEIGHBOR", 10)
    rows: Rows = grouped(1000, 140)
    return rows


def both_kinds(X: Rows, Q: Rows) -> list[tuple[TrainingData, Any]]:
    """Return training data of both kinds for the same rows, each with the queries in its form."""
    return [
        (TrainingRows(X), Q),
        (TrainingRows(as_rows(sparse.csr_matrix(X))), as_rows(sparse.csr_matrix(Q))),
        (TrainingDistances(distances(X, X)), distances(Q, X)),
    ]


@pytest.fixture
def rows(grouped: Any) -> Rows:
    X: Rows = np.round(grouped(120, 5))
    X[50] = X[3]
    return X


def test_every_kind_gives_the_same_neighbors_and_queries(rows: Rows) -> None:
    X, Q = rows[:100], rows[100:] + np.float32(0.25)
    wanted = find_neighbors(X, K)
    graph = fuzzy_graph(wanted)
    nearest = np.sort(distances(Q, X), axis=1)[:, :K]
    for data, queries in both_kinds(X, Q):
        assert data.n == 100
        table = data.neighbors(K)
        np.testing.assert_allclose(table.distance, wanted.distance, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(data.query(queries, K, graph, table.share).distance, nearest, rtol=1e-5, atol=1e-5)
        assert data.duplicates.first[50] == 3
        data.check()


def test_known_rows_are_recognized_by_content(rows: Rows) -> None:
    X = rows[:100]
    Q = np.concatenate([X[[7, 50]], X[:1] + 0.5])
    for data, queries in both_kinds(X, Q)[:2]:
        known, keys = recognize(data, queries)
        np.testing.assert_array_equal(known, [7, 3, -1])
        assert keys.dtype == np.uint64
        assert len(keys) == 3


def test_coordinates_are_dense_rows_without_missing_values(rows: Rows) -> None:
    coordinates = TrainingRows(rows).coordinates
    assert coordinates is not None
    assert coordinates.rows is rows
    assert TrainingRows(rows, "nan_euclidean").coordinates is None
    assert TrainingRows(as_rows(sparse.csr_matrix(rows))).coordinates is None
    assert TrainingDistances(distances(rows, rows)).coordinates is None


def test_taken_and_extended_data_equal_data_of_these_rows(rows: Rows) -> None:
    which = np.array([5, 2, 90, 17, 33, 60, 41, 8, 70, 66])
    for data, _ in both_kinds(rows, rows):
        taken = data.take(which).neighbors(4)
        np.testing.assert_allclose(taken.distance, find_neighbors(rows[which], 4).distance, rtol=1e-5, atol=1e-5)
    wanted = find_neighbors(rows, K).distance
    first, others = rows[:90], rows[90:]
    new: list[Any] = [others, as_rows(sparse.csr_matrix(others)), distances(others, rows)]
    for (data, _), more in zip(both_kinds(first, first), new, strict=True):
        np.testing.assert_allclose(data.extended(more).neighbors(K).distance, wanted, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="that is 120 columns, got 90"):
        TrainingDistances(distances(first, first)).extended(distances(others, first))


def test_sparse_distances_are_extended(grouped: Any) -> None:
    X: Rows = grouped(120, 5)  # no duplicates, whose distance of 0 a sparse matrix would not store
    near = TrainingDistances(sparse.csr_matrix(distances(X[:90], X[:90])))
    longer = near.extended(sparse.csr_matrix(distances(X[90:], X)))
    np.testing.assert_allclose(longer.neighbors(K).distance, find_neighbors(X, K).distance, rtol=1e-5, atol=1e-5)


def test_given_table_is_used_instead_of_a_search(rows: Rows) -> None:
    table = Neighbors(np.zeros((120, 3), np.int32), np.zeros((120, 3), np.float32))
    data = TrainingRows(rows, given=table)
    assert data.neighbors(K) is table
    assert data.neighbors(K, known=find_neighbors(rows[:100], K)) is table
    assert data.take(np.arange(50)).given is None
    assert data.extended(rows[:10]).given is None


def test_data_is_frozen_and_keeps_no_state_of_searches(large: Rows) -> None:
    data = TrainingRows(large)
    with pytest.raises(FrozenInstanceError):
        data.seed = 3  # type: ignore[misc]
    first = data.neighbors(10)
    assert 0.0 < first.share < 1.0
    again = data.neighbors(10)
    np.testing.assert_array_equal(first.index, again.index)
    assert first.share == again.share
    assert [one.name for one in fields(data)] == ["rows", "metric", "metric_kwds", "seed", "n_jobs", "given"]


def test_pickle_leaves_out_what_can_be_computed_again(rows: Rows) -> None:
    data = TrainingRows(rows, "cosine", largest=check_rows(rows))
    small = len(pickle.dumps(data))
    wanted = data.neighbors(K)
    assert data.duplicates.first[50] == 3
    assert len(pickle.dumps(data)) == small
    twin = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(twin.neighbors(K).index, wanted.index)


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("all rows were searched")


def test_known_table_is_extended_by_the_other_rows(large: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    known = TrainingRows(large[:900]).neighbors(10)
    exact = find_neighbors(large, 10, method="exact")
    data = TrainingRows(large)
    with monkeypatch.context() as patch:
        patch.setattr(NeighborIndex, "search", refuse)
        found = data.neighbors(10, known=known)
    hits = [len(np.intersect1d(a, b)) for a, b in zip(found.index, exact.index, strict=True)]
    assert np.mean(hits) >= 0.97 * 10
    assert 0.0 < found.share < 1.0
    # The argument alone decides: without it, all rows are searched.
    monkeypatch.setattr(NeighborIndex, "search", refuse)
    with pytest.raises(AssertionError, match="all rows were searched"):
        data.neighbors(10)
    again = TrainingRows(large).neighbors(10, known=known)
    np.testing.assert_array_equal(again.index, found.index)


@pytest.mark.parametrize(
    ("options", "k", "n_known", "method"),
    [
        ({"metric": "seuclidean"}, 10, 900, "auto"),  # the variances depend on all rows
        ({"metric": lambda x, y: float(np.abs(x - y).sum())}, 10, 990, "auto"),
        ({}, 10, 400, "auto"),  # more rows are new than known
        ({}, 9, 900, "auto"),  # another number of neighbors
        ({}, 10, 900, "exact"),
    ],
)
def test_all_rows_are_searched_if_a_table_cannot_be_extended(
    large: Rows, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], k: int, n_known: int, method: Any
) -> None:
    known = find_neighbors(large[:n_known], 10)
    monkeypatch.setattr(NeighborIndex, "search", refuse)
    with pytest.raises(AssertionError, match="all rows were searched"):
        TrainingRows(large, **options).neighbors(k, method, known=known)


def test_few_rows_are_searched_exactly_although_a_table_is_known(digits: Rows) -> None:
    known = find_neighbors(digits[:500], 10)
    found = TrainingRows(digits[:600]).neighbors(10, known=known)
    np.testing.assert_array_equal(found.index, find_neighbors(digits[:600], 10, method="exact").index)


def test_largest_magnitude_saves_a_scan(digits: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    data = TrainingRows(digits, largest=check_rows(digits))
    monkeypatch.setattr("vicinal.neighbors.rows.scan_rows", lambda *_, **__: pytest.fail("scanned again"))
    data.neighbors(5)


@pytest.mark.parametrize(
    "data",
    [
        TrainingRows(np.zeros((3, 2))),
        TrainingRows(np.zeros(3, np.float32)),
        TrainingRows(np.asfortranarray(np.ones((3, 2), np.float32))),
        TrainingRows(sparse.csr_matrix(np.eye(3))),
        TrainingRows(np.eye(3, dtype=np.float32), given=Neighbors(np.zeros((2, 1)), np.zeros((2, 1)))),
        TrainingRows(np.eye(3, dtype=np.float32), given=Neighbors(np.full((3, 1), 3), np.zeros((3, 1)))),
    ],
)
def test_malformed_rows_are_rejected(data: TrainingRows) -> None:
    with pytest.raises(ValueError, match="must be a"):
        data.check()


def test_malformed_distances_are_rejected() -> None:
    with pytest.raises(ValueError, match="square"):
        TrainingDistances(np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"negative.*row 1"):
        TrainingDistances(np.array([[0.0, 1.0], [-1.0, 0.0]]))
