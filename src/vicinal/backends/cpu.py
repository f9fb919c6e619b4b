"""The CPU backend: the compiled core. No other module imports ``_core``.

The functions and engines below are the numerical work of the stages, without policy: a stage decides which of them to
call, with which options, and what to do if one does not apply. ARCHITECTURE.md ("Backends") states what each must
guarantee: results that do not depend on ``n_jobs``, inputs that are never written to, the GIL released, and a pending
signal answered within a fraction of a second.
"""

from __future__ import annotations

from vicinal.backends import _core

# Rows: checks and content hashes.
scan_rows = _core.scan_rows
hash_rows = _core.hash_rows
hash_sparse_rows = _core.hash_sparse_rows

# Neighbors: engines for dense rows, sparse rows and rows that arrive over time; metrics evaluated pair by pair.
metrics = _core.metrics
NeighborIndex = _core.NeighborIndex
SparseIndex = _core.SparseIndex
OnlineNeighbors = _core.OnlineNeighbors
PairMetric = _core.PairMetric
DensePairs = _core.DensePairs
ForeignPairs = _core.ForeignPairs
PythonPairs = _core.PythonPairs

# Graph: memberships and their symmetric combinations.
smooth_knn = _core.smooth_knn
memberships = _core.memberships
perplexity_conditionals = _core.perplexity_conditionals
symmetrize = _core.symmetrize
symmetrize_mean = _core.symmetrize_mean
GrowingGraph = _core.GrowingGraph

# Initialization: the spectral filter and the coarser graph that it starts from.
chebyshev_filter = _core.chebyshev_filter
coarsen = _core.coarsen

# Layout: sampled (UMAP, LargeVis) and full (t-SNE), distances of edges for densMAP.
LayoutOptions = _core.LayoutOptions
SampledLayout = _core.SampledLayout
FullLayout = _core.FullLayout
edge_distances = _core.edge_distances

# Losses: sums over pairs of points.
PairQuantity = _core.PairQuantity
PairSums = _core.PairSums

# Machine: threads and instruction-set levels.
resolve_jobs = _core.resolve_jobs
active_level = _core.active_level
available_levels = _core.available_levels
