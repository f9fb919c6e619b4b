"""Rows that do not fit into a device are searched in groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu.host_device import HostDevice
from numpy.typing import NDArray

import vicinal
from vicinal import Neighbors, find_neighbors
from vicinal.backends.cuda import device as devices
from vicinal.backends.cuda.device import Need
from vicinal.neighbors import index as index_module
from vicinal.neighbors.cells import GroupSearch

Rows = NDArray[np.float32]


@pytest.fixture(scope="module")
def wide() -> Rows:
    """Return 1,200 rows of 400 columns on a curved surface in four places, two of them equal."""
    rng = np.random.default_rng(0)
    hidden, basis = rng.uniform(-3, 3, size=(1200, 3)), rng.normal(size=(6, 400))
    X = (
        np.concatenate([hidden, np.sin(hidden)], axis=1) @ basis
        + 8 * rng.normal(size=(4, 400))[rng.integers(4, size=1200)]
    )
    X[7] = X[3]
    return X.astype(np.float32)


@pytest.fixture
def small_device(monkeypatch: pytest.MonkeyPatch, wide: Rows) -> tuple[HostDevice, list[int]]:
    """Return a device with room for the tables of all rows, but only for half of the rows; and what is sent to it."""
    device, sent = HostDevice(), list[int]()
    need = Need(400, 10)
    capacity = next(size for size in range(2**20, 2**24, 2**16) if need.group_rows(1200, size, size) >= 600)
    device.free_bytes = lambda: capacity
    plain = device.asarray

    def asarray(values: Any, dtype: Any = None) -> Any:
        if np.ndim(values) == 2 and np.shape(values)[1] == 400:
            sent.append(len(values))
        return plain(values, dtype)

    device.asarray = asarray
    monkeypatch.setattr(devices, "cuda_device", lambda number=0: device)
    return device, sent


def recall(found: Neighbors, true: Neighbors) -> float:
    hits = [len(np.intersect1d(a, b)) for a, b in zip(found.index, true.index, strict=True)]
    return float(np.mean(hits)) / true.k


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_groups_find_the_neighbors(small_device: tuple[HostDevice, list[int]], wide: Rows, metric: str) -> None:
    device, sent = small_device
    found = find_neighbors(wide, 10, metric=metric, device="cuda")
    true = find_neighbors(wide, 10, metric=metric)
    assert found.place is device
    assert len(sent) > 2
    assert max(sent) <= 620
    assert recall(found, true) > 0.97
    assert (found.index[:, 0] == np.arange(1200)).all()
    assert found.index[7, 1] == 3
    assert all(len(set(row)) == 10 for row in found.index.tolist())
    same = (found.index == true.index).all(axis=1)
    np.testing.assert_array_equal(found.distance[same], true.distance[same])
    again = find_neighbors(wide, 10, metric=metric, device="cuda", n_jobs=1)
    np.testing.assert_array_equal(found.index, again.index)


def test_metric_that_copies_the_rows_needs_groups_earlier(
    small_device: tuple[HostDevice, list[int]], wide: Rows
) -> None:
    device, sent = small_device
    one, two = (Need(400, 15, copies).total(1200, 2**22) for copies in (1, 2))
    device.free_bytes = lambda: (one + two) // 2
    for metric, groups in (("euclidean", False), ("cosine", True)):
        sent.clear()
        find_neighbors(wide, 10, metric=metric, device="cuda")
        assert (max(sent) < 1200) == groups
        sent.clear()
        model = vicinal.UMAP(n_neighbors=10, n_epochs=5, metric=metric, device="cuda").fit(wide)
        assert model.map_.graph.place is device
        assert (max(sent) < 1200) == groups


def test_map_of_rows_that_do_not_fit(small_device: tuple[HostDevice, list[int]], wide: Rows) -> None:
    device, sent = small_device
    model = vicinal.UMAP(n_neighbors=10, n_epochs=5, random_state=0, device="cuda").fit(wide)
    assert model.map_.graph.place is device
    assert max(sent) <= 620
    places = model.transform(wide[:4] + np.float32(0.01))
    assert np.isfinite(places).all()
    assert max(sent) <= 620


def test_exact_search_of_rows_that_do_not_fit_is_refused(
    small_device: tuple[HostDevice, list[int]], wide: Rows
) -> None:
    with pytest.raises(MemoryError, match=r"about [0-9]+ rows would fit"):
        find_neighbors(wide, 10, method="exact", device="cuda")


def test_equal_rows_that_do_not_fit_are_refused(small_device: tuple[HostDevice, list[int]], wide: Rows) -> None:
    with pytest.raises(MemoryError, match="too similar"):
        find_neighbors(np.ones_like(wide), 10, device="cuda")


def searched_groups(monkeypatch: pytest.MonkeyPatch) -> list[NDArray[np.int64]]:
    """Return a list to which the rows of every group are added."""
    groups: list[NDArray[np.int64]] = []
    gathered = GroupSearch._gathered

    def watched(self: GroupSearch, members: NDArray[np.int64]) -> Rows:
        groups.append(members)
        return gathered(self, members)

    monkeypatch.setattr(GroupSearch, "_gathered", watched)
    return groups


def test_groups_hold_every_row_and_few_rows_twice(
    small_device: tuple[HostDevice, list[int]], wide: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = searched_groups(monkeypatch)
    find_neighbors(wide, 10, device="cuda")
    assert len(groups) > 2
    assert set(np.concatenate(groups).tolist()) == set(range(1200))
    assert sum(map(len, groups)) < 1.5 * 1200


def test_group_that_runs_out_of_memory_is_divided(
    small_device: tuple[HostDevice, list[int]], wide: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, search = searched_groups(monkeypatch), index_module.NeighborIndex._search_on_device

    def full(self: Any, *arguments: Any) -> Neighbors:
        if len(groups[-1]) > 200:
            raise MemoryError("full")
        return search(self, *arguments)

    monkeypatch.setattr(index_module.NeighborIndex, "_search_on_device", full)
    found = find_neighbors(wide, 10, device="cuda")
    assert recall(found, find_neighbors(wide, 10)) > 0.93
    monkeypatch.setattr(index_module.NeighborIndex, "_search_on_device", lambda *_: _raise(MemoryError("full")))
    with pytest.raises(MemoryError, match=r"full; about [0-9]+ of 1200 rows would fit"):
        find_neighbors(wide, 10, device="cuda")


def _raise(error: Exception) -> Any:
    raise error


def test_cell_that_most_rows_visit_does_not_prevent_a_search(
    small_device: tuple[HostDevice, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Clusters in many dimensions: the cell next to the middle of all rows is the second nearest of most of them.
    rng = np.random.default_rng(3)
    centers, bases = rng.normal(size=(12, 400)), rng.normal(size=(12, 8, 400)) / 2
    label = rng.integers(12, size=1200)
    X = centers[label] + np.einsum("nr,nrd->nd", rng.normal(size=(1200, 8)), bases[label])
    X = (X + rng.normal(size=X.shape) / 10).astype(np.float32)
    found = find_neighbors(X, 10, device="cuda")
    assert recall(found, find_neighbors(X, 10)) > 0.97


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_gpu_with_a_small_limit_searches_and_fits_rows_that_do_not_fit(limited_gpu: Any, metric: str) -> None:
    pool, limit = limited_gpu(300 * 2**20)
    rng = np.random.default_rng(0)
    centers, bases = rng.normal(size=(40, 400)), rng.normal(size=(40, 6, 400)) / 2
    label, hidden = rng.integers(40, size=150_000), rng.normal(size=(150_000, 6))
    X = np.empty((150_000, 400), np.float32)
    for j in range(40):
        at = label == j
        X[at] = centers[j] + hidden[at] @ bases[j] + rng.normal(size=(int(at.sum()), 400)) / 10
    model = vicinal.UMAP(n_neighbors=15, n_epochs=20, metric=metric, random_state=0, device="cuda").fit(X)
    assert pool.total_bytes() <= limit
    sample = np.arange(0, len(X), 1500)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) if metric == "cosine" else X
    d2 = (rows[sample] ** 2).sum(axis=1)[:, None] + (rows**2).sum(axis=1)[None] - 2 * rows[sample] @ rows.T
    true = np.argsort(d2, axis=1)[:, :15]
    hits = [len(np.intersect1d(a, b)) for a, b in zip(model.map_.neighbors.index[sample], true, strict=True)]
    assert np.mean(hits) / 15 > 0.97
    assert np.isfinite(model.embedding_).all()
