"""sample_weight of fit: weights of rows, routed by pipelines, weight 0 included."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.pipeline import Pipeline

from vicinal import UMAP
from vicinal.quality.measures import trustworthiness

Rows = NDArray[np.float32]


def test_weights_are_routed_by_a_pipeline(iris: Rows) -> None:
    weight = np.random.default_rng(0).integers(1, 5, size=150)
    expected = UMAP(n_epochs=10, random_state=0).fit(iris, sample_weight=weight).embedding_
    plain = UMAP(n_epochs=10, random_state=0).fit(iris).embedding_
    assert not np.array_equal(expected, plain)
    steps = Pipeline([("umap", UMAP(n_epochs=10, random_state=0))])
    np.testing.assert_array_equal(steps.fit(iris, umap__sample_weight=weight)["umap"].embedding_, expected)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = Pipeline([("umap", UMAP(n_epochs=10, random_state=0).set_fit_request(sample_weight=True))])
        np.testing.assert_array_equal(routed.fit(iris, sample_weight=weight)["umap"].embedding_, expected)
        np.testing.assert_array_equal(routed.fit_transform(iris, sample_weight=weight), expected)
        unrequested = Pipeline([("umap", UMAP(n_epochs=10, random_state=0).set_fit_request(sample_weight=False))])
        with pytest.raises(TypeError, match="sample_weight"):
            unrequested.fit(iris, sample_weight=weight)


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_rows_of_weight_zero_are_placed_and_do_not_affect_others(iris: Rows, metric: str) -> None:
    rng = np.random.default_rng(0)
    weight = rng.choice([0.0, 1.0, 2.5], size=150)
    weight[rng.integers(150)] = 2.5
    kept = np.flatnonzero(weight > 0)
    rows = iris + rng.normal(scale=0.01, size=iris.shape)
    X = cdist(rows, rows) if metric == "precomputed" else rows
    part = X[np.ix_(kept, kept)] if metric == "precomputed" else X[kept]
    whole = UMAP(n_epochs=30, random_state=0, metric=metric).fit(X, sample_weight=weight)
    without = UMAP(n_epochs=30, random_state=0, metric=metric).fit(part, sample_weight=weight[kept])
    np.testing.assert_array_equal(whole.embedding_[kept], without.embedding_)
    assert np.isfinite(whole.embedding_).all()
    np.testing.assert_array_equal(whole.transform(X), whole.embedding_)
    if metric == "euclidean":
        dropped = np.flatnonzero(weight == 0)
        np.testing.assert_array_equal(whole.embedding_[dropped], without.transform(X[dropped]))


def test_row_of_weight_zero_shares_the_place_of_an_equal_row(iris: Rows) -> None:
    X = np.concatenate([iris[100:101], iris])
    weight = np.r_[0.0, np.linspace(1, 2, 150)]
    model = UMAP(n_epochs=10, random_state=0).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(model.embedding_[0], model.embedding_[101])


@pytest.mark.nightly
def test_weights_count_like_repeated_rows_on_average(digits: Rows) -> None:
    """A cluster whose rows weigh 3 takes up about as much of the map as one whose rows occur three times."""
    labels = load_digits().target[:600]
    weight = np.where(labels == 0, 3, 1)
    copies = np.repeat(np.arange(600), weight)
    areas = {}
    every = np.arange(600)
    for name, rows, weights in (("weighted", every, weight), ("plain", every, None), ("copied", copies, None)):
        jitter = np.random.default_rng(0).normal(scale=1e-3, size=(len(rows), 64)) if name == "copied" else 0.0
        maps = [
            UMAP(random_state=seed).fit_transform(digits[rows] + jitter, sample_weight=weights) for seed in range(3)
        ]
        areas[name] = np.mean([area_share(places, labels[rows]) for places in maps])
    assert areas["weighted"] > 1.15 * areas["plain"]
    assert areas["copied"] > 1.15 * areas["plain"]


def area_share(places: Rows, labels: NDArray[np.int64]) -> float:
    """Return the spread of class 0 relative to that of the other classes."""
    spread = [np.sqrt(np.linalg.det(np.cov(places[labels == c].T))) for c in range(10)]
    return float(spread[0] / np.median(spread[1:]))


def test_weights_all_zero_or_negative_are_refused(iris: Rows) -> None:
    with pytest.raises(ValueError, match="sample_weight must not be zero in all rows"):
        UMAP().fit(iris, sample_weight=np.zeros(150))
    with pytest.raises(ValueError, match="at least 0, but is not in row 7"):
        UMAP().fit(iris, sample_weight=np.where(np.arange(150) == 7, -1.0, 1.0))


def test_class_of_larger_weight_takes_more_room(digits: Rows, digit_labels: NDArray[np.int64]) -> None:
    """Heavy rows act like repeated rows."""

    def radius(embedding: Rows, which: int) -> float:
        places = embedding[digit_labels == which]
        return float(np.median(np.linalg.norm(places - np.median(places, axis=0), axis=1)))

    plain = UMAP(random_state=0).fit_transform(digits)
    weight = np.where(digit_labels == 0, 4.0, 1.0)
    heavy = UMAP(random_state=0).fit_transform(digits, sample_weight=weight)
    assert radius(heavy, 0) > 1.4 * radius(plain, 0)
    assert trustworthiness(digits, heavy) > 0.98


def test_uniform_weights_are_treated_as_no_weights(digits: Rows) -> None:
    expected = UMAP(n_epochs=20, random_state=0).fit_transform(digits[:200])
    for weight in (np.ones(200), np.full(200, 7.5), [2] * 200):
        actual = UMAP(n_epochs=20, random_state=0).fit_transform(digits[:200], sample_weight=weight)
        np.testing.assert_array_equal(actual, expected)
