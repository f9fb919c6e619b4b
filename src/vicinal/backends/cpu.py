"""The CPU backend: the compiled core. No other module imports ``_core``.

The CUDA backend has the same functions with the same parameters, except for ``HOST_ONLY``: what only the CPU has, and
callers name as ``cpu.f``. Everything else they call as ``backend_of(place).f``.

The functions and engines below do the numerical work of the stages, without policy: a stage decides which of them to
call, with which options, and what to do if one does not apply. All of them guarantee:

- the same bits for any ``n_jobs``;
- inputs are never written to, unless the call says so (``SampledLayout.in_place``);
- the GIL is released while they work, except during calls of a Python metric;
- a pending signal is answered within a fraction of a second;
- no threads remain after a call, so that the process may fork;
- arrays of a wrong type or shape raise TypeError or ValueError before any work.

Objects whose methods change them (``NeighborIndex.grow_forest``, ``OnlineNeighbors``, ``GrowingGraph``, the layouts)
must be used by one thread at a time; everything else may be called by several threads at once. What each group
guarantees beyond that is stated below.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import _core
from vicinal.runtime.interruption import interruptible

Floats = NDArray[np.float64]

HOST_ONLY = (
    *("metrics", "metric_rules", "NeighborIndex", "SparseIndex", "PairMetric", "DensePairs", "ForeignPairs"),
    *("PythonPairs", "OnlineNeighbors", "GrowingSparseRows", "SparsePairs", "PointTree", "hash_sparse_rows"),
    *("join_directions", "GrowingGraph", "connected_components", "segment_means", "principal_axes"),
    *("aggregate_rows", "neighbor_means"),
    *(
        "edge_distances",
        "space_table",
        "layout_edges",
        "PartEdges",
        "summarize_density",
        "density_shares",
        "alias_table",
    ),
    *("mix64", "stream_key", "resolve_jobs", "active_level", "available_levels", "Transforms"),
)

# Arrays: the array module, the context in which arrays are made, arrays from and to the host.
xp = np
active = nullcontext


def asarray(values: Any, dtype: Any = None) -> NDArray[Any]:
    """Return a contiguous array, without a copy if it is one already."""
    return np.ascontiguousarray(values, dtype=dtype)


def to_numpy(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array of the host."""
    return values


