"""Neighbors, NeighborIndex and find_neighbors: tables, methods, sizes, queries, input."""

from __future__ import annotations

import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import Neighbors, find_neighbors, fuzzy_graph
from vicinal.backends import cpu
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import METRICS as ALL_METRICS
from vicinal.neighbors.metrics import VECTOR_METRICS as METRICS
from vicinal.neighbors.metrics import canonical_metric
from vicinal.neighbors.rows import check_rows
from vicinal.neighbors.search import EXACT_ROWS


def test_neighbors_are_contiguous_int32_and_float32() -> None:
    index = np.asfortranarray(np.arange(6).reshape(3, 2))
    table = Neighbors(index, np.asfortranarray(np.ones((3, 2))))
    assert table.index.dtype == np.int32
    assert table.distance.dtype == np.float32
    assert table.index.flags.c_contiguous
    assert table.distance.flags.c_contiguous
    assert (table.n, table.k) == (3, 2)


def test_neighbors_are_frozen() -> None:
    table = Neighbors(np.zeros((1, 1), dtype=np.int32), np.zeros((1, 1), dtype=np.float32))
    with pytest.raises(AttributeError):
        table.index = table.index  # type: ignore[misc]


def test_within_drops_neighbors_at_or_beyond_the_distance() -> None:
    table = Neighbors(np.array([[0, 1, 2]]), np.array([[0.0, 1.0, 2.0]]), share=0.5)
    near = table.within(1.0)
    np.testing.assert_array_equal(near.index, [[0, -1, -1]])
    np.testing.assert_array_equal(near.distance, np.float32([[0.0, np.inf, np.inf]]))
    np.testing.assert_array_equal(table.index, [[0, 1, 2]])
    assert near.share == 0.5


@pytest.mark.parametrize("k", [1, 2, 19, 20])
@pytest.mark.parametrize("metric", METRICS)
def test_k_may_be_any_number_up_to_all_rows(k: int, metric: str) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    table = find_neighbors(X, k, metric=metric)
    assert table.index.shape == (20, k)
    assert all(len(set(row)) == k for row in table.index.tolist())


@pytest.mark.parametrize("k", [2, 5, 60, 130])
@pytest.mark.parametrize("d", [10, 150])
def test_approximate_search_finds_long_tables(grouped: Any, k: int, d: int) -> None:
    X = grouped(1000, d)
    exact = find_neighbors(X, k, method="exact")
    table = find_neighbors(X, k, method="approximate")
    assert (table.index >= 0).all()
    shared = [len(np.intersect1d(a, b)) for a, b in zip(table.index, exact.index, strict=True)]
    assert np.mean(shared) / k > 0.9


@pytest.mark.parametrize("n", [2, 5, 95, 97, 193])
def test_approximate_search_of_about_one_leaf_is_exact(n: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    k = min(10, n)
    table = find_neighbors(X, k, method="approximate")
    exact = find_neighbors(X, k, method="exact")
    assert np.mean(table.index == exact.index) > 0.95


def test_auto_is_exact_for_few_rows_and_nearly_exact_for_many(grouped: Any) -> None:
    X = grouped(400, 6)
    np.testing.assert_array_equal(find_neighbors(X, 10).index, find_neighbors(X, 10, method="exact").index)
    # Twelve dimensions, projected to 200 columns.
    view = np.random.default_rng(0).normal(size=(12, 200))
    many = (grouped(EXACT_ROWS + 500, 12) @ view).astype(np.float32)
    auto, exact = find_neighbors(many, 10), find_neighbors(many, 10, method="exact")
    shared = [len(np.intersect1d(a, b)) for a, b in zip(auto.index, exact.index, strict=True)]
    assert np.mean(shared) / 10 > 0.9


def test_approximate_search_depends_on_the_seed(grouped: Any) -> None:
    X = np.random.default_rng(0).normal(size=(3000, 100)).astype(np.float32)
    one, other = (find_neighbors(X, 10, method="approximate", seed=seed) for seed in (0, 1))
    assert not np.array_equal(one.index, other.index)


def test_unpickled_index_gives_the_same_results(grouped: Any) -> None:
    X = grouped(500, 9)
    index = NeighborIndex(X, "cosine", seed=4)
    expected = index.search(8, "approximate")
    twin = pickle.loads(pickle.dumps(index))
    found = twin.search(8, "approximate")
    np.testing.assert_array_equal(found.index, expected.index)
    np.testing.assert_array_equal(found.distance, expected.distance)


def test_query_does_not_depend_on_earlier_searches(grouped: Any) -> None:
    rows = grouped(EXACT_ROWS + 200, 12)
    X, Q = rows[:-50], rows[-50:]
    graph = fuzzy_graph(find_neighbors(X, 10))
    fresh, used = NeighborIndex(X, seed=1), NeighborIndex(X, seed=1)
    used.search(10, "approximate")
    np.testing.assert_array_equal(fresh.query(Q, 10, graph).index, used.query(Q, 10, graph).index)


def test_query_of_zero_rows_returns_an_empty_table(iris: NDArray[np.float32]) -> None:
    index = NeighborIndex(iris)
    found = index.query(np.empty((0, 4), dtype=np.float32), 5, fuzzy_graph(index.search(5)))
    assert found.index.shape == (0, 5)


def test_core_keeps_its_rows_alive(iris: NDArray[np.float32]) -> None:
    """The binding must refuse rows that it would have to convert, or keep the converted copy."""
    expected, _ = cpu.NeighborIndex(iris, "euclidean", 0, 1).search_exact(5, 1)
    for rows in (iris.copy(), iris.astype(np.float64), np.asfortranarray(iris)):
        try:
            index = cpu.NeighborIndex(rows, "euclidean", 0, 1)
        except TypeError:
            continue
        del rows
        gc.collect()
        filled = [np.full((150, 4), 1e6, dtype=np.float32) for _ in range(50)]
        found, _ = index.search_exact(5, 1)
        np.testing.assert_array_equal(found, expected)
        assert len(filled) == 50


def test_core_ranks_every_metric() -> None:
    known = dict(cpu.metrics())
    assert {facts.core for facts in ALL_METRICS.values()} | {"function"} == set(known)
    assert not any(known[name] for name in METRICS)
    assert canonical_metric("l1") == "manhattan"
    with pytest.raises(ValueError, match="metric"):
        canonical_metric("nope")


def test_rows_have_equal_hashes_exactly_if_they_are_equal(iris: NDArray[np.float32]) -> None:
    hashes = cpu.hash_rows(iris, 2)
    assert hashes.dtype == np.uint64
    _, inverse = np.unique(iris, axis=0, return_inverse=True)
    same = inverse.reshape(-1)[:, None] == inverse.reshape(-1)[None, :]
    np.testing.assert_array_equal(hashes[:, None] == hashes[None, :], same)


@pytest.mark.parametrize("d", [12, 160])
def test_query_of_few_rows_does_not_depend_on_earlier_searches(grouped: Any, d: int) -> None:
    rows = grouped(700, d)
    X, Q = rows[:-50], rows[-50:]
    graph = fuzzy_graph(find_neighbors(X, 10))
    fresh, used = NeighborIndex(X), NeighborIndex(X)
    used.search(10, "approximate")
    np.testing.assert_array_equal(fresh.query(Q, 10, graph).index, used.query(Q, 10, graph).index)


def test_approximate_search_reports_the_share_that_sketches_show(grouped: Any) -> None:
    wide, narrow = grouped(1500, 160), grouped(1500, 20)
    assert 0.0 < NeighborIndex(wide).search(10, "approximate").share < 1.0
    assert NeighborIndex(narrow).search(10, "approximate").share == 1.0
    assert NeighborIndex(wide).search(10, "exact").share == 1.0


def test_searches_do_not_change_an_index(grouped: Any) -> None:
    index = NeighborIndex(grouped(1500, 160))
    before = index.__getstate__()
    first = index.search(10, "approximate")
    again = index.search(10, "approximate")
    np.testing.assert_array_equal(first.index, again.index)
    after = index.__getstate__()
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)


