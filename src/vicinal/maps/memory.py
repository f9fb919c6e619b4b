"""How much memory a fit takes, before it takes any.

Every part of a fit says here what it holds from then on and what it needs meanwhile, from the arrays that the code
allocates (named in the comments), and a :class:`Ledger` keeps the largest sum. Figures are bytes beyond the input,
which is not copied if it is C-contiguous float32. How many edges a graph has depends on the data: ``EDGES`` times the
entries of the neighbour table, between 1 and 2, is what images, text vectors and digits come to.

Measured against the peak of the resident memory, Fashion-MNIST in fresh processes (benchmarks/memory_estimate.py),
estimate over measurement at 10,000, 35,000 and 70,000 rows: UMAP 0.91, 0.96, 0.96; densMAP 0.97, -, 1.01; t-SNE 0.88,
0.92, 1.06; LargeVis 1.00, 0.94, 0.99; progressive UMAP 0.99, 0.99, 1.02.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal.maps.growing_map import MOST_LAYOUTS, SLICE
from vicinal.neighbors.index import LONG_TABLE, SKETCH_WIDTH, SearchOptions, compares_all
from vicinal.neighbors.metrics import ALIASES, METRICS, PRECOMPUTED
from vicinal.neighbors.online import OnlineOptions

EDGES = 1.6
SEEN = 32  # hashes of the rows, sorted, their order, and who is first: 8 bytes each (seen_rows.py)
SPLIT_COLUMNS, LEAF_ROWS = 32, 48  # of the trees of an online search (search_space.hpp, online_task.hpp)
GRID = 3e7  # t-SNE's grid: the kernel's transform and that of the density, as wide as maps usually are
BLAS = 3.5e7  # OpenBLAS' own buffers, of large products
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


class Ledger:
    """Bytes held, and the most there ever were."""

    def __init__(self) -> None:
        self.held = self.peak = 0.0

    def keep(self, amount: float) -> None:
        """For good."""
        self.held += amount
        self.use(0.0)

    def use(self, amount: float) -> None:
        """For a while."""
        self.peak = max(self.peak, self.held + amount)


@dataclass(frozen=True)
class Table:
    """The shape of the input: ``stored`` entries if it is sparse, ``copied`` if it has to be converted."""

    n: int
    d: int
    stored: int | None = None
    copied: bool = False

    @property
    def values(self) -> int:
        return self.n * self.d if self.stored is None else self.stored

    @staticmethod
    def of(X: Any) -> Table | None:
        """The shape of what was passed to ``fit``; None if that is not known without converting it."""
        shape = getattr(X, "shape", None)
        if shape is None or len(shape) != 2:
            return None
        stored = int(X.nnz) if hasattr(X, "nnz") else None
        values = getattr(X, "data", X) if stored is not None else X
        plain = getattr(values, "dtype", None) == np.float32 and (stored is not None or X.flags.c_contiguous)
        return Table(int(shape[0]), int(shape[1]), stored, not plain)


def estimate_memory(
    n: int, d: int, *, estimator: str = "UMAP", nnz: int | None = None, dtype: Any = np.float32, **params: Any
) -> int:
    """Bytes that a fit of ``n`` rows of ``d`` columns takes at its peak, beyond the input itself.

    ``estimator`` is the name of a class ("UMAP", "DensMAP", "TSNE", "LargeVis", "KNeighborsTransformer", ...) and
    ``params`` are its parameters; ``nnz`` is the number of stored entries of sparse rows; input of another ``dtype``
    than float32 is converted, which takes a copy.
    """
    import vicinal

    for name, value in (("n", n), ("d", d)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    known = sorted(name for name, home in vicinal._HOME.items() if home.startswith("estimators."))
    if estimator not in known:
        raise ValueError(f"estimator must be one of {known}, got {estimator!r}")
    model = getattr(vicinal, estimator)(**params)
    ledger = Ledger()
    add_fit(ledger, model, Table(int(n), int(d), nnz, np.dtype(dtype) != np.float32))
    return int(ledger.peak)


def add_fit(ledger: Ledger, model: Any, table: Table) -> None:
    """A fit of ``model``, whose ``_add_memory`` puts its parts together."""
    if table.copied:
        ledger.keep(4 * table.values)
    model._add_memory(ledger, table)


def check_limit(model: Any, *tables: Table, models: Sequence[Any] = ()) -> None:
    """Raises MemoryError if a fit, or that of ``models``, one for each table, would take more than ``memory_limit``."""
    ledger = Ledger()
    for one, table in zip(models or [model], tables, strict=True):
        add_fit(ledger, one, table)
    if ledger.peak > bytes_of(model.memory_limit):
        rows = sum(table.n for table in tables)
        raise MemoryError(
            f"fitting {type(model).__name__} to {rows} rows of {tables[0].d} columns takes about "
            f"{readable(ledger.peak)}, more than memory_limit={model.memory_limit!r}"
        )


def bytes_of(size: Any) -> float:
    """A number of bytes, or a text such as "500 MB", "2GB" or "1.5 GiB"."""
    if not isinstance(size, str):
        return float(size)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", size.lower())
    if found is None or (found[3] and not found[2]):
        raise ValueError(f"{size!r} is no size")
    return float(found[1]) * (BINARY if found[3] else UNITS)[found[2]]


def readable(size: float) -> str:
    unit = next(name for name in ("T", "G", "M", "k") if size >= UNITS[name.lower()] or name == "k")
    return f"{size / UNITS[unit.lower()]:.2g} {unit}B"


class ByteSize:
    """A constraint on parameters: a positive number of bytes, or a text that says one."""

    def allows(self, value: Any) -> bool:
        try:
            return not isinstance(value, bool | np.bool_) and 0 < bytes_of(value) < float("inf")
        except (TypeError, ValueError):
            return False

    def __str__(self) -> str:
        return "a number of bytes or a text such as '2GB'"


def add_search(ledger: Ledger, table: Table, k: int, *, metric: Any = "euclidean", approximate: bool = False) -> None:
    """Rows made searchable, and the k nearest of each."""
    n, d = table.n, table.d
    k = min(k, n)
    result = 8.0 * n * k  # index, distance
    ledger.keep(SEEN * n)
    if metric == PRECOMPUTED:
        ledger.use(3 * result + 16.0 * 1024 * d)
    elif table.stored is not None:
        ledger.keep(12.0 * table.stored + 8.0 * (n + d))  # listed by column
        ledger.use(2 * result)
    else:
        wide = d > SKETCH_WIDTH
        if isinstance(metric, str) and METRICS[ALIASES.get(metric, metric)].prepare is not None:
            ledger.keep(4.0 * n * d)
        ledger.keep(4.0 * n * (SKETCH_WIDTH + 1 if wide else _padded(d)))
        if wide:
            ledger.use(_sample(n, d))
        if approximate or not compares_all(n, d, k):
            options = SearchOptions() if k <= LONG_TABLE else SearchOptions().looser()
            options = options.for_rows(n)
            sought = min(k - 1 + max(options.spare, k // 3), n - 1)
            ledger.keep(4.0 * n * options.trees + 24.0 * n * options.trees / options.leaf_rows)
            heaps = 2 * _heap(options.candidates) + _heap(sought) + (_heap(k - 1) if wide else 0.0)
        else:
            heaps = _heap(k - 1)
        ledger.use(n * heaps + result)
    ledger.keep(result)


def add_online_search(ledger: Ledger, table: Table, k: int, metric: str) -> None:
    """Rows that keep coming, with their sketches, lists and trees (online_neighbors.hpp)."""
    n, d, options = table.n, table.d, OnlineOptions()
    ledger.keep(4.0 * n * d * (1 + (METRICS[ALIASES.get(metric, metric)].prepare is not None)))
    ledger.keep(4.0 * n * (SKETCH_WIDTH if d > SKETCH_WIDTH else _padded(d)))
    # Batches on their way in, and samples: many small pieces, which the allocator keeps.
    ledger.keep(12.0 * min(n, 1000) * d + (2 * _sample(n, d) if d > SKETCH_WIDTH else 0.0))
    # Leaves are two thirds full, and as many nodes lie above them; a row has its number in a leaf of each tree.
    node = 16.0 + 4.0 * SPLIT_COLUMNS
    ledger.keep(n * (_heap(k - 1 + options.spare) + 6.0 + options.trees * 1.5 * (4.0 + 2.0 * node / LEAF_ROWS)))


def add_growing_map(ledger: Ledger, n: int, k: int, n_components: int) -> None:
    """Lists in both directions and columns of a map that grows, then the layouts of its slices (growing_map.py)."""
    ledger.keep(n * (8.0 * k + 24.0 + 6.0 * k + 28.0 + 4.0 * n_components))
    rows = min(n, SLICE)
    slices = min(MOST_LAYOUTS + 1, -(-n // SLICE))
    edges = EDGES * max(k - 1, 1)
    ledger.use(slices * (8.0 * n * n_components + rows * (12.0 * edges + 12.0)) + rows * 90.0 * edges)


def add_graph(ledger: Ledger, n: int, k: int, *, normalised: bool = False) -> float:
    """The symmetric graph of a neighbour table; returns its number of edges."""
    edges = n * min(EDGES * max(k - 1, 1), n - 1)
    # memberships, then edges forward and backward, sorted (symmetrize.hpp), then the graph
    ledger.use(n * (4.0 * k + 16.0 * k + 40.0) + 8.0 * edges)
    ledger.keep(24.0 * n + 8.0 * edges)
    if normalised:
        ledger.use(12.0 * edges)
    return edges


def add_start(ledger: Ledger, init: Any, table: Table, n_components: int, edges: float) -> None:
    """Where the rows start."""
    n, d = table.n, table.d
    if isinstance(init, str) and init == "pca":
        ledger.use(3 * 8.0 * min(n, 4096) * d + 3 * 8.0 * d * d + 24.0 * n * n_components + min(BLAS, 16.0 * n * d))
    elif isinstance(init, str) and init != "random":
        width = -(-(n_components + 4) // 8) * 8  # spectral.py: a block of vectors, in float64 and float32
        ledger.use(max(30.0 * edges, 4.0 * edges + 56.0 * n * width))
    ledger.keep(4.0 * n * n_components)


def add_layout(ledger: Ledger, n: int, n_components: int, edges: float) -> None:
    """Edges with rate and phase, two buffers of places (layout.hpp), and the map."""
    ledger.keep(12.0 * edges + n * (8.0 + 12.0 * n_components))


def add_density(ledger: Ledger, n: int, k: int, edges: float) -> None:
    """densMAP: distances of the edges, then the map's own neighbours, graph and radii (density.py)."""
    ledger.keep(4.0 * edges + 24.0 * n)
    ledger.use(24.0 * n * k + 24.0 * n + 46.0 * edges)


def add_full_layout(ledger: Ledger, n: int, n_components: int, edges: float) -> None:
    """t-SNE's padded edges and its state (full_layout.hpp), then the divergence of the map (losses.kl_divergence)."""
    ledger.keep(8.0 * (edges + 8.0 * n) + n * (12.0 + 36.0 * n_components) + GRID)
    ledger.use(22.0 * edges)


def _sample(n: int, d: int) -> float:
    """The rows that a sketch is fitted to, and theirs (sketch.hpp)."""
    return 4.0 * min(n, 2048, max(256, (1 << 22) // d)) * (d + SKETCH_WIDTH)


def _heap(k: float) -> float:
    """Bytes a row of a heap of k entries (neighbor_heap.hpp)."""
    return 8.0 * _padded(k) + 5.0


def _padded(k: float) -> float:
    return -(-max(int(k), 1) // 16) * 16
