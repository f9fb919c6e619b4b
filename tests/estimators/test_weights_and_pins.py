"""Weights and pinned places: named arguments of fit, routed by pipelines, weight 0 included."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import sklearn
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.pipeline import Pipeline

from vicinal import UMAP


def test_weights_are_routed_by_a_pipeline(iris: NDArray[np.float32]) -> None:
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


def test_pins_are_named_arguments_and_can_be_routed(iris: NDArray[np.float32]) -> None:
    names = inspect.signature(UMAP.fit).parameters
    assert [name for name, p in names.items() if p.kind is p.KEYWORD_ONLY] == [
        "sample_weight",
        "fixed_mask",
        "fixed_positions",
        "ensure_all_finite",
    ]
    mask, places = np.arange(150) < 5, np.random.default_rng(0).normal(size=(150, 2)).astype(np.float32)
    with sklearn.config_context(enable_metadata_routing=True):
        model = UMAP(n_epochs=5).set_fit_request(fixed_mask=True, fixed_positions=True)
        steps = Pipeline([("umap", model)]).fit(iris, fixed_mask=mask, fixed_positions=places)
    np.testing.assert_array_equal(steps["umap"].embedding_[:5], places[:5])


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_rows_of_weight_zero_are_placed_and_move_nobody(iris: NDArray[np.float32], metric: str) -> None:
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


def test_row_of_weight_zero_shares_the_place_of_an_equal_row(iris: NDArray[np.float32]) -> None:
    X = np.concatenate([iris[100:101], iris])
    weight = np.r_[0.0, np.linspace(1, 2, 150)]
    model = UMAP(n_epochs=10, random_state=0).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(model.embedding_[0], model.embedding_[101])


def test_weights_count_like_repeated_rows_on_average(digits: NDArray[np.float32]) -> None:
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


def area_share(places: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """The spread of class 0 relative to that of the other classes."""
    spread = [np.sqrt(np.linalg.det(np.cov(places[labels == c].T))) for c in range(10)]
    return float(spread[0] / np.median(spread[1:]))


def test_sample_weight_of_zero_everywhere_is_refused(iris: NDArray[np.float32]) -> None:
    with pytest.raises(ValueError, match="sample_weight must not be zero in all rows"):
        UMAP().fit(iris, sample_weight=np.zeros(150))
    with pytest.raises(ValueError, match="at least 0, but is not in row 7"):
        UMAP().fit(iris, sample_weight=np.where(np.arange(150) == 7, -1.0, 1.0))