def take_rows(values: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return some rows of an array, on the host."""
    return values[rows]


def holds_rows(n: int, d: int, metric: Any = None) -> bool:
    """Tell whether the rows of a fit are worked on as a whole: always, because they are on the host."""
    return True


def can_search(metric: str, k: int) -> bool:
    """Tell whether k neighbors by a metric of the core can be found: always."""
    return True


# Rows. scan_rows: the largest magnitude, and the first row with infinity or NaN. hash_rows, hash_sparse_rows: 64-bit
# hashes that depend on the values of a row alone: -0 equals 0, NaN equals NaN, stored zeros do not count.
scan_rows = _core.scan_rows
hash_rows = _core.hash_rows
hash_sparse_rows = _core.hash_sparse_rows

# Neighbors. Tables are sorted by (distance, index), a row's own entry first in a table of all rows; a pair has the same
# rank in both directions. search_exact, and a query without trees, return the true neighbors up to rounding in float32;
# search_approximate is a function of (rows, metric, seed, options); a query depends on its own row alone, and on the
# graph. Engines keep a view of the rows, not a copy. metrics lists the metrics, and whether they need a PairMetric.
metrics = _core.metrics
# metric_rules: for each metric the numbers of Preparation, Ranking and Finish (cpp/neighbors/metric_table.hpp).
metric_rules = _core.metric_rules
NeighborIndex = _core.NeighborIndex
SparseIndex = _core.SparseIndex
PairMetric = _core.PairMetric
DensePairs = _core.DensePairs
ForeignPairs = _core.ForeignPairs
PythonPairs = _core.PythonPairs
# Rows that arrive over time: the result depends on the calls and the number of operations, not on how these are split
# into calls of step; state and restore continue with the same bits. A call that is interrupted or fails adds all rows
# or none, and keeps complete operations. Sparse rows are ranked outside, by SparsePairs of copies that grow with them.
OnlineNeighbors = _core.OnlineNeighbors
GrowingSparseRows = _core.GrowingSparseRows
SparsePairs = _core.SparsePairs
# Points of a map: exact neighbors, distances in double precision rounded to float32, ties to the lower row.
PointTree = _core.PointTree
# Sizes of what the searches allocate, for estimates of memory: columns of a sketch; bounds of the sample of rows that a
# sketch is fitted to; most rows that need no sketches; columns that split a tree node; rows per leaf of
# OnlineNeighbors; the multiple to which the rows of a neighbor heap are padded.
SKETCH_WIDTH = _core.SKETCH_WIDTH
SKETCH_SAMPLE_FLOATS = _core.SKETCH_SAMPLE_FLOATS
SKETCH_SAMPLE_LEAST_ROWS = _core.SKETCH_SAMPLE_LEAST_ROWS
SKETCH_SAMPLE_MOST_ROWS = _core.SKETCH_SAMPLE_MOST_ROWS
ROWS_WITHOUT_BASIS = _core.ROWS_WITHOUT_BASIS
SPLIT_COLUMNS = _core.SPLIT_COLUMNS
MOST_BYTE_COLUMNS = _core.MOST_BYTE_COLUMNS
ONLINE_LEAF_ROWS = _core.ONLINE_LEAF_ROWS
HEAP_PAD = _core.HEAP_PAD

# Graph. smooth_knn: rho and sigma, to a tolerance of 1e-5 in eq. 3. memberships: eq. 1, 0 for missing neighbors.
# perplexity_conditionals: eq. 18. symmetrize, symmetrize_mean: the symmetric graph in compressed sparse rows with
# ascending columns, both directions of an edge with the same weight. GrowingGraph: the same edges as symmetrize, for
# some rows of a table whose rows are replaced. join_directions: the same edges for consecutive rows, from the edges
# that leave them and those that lead to them.
smooth_knn = _core.smooth_knn
memberships = _core.memberships
perplexity_conditionals = _core.perplexity_conditionals
symmetrize = _core.symmetrize
symmetrize_mean = _core.symmetrize_mean
join_directions = _core.join_directions
GrowingGraph = _core.GrowingGraph


def weight_units(weights: NDArray[np.float32], units: float) -> int:
    """Return the sum of weights as integer multiples of ``1 / units``."""
    return int((weights.astype(np.float64) * units).astype(np.int64).sum())


def divide_weights(weights: NDArray[np.float32], total: float) -> NDArray[np.float32]:
    """Return weights divided by their total, in double precision and rounded."""
    return weights if total == 1.0 else (weights.astype(np.float64) / total).astype(np.float32)


def total_weight(weights: NDArray[np.float32]) -> float:
    """Return the sum of weights in double precision."""
    return float(weights.sum(dtype=np.float64))


def negative_entropy(weights: NDArray[np.float32], total: float) -> float:
    """Return the sum of p ln p of weights divided by their total."""
    p = weights / total
    return float(np.asarray(p * np.log(np.where(p > 0, p, 1.0)), dtype=np.float64).sum())


# Initialization. component_eigenmaps: rows sorted by connected component, the bounds of the components, and the
# smoothest nontrivial eigenvectors of each component's normalized Laplacian, in the order of the rows.
# connected_components: the component of every row. segment_means: means of sets of rows, each from a limited number of
# its rows.
component_eigenmaps = _core.component_eigenmaps
connected_components = _core.connected_components
segment_means = _core.segment_means
# aggregate_rows: similar rows joined in rounds; the aggregate of each row, the rows of each aggregate, and the edges of
# the graph of the aggregates. neighbor_means: the mean place of each row's neighbors, weighted by the edges.
aggregate_rows = _core.aggregate_rows
neighbor_means = _core.neighbor_means
MOST_MAP_AXES = 0  # axes of eigenmaps that a device computes

PCA_ROWS = 4096  # rows converted to float64 at a time
# Axes of more rows are those of a sample at regular intervals: 70,000 images take 0.35 s instead of 1.1 s.
PCA_SAMPLE_ROWS = 16_384
MEDOID_PAIRS = 1 << 20  # pairs of neighbors that are compared at a time, which bounds the memory


def principal_scores(rows: NDArray[np.floating], n_components: int) -> Floats:
    """Return coordinates along the leading principal axes; axes beyond the rank of the data are zero."""
    mean, axes = principal_axes(rows, n_components)
    return np.concatenate([rows[block] @ axes for block in _blocks(len(rows))]) - mean @ axes


def principal_axes(rows: NDArray[np.floating], n_components: int) -> tuple[Floats, Floats]:
    """Return the mean of the rows and the leading principal axes of a sample [columns, n_components].

    Axes are divided by the largest deviation from the mean, which keeps scores of extreme data finite; those beyond the
    rank of the data are zero.
    """
    mean = rows.mean(axis=0, dtype=np.float64)
    largest = max(np.max(rows.max(axis=0) - mean), np.max(mean - rows.min(axis=0))) if rows.size else 0.0
    scale = 1.0 / largest if largest > 0 else 1.0
    sample = rows[:: max(1, len(rows) // PCA_SAMPLE_ROWS)]
    n, d = sample.shape

    def axes() -> Floats:
        if n <= d:
            return np.asarray(np.linalg.svd((sample - mean) * scale, full_matrices=False)[2].T)
        gram = np.zeros((d, d))
        for block in _blocks(n):
            centered = (sample[block] - mean) * scale
            gram += centered.T @ centered
        return np.asarray(np.linalg.eigh(gram)[1][:, ::-1])

    found = interruptible(axes, float(n) * d * min(n, d))[:, :n_components] * scale
    return mean, np.pad(found, ((0, 0), (0, n_components - found.shape[1])))


def _blocks(n: int) -> list[slice]:
    return [slice(begin, begin + PCA_ROWS) for begin in range(0, n, PCA_ROWS)]


def neighbor_medoids(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
    reference: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return for every head the place of the medoid of its tails, or the middle of the map if it has none."""
    lengths = np.diff(indptr)
    n = len(lengths)
    out = np.empty((n, reference.shape[1]), dtype=np.float32)
    n_rows = max(1, MEDOID_PAIRS // max(1, int(lengths.max(initial=1))) ** 2)
    for begin in range(0, n, n_rows):
        block = slice(begin, begin + n_rows)
        out[block] = _medoids(indptr[:-1][block], lengths[block], indices, weights, reference)
    if not lengths.all():
        out[lengths == 0] = _middle_of(reference)
    return out


def _middle_of(places: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of the places of a map."""
    return np.asarray(places.mean(axis=0, dtype=np.float64), dtype=np.float32)


def _medoids(
    first: NDArray[np.int64],
    lengths: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
    reference: NDArray[np.float32],
) -> NDArray[np.float32]:
    slots = np.arange(int(lengths.max(initial=1)))
    present = slots < lengths[:, None]
    edges = np.where(present, first[:, None] + slots, 0)
    tails = np.where(present, indices[edges] if len(indices) else 0, 0)
    pull = np.where(present, weights[edges] if len(indices) else np.float32(0), np.float32(0))
    places = reference[tails]
    # One component and one neighbor after the other: the order of a sum must not depend on the number of rows.
    d2 = np.square(places[:, None, :, 0] - places[:, :, None, 0])
    for c in range(1, places.shape[2]):
        d2 += np.square(places[:, None, :, c] - places[:, :, None, c])
    pulls = pull[:, :, None] * np.sqrt(d2)
    total = np.where(present, np.float32(0), np.float32(np.inf))
    for slot in slots:
        total += pulls[:, slot]
    nearest = np.argmin(total, axis=1)
    chosen: NDArray[np.float32] = reference[np.take_along_axis(tails, nearest[:, None], axis=1)[:, 0]]
    return chosen


# Layout. Random numbers are a function of (seed, sweep, row, draw), and a sweep reads the points of the previous sweep
# only: splitting the sweeps into calls makes no difference, bits are the same at every instruction-set level, and an
# interrupted call leaves the points of the last complete sweep. SampledLayout: UMAP, LargeVis, densMAP. FullLayout:
# t-SNE, exact or by a grid. edge_distances: the input distance of every edge, -1 if the table does not have it.
# space_table: squared distances of pairs of points, and half their gradients.
# alias_table: the table by which negatives are drawn in proportion to weights, for layouts of other backends.
# FORCES, SPACES: the forces and distances of the map by name, with the types that a GPU's kernels are compiled for.
FORCES = _core.FORCES
SPACES = _core.SPACES
LayoutOptions = _core.LayoutOptions
SampledLayout = _core.SampledLayout
FullLayout = _core.FullLayout
edge_distances = _core.edge_distances
space_table = _core.space_table
# Consecutive rows of a larger layout: their edges as a sweep reads them, and with the same bits as SampledLayout one
# sweep from a snapshot of all points (PartEdges.sweep), the radii of the rows and the moves of the density term, given
# the sums and shares of all rows.
layout_edges = _core.layout_edges
PartEdges = _core.PartEdges
summarize_density = _core.summarize_density
density_shares = _core.density_shares
alias_table = _core.alias_table
# Random numbers (cpp/base/rng.hpp). mix64: a 64-bit hash of numbers. stream_key: the key of a stream, or of its part.
mix64 = _core.mix64
stream_key = _core.stream_key


def has_space(kind: str) -> bool:
    """Tell whether a layout has a distance of the map."""
    return kind in SPACES


# Most nodes of a padded grid; a wider map gets a wider spacing.
MOST_NODES = 2**23
# Most axes of a grid, and the fewest nodes of an axis with padding.
GRID_AXES, SHORTEST_AXIS = 3, 32


def transforms(n_jobs: int) -> Transforms:
    """Return the Fourier transforms of t-SNE's grids."""
    return Transforms(n_jobs)


class Transforms:
    """Fourier transforms of real grids.

    ``fineness`` is a factor on the spacing of the nodes, ``dense_factor`` another for maps with many rows per area.
    """

    xp = np
    fineness, dense_factor, most_nodes = 1.0, 1.6, MOST_NODES

    def __init__(self, n_jobs: int) -> None:
        self._workers = resolve_jobs(n_jobs)

    def lengths(self, nodes: tuple[int, ...]) -> tuple[int, ...]:
        """Return the padded lengths of axes with at least this many nodes: even, with the factors 2, 3 and 5."""
        from scipy.fft import next_fast_len

        return tuple(2 * next_fast_len(-(-max(count, SHORTEST_AXIS) // 2), real=True) for count in nodes)

    def transform_even(self, part: Floats, padded: tuple[int, ...]) -> Floats:
        """Return the transform of a function that is even along each axis: real, and even too.

        Both are given at 0 to half the padded length.
        """
        from scipy.fft import dctn

        return np.asarray(dctn(part, type=1))

    def convolution(
        self, transfer: NDArray[np.float32], padded: tuple[int, ...]
    ) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
        """Return the function that multiplies the transform of values at the nodes, padded with zeros, by another."""
        convolve = _core.GridConvolution(_three_axes(padded), transfer.reshape(-1))

        def convolved(values: NDArray[np.float32]) -> NDArray[np.float32]:
            return convolve(values.reshape(-1), _three_axes(values.shape), self._workers).reshape(values.shape)

        return convolved


def _three_axes(lengths: tuple[int, ...]) -> list[int]:
    """Return the lengths of three axes, of which those not used have one node; the last one is used."""
    return [1] * (GRID_AXES - len(lengths)) + [*lengths]


# Losses. Sums over all pairs, edges or sampled pairs, in a fixed order, with the same bits at every level.
PairQuantity = _core.PairQuantity
PairSums = _core.PairSums

# Tables of distances, for the measures of a map.
TABLE_VALUES = 1 << 23  # distances held at a time, per space: 8 M float64 = 64 MiB


def table_values() -> int:
    """Return how many distances in double precision are held at a time."""
    return TABLE_VALUES


def has_distances(metric: str) -> bool:
    """Tell whether tables of distances by a metric can be computed: by any metric of scikit-learn."""
    return True


def squared_distances(heads: Floats, tails: Floats) -> Floats:
    """Return the squared distances of all pairs, added up column by column."""
    from scipy.spatial.distance import cdist

    table: Floats = cdist(heads, tails, "sqeuclidean")
    return table


def pairwise_distances(heads: Floats, tails: Floats, metric: str) -> Floats:
    """Return the distances of all pairs by a metric of scikit-learn."""
    from sklearn.metrics import pairwise_distances as of_pairs

    table: Floats = of_pairs(heads, tails, metric=metric)
    return table


def nearest_columns(distance: Floats, k: int) -> NDArray[np.int64]:
    """Return the k columns of each row with the smallest distances, in the order of (distance, index)."""
    limits = np.partition(distance, k - 1, axis=1)[:, k - 1]
    found = np.empty((len(distance), k), dtype=np.int64)
    for row, limit, out in zip(distance, limits, found, strict=True):
        candidates = np.flatnonzero(row <= limit)
        out[:] = candidates[np.argsort(row[candidates], kind="stable")[:k]]
    return found


def ranks_of(distance: Floats, columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ranks, counted from 1, of the given columns of each row in the order of (distance, index).

    For a few columns, counting the smaller distances is several times cheaper than sorting the whole row.
    """
    ranks = np.empty_like(columns)
    for row, wanted, out in zip(distance, columns, ranks, strict=True):
        for a, (j, value) in enumerate(zip(wanted, row[wanted], strict=True)):
            out[a] = np.count_nonzero(row < value) + np.count_nonzero(row[: j + 1] == value)
    return ranks


# Machine: the number of threads that n_jobs stands for, and the instruction-set levels.
resolve_jobs = _core.resolve_jobs
active_level = _core.active_level
available_levels = _core.available_levels
