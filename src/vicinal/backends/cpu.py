"""The CPU backend: the compiled core. No other module imports ``_core``.

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

from vicinal.backends import _core

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

# Initialization. component_eigenmaps: rows sorted by connected component, the bounds of the components, and the
# smoothest nontrivial eigenvectors of each component's normalized Laplacian, in the order of the rows.
# connected_components: the component of every row. segment_means: means of sets of rows, each from a limited number of
# its rows.
component_eigenmaps = _core.component_eigenmaps
connected_components = _core.connected_components
segment_means = _core.segment_means

# Layout. Random numbers are a function of (seed, sweep, row, draw), and a sweep reads the points of the previous sweep
# only: splitting the sweeps into calls makes no difference, bits are the same at every instruction-set level, and an
# interrupted call leaves the points of the last complete sweep. SampledLayout: UMAP, LargeVis, densMAP. FullLayout:
# t-SNE, exact or by a grid. edge_distances: the input distance of every edge, -1 if the table does not have it.
# space_table: squared distances of pairs of points, and half their gradients.
# alias_table: the table by which negatives are drawn in proportion to weights, for layouts of other backends.
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

# Losses. Sums over all pairs, edges or sampled pairs, in a fixed order, with the same bits at every level.
PairQuantity = _core.PairQuantity
PairSums = _core.PairSums

# Machine: the number of threads that n_jobs stands for, and the instruction-set levels.
resolve_jobs = _core.resolve_jobs
active_level = _core.active_level
available_levels = _core.available_levels
