"""Maps of several fitted maps of the same rows, joined by fuzzy set operations.

Each part sees the rows in its own way (other columns, another metric); their graphs are joined and laid out once more.
A composed map can be composed again. A new row is given as each part expects it, for ``(a * b) + c`` as
``((rows_a, rows_b), rows_c)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.graph.set_operations import (
    intersect,
    missing_weights,
    reset_connectivity,
    reset_rows,
    unite,
    with_exact_ends,
)
from vicinal.layout.schedule import default_epochs
from vicinal.neighbors.training_data import recognize
from vicinal.pipeline.fit import ArrayExecutor, fit
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.place import memberships, settle, warn_of_isolated
from vicinal.pipeline.recipe import EdgeTotals, Plan, Refused
from vicinal.pipeline.row_options import Selection, pushing_weights
from vicinal.runtime.cached import cached

Missing = tuple[float, float]

OPERATIONS = ("intersection", "union", "difference")
# umap-learn keeps the weights of edges that do not fire if it runs no more epochs than this.
FEW_EPOCHS = 10
HASH_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class ComposedMap:
    """The map of two maps.

    ``graph`` and ``embedding`` cover the rows that the parts laid out. ``missing`` are the weights that stand for edges
    which only one part has.
    """

    left: FittedMap | ComposedMap
    right: FittedMap | ComposedMap
    operation: str
    missing: Missing
    graph: Graph
    embedding: NDArray[np.float32]
    init_used: str = ""

    @property
    def plan(self) -> Plan:
        """The plan of the leftmost part, which is that of the composed layout."""
        return leftmost(self).recipe.plan

    @cached
    def first(self) -> NDArray[np.int64]:
        """For every row the first one that equals it in both parts."""
        return _first_equal(first_rows(self.left), first_rows(self.right))

    @cached
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers that stand for the pairs of first equal rows in the parts, ascending, and the first row of each."""
        return np.unique(_pair_numbers(first_rows(self.left), first_rows(self.right)), return_index=True)

    @cached
    def places(self) -> NDArray[np.float32]:
        """The places of all rows of the fit; rows that were not laid out are placed as new rows are."""
        if leftmost(self).laid_out is not None:
            return place_composed(self, training_rows(self))
        return leftmost(self).recipe.shown(self.embedding, self.graph.isolated())

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together: a model file may hold anything."""
        if self.operation not in OPERATIONS:
            raise ValueError(f"operation must be one of {sorted(OPERATIONS)}, got {self.operation!r}")
        n = count_rows(self)
        if not count_rows(self.left) == count_rows(self.right) == n == self.graph.n == self.graph.n_tails:
            raise ValueError("the parts of a composed map have different numbers of rows")
        components = leftmost(self).recipe.n_components
        if self.embedding.dtype != np.float32 or self.embedding.shape != (n, components):
            raise ValueError(f"embedding has no places for the {n} rows")


class ComposedExecutor(ArrayExecutor):
    """A fit of two maps of the same rows: their graphs are joined, and the result is laid out as the left one was."""

    def __init__(self, left: FittedMap | ComposedMap, right: FittedMap | ComposedMap, operation: str) -> None:
        base = leftmost(left)
        recipe = replace(base.recipe, density=None, record_loss=False, output="embedding")
        super().__init__(base.searched, recipe, seed=base.seed)
        self.left, self.right, self.operation = left, right, operation

    def check(self) -> None:
        left, right = self.left.graph.n, self.right.graph.n
        if left != right:
            raise ValueError(f"only models of the same rows can be composed, got one of {left} rows and one of {right}")
        if not _lay_out_same_rows(self.left, self.right):
            raise ValueError(
                "only models of the same rows can be composed, but unique=True or weights of 0 make these models lay "
                "out different rows"
            )
        if not self.recipe.plan.can_update:
            raise Refused("only maps of the sampled layout can be composed")
        self.selection = Selection(None, _first_equal(first_rows(self.left), first_rows(self.right)), self.options)
        self.rows = self.data

    def search(self) -> None:
        """The parts have found their neighbors."""

    def relate(self) -> None:
        """The parts have cut theirs."""

    def build_graph(self) -> None:
        p, q = _clear_weights(self.left), _clear_weights(self.right)
        self.missing = missing_weights(p, q, self.operation)
        joined = reset_connectivity(_joined(p, q, self.operation, self.missing), _resets_metric(self.operation))
        self.graph = self.search_graph = leftmost(self.left).search_graph.with_weights(joined)

    def supervise(self) -> None:
        # Labels acted in the graphs of the parts.
        warn_of_isolated(self.graph.isolated(), math.inf)

    def start(self) -> None:
        # Rows of two parts have no common coordinates: only the graph decides.
        self.started, self.init_used = self.recipe.start(self.graph, None, self.seed)

    def report(self) -> ComposedMap:
        assert self.finished is not None
        return ComposedMap(
            self.left, self.right, self.operation, self.missing, self.graph, self.finished, self.init_used
        )


def compose(left: FittedMap | ComposedMap, right: FittedMap | ComposedMap, operation: str) -> ComposedMap:
    """Join two maps of the same rows; ``operation`` is "intersection", "union" or "difference"."""
    composed: ComposedMap = fit(ComposedExecutor(left, right, operation))
    return composed


def place_composed(composed: ComposedMap, rows: Any) -> NDArray[np.float32]:
    """Return the places of ``rows``, a pair: as the left part expects them, and as the right one does."""
    known, keys = _recognize(composed, rows)
    places: NDArray[np.float32] = composed.embedding[np.maximum(known, 0)]
    new = np.flatnonzero(known < 0)
    if new.size:
        graph, isolated = _memberships(composed, take_rows(rows, new)), composed.graph.isolated()
        n_jobs, weights = leftmost(composed).data.n_jobs, pushing_weights(None, isolated)
        there = composed.embedding
        placed = settle(composed.plan, graph, there, isolated, keys[new], math.inf, weights=weights, n_jobs=n_jobs)
        places[new] = placed
    away = np.where(known < 0, False, composed.graph.isolated()[np.maximum(known, 0)])
    if new.size:
        away[new] = graph.isolated()
    return leftmost(composed).recipe.shown(places, away)


def leftmost(fitted: FittedMap | ComposedMap) -> FittedMap:
    """Return the leftmost part that is not composed."""
    return leftmost(fitted.left) if isinstance(fitted, ComposedMap) else fitted


def training_rows(fitted: FittedMap | ComposedMap) -> Any:
    """Return the rows of the fit, of a composed map as a pair."""
    if isinstance(fitted, ComposedMap):
        return training_rows(fitted.left), training_rows(fitted.right)
    return fitted.data.rows


def first_rows(fitted: FittedMap | ComposedMap) -> NDArray[np.int64]:
    """Return for every row of the graph the first row that equals it."""
    return fitted.first if isinstance(fitted, ComposedMap) else fitted.searched.duplicates.first


def count_rows(fitted: FittedMap | ComposedMap) -> int:
    """Return the number of rows of the map's graph."""
    return fitted.graph.n


