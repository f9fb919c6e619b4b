"""Intersecting the graph with what is known of the rows: edges between unlike ones fade (survey section 2.5).

Classes fade by whether they differ, ordered levels by how far apart they are, numbers by the fuzzy graph of their own
neighbours. A row of class -1, NaN or None, or with NaN among its numbers, is unlabelled: its edges fade a little and
evenly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.graph.graph import Graph
from vicinal.graph.set_operations import intersect, reset_connectivity
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import check_metric

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
    codes = class_codes(labels)
    return code_factors(codes[heads], codes[tails], unknown, far)


def code_factors(heads: NDArray[np.int64], tails: NDArray[np.int64], unknown: float, far: float) -> NDArray[np.float64]:
    """The same for classes by number, -1 where there is none."""
    unlabelled = (heads == UNLABELLED) | (tails == UNLABELLED)
    return np.where(unlabelled, np.exp(-unknown), np.where(heads == tails, 1.0, np.exp(-far)))


def intersect_levels(graph: Graph, levels: NDArray[np.float64], target_weight: float = 0.5) -> Graph:
    """The fuzzy intersection with "of a similar level": edges fade with the difference, the whole range the most."""
    known = np.isfinite(levels)
    heads, tails = graph.heads(), graph.indices
    width = float(np.ptp(levels[known])) if known.any() else 0.0
    apart = np.abs(levels[heads] - levels[tails]) / (width or 1.0)
    both = known[heads] & known[tails]
    matrix = graph.to_scipy().astype(np.float64)
    matrix.data = matrix.data * np.exp(-np.where(both, far_distance(target_weight) * apart, UNKNOWN_DISTANCE))
    return restore_connectivity(graph.with_weights(matrix))


def intersect_graphs(graph: Graph, other: Graph, known: NDArray[np.bool_], target_weight: float = 0.5) -> Graph:
    """The fuzzy intersection with another graph, whose rows are the ``known`` rows of this one in their order."""
    from scipy.sparse import csr_matrix

    rows = np.flatnonzero(known)
    wide = other.to_scipy().tocoo()
    right = csr_matrix((wide.data, (rows[wide.row], rows[wide.col])), shape=(graph.n, graph.n))
    matrix = graph.to_scipy().astype(np.float64)
    both = known[graph.heads()] & known[graph.indices]
    inside, outside = matrix.copy(), matrix.copy()
    inside.data = np.where(both, matrix.data, 0.0)
    outside.data = np.where(both, 0.0, matrix.data * np.exp(-UNKNOWN_DISTANCE))
    inside.eliminate_zeros()
    met = intersect(inside, right, target_weight) if inside.nnz and right.nnz else inside
    return restore_connectivity(graph.with_weights(met.tocsr() + outside))


@dataclass(frozen=True)
class Supervision:
    """How ``y`` is compared, and how much it counts."""

    metric: Any = "categorical"
    metric_kwds: dict[str, Any] = field(default_factory=dict)
    weight: float = 0.5
    n_neighbors: int = 15
    seed: int = 0
    n_jobs: int = -1

    def check(self, y: Any, n: int) -> NDArray[Any]:
        """``y`` as labels [n] or numbers [n, columns], or an error that names it."""
        values = np.asarray(y)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values.reshape(-1)
        if values.shape[:1] != (n,) or values.ndim > 2:
            raise ValueError(f"y must have {n} rows as X has, got shape {np.shape(y)}")
        if self.metric == "categorical" and values.ndim != 1:
            raise ValueError(f"y must hold one label a row for target_metric='categorical', got shape {np.shape(y)}")
        if self.metric == "categorical" and values.dtype.kind not in "fc":
            return values
        try:
            numbers = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must hold numbers for target_metric={self.metric!r}: {error}") from error
        infinite = np.isinf(numbers.reshape(n, -1)).any(axis=1)
        if infinite.any():
            raise ValueError(f"y contains infinity, first in row {int(np.argmax(infinite))}")
        if self.metric == "ordinal" and numbers.ndim != 1:
            raise ValueError(f"y must hold one level a row for target_metric='ordinal', got shape {np.shape(y)}")
        if self.metric not in ("categorical", "ordinal"):
            check_metric(self.metric, self.metric_kwds, numbers.reshape(n, -1).shape[1])
        return numbers

    def apply(self, graph: Graph, y: NDArray[Any]) -> Graph:
        """The graph intersected with the checked ``y``."""
        if self.metric == "categorical":
            return intersect_labels(graph, y, self.weight)
        if self.metric == "ordinal":
            return intersect_levels(graph, y, self.weight)
        numbers = y.reshape(graph.n, -1)
        known = np.isfinite(numbers).all(axis=1)
        rows = np.ascontiguousarray(numbers[known], dtype=np.float32)
        if len(rows) < 2:
            return graph
        index = NeighborIndex(rows, self.metric, metric_kwds=self.metric_kwds, seed=self.seed, n_jobs=self.n_jobs)
        other = fuzzy_graph(index.search(min(self.n_neighbors, len(rows))), n_jobs=self.n_jobs)
        return intersect_graphs(graph, other, known, self.weight)


def class_codes(labels: NDArray[Any]) -> NDArray[np.int64]:
    """A number for each class; -1 for rows without one."""
    labels = np.asarray(labels).reshape(-1)
    if labels.dtype.kind == "O":
        numbers: dict[Any, int] = {}
        return np.array([class_code(label, numbers) for label in labels], dtype=np.int64)
    _, codes = np.unique(labels, return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64)
    if labels.dtype.kind in "iuf":
        codes[(labels == UNLABELLED) | (labels != labels)] = UNLABELLED
    return codes


def class_code(label: Any, numbers: dict[Any, int]) -> int:
    """The number of a class, a new one if ``numbers`` does not have it; -1 for a row without one."""
    if label is None or label != label or label == UNLABELLED:
        return UNLABELLED
    return numbers.setdefault(label, len(numbers))
