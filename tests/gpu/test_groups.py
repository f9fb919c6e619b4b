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
from vicinal.neighbors.groups import GroupSearch

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
    device.free_bytes = lambda: devices.BLOCK_BYTES + 600 * (devices.TABLE_BYTES + devices.ROW_BYTES * 400)
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
    assert max(sent) <= 600
    assert recall(found, true) > 0.97
    assert (found.index[:, 0] == np.arange(1200)).all()
    assert found.index[7, 1] == 3
    assert all(len(set(row)) == 10 for row in found.index.tolist())
    same = (found.index == true.index).all(axis=1)
    np.testing.assert_array_equal(found.distance[same], true.distance[same])
    again = find_neighbors(wide, 10, metric=metric, device="cuda", n_jobs=1)
    np.testing.assert_array_equal(found.index, again.index)


def test_map_of_rows_that_do_not_fit(small_device: tuple[HostDevice, list[int]], wide: Rows) -> None:
    device, sent = small_device
    model = vicinal.UMAP(n_neighbors=10, n_epochs=5, random_state=0, device="cuda").fit(wide)
    assert model.map_.graph.place is device
    assert max(sent) <= 600
    places = model.transform(wide[:4] + np.float32(0.01))
    assert np.isfinite(places).all()
    assert max(sent) <= 600


def test_exact_search_of_rows_that_do_not_fit_is_refused(
    small_device: tuple[HostDevice, list[int]], wide: Rows
) -> None:
    with pytest.raises(MemoryError, match="about 600 rows would fit"):
        find_neighbors(wide, 10, method="exact", device="cuda")


def test_equal_rows_that_do_not_fit_are_refused(small_device: tuple[HostDevice, list[int]], wide: Rows) -> None:
    with pytest.raises(MemoryError, match="too similar"):
        find_neighbors(np.ones_like(wide), 10, device="cuda")


def test_groups_hold_every_row(wide: Rows) -> None:
    groups = list(GroupSearch(wide, "euclidean", None, 0, 2, 300).groups())
    assert len(groups) > 3
    assert set(np.concatenate(groups).tolist()) == set(range(1200))
    assert sum(map(len, groups)) < 3 * 1200
