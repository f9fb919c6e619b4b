"""Nearest neighbours: of all rows (exact or approximate), and of unseen rows."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vicinal import _core

if TYPE_CHECKING:
    from vicinal.graph import Graph

Method = Literal["auto", "exact", "approximate"]

METRICS: tuple[str, ...] = tuple(_core.metrics())
ALIASES = {
    "l2": "euclidean",
    "l1": "manhattan",
    "taxicab": "manhattan",
    "cityblock": "manhattan",
    "linfinity": "chebyshev",
    "linfty": "chebyshev",
    "linf": "chebyshev",
}

# Every pair is compared while that is the faster way (measured, ARCHITECTURE.md): up to EXACT_ROWS always; for rows
# short enough that their sketch is the row itself, while n * (d + 16) <= EXACT_WORK.
EXACT_ROWS, EXACT_WORK, SKETCH_WIDTH = 6_000, 3_000_000, 128

# Trees whose leaves a search of unseen rows starts from: one finds 0.975 of the neighbours of Fashion-MNIST images,
# a second helps where clusters are far apart.
QUERY_TREES = 2

# Squares of float32 numbers beyond these overflow or vanish; such data is scaled by a power of two first.
LARGEST_SAFE, SMALLEST_SAFE, FARTHEST = 1e15, 1e-12, 1e17


@dataclass(frozen=True)
class SearchOptions:
    """How hard the approximate search tries.

    The defaults reach a recall of 0.973 on 70,000 images of 784 pixels in 3/4 of the time that pynndescent takes with
    its own defaults, and in half of what it takes as umap-learn calls it (benchmarks/RESULTS.md); ``fine=0.1`` buys
    0.985 for a third more time.
    """

    trees: int = 8
    leaf_rows: int = 96
    candidates: int = 16
    spare: int = 16
    rounds: int = 12
    coarse: float = 0.52
    fine: float = 0.35
    final: float = 0.02


@dataclass(frozen=True)
class Neighbors:
    """The ``k`` nearest rows of every row, itself first: sorted by (distance, index), -1 where there is none."""

    index: NDArray[np.int32]
    distance: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.index.ndim != 2 or self.index.shape != self.distance.shape:
            raise ValueError(
                f"index and distance must be 2-D and alike, got shapes {self.index.shape} and {self.distance.shape}"
            )
        object.__setattr__(self, "index", np.ascontiguousarray(self.index, dtype=np.int32))
        object.__setattr__(self, "distance", np.ascontiguousarray(self.distance, dtype=np.float32))

    @property
    def n(self) -> int:
        return int(self.index.shape[0])

    @property
    def k(self) -> int:
        return int(self.index.shape[1])

    def within(self, distance: float) -> Neighbors:
        """The same table without neighbours at or beyond ``distance``."""
        far = self.distance >= distance
        return Neighbors(np.where(far, -1, self.index), np.where(far, np.inf, self.distance).astype(np.float32))


class NeighborIndex:
    """Rows made searchable. A function of (rows, metric, seed) alone: it is rebuilt, not stored, when pickled."""

    def __init__(
        self,
        X: NDArray[np.float32],
        metric: str = "euclidean",
        *,
        seed: int = 0,
        n_jobs: int = -1,
        options: SearchOptions | None = None,
    ) -> None:
        self.X = X
        self.metric = canonical_metric(metric)
        self.seed = seed
        self.n_jobs = n_jobs
        self.options = options or SearchOptions()
        self.scale = _safe_scale(X, n_jobs)
        self.share = 1.0
        self._core: _core.NeighborIndex | None = None
        self._has_forest = False
        self._building = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__ | {"_core": None, "_has_forest": False}
        del state["_building"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._building = threading.Lock()

    def _built(self, forest: bool = False) -> _core.NeighborIndex:
        """The core's index, made when it is first needed, by one thread only; with a forest if asked for."""
        with self._building:
            if self._core is None:
                # A scale of 1 was chosen because the data is safe as it is: no need to look again.
                rows = self.X if self.scale == 1.0 else self._scaled(self.X)
                self._core = _core.NeighborIndex(rows, self.metric, self.seed, self.n_jobs)
            if forest and not self._has_forest:
                self._core.grow_forest(self.options.trees, self.options.leaf_rows, self.n_jobs)
                self._has_forest = True
            return self._core

    def _scaled(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """``X`` itself where that is safe; new rows may be far beyond the data the scale was chosen for."""
        if self.scale == 1.0 and _core.scan_rows(X, self.n_jobs)[0] <= FARTHEST:
            return X
        scaled = np.clip(X.astype(np.float64) * self.scale, -FARTHEST, FARTHEST)
        return np.ascontiguousarray(scaled, dtype=np.float32)

    def _unscaled(self, distance: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.scale == 1.0 or self.metric in ("cosine", "correlation"):
            return distance
        factor = self.scale**2 if self.metric == "sqeuclidean" else self.scale
        largest = np.finfo(np.float32).max
        return np.minimum(distance.astype(np.float64) / factor, largest).astype(np.float32)

    def search(self, k: int, method: Method = "auto") -> Neighbors:
        """The ``k`` nearest rows of every row, itself counted."""
        n, d = self.X.shape
        if not 1 <= k <= n:
            raise ValueError(f"n_neighbors must lie between 1 and the number of rows ({n}), got {k}")
        cheap = n <= EXACT_ROWS or (d <= SKETCH_WIDTH and n * (d + 16) <= EXACT_WORK)
        if method == "exact" or (method == "auto" and cheap) or k < 2 or n <= self.options.leaf_rows:
            index, distance = self._built().search_exact(k, self.n_jobs)
            return Neighbors(index, self._unscaled(distance))
        o = self.options
        index, distance, self.share = self._built(forest=True).search_approximate(
            k,
            o.trees,
            o.leaf_rows,
            min(max(o.candidates, k // 2), 64),
            max(o.spare, k // 2),
            o.rounds,
            o.coarse,
            o.fine,
            o.final,
            self.n_jobs,
        )
        return Neighbors(index, self._unscaled(distance))

    def query(self, Q: NDArray[np.float32], k: int, graph: Graph) -> Neighbors:
        """The ``k`` nearest rows of unseen rows, each found independently of the others in ``Q``.

        ``graph`` is the neighbour graph of the rows, along which the search proceeds.
        """
        n = self.X.shape[0]
        core = self._built(forest=n > EXACT_ROWS)
        pool = min(k + max(k // 5, 3), n)
        index, distance = core.query(
            self._scaled(Q), graph.indptr, graph.indices, k, pool, QUERY_TREES, self.share, self.n_jobs
        )
        return Neighbors(index, self._unscaled(distance))


def canonical_metric(metric: str) -> str:
    """The metric's name in the core's table."""
    name = ALIASES.get(metric, metric)
    if name not in METRICS:
        raise ValueError(f"metric must be one of {sorted({*METRICS, *ALIASES})}, got {metric!r}")
    return name


def _safe_scale(X: NDArray[np.float32], n_jobs: int) -> float:
    largest, _ = _core.scan_rows(X, n_jobs)
    if largest == 0.0 or SMALLEST_SAFE <= largest <= LARGEST_SAFE:
        return 1.0
    return float(2.0 ** -np.floor(np.log2(float(largest))))


def find_neighbors(
    X: NDArray[Any],
    n_neighbors: int = 15,
    *,
    metric: str = "euclidean",
    method: Method = "auto",
    seed: int = 0,
    n_jobs: int = -1,
) -> Neighbors:
    """The ``n_neighbors`` nearest rows of every row of ``X``, itself first.

    ``method='auto'`` compares every pair when that is the faster way. The result has the same bits for any
    ``n_jobs``.
    """
    rows = np.require(X, dtype=np.float32, requirements=["C", "A"])
    if rows.ndim != 2:
        raise ValueError(f"X must be 2-D, got {rows.ndim} dimensions")
    if method not in ("auto", "exact", "approximate"):
        raise ValueError(f"method must be 'auto', 'exact' or 'approximate', got {method!r}")
    _, bad = _core.scan_rows(rows, n_jobs)
    if bad >= 0:
        raise ValueError(f"X contains NaN or infinity, first in row {bad}")
    return NeighborIndex(rows, metric, seed=seed, n_jobs=n_jobs).search(n_neighbors, method)
