"""Conventions of umap-learn's estimator that programs rely on: subclasses, random states, representation, output."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

import vicinal
from vicinal import UMAP

Rows = NDArray[np.float32]


class WithExtra(UMAP):
    """A subclass that adds a parameter and hands the others on."""

    def __init__(self, extra: int = 3, **params: Any) -> None:
        super().__init__(**params)
        self.extra = extra


class Small(UMAP):
    """A subclass that fixes most parameters."""

    def __init__(self, n_neighbors: int = 7) -> None:
        super().__init__(n_neighbors=n_neighbors, n_epochs=10, random_state=0)


class SmallGrowing(vicinal.ProgressiveUMAP):
    """A subclass of another estimator."""

    def __init__(self) -> None:
        super().__init__(n_neighbors=7, random_state=0)


@pytest.fixture(scope="module")
def plain(iris: Rows) -> UMAP:
    return UMAP(n_neighbors=7, n_epochs=10, random_state=0).fit(iris)


def test_subclasses_with_an_init_of_their_own_work_like_the_class(iris: Rows, plain: UMAP) -> None:
    unseen = iris[:20] + np.float32(0.05)
    for model in (WithExtra(extra=5, n_neighbors=7, n_epochs=10, random_state=0), Small(7)):
        model.fit(iris)
        np.testing.assert_array_equal(model.embedding_, plain.embedding_)
        np.testing.assert_array_equal(model.transform(unseen), plain.transform(unseen))
        copied = pickle.loads(pickle.dumps(model))
        assert type(copied) is type(model)
        np.testing.assert_array_equal(copied.transform(unseen), plain.transform(unseen))
        assert copied.n_epochs == 10
    assert clone(Small(9)).n_neighbors == 9
    assert len(SmallGrowing().fit(iris).embedding_) == len(iris)


def test_subclasses_name_an_invalid_parameter_that_their_init_does_not_take(iris: Rows) -> None:
    model = Small()
    model.min_dist = -1.0
    with pytest.raises(ValueError, match="min_dist"):
        model.fit(iris)


def test_a_changed_parameter_of_a_subclass_does_not_change_the_fitted_map(iris: Rows, plain: UMAP) -> None:
    model = Small(7).fit(iris)
    model.min_dist = 0.9
    unseen = iris[:5] + np.float32(0.05)
    copied = pickle.loads(pickle.dumps(model))
    assert copied.min_dist == 0.9
    np.testing.assert_array_equal(copied.transform(unseen), plain.transform(unseen))


def test_random_state_may_be_the_module_numpy_random(iris: Rows, tmp_path: Any) -> None:
    np.random.seed(7)  # noqa: NPY002
    first = UMAP(n_epochs=5, random_state=np.random).fit(iris)
    np.random.seed(7)  # noqa: NPY002
    second = UMAP(n_epochs=5, random_state=np.random).fit(iris)
    np.testing.assert_array_equal(first.embedding_, second.embedding_)
    assert not np.array_equal(first.embedding_, UMAP(n_epochs=5, random_state=np.random).fit(iris).embedding_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).embedding_, first.embedding_)
    first.save(tmp_path / "model.vicinal")
    assert vicinal.load(tmp_path / "model.vicinal").random_state is None


def test_repr_with_arrays_among_the_parameters_is_short(plain: UMAP) -> None:
    for arrays in ((plain._knn_indices, plain._knn_dists), (plain._knn_indices, plain._knn_dists, object())):
        with np.printoptions(threshold=10**9):
            text = repr(UMAP(precomputed_knn=arrays, n_neighbors=7))
            page = UMAP(precomputed_knn=arrays, n_neighbors=7)._repr_html_()
        assert "precomputed_knn=(array(" in text
        assert len(text) < 2_000
        assert "precomputed_knn" in page


def test_set_output_keeps_the_radii_beside_the_frame(iris: Rows) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas makes the frame")
    rows = pandas.DataFrame(iris, index=[f"row {i}" for i in range(len(iris))])
    model = UMAP(n_epochs=10, output_dens=True, random_state=0).set_output(transform="pandas")
    places, original, embedded = model.fit_transform(rows)
    assert list(places.columns) == ["umap0", "umap1"]
    assert list(places.index) == list(rows.index)
    np.testing.assert_array_equal(places.to_numpy(), model.embedding_)
    np.testing.assert_array_equal(original, model.rad_orig_)
    np.testing.assert_array_equal(embedded, model.rad_emb_)
    assert list(model.transform(rows[:3]).columns) == ["umap0", "umap1"]
