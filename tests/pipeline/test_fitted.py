"""FittedMap: what placing rows needs is derived once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import UMAP, LargeVis

Rows = NDArray[np.float32]


@pytest.mark.parametrize("model", [UMAP(n_epochs=2, unique=True), LargeVis(n_epochs=2)], ids=["unique", "LargeVis"])
def test_placing_rows_derives_the_reference_once(model: Any, iris: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = model.fit(iris).map_
    model.transform(iris[:3] + 0.1)
    derived = []
    monkeypatch.setattr(type(fitted.graph), "degree", lambda graph: derived.append("degree"))
    monkeypatch.setattr("vicinal.pipeline.fitted.select_rows", lambda *rows, **options: derived.append("rows"))
    model.transform(iris[:3] + 0.2)
    assert not derived
