"""Places back to rows: better than the nearest row, a function of the place alone, finite anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist

from vicinal import UMAP, Kernel
from vicinal.pipeline.place import inverse_rows

Rows = NDArray[np.float32]


def error(rows: Rows, true: Rows) -> float:
    return float(np.sqrt(np.mean((rows - true) ** 2)))


@pytest.fixture(scope="module", params=[1, 2, 8])
def model(request: Any, digits: Rows) -> tuple[UMAP, Rows, Rows, Rows]:
    """A map of 4/5 of the digits: the model, its rows, the others and their places."""
    order = np.random.default_rng(0).permutation(len(digits))
    known, new = digits[order[:1437]], digits[order[1437:]]
    fitted = UMAP(n_components=request.param, random_state=1, n_epochs=150).fit(known)
    return fitted, known, new, fitted.transform(new)


def inverse(model: UMAP, places: Rows, X: Any, **options: Any) -> Any:
    return inverse_rows(places, model.embedding_, X, Kernel(model._a, model._b), **options)


def test_held_out_rows_come_back_better_than_the_nearest_row(model: Any) -> None:
    fitted, known, new, places = model
    nearest = known[np.argmin(cdist(places, fitted.embedding_), axis=1)]
    assert error(inverse(fitted, places, known), new) < 0.85 * error(nearest, new)


def test_perturbed_places_come_back_better_than_the_nearest_row(model: Any) -> None:
    fitted, known, _, _ = model
    extent = np.ptp(fitted.embedding_, axis=0)
    noise = np.random.default_rng(2).normal(size=fitted.embedding_.shape) * extent / 100
    places = fitted.embedding_ + noise
    near = np.argmin(cdist(places, fitted.embedding_), axis=1)
    moved = near != np.arange(len(known))
    assert moved.any()
    actual = inverse(fitted, places, known)
    assert error(actual[moved], known[moved]) < error(known[near[moved]], known[moved])


def test_rows_depend_on_their_place_alone(model: Any) -> None:
    fitted, known, _, places = model
    whole = inverse(fitted, places, known)
    assert whole.dtype == np.float32
    for part in (inverse(fitted, places[:1], known), inverse(fitted, places[:7], known, n_jobs=1)):
        np.testing.assert_array_equal(whole[: len(part)], part)
    np.testing.assert_array_equal(whole[::-1], inverse(fitted, places[::-1], known, n_jobs=8))


def test_everything_comes_back_within_the_data(model: Any) -> None:
    """Far outside the hull too: a mixture of rows cannot leave their range."""
    fitted, known, _, _ = model
    components = fitted.embedding_.shape[1]
    directions = np.random.default_rng(1).normal(size=(20, components))
    for scale in (1.0, 30.0, 1e6, 1e300):
        rows = inverse(fitted, fitted.embedding_.mean(axis=0) + scale * directions, known)
        assert np.isfinite(rows).all()
        assert (rows >= known.min(axis=0) - 1e-3).all()
        assert (rows <= known.max(axis=0) + 1e-3).all()


def test_sparse_rows_come_back_sparse(model: Any) -> None:
    fitted, known, _, places = model
    rows = inverse(fitted, places, csr_matrix(known))
    np.testing.assert_allclose(rows.toarray(), inverse(fitted, places, known), atol=1e-4)


def test_a_linear_map_is_inverted() -> None:
    """On a grid the data of which is a linear function of its places, places in between come back."""
    grid = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), axis=-1).reshape(-1, 2).astype(np.float32)
    data = grid @ np.array([[1.0, 2.0, -1.0], [0.5, -1.0, 3.0]], dtype=np.float32)
    places = np.random.default_rng(0).uniform(4, 15, size=(50, 2)).astype(np.float32)
    nearest = data[np.argmin(cdist(places, grid), axis=1)]
    truth = places @ np.array([[1.0, 2.0, -1.0], [0.5, -1.0, 3.0]], dtype=np.float32)
    assert error(inverse_rows(places, grid, data, Kernel(1.577, 0.895)), truth) < 0.3 * error(nearest, truth)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_and_rows_in_one_place(n: int) -> None:
    data = np.arange(3.0 * n, dtype=np.float32).reshape(n, 3)
    kernel = Kernel(1.577, 0.895)
    places = np.array([[0.0, 0.0], [3.0, -2.0]])
    together = inverse_rows(places, np.zeros((n, 2), np.float32), data, kernel)
    np.testing.assert_allclose(together, np.tile(data.mean(axis=0), (2, 1)), rtol=1e-5)
    apart = inverse_rows(places, np.arange(2.0 * n, dtype=np.float32).reshape(n, 2), data, kernel)
    assert np.isfinite(apart).all()


def test_wrong_places_are_named() -> None:
    map_, data, kernel = np.zeros((4, 2), np.float32), np.zeros((4, 3), np.float32), Kernel(1.0, 1.0)
    with pytest.raises(ValueError, match=r"places must have shape \[any, 2\]"):
        inverse_rows(np.zeros((2, 3)), map_, data, kernel)
    with pytest.raises(ValueError, match="first in row 1"):
        inverse_rows(np.array([[0, 0], [np.nan, 1]]), map_, data, kernel)
