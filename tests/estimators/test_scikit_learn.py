"""scikit-learn's conventions: its checks, parameters that fit does not change, pipelines and grid search."""

from __future__ import annotations

import copy
import inspect
import pickle
from io import BytesIO
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scikit_learn_checks import expected_failures
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from vicinal import (
    TSNE,
    UMAP,
    AlignedUMAP,
    DensMAP,
    KNeighborsTransformer,
    LargeVis,
    ParametricUMAP,
    ProgressiveUMAP,
)

# The constructor of umap-learn, in order; parameters that umap-learn does not have are keyword-only.
PARAMETERS: dict[str, Any] = {
    "n_neighbors": 15,
    "n_components": 2,
    "metric": "euclidean",
    "metric_kwds": None,
    "output_metric": "euclidean",
    "output_metric_kwds": None,
    "n_epochs": None,
    "learning_rate": 1.0,
    "init": "spectral",
    "min_dist": 0.1,
    "spread": 1.0,
    "low_memory": True,
    "n_jobs": -1,
    "set_op_mix_ratio": 1.0,
    "local_connectivity": 1.0,
    "repulsion_strength": 1.0,
    "negative_sample_rate": 5,
    "transform_queue_size": 4.0,
    "a": None,
    "b": None,
    "random_state": None,
    "angular_rp_forest": False,
    "target_n_neighbors": -1,
    "target_metric": "categorical",
    "target_metric_kwds": None,
    "target_weight": 0.5,
    "transform_seed": 42,
    "transform_mode": "embedding",
    "force_approximation_algorithm": False,
    "verbose": False,
    "tqdm_kwds": None,
    "unique": False,
    "densmap": False,
    "dens_lambda": 2.0,
    "dens_frac": 0.3,
    "dens_var_shift": 0.1,
    "output_dens": False,
    "disconnection_distance": None,
    "precomputed_knn": (None, None, None),
}
OWN_PARAMETERS = {
    "callback": None,
    "update_negatives": False,
    "compute_loss": False,
    "disconnected": "around",
    "memory_limit": None,
    "device": None,
}


@parametrize_with_checks(
    [UMAP(), DensMAP(n_epochs=20)],
    expected_failed_checks=expected_failures,
)
def test_estimator_checks(estimator: UMAP, check: Any) -> None:
    check(estimator)


def test_weight_checks_of_scikit_learn_run() -> None:
    names = {result["check_name"] for result in check_estimator(UMAP(n_epochs=2), on_fail=None)}
    assert {name for name in names if "sample_weight" in name} >= {
        "check_sample_weights_pandas_series",
        "check_sample_weights_not_an_array",
        "check_sample_weights_list",
        "check_sample_weights_shape",
        "check_sample_weights_not_overwritten",
    }


def test_constructor_has_the_parameters_of_umap_learn() -> None:
    signature = inspect.signature(UMAP.__init__)
    parameters = [p for name, p in signature.parameters.items() if name != "self"]
    positional = {p.name: p.default for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
    assert list(positional.items()) == list((PARAMETERS | {"init": "auto"}).items())
    assert {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY} == OWN_PARAMETERS
    assert all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters)


def test_constructor_stores_its_arguments() -> None:
    marks = {name: object() for name in [*PARAMETERS, *OWN_PARAMETERS]}
    model = UMAP(**marks)
    assert all(getattr(model, name) is mark for name, mark in marks.items())


@pytest.mark.parametrize("supervised", [False, True])
def test_fit_and_transform_do_not_change_parameters(iris: NDArray[np.float32], supervised: bool) -> None:
    init = np.random.default_rng(0).normal(size=(150, 2))
    kept = init.copy()
    model = UMAP(n_neighbors=10, n_epochs=10, init=init, tqdm_kwds={"leave": False}, random_state=3, n_jobs=2)
    before = copy.deepcopy(model.get_params())
    model.fit(iris, np.arange(150) % 3 if supervised else None)
    model.transform(iris[:5] + 0.01)
    after = model.get_params()
    assert after.keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_equal(after[name], value, err_msg=name)
    assert model.init is init
    np.testing.assert_array_equal(init, kept)


@pytest.mark.parametrize("n", [1, 3, 10])
def test_fit_of_few_rows_does_not_change_n_neighbors(n: int) -> None:
    model = UMAP(n_epochs=5).fit(np.random.default_rng(0).normal(size=(n, 4)))
    assert model.get_params() == UMAP(n_epochs=5).get_params()


def test_random_state_object_is_used_and_remains_the_parameter(iris: NDArray[np.float32]) -> None:
    state = np.random.RandomState(0)
    model = UMAP(n_epochs=10, random_state=state)
    first, second = model.fit(iris).embedding_, model.fit(iris).embedding_
    assert model.random_state is state
    assert not np.array_equal(first, second)
    again = UMAP(n_epochs=10, random_state=np.random.RandomState(0)).fit(iris).embedding_
    np.testing.assert_array_equal(first, again)


def test_clone_has_the_parameters_and_no_results(iris: NDArray[np.float32]) -> None:
    model = UMAP(n_neighbors=7, min_dist=0.3, random_state=1, n_epochs=10).fit(iris)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "embedding_")
    np.testing.assert_array_equal(twin.fit(iris).embedding_, model.embedding_)
    with pytest.raises(NotFittedError):
        clone(model).transform(iris)


def test_fit_returns_self_and_fit_transform_the_embedding(iris: NDArray[np.float32]) -> None:
    model = UMAP(n_epochs=10, random_state=0)
    assert model.fit(iris) is model
    embedding = UMAP(n_epochs=10, random_state=0).fit_transform(iris)
    assert embedding.dtype == np.float32
    assert embedding.shape == (150, 2)
    np.testing.assert_array_equal(embedding, model.embedding_)


