"""OnlineNeighbors: correct tables while rows arrive in batches of any kind, at a bounded cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import OnlineNeighbors, find_neighbors
from vicinal.neighbors.metrics import METRICS
from vicinal.neighbors.online import OnlineOptions

Rows = NDArray[np.float32]


def streamed(X: Rows, k: int = 10, batch: int = 100, **more: Any) -> OnlineNeighbors:
    """Insert all rows in batches, each searched and refreshed before the next."""
    online = OnlineNeighbors(k, **more)
    for first in range(0, len(X), batch):
        online.insert(X[first : first + batch])
        online.step()
    return online


def recall(online: OnlineNeighbors, X: Rows, sample: int = 500, **more: Any) -> float:
    """Return the recall; a row that ties with the last true neighbor counts as found."""
    exact = find_neighbors(X, online.k, method="exact", **more)
    rows = np.unique(np.linspace(0, len(X) - 1, sample).astype(np.int64))
    last = exact.distance[rows, -1:]
    return float(np.mean(online.table_of(rows)[1][:, 1:] <= last * 1.0001 + 1e-7))


def assert_valid(online: OnlineNeighbors) -> None:
    """Check that rows of the table start with the row itself, have no repeats and are sorted by (distance, index)."""
    table = online.table()
    np.testing.assert_array_equal(table.index[:, 0], np.arange(table.n))
    assert (table.index < online.n).all()
    for index, distance in zip(table.index, table.distance, strict=True):
        held = index[index >= 0]
        assert len(set(held.tolist())) == len(held)
        assert (np.isfinite(distance) == (index >= 0)).all()
        np.testing.assert_array_equal(
            np.lexsort((index[1 : len(held)], distance[1 : len(held)])), np.arange(len(held) - 1)
        )


@pytest.mark.parametrize("d", [10, 150])
def test_stream_of_batches_has_good_recall(grouped: Any, d: int) -> None:
    X = grouped(4000, d)
    online = streamed(X, batch=250)
    assert (online.n, online.n_searched, online.pending_, online.coverage_) == (4000, 4000, 0, 1.0)
    assert_valid(online)
    assert recall(online, X) >= 0.95


@pytest.mark.parametrize("batch", [1, 7, 300])
def test_search_of_few_rows_is_exact(digits: Rows, batch: int) -> None:
    X = digits[:300]
    np.testing.assert_array_equal(streamed(X, batch=batch).table().index, find_neighbors(X, 10, method="exact").index)


def test_step_returns_exactly_the_rows_whose_lists_changed(grouped: Any) -> None:
    X = grouped(3000, 12)
    online = streamed(X[:2500], batch=500, options=OnlineOptions(exact_rows=200))
    before = online.table()
    online.insert(X[2500:])
    changed = online.step()
    after = online.table()
    np.testing.assert_array_equal(changed.new, np.arange(2500, 3000))
    np.testing.assert_array_equal(changed.updated, np.flatnonzero((before.index != after.index[:2500]).any(axis=1)))
    assert changed.updated.size


def test_missing_neighbors_are_minus_one_at_infinity() -> None:
    online = OnlineNeighbors(4)
    assert online.table_of([])[0].shape == (0, 4)
    assert [len(rows) for rows in online.step()] == [0, 0]
    online.insert([[0.0, 0.0], [3.0, 4.0]])
    online.step()
    table = online.table()
    np.testing.assert_array_equal(table.index, [[0, 1, -1, -1], [1, 0, -1, -1]])
    np.testing.assert_array_equal(table.distance, np.float32([[0, 5, np.inf, np.inf], [0, 5, np.inf, np.inf]]))


def test_earlier_view_of_the_rows_stays_valid(grouped: Any) -> None:
    X = grouped(3000, 5)
    online = OnlineNeighbors(5)
    online.insert(X[:10])
    first = online.rows
    for row in X[10:]:
        online.insert(row[None])
    np.testing.assert_array_equal(first, X[:10])
    np.testing.assert_array_equal(online.rows, X)
    assert not first.flags.writeable


@pytest.mark.parametrize("metric", sorted(name for name, facts in METRICS.items() if not facts.packed))
def test_every_metric_has_good_recall(metric: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.gamma(1.0, size=(400, 2 if metric == "haversine" else 8)).astype(np.float32)
    if metric in ("hamming", "jaccard", "dice", "matching", "kulsinski", "rogerstanimoto", "russellrao"):
        X = (X > 1.0).astype(np.float32)
    if metric == "haversine":
        X = np.minimum(X, 1.5)
    if metric == "nan_euclidean":
        X[::7, 3] = np.nan
    kwds: dict[str, Any] | None = {"w": np.arange(8) + 1.0} if metric == "wminkowski" else None
    # Without keywords they would be computed from the first batch.
    if metric == "seuclidean":
        kwds = {"V": X.var(axis=0)}
    if metric == "mahalanobis":
        kwds = {"VI": np.linalg.inv(np.cov(X.T))}
    online = streamed(X, metric=metric, metric_kwds=kwds, batch=150)
    assert_valid(online)
    assert recall(online, X, metric=metric, metric_kwds=kwds) >= 0.98


@pytest.mark.parametrize("batches", [[1] * 40, [20, 200, 2000], [1, 10, 100, 1000], [2500]])
def test_batches_of_any_size_have_good_recall(grouped: Any, batches: list[int]) -> None:
    X = grouped(sum(batches), 20)
    online = OnlineNeighbors(6, options=OnlineOptions(exact_rows=300))
    first = 0
    for size in batches:
        assert online.insert(X[first : first + size]) == range(first, first + size)
        np.testing.assert_array_equal(online.step().new, np.arange(first, first + size))
        first += size
    assert_valid(online)
    assert recall(online, X) >= 0.97


def test_equal_rows_are_neighbors_at_distance_0() -> None:
    rng = np.random.default_rng(0)
    different = rng.normal(size=(50, 10)).astype(np.float32)
    X = np.concatenate([different, np.tile(different[7], (900, 1)), rng.normal(size=(50, 10)).astype(np.float32)])
    online = streamed(X, k=8, batch=70, options=OnlineOptions(exact_rows=100))
    assert_valid(online)
    table = online.table()
    assert (table.distance[50:950] == 0.0).all()
    assert recall(online, X) >= 0.97


def test_rows_of_a_distant_cluster_find_each_other(grouped: Any) -> None:
    X = grouped(1500, 140)
    far = grouped(1500, 140, seed=1) + 500.0
    online = streamed(np.concatenate([X, far]), batch=300, options=OnlineOptions(exact_rows=300))
    assert_valid(online)
    assert (online.table().index[1500:] >= 1500).all()
    assert recall(online, np.concatenate([X, far])) >= 0.95


def test_sorted_rows_have_good_recall(grouped: Any) -> None:
    X = grouped(3000, 6)
    X = X[np.argsort(X[:, 0])]
    online = streamed(X, batch=50, options=OnlineOptions(exact_rows=300))
    assert recall(online, X) >= 0.95


def test_cost_of_an_insertion_hardly_depends_on_the_number_of_rows(grouped: Any) -> None:
    X = grouped(16_100, 16)
    costs = []
    for n in (4000, 16_000):
        known = find_neighbors(X[:n], 10, method="approximate")
        online = OnlineNeighbors.from_neighbors(X[:n], known, options=OnlineOptions(trees=8, exact_rows=300))
        before = online.n_compared
        online.insert(X[16_000:])
        online.step()
        costs.append(online.n_compared - before)
    assert costs[1] <= 1.5 * costs[0]
    assert costs[1] <= 100 * 1000


def test_from_neighbors_continues_a_table(grouped: Any) -> None:
    X = grouped(3000, 150)
    known = find_neighbors(X[:2500], 10)
    online = OnlineNeighbors.from_neighbors(X[:2500], known)
    assert (online.n_searched, online.pending_) == (2500, 0)
    np.testing.assert_array_equal(online.table().index, known.index)
    np.testing.assert_array_equal(online.table().distance, known.distance)
    online.insert(X[2500:])
    changed = online.step()
    np.testing.assert_array_equal(changed.new, np.arange(2500, 3000))
    assert_valid(online)
    assert recall(online, X) >= 0.97


def test_from_neighbors_rejects_a_table_of_other_rows(digits: Rows) -> None:
    known = find_neighbors(digits[:100], 5)
    with pytest.raises(ValueError, match="neighbors must be those of the 90 rows"):
        OnlineNeighbors.from_neighbors(digits[:90], known)
    with pytest.raises(ValueError, match="neighbors must name rows of X"):
        OnlineNeighbors.from_neighbors(digits[:100], replace(known, index=known.index + 1))


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "canberra", "hellinger"])
def test_queries_find_the_nearest_rows(digits: Rows, metric: str) -> None:
    online = streamed(digits[:1500], metric=metric, batch=500, options=OnlineOptions(exact_rows=200))
    found = online.query(digits[1500:], 5)
    everything = find_neighbors(digits, 200, metric=metric, method="exact")
    for index, true in zip(found.index, everything.index[1500:], strict=True):
        assert len(np.intersect1d(index, true[true < 1500][:5])) >= 3
    np.testing.assert_array_equal(online.query(digits[1600:1601], 5).index, found.index[100:101])


def test_extreme_numbers_do_not_change_the_table(digits: Rows) -> None:
    expected = streamed(digits[:300]).table()
    for factor in (2.0**-100, 2.0**80):
        table = streamed(digits[:300] * np.float32(factor)).table()
        np.testing.assert_array_equal(table.index, expected.index)
        np.testing.assert_allclose(table.distance, expected.distance * np.float32(factor), rtol=1e-5)
