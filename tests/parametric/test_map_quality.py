"""Quality of parametric maps of digits: compared with UMAP, decoded, supervised, and extended with landmarks."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import UMAP, ParametricUMAP
from vicinal.quality.measures import trustworthiness

pytest.importorskip("torch")

pytestmark = pytest.mark.nightly

Rows = NDArray[np.float32]
NEW_CLASS = 9
QUICK: dict[str, Any] = {"n_epochs": 12, "n_jobs": 1}


@pytest.fixture(scope="module")
def model(digits: Rows, digit_labels: Any, global_random_seed: int) -> ParametricUMAP:
    """Return a model of all digits except the nines, with a decoder that does not shape the map."""
    made = ParametricUMAP(parametric_reconstruction=True, random_state=global_random_seed, **QUICK)
    return made.fit(digits[digit_labels != NEW_CLASS])


def test_trustworthiness_is_close_to_that_of_umap(
    digits: Rows, digit_labels: Any, model: ParametricUMAP, global_random_seed: int
) -> None:
    X = digits[digit_labels != NEW_CLASS]
    umap = UMAP(random_state=global_random_seed).fit(X)
    assert trustworthiness(X, model.embedding_) > trustworthiness(X, umap.embedding_) - 0.015


def test_decoder_explains_half_of_the_variance(digits: Rows, digit_labels: Any, model: ParametricUMAP) -> None:
    X = digits[digit_labels != NEW_CLASS]
    decoded = model.inverse_transform(model.embedding_)
    assert np.square(decoded - X).mean() < 0.5 * X.var(axis=0).mean()


def test_landmarks_keep_their_points_when_rows_are_added(
    digits: Rows, digit_labels: Any, model: ParametricUMAP
) -> None:
    X = digits[digit_labels != NEW_CLASS]
    grown = copy.deepcopy(model).set_params(n_epochs=4)
    marks = np.arange(0, len(X), 10)
    grown.add_landmarks(X, sample_mode="predetermined", idx=marks).fit(digits)
    drift = np.linalg.norm(grown.transform(X[marks]) - model.embedding_[marks], axis=1)
    assert drift.mean() < 0.02 * np.ptp(model.embedding_, axis=0).max()
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    assert grown.embedding_.shape == (len(digits), 2)


@pytest.mark.parametrize("supervision", ["cross_entropy", "triplet", "graph"])
def test_labels_separate_similar_classes(
    digits: Rows, digit_labels: Any, supervision: str, global_random_seed: int
) -> None:
    """The gap between two similar classes grows relative to their widths."""
    which = np.isin(digit_labels, (3, 8))
    X, y = digits[which], digit_labels[which]

    def separation(labels: Any) -> float:
        model = ParametricUMAP(supervision=supervision, random_state=global_random_seed, **QUICK)
        points = model.fit(X, labels).embedding_
        one, other = points[y == 3], points[y == 8]
        gap = np.linalg.norm(one.mean(axis=0) - other.mean(axis=0))
        return float(gap / np.sqrt(one.var(axis=0).sum() + other.var(axis=0).sum()))

    assert separation(y) > separation(None)
