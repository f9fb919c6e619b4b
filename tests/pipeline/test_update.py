"""UMAP.update and partial_fit: new rows join the known ones where a search of everything would be approximate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vicinal
from vicinal import UMAP, find_neighbors
from vicinal.backends import cpu
from vicinal.neighbors import search as policy
from vicinal.neighbors.index import NeighborIndex

Rows = NDArray[np.float32]


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch, grouped: Any) -> Rows:
    """Rows too many for an exact search, which here are few."""
    monkeypatch.setattr(policy, "EXACT_ROWS", 300)
    monkeypatch.setattr(policy, "EXACT_ROWS_PER_NEIGHBOR", 10)
    rows: Rows = grouped(1000, 140)
    return rows


def fitted(X: Rows, **more: Any) -> UMAP:
    return UMAP(n_neighbors=10, n_epochs=30, random_state=3, **more).fit(X)


def refuse(*_: Any) -> None:
    raise AssertionError("all rows were searched")


def test_an_update_searches_the_new_rows_only(large: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted(large[:900])
    before = model.embedding_.copy()
    monkeypatch.setattr(NeighborIndex, "search", refuse)
    model.update(large[900:])
    exact = _exact(large)
    hits = [len(np.intersect1d(a, b)) for a, b in zip(model._knn_indices, exact, strict=True)]
    assert np.mean(hits) >= 0.97 * 10
    assert model.embedding_.shape == (1000, 2)
    assert np.isfinite(model.embedding_).all()
    extent = np.ptp(before, axis=0).max()
    assert np.median(np.linalg.norm(model.embedding_[:900] - before, axis=1)) < 0.1 * extent


def _exact(X: Rows) -> NDArray[np.int32]:
    core = cpu.NeighborIndex(X, "euclidean", 0, 1)
    return core.search_exact(10, 1)[0]


@pytest.mark.parametrize("n_jobs", [2, 8])
def test_an_update_is_the_same_on_any_number_of_threads(large: Rows, n_jobs: int) -> None:
    maps = [fitted(large[:900], n_jobs=jobs).update(large[900:]).embedding_ for jobs in (1, n_jobs)]
    np.testing.assert_array_equal(*maps)


def test_an_update_of_a_loaded_model_is_that_of_the_saved_one(large: Rows, tmp_path: Path) -> None:
    model = fitted(large[:800]).update(large[800:900])
    model.save(tmp_path / "model.vicinal")
    loaded = vicinal.load(tmp_path / "model.vicinal")
    np.testing.assert_array_equal(model.update(large[900:]).embedding_, loaded.update(large[900:]).embedding_)


@pytest.mark.parametrize(
    ("more", "first"),
    [
        ({"metric": "seuclidean"}, 900),  # its variances change with the rows
        ({"unique": True}, 900),
        ({"metric": lambda x, y: float(np.abs(x - y).sum())}, 990),
        ({}, 400),  # more rows come than there are
    ],
)
def test_whatever_cannot_be_added_to_is_searched(
    large: Rows, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], first: int
) -> None:
    X = large[:, :6] if callable(more.get("metric")) else large
    model = fitted(X[:first], **more)
    monkeypatch.setattr(NeighborIndex, "search", refuse)
    with pytest.raises(AssertionError, match="all rows were searched"):
        model.update(X[first:])


def test_few_rows_stay_exact(digits: Rows) -> None:
    model = fitted(digits[:500]).update(digits[500:600])
    np.testing.assert_array_equal(model._knn_indices, find_neighbors(digits[:600], 10, method="exact").index)


def test_partial_fit_goes_on_from_the_first_batch(large: Rows) -> None:
    model = UMAP(n_neighbors=10, n_epochs=30, random_state=3)
    for batch in (large[:800], large[800:900], large[900:]):
        model.partial_fit(batch)
    expected = fitted(large[:800]).update(large[800:900]).update(large[900:])
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)
