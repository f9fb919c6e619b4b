"""Quality of maps of the digits: trustworthiness and 5-NN accuracy reach fixed bars."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import silhouette_score

from vicinal import UMAP, quality

Rows = NDArray[np.float32]
Labels = NDArray[np.int64]
SEEDS = range(5)


def scores(X: Rows, y: Labels, **options: Any) -> tuple[float, float]:
    """Return trustworthiness (15 neighbors) and 5-NN accuracy, averaged over five seeds."""
    maps = [UMAP(random_state=seed, **options).fit_transform(X) for seed in SEEDS]
    trust = [quality.trustworthiness(X, one, n_neighbors=15) for one in maps]
    accuracy = [quality.knn_accuracy(one, y, n_neighbors=5) for one in maps]
    return float(np.mean(trust)), float(np.mean(accuracy))


@pytest.fixture(scope="module")
def default_scores(digits: Rows, digit_labels: Labels) -> tuple[float, float]:
    return scores(digits, digit_labels)


def test_default_map_is_good(default_scores: tuple[float, float]) -> None:
    trust, accuracy = default_scores
    assert trust >= 0.985
    assert accuracy >= 0.975


def test_map_with_moving_negatives_is_good(digits: Rows, digit_labels: Labels) -> None:
    embedding = UMAP(random_state=0, update_negatives=True).fit_transform(digits)
    assert quality.trustworthiness(digits, embedding, n_neighbors=15) >= 0.975
    assert quality.knn_accuracy(embedding, digit_labels, n_neighbors=5) >= 0.96


@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine", "correlation", "manhattan", "chebyshev"])
def test_maps_by_other_metrics_are_good(digits: Rows, metric: str) -> None:
    embedding = UMAP(random_state=0, metric=metric).fit_transform(digits)
    assert quality.trustworthiness(digits, embedding, n_neighbors=15, metric=metric) >= 0.95


@pytest.mark.parametrize("init", ["pca", "random"])
def test_maps_from_other_initializations_are_good(digits: Rows, digit_labels: Labels, init: str) -> None:
    embedding = UMAP(random_state=0, init=init).fit_transform(digits)
    assert quality.trustworthiness(digits, embedding, n_neighbors=15) >= 0.975
    assert quality.knn_accuracy(embedding, digit_labels, n_neighbors=5) >= 0.96


def test_map_of_approximate_neighbors_is_good(digits: Rows) -> None:
    embedding = UMAP(random_state=0, force_approximation_algorithm=True).fit_transform(digits)
    assert quality.trustworthiness(digits, embedding, n_neighbors=15) >= 0.98


@pytest.mark.parametrize("n_components", [1, 3, 10])
def test_maps_of_other_dimensions_are_good(digits: Rows, n_components: int) -> None:
    embedding = UMAP(random_state=0, n_components=n_components).fit_transform(digits)
    assert quality.trustworthiness(digits, embedding, n_neighbors=15) >= (0.9 if n_components == 1 else 0.985)


def test_labels_separate_the_classes(digits: Rows, digit_labels: Labels) -> None:
    plain = UMAP(random_state=0).fit_transform(digits)
    supervised = UMAP(random_state=0).fit_transform(digits, digit_labels)
    assert silhouette_score(supervised, digit_labels) > silhouette_score(plain, digit_labels)
    assert quality.knn_accuracy(supervised, digit_labels, n_neighbors=5) >= 0.995
    assert quality.trustworthiness(digits, supervised, n_neighbors=15) >= 0.95


def test_rows_without_labels_profit_from_the_labels_of_others(digits: Rows, digit_labels: Labels) -> None:
    some = np.where(np.random.default_rng(0).random(len(digits)) < 0.5, digit_labels, -1)
    embedding = UMAP(random_state=0).fit_transform(digits, some)
    hidden = some == -1
    assert quality.knn_accuracy(embedding[hidden], digit_labels[hidden], n_neighbors=5) >= 0.97


def test_map_is_good_if_all_labels_are_missing(digits: Rows, digit_labels: Labels) -> None:
    embedding = UMAP(random_state=0).fit_transform(digits, np.full(len(digits), -1))
    assert quality.trustworthiness(digits, embedding, n_neighbors=15) >= 0.98
    assert quality.knn_accuracy(embedding, digit_labels, n_neighbors=5) >= 0.97
