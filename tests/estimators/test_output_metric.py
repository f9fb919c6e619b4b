"""output_metric: maps whose distances are not euclidean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from vicinal import UMAP

Rows = NDArray[np.float32]


@pytest.mark.parametrize("metric", ["haversine", "hyperboloid", "manhattan", "cosine"])
def test_classes_are_close_by_the_output_metric(metric: str, digits: Rows, digit_labels: NDArray[np.int64]) -> None:
    """The nearest fitted row of a new row, by the output metric, is of its class."""
    dim = 2 if metric in ("haversine", "hyperboloid", "manhattan") else 3
    model = UMAP(output_metric=metric, n_components=dim, random_state=0, n_epochs=200).fit(digits[:1000])
    places = np.concatenate([model.embedding_, model.transform(digits[1000:1200])])
    assert np.isfinite(places).all()
    D = map_distance(metric, places[1000:], places[:1000])
    assert (digit_labels[D.argmin(axis=1)] == digit_labels[1000:1200]).mean() > 0.85


def map_distance(metric: str, A: Rows, B: Rows) -> NDArray[Any]:
    """Compute distances between places by an output metric, or values in the same order."""
    a, b = A.astype(np.float64), B.astype(np.float64)
    if metric == "haversine":

        def sphere(p: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.stack([np.sin(p[:, 0]) * np.cos(p[:, 1]), np.sin(p[:, 0]) * np.sin(p[:, 1]), np.cos(p[:, 0])], 1)

        return cdist(sphere(a), sphere(b))
    if metric == "hyperboloid":
        lift_a, lift_b = np.sqrt(1 + (a**2).sum(1)), np.sqrt(1 + (b**2).sum(1))
        return np.arccosh(np.maximum(np.outer(lift_a, lift_b) - a @ b.T, 1.0))
    return cdist(a, b, {"manhattan": "cityblock"}.get(metric, metric))
