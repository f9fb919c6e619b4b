"""Quality of growing maps: as good as a map of all rows at once, and good at any time."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from vicinal import UMAP, ProgressiveUMAP
from vicinal.quality.measures import knn_accuracy, trustworthiness

Rows = NDArray[np.float32]
WITHIN = 0.02  # allowed loss against a map of all rows at once


@pytest.fixture(scope="module")
def at_once(digits: Rows, digit_labels: NDArray[np.int64], global_random_seed: int) -> tuple[float, float]:
    places = UMAP(random_state=global_random_seed).fit(digits).embedding_
    return trustworthiness(digits, places), knn_accuracy(places, digit_labels, n_neighbors=10)


@pytest.mark.parametrize("size", [50, 300])
def test_a_grown_map_is_as_good_as_a_map_of_all_rows_at_once(
    digits: Rows, digit_labels: NDArray[np.int64], at_once: tuple[float, float], size: int, global_random_seed: int
) -> None:
    model = ProgressiveUMAP(batch_size=size, random_state=global_random_seed).fit(digits)
    assert trustworthiness(digits, model.embedding_) > at_once[0] - WITHIN
    assert knn_accuracy(model.embedding_, digit_labels, n_neighbors=10) > at_once[1] - WITHIN


def test_the_map_is_good_while_it_grows(digits: Rows, digit_labels: NDArray[np.int64], global_random_seed: int) -> None:
    model = ProgressiveUMAP(random_state=global_random_seed)
    for begin in range(0, len(digits), 200):
        model.partial_fit(digits[begin : begin + 200])
        n = len(model.embedding_)
        assert n == min(begin + 200, len(digits))
        if begin >= 800:
            assert trustworthiness(digits[:n], model.embedding_) > 0.95
            assert knn_accuracy(model.embedding_, digit_labels[:n], n_neighbors=10) > 0.9


def test_neighbors_are_found_while_rows_arrive(digits: Rows, global_random_seed: int) -> None:
    model = ProgressiveUMAP(batch_size=40, random_state=global_random_seed).fit(digits)
    nearest = np.argsort(cdist(digits, digits), axis=1, kind="stable")[:, :15]
    found = model._map.search.table().index
    hits = [len(np.intersect1d(one, other)) for one, other in zip(nearest, found, strict=True)]
    assert np.mean(hits) / 15 > 0.95
