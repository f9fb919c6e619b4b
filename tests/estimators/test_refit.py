"""A refit replaces all results of the previous fit, and transform uses the parameters of the fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vicinal
from vicinal import TSNE, UMAP, KNeighborsTransformer, LargeVis


def test_refit_clears_previous_results(iris: NDArray[np.float32], tmp_path: Path) -> None:
    model = UMAP(n_epochs=[5, 10], random_state=0, compute_loss=True, densmap=True).fit(iris + 1)
    results = ("embedding_", "embedding_list_", "loss_history_", "rad_orig_", "rad_emb_", "radius_correlation_")
    assert all(hasattr(model, name) for name in results)
    model.set_params(transform_mode="graph", n_epochs=None, compute_loss=False, densmap=False).fit(iris)
    assert not any(hasattr(model, name) for name in (*results, "init_used_", "n_epochs_"))
    model.save(tmp_path / "model.vicinal")
    twin = vicinal.load(tmp_path / "model.vicinal")
    assert (twin.transform(iris[:9]) != model.transform(iris[:9])).nnz == 0
    assert not hasattr(twin, "embedding_")


def test_feature_names_of_a_graph_mode_model_are_its_rows(iris: NDArray[np.float32]) -> None:
    model = UMAP(transform_mode="graph").fit(iris)
    names = model.get_feature_names_out()
    assert names.shape == (150,) == (model.transform(iris[:3]).shape[1],)
    assert names[0] == "umap0"


CHANGES = {
    UMAP: {
        "n_neighbors": 3,
        "metric": "cosine",
        "learning_rate": 0.01,
        "n_epochs": 300,
        "transform_seed": 1,
        "a": 9,
        "b": 2,
    },
    TSNE: {"perplexity": 3.0, "dof": 0.5, "metric": "cosine"},
    LargeVis: {"perplexity": 3.0, "gamma": 1.0, "learning_rate": 0.01, "transform_seed": 1, "metric": "cosine"},
    KNeighborsTransformer: {"n_neighbors": 3, "mode": "connectivity", "metric": "cosine"},
}


@pytest.mark.parametrize("cls", CHANGES, ids=lambda cls: cls.__name__)
def test_transform_uses_the_parameters_of_the_fit(cls: Any, iris: NDArray[np.float32], tmp_path: Path) -> None:
    model, new = cls(random_state=0).fit(iris), iris[:20] + 0.05
    expected = as_array(model.transform(new))
    model.set_params(**CHANGES[cls])
    np.testing.assert_array_equal(as_array(model.transform(new)), expected)
    model.save(tmp_path / "model.vicinal")
    loaded = vicinal.load(tmp_path / "model.vicinal")
    np.testing.assert_array_equal(as_array(loaded.transform(new)), expected)
    assert loaded.get_params() == model.get_params()
    assert not np.array_equal(as_array(model.fit(iris).transform(new)), expected)


def as_array(result: Any) -> NDArray[Any]:
    return result.toarray() if hasattr(result, "toarray") else result
