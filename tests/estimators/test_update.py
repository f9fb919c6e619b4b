"""UMAP.update and partial_fit: new rows join a fitted map."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from vicinal import UMAP
from vicinal.quality.measures import trustworthiness

Rows = NDArray[np.float32]


def extent(embedding: Rows) -> float:
    return float(np.ptp(embedding, axis=0).max())


def test_update_places_new_rows_in_their_class_and_keeps_the_map(digits: Rows, digit_labels: NDArray[np.int64]) -> None:
    model = UMAP(random_state=0).fit(digits[:1500])
    before = model.embedding_
    model.update(digits[1500:])
    moved = np.linalg.norm(model.embedding_[:1500] - before, axis=1)
    assert np.median(moved) < 0.05 * extent(before)
    nearest = cdist(model.embedding_[1500:], model.embedding_[:1500]).argmin(axis=1)
    assert (digit_labels[nearest] == digit_labels[1500:]).mean() > 0.93
    assert trustworthiness(digits, model.embedding_) > 0.98


@pytest.mark.parametrize("size", [1, 2, 500])
def test_update_takes_batches_of_any_size(digits: Rows, size: int) -> None:
    model = UMAP(n_epochs=20, random_state=0).fit(digits[:50])
    model.update(digits[50 : 50 + size])
    assert model.embedding_.shape == (50 + size, 2)
    assert np.isfinite(model.embedding_).all()


def test_partial_fit_is_fit_then_update(digits: Rows) -> None:
    model = UMAP(n_epochs=20, random_state=0)
    model.partial_fit(digits[:200]).partial_fit(digits[200:250])
    expected = UMAP(n_epochs=20, random_state=0).fit(digits[:200]).update(digits[200:250])
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)


def test_rows_without_labels_join_labeled_ones(digits: Rows, digit_labels: NDArray[np.int64]) -> None:
    with_later = UMAP(n_epochs=20, random_state=0).fit(digits[:200], digit_labels[:200])
    with_later.update(digits[200:250]).update(digits[250:300], digit_labels[250:300])
    labels = with_later.map_.options.y
    assert labels is not None
    assert (labels[200:250] == -1).all()
    np.testing.assert_array_equal(labels[250:], digit_labels[250:300])
    without = UMAP(n_epochs=20, random_state=0).fit(digits[:200])
    without.update(digits[200:250], digit_labels[200:250])
    assert (without.map_.options.y[:200] == -1).all()


def test_refused_update_keeps_the_model(digits: Rows) -> None:
    model = UMAP(n_epochs=10, random_state=0).fit(digits[:100])
    before = model.embedding_.copy()
    for bad in (digits[:5, :10], np.full((3, 64), np.nan), np.zeros((0, 64))):
        with pytest.raises(ValueError, match=r"X|features|NaN|sample"):
            model.update(bad)
    np.testing.assert_array_equal(model.embedding_, before)
    np.testing.assert_array_equal(model.transform(digits[:3]), before[:3])


def test_update_says_where_its_layout_started(digits: NDArray[np.float32]) -> None:
    model = UMAP(n_epochs=20, random_state=1).fit(digits[:200])
    assert model.init_used_ == "pca"
    model.update(digits[200:260])
    assert model.init_used_ == "update"
