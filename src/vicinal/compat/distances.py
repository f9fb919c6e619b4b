"""umap-learn's ``umap.distances``: its named distances as functions of two vectors.

A distance is a string that can be called. As ``metric`` or ``output_metric`` it works like the name of the metric, at
the same speed. Values are computed in float32 by the code of the search and of the layout.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.graph.supervision import edit_distances
from vicinal.layout.forces import OUTPUT_METRICS, output_space
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import ALIASES, KEYWORD_ALIASES, METRICS, canonical_metric, is_packed

Floats = NDArray[np.float64]


class NamedDistance(str):
    """The name of a metric, which can be called with two vectors and the values of the metric's keywords."""

    __slots__ = ()

    def __call__(self, x: ArrayLike, y: ArrayLike, *values: Any, **keywords: Any) -> float:
        """Return the distance of ``x`` and ``y``."""
        pair = np.stack([x, y]).astype(np.uint8 if is_packed(str(self)) else np.float32)
        given = given_keywords(METRICS[canonical_metric(self)].keywords, values, keywords, pair.shape[1])
        return float(NeighborIndex(pair[1:], str(self), metric_kwds=given).distances(pair[:1])[0, 0])


class NamedGradient(str):
    """The name of an output metric, which can be called with two vectors."""

    __slots__ = ()

    def __call__(self, x: ArrayLike, y: ArrayLike, *values: Any, **keywords: Any) -> tuple[float, NDArray[np.float32]]:
        """Return the distance of ``x`` and ``y`` and its gradient with respect to ``x``."""
        pair = np.stack([np.asarray(x, dtype=np.float32), np.asarray(y, dtype=np.float32)])
        accepted = METRICS[canonical_metric(self)].keywords if self in (*METRICS, *ALIASES) else ()
        space = output_space(str(self), given_keywords(accepted, values, keywords, pair.shape[1]), pair.shape[1])
        distance, gradient = space.evaluate(pair[:1], pair[1:])
        return float(distance[0]), gradient[0]


def given_keywords(accepted: tuple[str, ...], values: Any, keywords: dict[str, Any], columns: int) -> dict[str, Any]:
    """Return all keywords by name, also those given by position; by default all columns have equal weights."""
    given = dict(zip(accepted, values, strict=False)) | {KEYWORD_ALIASES.get(k, k): v for k, v in keywords.items()}
    neutral = {"V": np.ones(columns), "w": np.ones(columns), "VI": np.eye(columns)}
    return {name: value for name, value in neutral.items() if name in accepted} | given


def levenshtein(x: str, y: str, normalization: float = 1.0, max_distance: float = 20) -> float:
    """Return the edit distance of two texts, at most ``max_distance``, divided by ``normalization``."""
    edits = edit_distances([x, y], np.array([0]), np.array([1]))[0]
    return float(min(float(edits), float(max_distance)) / normalization)


levenshtein_myers_ascii = levenshtein


def pairwise_special_metric(
    X: ArrayLike, Y: ArrayLike | None = None, metric: Any = "hellinger", kwds: dict[str, Any] | None = None
) -> Floats:
    """Return the distances of all rows of ``X`` to all rows of ``Y``, or to each other."""
    index = NeighborIndex(X if Y is None else Y, metric, metric_kwds=kwds)
    return index.distances(X).astype(np.float64)


named_distances = {name: NamedDistance(name) for name in (*METRICS, *ALIASES)}
named_distances_with_gradients = {name: NamedGradient(name) for name in OUTPUT_METRICS}

# umap-learn's function names, where they differ from the names of the metrics.
SPELLINGS = {
    "bray_curtis": "braycurtis",
    "rogers_tanimoto": "rogerstanimoto",
    "sokal_michener": "sokalmichener",
    "sokal_sneath": "sokalsneath",
}
_FUNCTIONS: dict[str, Any] = {
    **named_distances,
    **{f"{name}_grad": function for name, function in named_distances_with_gradients.items()},
    **{name: named_distances[metric] for name, metric in SPELLINGS.items()},
    "bray_curtis_grad": named_distances_with_gradients["braycurtis"],
    "standardised_euclidean_grad": named_distances_with_gradients["seuclidean"],
    "weighted_minkowski_grad": named_distances_with_gradients["wminkowski"],
}
globals().update(_FUNCTIONS)

__all__ = [
    *sorted(_FUNCTIONS),
    "levenshtein",
    "levenshtein_myers_ascii",
    "named_distances",
    "named_distances_with_gradients",
    "pairwise_special_metric",
]
