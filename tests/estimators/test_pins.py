"""Pinned rows (fixed_mask and fixed_positions of fit) keep their places."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import sklearn
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from vicinal import UMAP

Rows = NDArray[np.float32]


def extent(embedding: Rows) -> float:
    return float(np.ptp(embedding, axis=0).max())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_pinned_rows_stay_bit_for_bit(digits: Rows, n_jobs: int) -> None:
    X = np.concatenate([digits[:300], digits[:10]])  # a pinned row may equal one that is not pinned
    rng = np.random.default_rng(0)
    mask = np.zeros(310, dtype=bool)
    mask[rng.choice(300, 60, replace=False)] = True
    places = (rng.normal(size=(310, 2)) * 7 + 30).astype(np.float32)
    model = UMAP(n_epochs=50, random_state=0, n_jobs=n_jobs).fit(X, fixed_mask=mask, fixed_positions=places)
    np.testing.assert_array_equal(model.embedding_[mask], places[mask])
    assert np.isfinite(model.embedding_).all()
    model.update(digits[300:320])
    np.testing.assert_array_equal(model.embedding_[:310][mask], places[mask])


def test_other_rows_follow_the_pinned_ones(digits: Rows) -> None:
    """If a third of the rows is pinned to a rotated map, the whole map is rotated."""
    first = UMAP(random_state=0).fit_transform(digits)
    turned = first @ np.array([[0.0, -1.0], [1.0, 0.0]], dtype=np.float32) + 100
    mask = np.arange(len(digits)) % 3 == 0
    model = UMAP(random_state=1).fit(digits, fixed_mask=mask, fixed_positions=turned)
    away = np.linalg.norm(model.embedding_ - turned, axis=1)
    assert np.median(away) < 0.05 * extent(first)


@pytest.mark.parametrize(
    "mask", [np.arange(50) >= 0, np.arange(50) < 0, np.arange(50) == 7], ids=["all", "none", "one"]
)
def test_all_rows_no_rows_or_one_row_can_be_pinned(digits: Rows, mask: NDArray[np.bool_]) -> None:
    places = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    model = UMAP(n_epochs=10, random_state=0).fit(digits[:50], fixed_mask=mask, fixed_positions=places)
    np.testing.assert_array_equal(model.embedding_[mask], places[mask])
    assert np.isfinite(model.embedding_).all()


def test_pins_are_named_arguments_and_can_be_routed(iris: Rows) -> None:
    names = inspect.signature(UMAP.fit).parameters
    assert [name for name, p in names.items() if p.kind is p.KEYWORD_ONLY] == [
        "sample_weight",
        "fixed_mask",
        "fixed_positions",
        "force_all_finite",
    ]
    mask, places = np.arange(150) < 5, np.random.default_rng(0).normal(size=(150, 2)).astype(np.float32)
    with sklearn.config_context(enable_metadata_routing=True):
        model = UMAP(n_epochs=5).set_fit_request(fixed_mask=True, fixed_positions=True)
        steps = Pipeline([("umap", model)]).fit(iris, fixed_mask=mask, fixed_positions=places)
    np.testing.assert_array_equal(steps["umap"].embedding_[:5], places[:5])
