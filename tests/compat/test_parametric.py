"""ParametricUMAP with umap-learn's arguments: accepted where they have a meaning, refused by name where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from vicinal import ParametricUMAP, load_ParametricUMAP

pytest.importorskip("torch")

Rows = NDArray[np.float32]


def quick(**params: Any) -> ParametricUMAP:
    return ParametricUMAP(
        **{"n_epochs": 1, "n_neighbors": 8, "random_state": 0, "n_jobs": 1, "device": "cpu", **params}
    )


@pytest.fixture(scope="module")
def rows(digits: Rows) -> Rows:
    return digits[:120]


@pytest.fixture(scope="module")
def fitted(rows: Rows) -> ParametricUMAP:
    return quick().fit(rows)


def test_arguments_without_effect_do_not_change_the_map(rows: Rows, fitted: ParametricUMAP) -> None:
    given = quick(
        low_memory=False,
        transform_seed=7,
        angular_rp_forest=True,
        transform_queue_size=2.0,
        keras_fit_kwargs={"verbose": 0},
        metric_kwds={},
    ).fit(rows)
    np.testing.assert_array_equal(given.embedding_, fitted.embedding_)
    np.testing.assert_array_equal(given.transform(rows, batch_size=10), given.transform(rows))
    assert given._history == given.loss_history_
    assert len(given._history["loss"]) == 1


def test_metric_keywords_reach_the_graph(rows: Rows, fitted: ParametricUMAP) -> None:
    model = quick(metric="minkowski", metric_kwds={"p": 1}).fit(rows)
    assert (model.graph_ != fitted.graph_).nnz > 0
    assert (model.graph_ != quick(metric="manhattan").fit(rows).graph_).nnz == 0


def test_training_epochs_multiply_the_epochs(rows: Rows) -> None:
    assert quick(n_training_epochs=3).fit(rows).n_epochs_ == 3


def test_unique_trains_on_equal_rows_once(rows: Rows, tmp_path: Any) -> None:
    repeated, labels = np.concatenate([rows, rows[:30]]), np.arange(150) % 2
    model = quick(unique=True).fit(repeated, labels)
    assert model.graph_.shape == (120, 120)
    assert model.embedding_.shape == (150, 2)
    np.testing.assert_array_equal(model.embedding_[120:], model.embedding_[:30])
    model.save(tmp_path / "model.vicinal")
    assert ParametricUMAP.load(tmp_path / "model.vicinal").graph_.shape == (120, 120)


def test_precomputed_distances_make_the_graph(rows: Rows, fitted: ParametricUMAP) -> None:
    model = quick(metric="precomputed").fit(rows, precomputed_distances=cdist(rows, rows))
    np.testing.assert_allclose(model.graph_.toarray(), fitted.graph_.toarray(), atol=1e-3)
    assert model.transform(rows[:3]).shape == (3, 2)
    assert quick(metric="precomputed").fit_transform(rows, None, cdist(rows, rows)).shape == (120, 2)


@pytest.mark.parametrize(
    ("params", "distances", "message"),
    [
        ({"metric": "precomputed"}, None, "precomputed_distances must be given with metric='precomputed'"),
        ({}, np.zeros((120, 120)), "precomputed_distances must be given with metric='precomputed'"),
        ({"metric": "precomputed"}, np.zeros((5, 5)), "precomputed_distances must have 120 rows.*got 5"),
        ({"metric": "precomputed", "unique": True}, np.zeros((120, 120)), "unique=True compares rows"),
        ({"densmap": True}, None, "densmap=True is not possible.*DensMAP"),
        ({"output_dens": True}, None, "output_dens=True is not possible"),
        ({"keras_fit_kwargs": {"callbacks": []}}, None, r"keras_fit_kwargs has \['callbacks'\].*PyTorch"),
        ({"n_training_epochs": 0}, None, "n_training_epochs"),
    ],
)
def test_arguments_without_a_meaning_are_refused(rows: Rows, params: Any, distances: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick(**params).fit(rows, precomputed_distances=distances)


@pytest.mark.nightly
def test_images_may_have_more_than_two_dimensions(rows: Rows) -> None:
    images = rows.reshape(-1, 8, 8)
    flat = quick(encoder="conv", dims=(8, 8)).fit(rows)
    model = quick(encoder="conv").fit(images)
    np.testing.assert_array_equal(model.embedding_, flat.embedding_)
    np.testing.assert_array_equal(model.transform(images[:5]), flat.embedding_[:5])
    assert quick(encoder="conv").fit(images[..., None]).embedding_.shape == (120, 2)
    model.add_landmarks(images, sample_mode="predetermined", idx=np.arange(10))
    assert model.fit(images).init_used_ == "encoder"
    checked = quick(parametric_reconstruction=True, reconstruction_validation=images[:4]).fit(images)
    assert len(checked.loss_history_["validation"]) == 1


def test_landmarks_take_umap_learns_arguments(rows: Rows) -> None:
    model = quick().fit(rows)
    model.add_landmarks(rows, 0.1, "uniform", 0.02)
    assert model.landmark_loss_weight == 0.02
    with pytest.raises(ValueError, match="landmark_loss_weight must be a number of at least 0, got -1"):
        model.add_landmarks(rows, landmark_loss_weight=-1)
    with pytest.raises(ValueError, match="reset_optimizer must be True"):
        model.add_landmarks(rows, reset_optimizer=False)
    with pytest.raises(ValueError, match="batch_size must be a whole number"):
        model.transform(rows, batch_size=0)


def test_a_model_can_be_saved_in_a_folder(
    fitted: ParametricUMAP, rows: Rows, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted.save(tmp_path, verbose=True, exclude_raw_data=True)
    loaded = load_ParametricUMAP(str(tmp_path))
    np.testing.assert_array_equal(loaded.transform(rows), fitted.embedding_)
    assert "loaded from" in capsys.readouterr().out
    assert not hasattr(loaded, "embedding_")
