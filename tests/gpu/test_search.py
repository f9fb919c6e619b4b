"""Approximate searches on a device: products, cells, rows with equal content."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances

from vicinal import UMAP, find_neighbors, fuzzy_graph
from vicinal.backends import backend_of, cpu, placed
from vicinal.backends.cuda import neighbors
from vicinal.backends.cuda import neighbors as cells
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.rows import DuplicateRows, PlacedRows

Rows = NDArray[np.float32]


@pytest.fixture(scope="module")
def spread() -> Rows:
    """Return tight clusters far from each other and from the origin."""
    rng = np.random.default_rng(1)
    return np.concatenate([rng.normal(size=(250, 16)) + 100 * j for j in range(6)]).astype(np.float32)


def recall(index: Any, rows: Rows, k: int) -> float:
    true = find_neighbors(rows, k, method="exact").index
    return float(np.mean([len(np.intersect1d(a, b)) / k for a, b in zip(np.asarray(index), true, strict=True)]))


def test_products_find_the_neighbors(place: Any, rows: Rows) -> None:
    found = backend_of(place).dense_rows(place.asarray(rows), "euclidean").search_products(8)
    true = find_neighbors(rows, 8, method="exact")
    assert recall(place.to_numpy(found[0]), rows, 8) > 0.99
    # Distances are those of the rows in float32, not those of the products.
    np.testing.assert_array_equal(np.sort(place.to_numpy(found[1])), true.distance)


def test_cells_find_the_neighbors(place: Any, spread: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "CELL_ROWS", 60)
    index, distance = backend_of(place).dense_rows(place.asarray(spread), "euclidean").search_cells(8)
    assert recall(place.to_numpy(index), spread, 8) > 0.97
    index, distance = place.to_numpy(index), place.to_numpy(distance)
    assert (index[:, 0] == np.arange(len(spread))).all()
    assert all(len(set(row)) == 8 for row in index.tolist())
    assert (np.diff(distance, axis=1) >= 0).all()
    exact = np.sqrt(((spread[:, None].astype(np.float64) - spread[index]) ** 2).sum(axis=2))
    np.testing.assert_allclose(distance, exact, rtol=1e-5, atol=1e-5)


def test_two_searches_have_the_same_bits(place: Any, spread: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "CELL_ROWS", 60)
    tables = [backend_of(place).dense_rows(place.asarray(spread), "cosine").search_cells(6) for _ in range(2)]
    for a, b in zip(*tables, strict=True):
        np.testing.assert_array_equal(place.to_numpy(a), place.to_numpy(b))


def test_cells_cover_all_rows_and_large_ones_are_divided(
    place: Any, spread: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "CELL_ROWS", 60)
    monkeypatch.setattr(cells, "MOST_CELL_ROWS", 50)
    found = cells.find_cells(place, place.asarray(spread))
    begin, members = place.to_numpy(found.begin), place.to_numpy(found.members)
    assert np.diff(begin).max() <= 50
    assert begin[-1] == len(members) == cells.OVERLAP_SHORT * len(spread)
    assert (np.bincount(members, minlength=len(spread)) == cells.OVERLAP_SHORT).all()
    assert len(found.centers) == len(begin) - 1


def test_search_of_many_rows_uses_cells_and_checks_its_recall(
    place: Any, spread: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "CELL_ROWS", 60)
    monkeypatch.setattr(neighbors, "PRODUCT_ROWS", 100)
    table = NeighborIndex(spread, device="cuda").search(8, "approximate")
    assert recall(table.index, spread, 8) > 0.97
    # Lists of a poor search are replaced: here each row is only compared with rows of its own part of a cell.
    monkeypatch.setattr(cells, "MOST_CELL_ROWS", 9)
    monkeypatch.setattr(neighbors, "ROUNDS", 0)
    monkeypatch.setattr("vicinal.neighbors.search.EXACT_WORK", 0)
    monkeypatch.setattr("vicinal.neighbors.search.EXACT_ROWS", 0)
    monkeypatch.setattr("vicinal.neighbors.search.EXACT_ROWS_PER_NEIGHBOR", 0)
    np.testing.assert_array_equal(
        NeighborIndex(spread, device="cuda").search(8).index, find_neighbors(spread, 8, method="exact").index
    )


@pytest.mark.parametrize("k", [1, 2, 40])
def test_any_number_of_neighbors(place: Any, rows: Rows, k: int) -> None:
    np.testing.assert_array_equal(find_neighbors(rows, k, device="cuda").index, find_neighbors(rows, k).index)


def test_hashes_and_equal_rows_are_those_of_the_cpu(place: Any, rows: Rows) -> None:
    X = rows.copy()
    X[7, 3] = -0.0
    np.testing.assert_array_equal(place.to_numpy(backend_of(place).hash_rows(place.asarray(X), 1)), cpu.hash_rows(X, 1))
    there = DuplicateRows(PlacedRows(placed(place, place.asarray(X))))
    np.testing.assert_array_equal(there.first, DuplicateRows(X).first)
    np.testing.assert_array_equal(there.find(X[3:9], cpu.hash_rows(X[3:9], 1)), DuplicateRows(X).first[3:9])


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_queries_find_the_neighbors_independently_of_each_other(
    place: Any, spread: Rows, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "CELL_ROWS", 60)
    monkeypatch.setattr("vicinal.neighbors.search.EXACT_ROWS", 100)
    monkeypatch.setattr("vicinal.neighbors.search.QUERY_BLOCK", 64)
    queries = spread[::10] + np.float32(0.3)
    graph = fuzzy_graph(find_neighbors(spread, 8, metric=metric))
    index = NeighborIndex(spread, metric, device="cuda")
    found = index.query(queries, 6, graph)
    assert found.place is place
    d2 = pairwise_distances(queries.astype(np.float64), spread.astype(np.float64), metric=metric)
    true = np.argsort(d2, axis=1, kind="stable")[:, :6]
    hits = [len(np.intersect1d(a, b)) / 6 for a, b in zip(found.index, true, strict=True)]
    assert np.mean(hits) > 0.97
    np.testing.assert_allclose(found.distance, np.take_along_axis(d2, found.index, axis=1), rtol=1e-3, atol=1e-4)
    alone = index.query(queries[70:71], 6, graph)
    np.testing.assert_array_equal(alone.index[0], found.index[70])
    np.testing.assert_array_equal(alone.distance[0], found.distance[70])


def test_new_rows_are_placed_on_the_device(place: Any, spread: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "CELL_ROWS", 60)
    model = UMAP(n_neighbors=8, n_epochs=20, random_state=0, device="cuda").fit(spread)
    copy = pickle.loads(pickle.dumps(model))  # on the CPU
    queries = spread[::40] + np.float32(0.2)
    here = copy.transform(queries)
    monkeypatch.setattr("vicinal.neighbors.search.EXACT_ROWS", 100)
    there = model.transform(queries)
    # The same neighbors give the same places, bit for bit; the search may miss a neighbor.
    assert np.mean((here == there).all(axis=1)) > 0.9
    np.testing.assert_array_equal(model.transform(queries[3:4])[0], there[3])
