"""Models in a notebook: the summary, and the page whose selection comes back."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest
from websockets.sync.client import connect

import vicinal

LONG_S = 60.0


@pytest.fixture(scope="module")
def model(digits: Any) -> vicinal.UMAP:
    return vicinal.UMAP(n_neighbors=7, n_epochs=30, random_state=1).fit(digits[:300])


def test_a_summary_has_parameters_stages_quality_and_a_picture(model: vicinal.UMAP) -> None:
    text = model._repr_html_()
    for word in ("UMAP", "300 rows", "n_neighbors", "7", "layout", "trustworthiness", "<svg"):
        assert word in text
    assert text.count("<circle") == 300
    assert "min_dist" not in text
    assert "not fitted" in vicinal.UMAP(metric="<b>")._repr_html_()
    assert "<b>" not in vicinal.UMAP(metric="<b>")._repr_html_()


def test_maps_of_other_widths_have_no_picture(digits: Any) -> None:
    text = vicinal.UMAP(n_components=3, n_epochs=5).fit(digits[:60])._repr_html_()
    assert "<svg" not in text
    assert "3 dimensions" in text


def test_a_selection_comes_back_as_ids(model: vicinal.UMAP) -> None:
    view = model.explore(np.arange(300) % 2, ids=[f"r{a}" for a in range(300)])
    try:
        address = view._server.address
        assert f'<iframe src="{address}"' in view._repr_html_()
        assert view.selection == []
        own = address.split("/")[2]
        with connect(f"ws://{own}/{address.split('/')[3]}/feed", origin=f"http://{own}") as feed:  # type: ignore[arg-type]
            feed.send(json.dumps({"type": "select", "rows": [9, 4]}))
            end = time.monotonic() + LONG_S
            while not view.selection and time.monotonic() < end:
                time.sleep(0.01)
        assert view.selection == ["r4", "r9"]
    finally:
        view.close()


def test_without_a_server_the_whole_page_is_in_the_notebook(model: vicinal.UMAP) -> None:
    text = model.explore(live=False)._repr_html_()
    assert text.startswith("<iframe srcdoc=")
    assert "vicinal-xy" in text
    with pytest.raises(Exception, match="not fitted"):
        vicinal.UMAP().explore()
