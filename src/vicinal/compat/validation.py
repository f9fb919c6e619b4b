"""umap-learn's ``umap.validation``: trustworthiness for several sizes of the neighborhood at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.neighbors.index import NeighborIndex
from vicinal.quality.measures import check_neighbors, data_and_map, ranked_neighbors

Floats = NDArray[np.float64]

__all__ = ["make_trustworthiness_calculator", "trustworthiness_vector", "trustworthiness_vector_bulk"]


def trustworthiness_vector(source: ArrayLike, embedding: ArrayLike, max_k: int, metric: Any = "euclidean") -> Floats:
    """Return the trustworthiness of a map for 0 to ``max_k`` neighbors; the first value is 1.

    Parameters
    ----------
    source : array [rows, columns]
        The data.
    embedding : array [rows, n_components]
        The map.
    max_k : int
        Largest number of neighbors, less than half of the rows.
    metric : str
        Distance of the rows of the data.
    """
    data, flat = data_and_map(source, embedding, metric)
    check_neighbors(max_k, flat.n, half=True, name="max_k")
    return _vector(ranked_neighbors(data, flat, np.arange(flat.n), int(max_k)).map_in_data, flat.n)


def trustworthiness_vector_bulk(indices_source: ArrayLike, indices_embedded: ArrayLike, max_k: int) -> Floats:
    """Return the trustworthiness for 0 to ``max_k`` neighbors, given tables of neighbors.

    Parameters
    ----------
    indices_source : array [rows, rows]
        All rows in the order of their distance in the data, each row itself first.
    indices_embedded : array [rows, k]
        The nearest rows in the map without the row itself, at least ``max_k``.
    max_k : int
        Largest number of neighbors.
    """
    order, near = np.asarray(indices_source), np.asarray(indices_embedded)[:, :max_k]
    if near.shape[1] < max_k:
        raise ValueError(f"indices_embedded must have at least max_k={max_k} columns, got {near.shape[1]}")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(order.shape[1])[None], axis=1)
    return _vector(np.take_along_axis(ranks, near, axis=1), len(near))


def make_trustworthiness_calculator(metric: Any) -> Callable[[ArrayLike, ArrayLike, int], Floats]:
    """Return a function of rows, of the nearest rows in the map, and of ``max_k``."""

    def calculate(source: ArrayLike, indices_embedded: ArrayLike, max_k: int) -> Floats:
        distances = NeighborIndex(source, metric).distances(source)
        np.fill_diagonal(distances, -1.0)
        return trustworthiness_vector_bulk(np.argsort(distances, axis=1, kind="stable"), indices_embedded, max_k)

    return calculate


def _vector(ranks: NDArray[Any], n: int) -> Floats:
    """Return 1 and the trustworthiness for 1, 2, ... neighbors; ``ranks`` in the data of the nearest in the map."""
    scores = [1.0]
    for k in range(1, ranks.shape[1] + 1):
        excess = np.maximum(ranks[:, :k] - k, 0).sum()
        scores.append(1.0 - float(excess) * 2.0 / (n * k * (2.0 * n - 3.0 * k - 1.0)))
    return np.array(scores)
