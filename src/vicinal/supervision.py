"""Intersecting the graph with labels: edges between classes fade, so classes separate (survey section 2.5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.graph import Graph
from vicinal.set_operations import reset_connectivity

UNLABELLED = -1
UNKNOWN_DISTANCE = 1.0  # an edge that touches an unlabelled row keeps exp(-1) of its weight


def far_distance(target_weight: float) -> float:
    """How far apart two classes are taken to be: 2.5 at weight 0, without bound at weight 1, as in umap-learn."""
    return 2.5 / (1.0 - target_weight) if target_weight < 1.0 else 1e12


def intersect_labels(graph: Graph, labels: NDArray[Any], target_weight: float = 0.5) -> Graph:
    """The fuzzy intersection of the graph with "same class"; rows labelled -1 know nothing."""
    matrix = graph.to_scipy().astype(np.float64)
    matrix.data = matrix.data * class_factors(
        graph.heads(), graph.indices, labels, UNKNOWN_DISTANCE, far_distance(target_weight)
    )
    return restore_connectivity(graph.with_weights(matrix))


def restore_connectivity(graph: Graph) -> Graph:
    """Every row's strongest edge back to 1, then the fuzzy union with the mirror image."""
    return graph.with_weights(reset_connectivity(graph.to_scipy()))


def class_factors(
    heads: NDArray[np.int32], tails: NDArray[np.int32], labels: NDArray[Any], unknown: float, far: float
) -> NDArray[np.float64]:
    """What an edge's weight is multiplied by: 1 within a class, exp(-far) between two, exp(-unknown) if unlabelled."""
    codes = _codes(labels)
    unlabelled = (codes[heads] == UNLABELLED) | (codes[tails] == UNLABELLED)
    differ = ~unlabelled & (codes[heads] != codes[tails])
    factor = np.ones(len(heads), dtype=np.float64)
    factor[unlabelled] = np.exp(-unknown)
    factor[differ] = np.exp(-far)
    return factor


def _codes(labels: NDArray[Any]) -> NDArray[np.int64]:
    labels = np.asarray(labels)
    _, codes = np.unique(labels, return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64)
    if labels.dtype.kind in "iuf":
        codes[labels.reshape(-1) == UNLABELLED] = UNLABELLED
    return codes