def take_rows(rows: Any, which: NDArray[np.int64]) -> Any:
    """Return some rows of a matrix, or of each part of a pair."""
    return tuple(take_rows(part, which) for part in rows) if isinstance(rows, tuple) else rows[which]


def _lay_out_same_rows(left: FittedMap | ComposedMap, right: FittedMap | ComposedMap) -> bool:
    one, other = leftmost(left), leftmost(right)
    if one.laid_out is None or other.laid_out is None:
        return one.laid_out is other.laid_out
    return one.data.n == other.data.n and np.array_equal(one.laid_out, other.laid_out)


def _pair_numbers(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    return left * len(left) + right


def _first_equal(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    _, first, inverse = np.unique(_pair_numbers(left, right), return_index=True, return_inverse=True)
    return np.asarray(first[inverse.reshape(-1)], dtype=np.int64)


def _recognize(fitted: FittedMap | ComposedMap, rows: Any) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Find rows that all parts know as equal to one of theirs; also return content hashes."""
    if isinstance(fitted, FittedMap):
        return recognize(fitted.searched, rows)
    left, left_keys = _recognize(fitted.left, rows[0])
    right, right_keys = _recognize(fitted.right, rows[1])
    return _known_pair(fitted, left, right), left_keys * HASH_MIX ^ right_keys


def _known_pair(fitted: ComposedMap, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first row that equals row ``left`` of the left part and row ``right`` of the right one, or -1."""
    pairs, rows = fitted.pairs
    n = count_rows(fitted)
    wanted = np.where((left >= 0) & (right >= 0), left * n + right, -1)
    at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    return np.where(pairs[at] == wanted, rows[at], -1)


def _memberships(fitted: FittedMap | ComposedMap, rows: Any) -> Graph:
    if isinstance(fitted, FittedMap):
        return memberships(fitted, rows)
    left, right = _memberships(fitted.left, rows[0]), _memberships(fitted.right, rows[1])
    joined = _joined(left.to_scipy(), right.to_scipy(), fitted.operation, fitted.missing)
    return left.with_weights(reset_rows(joined, _resets_metric(fitted.operation)))


def _joined(p: Any, q: Any, operation: str, missing: Missing) -> Any:
    """Join two matrices of weights; ``missing`` are the weights of edges that only the other one has."""
    if operation == "union":
        return unite(p, q, missing=missing)
    return intersect(p, q, right_complement=operation == "difference", missing=missing)


def _resets_metric(operation: str) -> bool:
    """Whether the memberships of a row are scaled to the sum of a row with 15 neighbors."""
    return operation != "difference"


def _clear_weights(fitted: FittedMap | ComposedMap) -> Any:
    """Return the weights of a map's graph, with those near 0 and 1 rounded."""
    edges = EdgeTotals.of(fitted.graph)
    plan = fitted.plan if isinstance(fitted, ComposedMap) else fitted.recipe.plan
    n_epochs = plan.epoch_stops(edges)[-1]
    return with_exact_ends(fitted.graph.to_scipy(), n_epochs if n_epochs > FEW_EPOCHS else default_epochs(edges.n))
