"""How much memory the stages of a fit take."""

from __future__ import annotations

from typing import Any

from vicinal.backends.cpu import PCA_ROWS
from vicinal.graph.fuzzy import BLOCK_PAIRS
from vicinal.initialize.task import trial_rows
from vicinal.layout.schedule import LARGE_ROWS
from vicinal.neighbors.metrics import ALIASES, METRICS, PRECOMPUTED, is_bounded
from vicinal.neighbors.online import OnlineOptions
from vicinal.neighbors.search import (
    HEAP_PAD,
    MOST_BYTE_COLUMNS,
    ONLINE_LEAF_ROWS,
    ROWS_WITHOUT_BASIS,
    SKETCH_WIDTH,
    SPLIT_COLUMNS,
    SearchOptions,
    compares_all_sketches,
    sketch_sample_rows,
)
from vicinal.neighbors.table import BLOCK_VALUES as DISTANCES
from vicinal.neighbors.training_data import SHORT_ROW
from vicinal.pipeline.recipe import Recipe
from vicinal.runtime.inputs import ROW_TYPES
from vicinal.runtime.sizes import InputShape, Ledger

EDGES = 1.6
COMPONENTS = 20  # of a graph: depends on the data, and matters only if there are very many columns
FEW_COLUMNS = 1 << 16  # up to this many columns of sparse rows, every column has a list
DUPLICATES = 32  # hashes of the rows, sorted, their order, and the first equal row: 8 bytes each (duplicates.py)
# Of a growing map: bytes per edge while the layout of a slice is made, and what the first map and its threads leave.
MOVED_EDGE, FIRST_MAP = 18, 1.2e7
GRID = 1e7  # t-SNE's grid and the spectra of the kernel and of the density, for maps of typical width
BLAS = 3.5e7  # OpenBLAS' own buffers for large products


def add_map(
    ledger: Ledger, shape: InputShape, recipe: Recipe, metric: Any, *, init: Any = "", searched: bool = True
) -> None:
    """Add a fit by a recipe; ``init`` is the start if it is an array, ``searched`` False if neighbors are given."""
    n, k = shape.n, recipe.affinity.columns(shape.n)
    if searched:
        chooses = _prefers_shared(shape, metric)
        found = recipe.affinity.search_columns(n, chooses)
        add_search(ledger, shape, found, metric=metric, approximate=recipe.search == "approximate")
        if found > k:
            # Two copies of the table, the chosen columns, and a block of pairs of neighbors (shared_neighbors.py).
            ledger.use(20.0 * n * found + 8.0 * min(float(n * found * k * k), BLOCK_PAIRS))
    edges = add_graph(ledger, n, k, normalized=recipe.affinity.normalized)
    if recipe.output == "graph":
        return
    add_start(ledger, recipe.init if isinstance(init, str) else init, shape, recipe.n_components, edges)
    if not recipe.plan.draws_at_random:
        add_full_layout(ledger, n, recipe.n_components, edges)
        return
    if recipe.plan.arranges:
        add_arrangement(ledger, shape, edges, has_coordinates=not (isinstance(metric, str) and metric == PRECOMPUTED))
    add_layout(ledger, n, recipe.n_components, edges)
    if recipe.density is not None:
        add_density(ledger, n, k, edges)


def _prefers_shared(shape: InputShape, metric: Any) -> bool:
    """Tell whether a fit may choose neighbors by what they share (``TrainingRows.prefers_shared``)."""
    return shape.stored is not None and shape.stored <= SHORT_ROW * shape.n and is_bounded(metric)