def test_threads_may_share_an_index(grouped: Any) -> None:
    rows = grouped(EXACT_ROWS + 300, 12)
    X, Q = rows[:-100], rows[-100:]
    graph = fuzzy_graph(find_neighbors(X, 10))
    expected = NeighborIndex(X).query(Q, 10, graph).index
    index, barrier = NeighborIndex(X), threading.Barrier(4)

    def query(_: int) -> NDArray[np.int32]:
        barrier.wait()
        index.search(5, "exact")
        return index.query(Q, 10, graph).index

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(query, range(4)):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("convert", [np.float64, np.int32, list, np.asfortranarray])
def test_any_array_like_is_accepted(digits: NDArray[np.float32], convert: Any) -> None:
    X, Q = digits[:200], digits[200:210]
    expected = NeighborIndex(X)
    index = NeighborIndex(convert(X.tolist()) if convert is list else convert(X))
    table = expected.search(6)
    np.testing.assert_array_equal(index.search(6).index, table.index)
    found = index.query(Q.tolist(), 6, fuzzy_graph(table))
    np.testing.assert_array_equal(found.index, expected.query(Q, 6, fuzzy_graph(table)).index)


def test_float32_rows_are_not_copied(digits: NDArray[np.float32]) -> None:
    assert NeighborIndex(digits).X is digits


def test_checked_rows_are_not_scanned_again(digits: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = find_neighbors(digits, 5)
    largest = check_rows(digits)

    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("the rows were scanned again")

    monkeypatch.setattr("vicinal.neighbors.rows.scan_rows", refuse)
    monkeypatch.setattr("vicinal.neighbors.rows.scan_rows", refuse)
    found = NeighborIndex.from_checked(digits, largest=largest).search(5)
    np.testing.assert_array_equal(found.index, expected.index)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NeighborIndex(np.zeros(5)), "X must be 2-D"),
        (lambda: NeighborIndex([[1.0, np.nan]]), "Input X contains NaN, first in row 0"),
        (lambda: NeighborIndex([[1.0], [np.inf]]), "Input X contains infinity .* first in row 1"),
        (lambda: NeighborIndex(np.eye(3), n_jobs=0), "n_jobs must not be 0"),
        (lambda: NeighborIndex(np.eye(3)).search(4), "n_neighbors must lie between 1 and the number of rows"),
        (lambda: NeighborIndex(np.eye(3)).search(2, "fast"), "method must be 'auto', 'exact' or 'approximate'"),  # type: ignore[arg-type]
        (lambda: find_neighbors(np.eye(3), 2, method="fast"), "method must be"),  # type: ignore[arg-type]
        (lambda: query_eye([[np.nan, 0.0, 0.0]], 2), "Input Q contains NaN, first in row 0"),
        (lambda: query_eye(np.eye(3), 4), "k must lie between 1 and the number of rows"),
        (lambda: query_eye(np.zeros(3), 2), "queries must have the 3 columns"),
    ],
)
def test_errors_name_the_argument(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def query_eye(Q: Any, k: int) -> Neighbors:
    index = NeighborIndex(np.eye(3))
    return index.query(Q, k, fuzzy_graph(index.search(2)))
