"""Programs that read umap-learn's private names from models, and that set them instead of fitting a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from vicinal import UMAP, umap_

Rows = NDArray[np.float32]


@pytest.fixture(scope="module")
def fitted(iris: Rows) -> UMAP:
    return UMAP(n_neighbors=10, n_epochs=20, random_state=0).fit(iris)


def put_together(rows: Any, fitted: UMAP, **params: Any) -> UMAP:
    """Make a model as scanpy's ``tl.ingest`` does: no fit, but attributes by umap-learn's names."""
    model = UMAP(random_state=0, **params)
    model._raw_data = rows
    model.knn_dists = None
    model._validate_parameters()
    model.embedding_ = fitted.embedding_
    model._small_data, model._sparse_data, model._metric_kwds = True, False, {}
    model.n_neighbors = model._n_neighbors = 10
    model._knn_search_index = object()
    model._a, model._b, model._input_hash = fitted._a, fitted._b, None
    return model


def test_a_model_that_was_put_together_places_rows_like_the_fitted_one(iris: Rows, fitted: UMAP) -> None:
    unseen = iris[::7] + np.float32(0.05)
    model = put_together(iris.astype(np.float64), fitted, n_epochs=20)
    np.testing.assert_array_equal(model.embedding_, fitted.embedding_)
    np.testing.assert_array_equal(model.transform(unseen), fitted.transform(unseen))
    np.testing.assert_array_equal(model.transform(iris), fitted.embedding_)
    np.testing.assert_array_equal(model.graph_.toarray(), fitted.graph_.toarray())
    assert model._a == fitted._a
    assert model.init_used_ == "given"


def test_values_set_by_a_program_do_not_outlive_a_fit(iris: Rows, fitted: UMAP) -> None:
    model = put_together(iris, fitted, n_epochs=20)
    model._n_neighbors = 7
    model.fit(iris[:50])
    assert model.embedding_.shape == (50, 2)
    assert model._raw_data.shape == (50, 4)
    assert model._n_neighbors == model.n_neighbors == 10


def test_a_model_that_was_put_together_names_what_does_not_fit(iris: Rows, fitted: UMAP) -> None:
    with pytest.raises(ValueError, match=r"embedding_ must have a place for each of 100 rows, got 150"):
        put_together(iris[:100], fitted).transform(iris)
    with pytest.raises(ValueError, match="min_dist"):
        put_together(iris, fitted, min_dist=-1.0)
    model = UMAP()
    model._raw_data = iris
    with pytest.raises(NotFittedError):
        model.transform(iris)


def test_assigned_places_are_those_of_the_map(iris: Rows) -> None:
    model = UMAP(n_neighbors=10, n_epochs=20, random_state=0).fit(iris)
    turned = model.embedding_[:, ::-1].astype(np.float64)
    unseen = model.transform(iris[:5] + np.float32(0.05))
    model.embedding_ = turned
    np.testing.assert_array_equal(model.transform(iris), turned.astype(np.float32))
    np.testing.assert_allclose(model.transform(iris[:5] + np.float32(0.05)), unseen[:, ::-1], atol=0.5)
    for wrong, message in ((turned[:3], r"embedding_ must have a place for every row"), (turned * np.nan, r"row 0")):
        with pytest.raises(ValueError, match=message):
            model.embedding_ = wrong


def test_the_search_index_finds_the_neighbors_of_the_fit(iris: Rows, fitted: UMAP) -> None:
    index, distance = fitted._knn_search_index.query(fitted._raw_data, k=10)
    np.testing.assert_allclose(distance, fitted._knn_dists, atol=1e-5)
    assert np.mean(index == fitted._knn_indices) > 0.95
    assert fitted._small_data is True
    assert fitted._sparse_data is False


def test_the_number_of_neighbors_is_that_of_the_rows_that_are_laid_out(iris: Rows, fitted: UMAP) -> None:
    assert fitted._n_neighbors == fitted.n_neighbors
    few = np.repeat(iris[[0, 50, 100, 149]], [6, 1, 1, 1], axis=0)
    assert UMAP(n_neighbors=5, unique=True, n_epochs=5).fit(few)._n_neighbors == 3
    assert UMAP(n_neighbors=20, n_epochs=5).fit(few)._n_neighbors == 8


def test_limits_of_random_integers_have_umap_learns_values() -> None:
    assert (umap_.INT32_MIN, umap_.INT32_MAX) == (-(2**31) + 1, 2**31 - 2)