def test_fitted_attributes_have_the_names_of_umap_learn(iris: NDArray[np.float32]) -> None:
    model = UMAP(n_neighbors=10, n_epochs=10, init="spectral", random_state=0).fit(iris)
    assert model.graph_.shape == (150, 150)
    assert (model.graph_ != model.graph_.T).nnz == 0
    assert model._knn_indices.shape == model._knn_dists.shape == (150, 10)
    assert model._rhos.shape == model._sigmas.shape == (150,)
    assert (model._a, model._b) == pytest.approx((1.577, 0.8951), abs=1e-3)
    np.testing.assert_array_equal(model._raw_data, iris)
    assert model.n_features_in_ == 4
    assert model.n_epochs_ == 10
    assert model.init_used_ == "spectral"
    assert set(model.stage_times_) == {"neighbors", "graph", "initialize", "layout"}


def test_pipeline_and_grid_search(iris: NDArray[np.float32]) -> None:
    labels = np.repeat([0, 1, 2], 50)
    steps = Pipeline(
        [
            ("scale", StandardScaler()),
            ("umap", UMAP(n_epochs=50, random_state=0)),
            ("classify", KNeighborsClassifier()),
        ]
    )
    search = GridSearchCV(steps, {"umap__n_neighbors": [5, 15], "umap__n_components": [1, 2]}, cv=3)
    search.fit(iris, labels)
    assert search.best_score_ > 0.85
    assert search.predict(iris[:3]).shape == (3,)


def test_set_output_names_the_columns(iris: NDArray[np.float32]) -> None:
    frame = pd.DataFrame(iris, columns=list("abcd"), index=[f"row {i}" for i in range(150)])
    model = UMAP(n_components=3, n_epochs=10, random_state=0).set_output(transform="pandas")
    embedding = model.fit_transform(frame)
    assert isinstance(embedding, pd.DataFrame)
    assert list(embedding.columns) == ["umap0", "umap1", "umap2"] == list(model.get_feature_names_out())
    assert list(embedding.index) == list(frame.index)
    assert list(model.feature_names_in_) == list("abcd")
    pd.testing.assert_frame_equal(model.transform(frame), embedding)
    assert isinstance(make_pipeline(model).fit_transform(frame), pd.DataFrame)


def joblib_round_trip(model: UMAP) -> UMAP:
    file = BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


ROUND_TRIPS = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "joblib": joblib_round_trip,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("name", ROUND_TRIPS)
@pytest.mark.parametrize("approximate", [False, True])
def test_copies_transform_to_the_same_bits(grouped: Any, name: str, approximate: bool) -> None:
    """Beyond 6,000 rows transform needs the search trees, which a copy has to build again."""
    rows = grouped(6300 if approximate else 400, 8)
    X, new = rows[:-100], rows[-100:]
    model = UMAP(
        n_epochs=20, init="pca", random_state=0, force_approximation_algorithm=approximate, metric="cosine"
    ).fit(X)
    expected = model.transform(new)
    twin = ROUND_TRIPS[name](model)
    np.testing.assert_array_equal(twin.transform(new), expected)
    np.testing.assert_array_equal(twin.embedding_, model.embedding_)
    np.testing.assert_array_equal(model.transform(new), expected)


def test_refit_does_not_use_the_previous_data(iris: NDArray[np.float32], digits: NDArray[np.float32]) -> None:
    model = UMAP(n_epochs=10, random_state=0).fit(iris)
    model.fit(digits[:200])
    assert model.embedding_.shape == (200, 2)
    assert model.n_features_in_ == 64
    fresh = UMAP(n_epochs=10, random_state=0).fit(digits[:200])
    np.testing.assert_array_equal(model.transform(digits[200:220]), fresh.transform(digits[200:220]))


def test_parameters_of_a_nested_estimator_can_be_set() -> None:
    """The names are those of scikit-learn: outer__inner."""
    outer = UMAP(callback=UMAP(n_neighbors=3))
    assert outer.get_params()["callback__n_neighbors"] == 3
    assert "callback__n_neighbors" not in outer.get_params(deep=False)
    assert outer.set_params(callback__n_neighbors=4).callback.n_neighbors == 4


def test_unknown_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="'neighbors'"):
        UMAP().set_params(neighbors=4)


def test_repr_shows_changed_parameters_only() -> None:
    for model in (UMAP(init=np.zeros((5000, 2))), UMAP(metric="m" * 2000)):
        assert len(repr(model)) <= 750


def test_estimators_inherit_from_scikit_learn() -> None:
    for cls in (UMAP, DensMAP, LargeVis, TSNE, KNeighborsTransformer, ProgressiveUMAP, AlignedUMAP, ParametricUMAP):
        assert issubclass(cls, BaseEstimator)
        assert issubclass(cls, TransformerMixin)


def test_html_view_of_a_pipeline_shows_the_parameters() -> None:
    html = make_pipeline(StandardScaler(), UMAP(n_neighbors=23, min_dist=0.37))._repr_html_()
    assert "UMAP" in html
    assert "n_neighbors" in html
    assert "23" in html
    assert "0.37" in html


def test_n_jobs_none_means_what_scikit_learn_means(iris: NDArray[np.float32]) -> None:
    assert UMAP(n_jobs=None, n_epochs=1).fit(iris).map_.data.n_jobs == 1
    with joblib.parallel_config(n_jobs=2):
        assert UMAP(n_jobs=None, n_epochs=1).fit(iris).map_.data.n_jobs == 2
