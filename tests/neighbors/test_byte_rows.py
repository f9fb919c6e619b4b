"""Rows of whole numbers between 0 and 255 are ranked as bytes; distances have the bits of other rows.

Adding 1/4 to all values keeps the differences exactly, but such rows are no bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import ProgressiveUMAP, find_neighbors, fuzzy_graph
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.online import OnlineNeighbors, OnlineOptions

Rows = NDArray[np.float32]
QUARTER = np.float32(0.25)


def pixels(n: int, d: int, seed: int = 0, levels: int = 256) -> Rows:
    """Rows around a few centers, with the smallest and the largest byte in each."""
    rng = np.random.default_rng(seed)
    centers = rng.integers(0, 256, size=(5, d))
    rows = np.clip(centers[rng.integers(0, 5, size=n)] + rng.integers(-40, 41, size=(n, d)), 0, 255)
    rows = rows // (256 // levels) * (256 // levels)
    rows[:, 0], rows[:, -1] = 0, 255
    return rows.astype(np.float32)


def distances(rows: Rows, index: NDArray[Any]) -> NDArray[np.float64]:
    return np.sqrt(((rows[:, None].astype(np.float64) - rows[index]) ** 2).sum(axis=2))


@pytest.mark.parametrize("d", [129, 192, 784, 1000, 8192, 8193])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances_have_the_bits_of_other_rows(d: int, metric: str) -> None:
    rows = pixels(600 if d <= 1000 else 150, d)
    ours, others = (find_neighbors(given, 10, metric=metric, method="exact") for given in (rows, rows + QUARTER))
    np.testing.assert_array_equal(ours.index, others.index)
    np.testing.assert_array_equal(ours.distance, others.distance)
    expected = distances(rows, ours.index) ** (2 if metric == "sqeuclidean" else 1)
    np.testing.assert_allclose(ours.distance, expected, rtol=1e-6)


def test_large_distances_are_rounded_alike() -> None:
    """Sums beyond 2^24 are no longer exact in float32, so the order of the additions matters."""
    rows = np.random.default_rng(0).choice(np.float32([0, 1, 254, 255]), size=(300, 3000))
    ours, others = (find_neighbors(given, 50, method="exact") for given in (rows, rows + QUARTER))
    assert (ours.distance[:, 1:] ** 2 > 2**25).all()
    np.testing.assert_array_equal(ours.distance, others.distance)


@pytest.mark.parametrize("value", [-1.0, 256.0, 0.5])
def test_one_other_number_changes_nothing_else(value: float) -> None:
    rows = pixels(600, 200)
    changed = rows.copy()
    changed[300, 7] = value
    expected = distances(changed, np.argsort(distances(changed, np.arange(600)[None]), axis=1, kind="stable")[:, :10])
    np.testing.assert_allclose(find_neighbors(changed, 10, method="exact").distance, expected, rtol=1e-6)


def test_the_approximate_search_finds_the_neighbors_of_pixels() -> None:
    rows = pixels(4000, 200, levels=64)
    found, exact = (find_neighbors(rows, 10, method=method, seed=0) for method in ("approximate", "exact"))
    hits = [np.intersect1d(a, b).size for a, b in zip(found.index, exact.index, strict=True)]
    assert np.mean(hits) > 9
    np.testing.assert_allclose(found.distance, distances(rows, found.index), rtol=1e-6)


def test_a_query_does_not_depend_on_the_others() -> None:
    rows = pixels(900, 200)
    search, queries = NeighborIndex(rows[:600], seed=0), rows[600:]
    graph = fuzzy_graph(search.search(10))
    whole = search.query(queries, 10, graph)
    mixed = search.query(np.concatenate([queries, queries[:1] + QUARTER]), 10, graph)
    np.testing.assert_array_equal(mixed.index[:300], whole.index)
    np.testing.assert_array_equal(mixed.distance[:300], whole.distance)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_a_stream_that_compares_sketches_as_bytes_finds_the_neighbors(metric: str) -> None:
    """Rows longer than a sketch; their numbers are no bytes."""
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(30, 200))[rng.integers(30, size=3000)] + 0.7 * rng.normal(size=(3000, 200))).astype(
        np.float32
    )
    online = OnlineNeighbors(10, metric, seed=0, options=OnlineOptions(exact_rows=300))
    for begin in range(0, 3000, 500):
        online.insert(rows[begin : begin + 500])
        online.step()
    assert online.share < 1  # sketches decide which rows are compared
    wanted = find_neighbors(rows, 10, metric=metric, method="exact")
    found = [len(np.intersect1d(x, y)) for x, y in zip(online.table().index, wanted.index, strict=True)]
    assert np.mean(found) >= 9.3
    queries = rows[::100] + np.float32(0.01)
    answer = online.query(queries, 10)
    assert np.mean(answer.index[:, 0] == np.arange(0, 3000, 100)) >= 0.95


def test_a_stream_of_pixels_accepts_other_rows() -> None:
    rows = pixels(700, 200)
    rows[650, 3] = 0.5
    stream = OnlineNeighbors(10, seed=0)
    for begin in range(0, 700, 100):
        stream.insert(rows[begin : begin + 100])
        stream.step()
    np.testing.assert_allclose(stream.table().distance, find_neighbors(rows, 10, method="exact").distance, rtol=1e-6)


def test_a_restored_stream_of_pixels_goes_on(tmp_path: Any) -> None:
    import vicinal

    rows = pixels(2600, 200)
    model = ProgressiveUMAP(n_neighbors=10, random_state=0).partial_fit(rows[:2400])
    model.save(tmp_path / "stream.vicinal")
    loaded = vicinal.load(tmp_path / "stream.vicinal")
    maps = [one.partial_fit(rows[2400:]).run().embedding_ for one in (model, loaded)]
    np.testing.assert_array_equal(*maps)
