"""FittedMap: what placing rows needs is derived once, and states of version 0.1 become one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import UMAP, LargeVis
from vicinal.estimators.legacy import Given, RowSource, upgraded

Rows = NDArray[np.float32]


@pytest.mark.parametrize("model", [UMAP(n_epochs=2, unique=True), LargeVis(n_epochs=2)], ids=["unique", "LargeVis"])
def test_placing_rows_derives_the_reference_once(model: Any, iris: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = model.fit(iris).map_
    model.transform(iris[:3] + 0.1)
    derived = []
    monkeypatch.setattr(type(fitted.graph), "degree", lambda graph: derived.append("degree"))
    monkeypatch.setattr("vicinal.maps.fitted.select_rows", lambda *rows, **options: derived.append("rows"))
    model.transform(iris[:3] + 0.2)
    assert not derived


def test_state_of_0_1_keeps_radii_that_were_only_reported(iris: Rows) -> None:
    model = UMAP(n_epochs=5, random_state=0, output_dens=True).fit(iris)
    fitted, source = model.map_, RowSource(iris, seed=model.map_.seed)
    state = {
        "_source": source,
        "_everything": source,
        "_kept": None,
        "_given": Given(),
        "_search_graph": fitted.search_graph,
        "graph_": model.graph_,
        "_knn_indices": model._knn_indices,
        "_knn_dists": model._knn_dists,
        "_fit_seed": fitted.seed,
        "_fitted_density": None,
        "embedding_": model.embedding_,
        "rad_orig_": model.rad_orig_,
        "rad_emb_": model.rad_emb_,
        "radius_correlation_": model.radius_correlation_,
    }
    density = upgraded(model, state)["map_"]["density"]
    np.testing.assert_array_equal(density.radii.log_radius.astype(np.float32), model.rad_orig_)
    np.testing.assert_array_equal(density.embedded.astype(np.float32), model.rad_emb_)
    assert density.correlation == model.radius_correlation_
    assert density.summary is None
