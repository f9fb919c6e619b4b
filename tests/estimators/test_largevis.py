"""LargeVis: scikit-learn's checks, determinism, new rows, unusual data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from vicinal import LargeVis
from vicinal.files.models import load, save
from vicinal.quality.measures import knn_accuracy, neighbor_recall

JOBS = (1, 2, 8)


@parametrize_with_checks([LargeVis(perplexity=5, n_epochs=20)])
def test_estimator_checks(estimator: LargeVis, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("options", [{}, {"init": "random", "n_components": 3}, {"metric": "cosine", "perplexity": 8}])
def test_fit_and_transform_do_not_depend_on_n_jobs(digits: NDArray[np.float32], options: dict[str, Any]) -> None:
    fits = [LargeVis(random_state=3, n_epochs=60, n_jobs=jobs, **options).fit(digits[:900]) for jobs in JOBS]
    placed = fits[0].transform(digits[900:950])
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.embedding_, fits[0].embedding_)
        np.testing.assert_array_equal(fit.transform(digits[900:950]), placed)


def test_place_of_a_new_row_depends_on_that_row_alone(digits: NDArray[np.float32]) -> None:
    model = LargeVis(perplexity=15, random_state=0, n_epochs=100).fit(digits[:1000])
    new = digits[1000:1100]
    together = model.transform(new)
    order = np.random.default_rng(0).permutation(100)
    np.testing.assert_array_equal(model.transform(new[order]), together[order])
    np.testing.assert_array_equal(model.transform(new[41:42])[0], together[41])
    np.testing.assert_array_equal(model.transform(digits[:50]), model.embedding_[:50])


def test_rows_of_a_class_are_neighbors(digits: NDArray[np.float32], digit_labels: NDArray[np.int64]) -> None:
    model = LargeVis(random_state=0).fit(digits[:1500])
    assert knn_accuracy(model.embedding_, digit_labels[:1500]) > 0.96
    both = np.concatenate([model.embedding_, model.transform(digits[1500:])])
    assert knn_accuracy(both, digit_labels) > 0.95


def test_small_data_has_more_and_weaker_negatives() -> None:
    plan = LargeVis(gamma=12.0)._recipe(100, 0).plan
    small, large = plan.schedule(100, 1000), plan.schedule(100, 20_000)
    assert small.negative_sample_rate > large.negative_sample_rate
    assert (
        small.negative_sample_rate * small.repulsion_strength == large.negative_sample_rate * large.repulsion_strength
    )


def test_small_data_has_weaker_negatives_by_default() -> None:
    assert LargeVis()._recipe(100, 0).plan.repulsion_strength < LargeVis()._recipe(20_000, 0).plan.repulsion_strength
    assert LargeVis(gamma=3.0)._recipe(100, 0).plan.repulsion_strength == 3.0


def test_small_data_keeps_its_neighbors(digits: NDArray[np.float32], global_random_seed: int) -> None:
    """With a few strong negatives the recall is 0.53; that of t-SNE 0.59."""
    assert neighbor_recall(digits, LargeVis(random_state=global_random_seed).fit_transform(digits)) > 0.555


def test_loaded_model_transforms_identically(digits: NDArray[np.float32], tmp_path: Path) -> None:
    model = LargeVis(perplexity=10, random_state=0, n_epochs=40).fit(digits[:500])
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").transform(digits[500:530]), model.transform(digits[500:530]))


def test_sparse_rows_have_a_finite_map(digits: NDArray[np.float32]) -> None:
    model = LargeVis(perplexity=10, random_state=0, n_epochs=40, init="random")
    places = model.fit_transform(csr_matrix(digits[:400]))
    assert np.isfinite(places).all()
    assert np.isfinite(model.transform(csr_matrix(digits[400:410]))).all()


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_few_rows_have_a_finite_map(n: int) -> None:
    rows = np.random.default_rng(n).normal(size=(n, 4))
    model = LargeVis(n_epochs=10, random_state=0).fit(rows)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.transform(rows + 0.1)).all()


def test_equal_rows_share_one_place() -> None:
    rows = np.random.default_rng(0).normal(size=(120, 3))
    rows[40:80] = rows[0]
    places = LargeVis(perplexity=10, n_epochs=50, random_state=0).fit_transform(rows)
    assert np.isfinite(places).all()
    assert (places[40:80] == places[0]).all()
    assert np.isfinite(LargeVis(n_epochs=20).fit_transform(np.ones((30, 2)))).all()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"perplexity": 0.5}, "perplexity"),
        ({"gamma": -1.0}, "gamma"),
        ({"metric": "no such"}, "metric"),
        ({"n_epochs": -1}, "n_epochs"),
        ({"negative_sample_rate": 1.5}, "negative_sample_rate"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"init": "no such"}, "init"),
        ({"init": np.zeros((3, 2))}, "init"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
    ids=str,
)
def test_invalid_argument_is_named(iris: NDArray[np.float32], options: dict[str, Any], name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        LargeVis(**options).fit(iris)


def test_callback_stops_the_layout_and_clone_is_unfitted(iris: NDArray[np.float32]) -> None:
    model = LargeVis(n_epochs=50, callback=lambda stage, epoch, *_: stage == "layout" and epoch >= 7, random_state=0)
    assert model.fit(iris).n_epochs_ == 7
    assert not hasattr(clone(model), "embedding_")