def add_search(
    ledger: Ledger, shape: InputShape, k: int, *, metric: Any = "euclidean", approximate: bool = False
) -> None:
    """Add the search index and the neighbor table of k columns."""
    n, d = shape.n, shape.d
    k = min(k, n)
    table = 8.0 * n * k  # index, distance
    ledger.keep(DUPLICATES * n)
    if isinstance(metric, str) and metric == PRECOMPUTED:
        # A block of distances, its partition, the order and the marks of its columns (precomputed.py).
        ledger.use(3 * table + (26.0 * min(n * d, DISTANCES) if shape.stored is None else 60.0 * shape.stored))
    elif shape.stored is not None:
        # The rows listed by column, or by stored column if there are far more columns (cpp/neighbors/sparse_index.hpp).
        lists = d if d <= max(FEW_COLUMNS, 8 * shape.stored) else min(d, shape.stored)
        ledger.keep(12.0 * shape.stored + 8.0 * lists + 48.0 * n)
        ledger.use(max(2 * table, 8.0 * lists))
    else:
        wide = d > SKETCH_WIDTH
        if isinstance(metric, str) and METRICS[ALIASES.get(metric, metric)].prepare is not None:
            ledger.keep(4.0 * n * d)
        ledger.keep(4.0 * n * (SKETCH_WIDTH + 2 if wide else _padded(d)))
        ledger.keep(_as_bytes(shape, metric))
        if wide and n > ROWS_WITHOUT_BASIS:
            basis = 4.0 * d * (SKETCH_WIDTH + 1)
            ledger.use(basis + _sample(n, d) + 8.0 * d)
            ledger.keep(basis)
        if approximate or not compares_all_sketches(n, d, k):
            options = SearchOptions().for_rows(n).for_table(k)
            sought = min(k - 1 + max(options.spare, k // 3), n - 1)
            ledger.keep(4.0 * n * options.trees + 24.0 * n * options.trees / options.leaf_rows)
            heaps = 2 * _heap(options.candidates) + _heap(sought) + (_heap(k - 1) if wide else 0.0)
        else:
            heaps = _heap(k - 1)
        ledger.use(n * heaps + table)
    ledger.keep(table)


def add_online_search(ledger: Ledger, shape: InputShape, k: int, metric: Any) -> None:
    """Add rows that arrive over time, with their sketches, lists and trees (cpp/neighbors/online_neighbors.hpp)."""
    n, d, options = shape.n, shape.d, OnlineOptions.of(metric)
    short = SKETCH_WIDTH if d > SKETCH_WIDTH else _padded(d)
    # Sketches as floats, and those of rows that are longer as bytes too.
    ledger.keep(4.0 * n * short + (n * SKETCH_WIDTH if d > SKETCH_WIDTH else 0.0))
    if shape.stored is not None:
        # Twice, as given and as prepared, and short dense rows in place of them (stream_rows.py).
        ledger.keep(16.0 * shape.stored + 20.0 * n + 4.0 * n * min(d, SKETCH_WIDTH))
    else:
        twice = not isinstance(metric, str) or METRICS[ALIASES.get(metric, metric)].prepare is not None
        ledger.keep(4.0 * n * d * (1 + twice))
        # Batches that are being inserted, and samples: many small pieces, which the allocator keeps.
        ledger.keep(12.0 * min(n, 1000) * d + (2 * _sample(n, d) if d > SKETCH_WIDTH else 0.0))
        ledger.keep(_as_bytes(shape, metric))
    # Leaves are two thirds full, and as many nodes lie above them; a row has its number in a leaf of each tree.
    node = 20.0 + 4.0 * SPLIT_COLUMNS
    trees = options.trees * 1.5 * (4.0 + 2.0 * node / ONLINE_LEAF_ROWS)
    ledger.keep(n * (_heap(k - 1 + options.spare) + 6.0 + trees))


def add_first_map(ledger: Ledger, shape: InputShape, recipe: Recipe) -> None:
    """Add the start of a growing map from all of its rows, which is freed before they move."""
    start = Ledger()
    edges = add_graph(start, shape.n, recipe.affinity.columns(shape.n))
    add_start(start, recipe.init, shape, recipe.n_components, edges)
    if recipe.plan.arranges:
        add_arrangement(start, shape, edges, has_coordinates=True)
    ledger.use(start.peak)


def add_growing_map(
    ledger: Ledger, n: int, k: int, n_components: int, slices: tuple[int, int], *, snapshot: bool = False
) -> None:
    """Add a growing map's lists in both directions, its columns and the layouts of its slices.

    ``slices`` are the rows that move together, and the layouts that are kept. A batch that is added completely or not
    at all takes a ``snapshot`` besides.
    """
    ledger.keep(n * (8.0 * k + 24.0 + 6.0 * k + 40.0 + 4.0 * n_components) + FIRST_MAP * min(1.0, n / 2_000))
    most, layouts = slices
    rows, count = min(n, most), min(layouts + 1, -(-n // most))
    edges = EDGES * max(k - 1, 1)
    # A snapshot copies the lists and columns of all rows; the rows themselves are shared.
    copied = n * (_heap(k - 1 + OnlineOptions().spare) + 8.0 * k + 40.0) if snapshot else 0.0
    ledger.use(count * rows * (12.0 * edges + 12.0) + rows * MOVED_EDGE * edges + copied)


def add_graph(ledger: Ledger, n: int, k: int, *, normalized: bool = False) -> float:
    """Add the symmetric graph of a neighbor table; return its number of edges."""
    edges = n * min(EDGES * max(k - 1, 1), n - 1)
    # Memberships, then edges in both directions, sorted (cpp/graph/symmetrize.hpp), then the graph.
    ledger.use(n * (4.0 * k + 16.0 * k + 40.0) + 8.0 * edges)
    ledger.keep(24.0 * n + 8.0 * edges)
    if normalized:
        ledger.use(12.0 * edges)
    return edges


def add_start(ledger: Ledger, init: Any, shape: InputShape, n_components: int, edges: float) -> None:
    """Add the first places."""
    n, d = shape.n, shape.d
    if isinstance(init, str) and init == "pca":
        ledger.use(3 * 8.0 * min(n, PCA_ROWS) * d + 5 * 8.0 * d * d + 24.0 * n * n_components + min(BLAS, 16.0 * n * d))
    elif isinstance(init, str) and init != "random":
        # Normalized weights, coarser graphs, four blocks of vectors, numbers per row (cpp/initialize/eigenmap.cpp).
        width = -(-(n_components + 4) // 8) * 8
        # Centroids of the graph's components and their principal components, six times (spectral.py).
        centroids = 48.0 * min(COMPONENTS, n / 15) * d if shape.stored is None else 0.0
        ledger.use(max(7.0 * edges + 16.0 * n * width + 70.0 * n, centroids))
    ledger.keep(4.0 * n * n_components)


def add_arrangement(ledger: Ledger, shape: InputShape, edges: float, *, has_coordinates: bool) -> None:
    """Add the choice of a start (arrangement.py): aggregates, and for fewer rows their principal components."""
    n, d = shape.n, shape.d
    # Likeness of edges, then the graph of the first round twice, while its pieces are joined (coarsen.cpp).
    ledger.use(14.0 * edges + 60.0 * n)
    if shape.stored is None and has_coordinates and n <= LARGE_ROWS:
        sample, block = min(n, trial_rows(d)), 8.0 * min(n, PCA_ROWS) * d
        # The sample and its singular vectors, or a block of it twice and the covariance; then a block of all rows.
        axes = 24.0 * sample * d if sample <= d else 16.0 * min(sample, PCA_ROWS) * d + 24.0 * d * d
        ledger.use(max(axes, block) + 16.0 * n + min(BLAS, block))


def add_layout(ledger: Ledger, n: int, n_components: int, edges: float) -> None:
    """Add edges with rate and phase, two buffers of places, the map, and lists of edges that fire (cpp/layout)."""
    ledger.keep(12.0 * edges + n * (8.0 + 12.0 * n_components))
    ledger.use(2.0 * edges + 40.0 * n)


def add_density(ledger: Ledger, n: int, k: int, edges: float) -> None:
    """Add densMAP's distances of edges, then the map's own neighbors, graph and radii (density.py)."""
    ledger.keep(4.0 * edges + 24.0 * n)
    ledger.use(24.0 * n * k + 24.0 * n + 46.0 * edges)


def add_full_layout(ledger: Ledger, n: int, n_components: int, edges: float) -> None:
    """Add t-SNE's padded edges and state (cpp/layout/full_layout.hpp), then the divergence (losses.kl_divergence)."""
    ledger.keep(8.0 * (edges + 8.0 * n) + n * (12.0 + 36.0 * n_components) + GRID)
    ledger.use(22.0 * edges)


def _as_bytes(shape: InputShape, metric: Any) -> float:
    """Return the bytes of long float32 rows that are kept as such if all values are whole and between 0 and 255."""
    n, d = shape.n, shape.d
    plain = (
        shape.kind == ROW_TYPES[0]
        and isinstance(metric, str)
        and ALIASES.get(metric, metric) in ("euclidean", "sqeuclidean")
    )
    return float(n * (d + 63)) if plain and SKETCH_WIDTH < d <= MOST_BYTE_COLUMNS else 0.0


def _sample(n: int, d: int) -> float:
    """Return the bytes of the rows that a sketch is fitted to, and of their sketches."""
    return 4.0 * sketch_sample_rows(n, d) * (d + SKETCH_WIDTH)


def _heap(k: float) -> float:
    """Return the bytes per row of a heap of k entries (cpp/neighbors/neighbor_heap.hpp)."""
    return 8.0 * _padded(k) + 5.0


def _padded(k: float) -> float:
    return -(-max(int(k), 1) // HEAP_PAD) * HEAP_PAD
