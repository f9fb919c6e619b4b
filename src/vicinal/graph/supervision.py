"""Supervision: the graph is intersected with labels, which weakens edges between different rows (survey section 2.5).

Edges between different classes are multiplied by a constant, edges between ordered levels, counts or texts by a factor
that falls with their difference, and numbers are compared by a fuzzy graph of their own neighbors. A row is unlabeled
if its class is -1, NaN or None, its text None, or any of its numbers NaN; its edges are all multiplied by exp(-1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.graph.graph import Graph
from vicinal.graph.set_operations import intersect, reset_connectivity
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import ALIASES, METRICS, check_metric
from vicinal.runtime.inputs import as_array, is_missing

Floats = NDArray[np.float64]

TABLED_COUNTS = 32  # smaller counts are summed up, for larger ones the expansion below has an error under 1e-9
ZETA_PRIME = -0.1654211437004509  # the derivative of Riemann's zeta function at -1
BLOCK_CELLS = 1 << 22  # cells of the tables of edit distances that are computed at a time, which bounds the memory


def count_levels(counts: Floats, mean: float | None = None) -> Floats:
    """Return a level for each count m, so that differences of levels are umap-learn's distances of counts.

    The level is the sum over k < m of -log P(k), where P is the Poisson distribution with the mean of the counts: a
    step between rare counts is long. With the mean t it is

        m t - log(t) m (m - 1) / 2 + sum over k < m of log(k!)

    and the last sum is the logarithm of Barnes' G function at m + 1.
    """
    known = np.isfinite(counts)
    if mean is None:
        mean = float(counts[known].mean()) if known.any() else 0.0
    mean = mean if mean > 0 else 1.0
    levels = np.full(len(counts), np.nan)
    m = counts[known]
    levels[known] = m * mean - np.log(mean) * m * (m - 1) / 2 + _log_barnes(m)
    return levels


def _log_barnes(m: Floats) -> Floats:
    """Return log G(m + 1) of whole numbers."""
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, TABLED_COUNTS)))])
    table = np.concatenate([[0.0], np.cumsum(factorials)])
    z = np.maximum(m, TABLED_COUNTS)
    log = np.log(z)
    square = z * z
    large = square * (log / 2 - 0.75) + z * np.log(2 * np.pi) / 2 - log / 12 + ZETA_PRIME - 1 / (240 * square)
    return np.where(m < TABLED_COUNTS, table[np.minimum(m, TABLED_COUNTS).astype(np.int64)], large)


def edit_distances(texts: Sequence[str], first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the edit (Levenshtein) distances of pairs of texts, which are given by their numbers."""
    length = np.array([len(text) for text in texts], dtype=np.int32)
    width = int(length.max(initial=0))
    letters = np.zeros((len(texts), width), dtype=np.uint32)
    for row, text in zip(letters, texts, strict=True):
        row[: len(text)] = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    found = np.empty(len(first), dtype=np.int32)
    step = max(1, BLOCK_CELLS // (width + 1))
    for begin in range(0, len(first), step):
        block = slice(begin, begin + step)
        one, other = first[block], second[block]
        found[block] = _edits(letters[one], length[one], letters[other], length[other])
    return found


def _edits(
    one: NDArray[np.uint32], one_length: NDArray[np.int32], other: NDArray[np.uint32], other_length: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the edit distances of rows of letters.

    ``row[p, j]`` is the distance of the first i letters of one text of pair p and the first j of the other one.
    Insertions are a running minimum along j.
    """
    place = np.arange(other.shape[1] + 1, dtype=np.int32)
    row = np.repeat(place[None], len(one), axis=0)
    found = other_length.copy()
    pairs = np.arange(len(one))
    for i in range(int(one_length.max(initial=0))):
        reached = row + 1
        np.minimum(reached[:, 1:], row[:, :-1] + (one[:, i, None] != other), out=reached[:, 1:])
        row = np.minimum.accumulate(reached - place, axis=1) + place
        ended = one_length == i + 1
        found[ended] = row[pairs[ended], other_length[ended]]
    return found


UNLABELED = -1
UNKNOWN_DISTANCE = 1.0  # an edge of an unlabeled row keeps exp(-1) of its weight
FULL_RANGE = 2.0  # the distance of the lowest and the highest level, in units of that of two classes, as in umap-learn
TEXT_SHARE = 3.0  # texts are as different as two classes if the edits are this part of the longest text, as there


def far_distance(target_weight: float) -> float:
    """Return the distance between two classes: 2.5 for weight 0, unbounded for weight 1, as in umap-learn."""
    return 2.5 / (1.0 - target_weight) if target_weight < 1.0 else 1e12


def intersect_labels(graph: Graph, labels: NDArray[Any], target_weight: float = 0.5) -> Graph:
    """Intersect the graph with the relation "same class"; rows with the label -1 are unlabeled."""
    far = far_distance(target_weight)
    return _weakened(graph, class_factors(graph.heads(), graph.indices, labels, UNKNOWN_DISTANCE, far))


def _weakened(graph: Graph, factors: NDArray[np.float64]) -> Graph:
    """Multiply every edge by its factor, and restore the connectivity."""
    matrix = graph.to_scipy().astype(np.float64)
    matrix.data = matrix.data * factors
    return restore_connectivity(graph.with_weights(matrix))


def restore_connectivity(graph: Graph) -> Graph:
    """Scale the strongest edge of every row to 1, then return the fuzzy union with the transpose."""
    return graph.with_weights(reset_connectivity(graph.to_scipy()))


def class_factors(
    heads: NDArray[np.int32], tails: NDArray[np.int32], labels: NDArray[Any], unknown: float, far: float
) -> NDArray[np.float64]:
    """Return the factor of each edge: 1 within a class, exp(-far) between two, exp(-unknown) if a row is unlabeled."""
    codes = class_codes(labels)
    return code_factors(codes[heads], codes[tails], unknown, far)


def code_factors(heads: NDArray[np.int64], tails: NDArray[np.int64], unknown: float, far: float) -> NDArray[np.float64]:
    """Return the factors of :func:`class_factors` for class numbers, -1 for unlabeled."""
    unlabeled = (heads == UNLABELED) | (tails == UNLABELED)
    return np.where(unlabeled, np.exp(-unknown), np.where(heads == tails, 1.0, np.exp(-far)))


def intersect_levels(graph: Graph, levels: NDArray[np.float64], target_weight: float = 0.5) -> Graph:
    """Intersect the graph with the relation "similar level".

    The distance of two levels is their difference relative to half the range of all levels, times :func:`far_distance`.
    """
    known = np.isfinite(levels)
    heads, tails = graph.heads(), graph.indices
    width = float(np.ptp(levels[known])) if known.any() else 0.0
    apart = FULL_RANGE * np.abs(levels[heads] - levels[tails]) / (width or 1.0)
    return _intersect_distances(graph, apart, known, target_weight)


def intersect_texts(graph: Graph, texts: NDArray[Any], target_weight: float = 0.5) -> Graph:
    """Intersect the graph with the relation "similar text"; None marks a row without one.

    The distance of two texts is the number of edits, relative to a third of the longest text and at most 1, times
    :func:`far_distance`.
    """
    numbers: dict[Any, int] = {}
    codes = np.array([class_code(text, numbers) for text in texts.tolist()], dtype=np.int64)
    known, distinct = codes >= 0, len(numbers)
    heads, tails = codes[graph.heads()], codes[graph.indices]
    compared = (heads >= 0) & (tails >= 0)
    low, high = np.minimum(heads, tails)[compared], np.maximum(heads, tails)[compared]
    pairs, edge_pair = np.unique(low * distinct + high, return_inverse=True)
    apart = np.zeros(len(heads))
    if pairs.size:
        edits = edit_distances(list(numbers), pairs // distinct, pairs % distinct)
        most = max(1.0, max(map(len, numbers)) / TEXT_SHARE)
        apart[compared] = np.minimum(edits / most, 1.0)[edge_pair.reshape(-1)]
    return _intersect_distances(graph, apart, known, target_weight)


def _intersect_distances(
    graph: Graph, apart: NDArray[np.float64], known: NDArray[np.bool_], target_weight: float
) -> Graph:
    """Multiply every edge between two known rows by exp(-far_distance * apart)."""
    both = known[graph.heads()] & known[graph.indices]
    return _weakened(graph, np.exp(-np.where(both, far_distance(target_weight) * apart, UNKNOWN_DISTANCE)))


def intersect_graphs(graph: Graph, other: Graph, known: NDArray[np.bool_], target_weight: float = 0.5) -> Graph:
    """Intersect the graph with another graph, whose rows are the ``known`` rows of this one in the same order."""
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


# What a row holds, by the metrics that compare single values.
SINGLE = {"categorical": "label", "ordinal": "level", "count": "count", "string": "text"}


@dataclass(frozen=True)
class Supervision:
    """How the labels ``y`` are compared, and their influence on the graph.

    Parameters
    ----------
    metric : str or callable, default "categorical"
        "categorical" for classes, "ordinal" for levels, "count" for whole numbers of at least 0, "string" for texts, or
        any metric of the neighbor search for numbers.
    metric_kwds : dict
        Arguments of the metric.
    weight : float, default 0.5
        Influence of the labels, from 0 to 1.
    n_neighbors : int, default 15
        Number of neighbors in the graph of numbers.
    seed : int, default 0
        Seed of the neighbor search.
    n_jobs : int, default -1
        Number of threads; -1 uses all.
    """

    metric: Any = "categorical"
    metric_kwds: dict[str, Any] = field(default_factory=dict)
    weight: float = 0.5
    n_neighbors: int = 15
    seed: int = 0
    n_jobs: int = -1

    def check(self, y: Any, n: int) -> NDArray[Any]:
        """Return ``y`` as labels of shape (n,) or numbers of shape (n, columns), or raise ValueError."""
        values = as_array(y, "y", text=True)
        if values.dtype.kind == "c":
            raise ValueError("y must hold labels or real numbers, got complex numbers")
        if values.ndim == 2 and values.shape[1] == 1:
            values = values.reshape(-1)
        if values.shape[:1] != (n,) or values.ndim > 2:
            raise ValueError(f"y must have {n} rows like X, got shape {np.shape(y)}")
        self._check_metric(values)
        if self.metric == "string":
            return values if values.dtype.kind == "U" else _checked_labels(values, texts=True)
        if self.metric == "categorical" and values.dtype.kind != "f":
            return _checked_labels(values, texts=False) if values.dtype.kind == "O" else values
        try:
            numbers = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must hold numbers for target_metric={self.metric!r}: {error}") from error
        infinite = np.isinf(numbers.reshape(n, -1)).any(axis=1)
        if infinite.any():
            raise ValueError(f"y contains infinity, first in row {int(np.argmax(infinite))}")
        if self.metric == "count":
            wrong = np.isfinite(numbers) & ((numbers < 0) | (numbers != np.floor(numbers)))
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(f"y must hold counts for target_metric='count', row {row} is {numbers[row]:g}")
        return numbers

    def _check_metric(self, values: NDArray[Any]) -> None:
        """Raise ValueError if the metric is unknown or does not apply to values of this shape."""
        if isinstance(self.metric, str) and self.metric in SINGLE:
            if values.ndim != 1:
                shape, what = values.shape, SINGLE[self.metric]
                raise ValueError(f"y must hold one {what} per row for target_metric={self.metric!r}, got shape {shape}")
            return
        if isinstance(self.metric, str) and self.metric not in (*METRICS, *ALIASES):
            names = ", ".join(map(repr, SINGLE))
            raise ValueError(f"target_metric must be one of {names} or a metric of rows, got {self.metric!r}")
        check_metric(self.metric, self.metric_kwds, values.reshape(len(values), -1).shape[1])

    def apply(self, graph: Graph, y: NDArray[Any]) -> Graph:
        """Return the graph intersected with ``y`` as returned by :meth:`check`."""
        if self.metric == "categorical":
            return intersect_labels(graph, y, self.weight)
        if self.metric in ("ordinal", "count"):
            return intersect_levels(graph, count_levels(y) if self.metric == "count" else y, self.weight)
        if self.metric == "string":
            return intersect_texts(graph, y, self.weight)
        numbers = y.reshape(graph.n, -1)
        known = np.isfinite(numbers).all(axis=1)
        rows = np.ascontiguousarray(numbers[known], dtype=np.float32)
        if len(rows) < 2:
            return graph
        index = NeighborIndex(rows, self.metric, metric_kwds=self.metric_kwds, seed=self.seed, n_jobs=self.n_jobs)
        other = fuzzy_graph(index.search(min(self.n_neighbors, len(rows))), n_jobs=self.n_jobs)
        return intersect_graphs(graph, other, known, self.weight)


def _checked_labels(labels: NDArray[Any], texts: bool) -> NDArray[Any]:
    """Return labels with None for missing ones; raise ValueError if one is not a text or cannot be compared."""
    found = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels.tolist()):
        found[i] = None if is_missing(label) else label
        if texts and not isinstance(found[i], str | None):
            raise ValueError(f"y must hold text for target_metric='string', row {i} is {label!r}")
        try:
            hash(label)
        except TypeError as error:
            what = f"{type(label).__name__} {label!r}"
            raise ValueError(f"y has a label that cannot be compared, {what}, first in row {i}") from error
    return found


def class_codes(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return the class number of each row, -1 for unlabeled rows."""
    labels = np.asarray(labels).reshape(-1)
    if labels.dtype.kind == "O":
        numbers: dict[Any, int] = {}
        return np.array([class_code(label, numbers) for label in labels], dtype=np.int64)
    _, codes = np.unique(labels, return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64)
    if labels.dtype.kind in "iuf":
        codes[(labels == UNLABELED) | (labels != labels)] = UNLABELED
    return codes


def class_code(label: Any, numbers: dict[Any, int]) -> int:
    """Return the number of a class, or -1 for unlabeled. Classes that are not in ``numbers`` are added to it."""
    if is_missing(label) or label == UNLABELED:
        return UNLABELED
    return numbers.setdefault(label, len(numbers))
