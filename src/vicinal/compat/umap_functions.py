"""umap-learn's module-level functions, with its signatures and return values, over the parts of this package.

Code written for ``umap.umap_`` (such as scanpy) runs with ``vicinal.umap_`` instead. Sparse results are SciPy matrices;
inputs are never written to. Arguments that control umap-learn's own search or compiler (``angular``, ``low_memory``,
``use_pynndescent``, ``parallel``, ``n_iter``) are accepted and have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_matrix, csr_matrix

from vicinal.estimators.base import random_seed
from vicinal.graph.fuzzy import fuzzy_graph, membership_strengths, smooth_distances
from vicinal.graph.graph import Graph
from vicinal.graph.set_operations import intersect, reset_connectivity, unite
from vicinal.graph.supervision import class_factors, count_levels, edit_distances
from vicinal.initialize.start import INITIALIZER_ALIASES, INITIALIZERS, given_start, initial_embedding
from vicinal.initialize.task import InitialTask
from vicinal.layout.density import Radii, embedding_radii, finite_radii
from vicinal.layout.forces import Forces, Kernel, fit_ab, output_space
from vicinal.layout.sampled import Layout, run_layout
from vicinal.layout.schedule import default_epochs
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import PRECOMPUTED
from vicinal.neighbors.table import Neighbors, neighbors_from_distances
from vicinal.pipeline.recipe import DensityPlan, SampledPlan
from vicinal.runtime.inputs import check_structure
from vicinal.runtime.progress import Progress

# Rows whose distances to all rows are in memory at a time.
BLOCK_ROWS = 256

__all__ = [
    "compute_membership_strengths",
    "discrete_metric_simplicial_set_intersection",
    "find_ab_params",
    "fuzzy_simplicial_set",
    "general_simplicial_set_intersection",
    "general_simplicial_set_union",
    "make_epochs_per_sample",
    "nearest_neighbors",
    "reset_local_connectivity",
    "simplicial_set_embedding",
    "smooth_knn_dist",
]


def find_ab_params(spread: float, min_dist: float) -> tuple[float, float]:
    """Return a and b of the kernel 1 / (1 + a d^{2b}) for ``spread`` and ``min_dist``."""
    kernel = fit_ab(spread, min_dist)
    return kernel.a, kernel.b


def nearest_neighbors(
    X: Any,
    n_neighbors: int,
    metric: Any,
    metric_kwds: Mapping[str, Any] | None,
    angular: bool,
    random_state: Any,
    low_memory: bool = True,
    use_pynndescent: bool = True,
    n_jobs: int = -1,
    verbose: bool = False,
) -> tuple[NDArray[np.int32], NDArray[np.float32], None]:
    """Return indices and distances of the nearest rows of every row (dense, sparse or distances), itself first.

    The third value, umap-learn's search index, is None: it is not needed here to place new rows.
    """
    with Progress(verbose=verbose).stage("neighbors"):
        if metric == PRECOMPUTED:
            neighbors = neighbors_from_distances(X, n_neighbors)
        else:
            index = NeighborIndex(
                X, metric, metric_kwds=dict(metric_kwds or {}), seed=random_seed(random_state), n_jobs=n_jobs
            )
            neighbors = index.search(n_neighbors)
    return neighbors.index, neighbors.distance, None


def smooth_knn_dist(
    distances: ArrayLike, k: float, n_iter: int = 64, local_connectivity: float = 1.0, bandwidth: float = 1.0
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return sigma and rho of a table of sorted distances (survey eq. 2, 3), in umap-learn's order."""
    table = np.ascontiguousarray(distances, dtype=np.float32)
    rho, sigma = smooth_distances(table, k, local_connectivity, bandwidth)
    return sigma, rho


def compute_membership_strengths(
    knn_indices: ArrayLike,
    knn_dists: ArrayLike,
    sigmas: ArrayLike,
    rhos: ArrayLike,
    return_dists: bool = False,
    bipartite: bool = False,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32], NDArray[np.float32] | None]:
    """Return the directed memberships of eq. 1 as coordinates: rows, columns, values and, if asked for, distances.

    A missing neighbor (-1) becomes an entry of 0 at (0, 0); the entry of a row with itself is 0.
    """
    table = Neighbors(np.asarray(knn_indices), np.asarray(knn_dists))
    rho, sigma = (np.ascontiguousarray(one, dtype=np.float32) for one in (rhos, sigmas))
    values = membership_strengths(table, rho, sigma, bipartite=bipartite).reshape(-1)
    cols = table.index.reshape(-1)
    there = cols >= 0
    rows = np.repeat(np.arange(table.n, dtype=np.int32), table.k)
    dists = np.where(there, table.distance.reshape(-1), np.float32(0)) if return_dists else None
    return np.where(there, rows, 0), np.where(there, cols, 0), values, dists


def fuzzy_simplicial_set(
    X: Any,
    n_neighbors: int,
    random_state: Any,
    metric: Any,
    metric_kwds: Mapping[str, Any] | None = None,
    knn_indices: ArrayLike | None = None,
    knn_dists: ArrayLike | None = None,
    angular: bool = False,
    set_op_mix_ratio: float = 1.0,
    local_connectivity: float = 1.0,
    apply_set_operations: bool = True,
    verbose: bool = False,
    return_dists: bool | None = None,
) -> tuple[Any, ...]:
    """Return the fuzzy graph of ``X`` or of a neighbor table: (matrix, sigmas, rhos), and distances if asked for.

    If a table is given, only the number of rows of ``X`` is used. Without set operations the memberships stay
    directed.
    """
    if knn_indices is None or knn_dists is None:
        knn_indices, knn_dists, _ = nearest_neighbors(
            X, n_neighbors, metric, metric_kwds, angular, random_state, verbose=verbose
        )
    table = Neighbors(np.asarray(knn_indices), np.asarray(knn_dists))
    n = int(X.shape[0])
    if table.n != n:
        raise ValueError(f"knn_indices must have a row for each of the {n} rows of X, got {table.n}")
    graph = fuzzy_graph(
        table,
        n_neighbors=float(n_neighbors),
        local_connectivity=float(local_connectivity),
        set_op_mix_ratio=set_op_mix_ratio,
    )
    if apply_set_operations:
        matrix = graph.to_scipy()
    else:
        rows, cols, values, _ = compute_membership_strengths(table.index, table.distance, graph.sigma, graph.rho)
        matrix = coo_matrix((values, (rows, cols)), shape=(table.n, table.n))
        matrix.eliminate_zeros()
    if return_dists is None:
        return matrix, graph.sigma, graph.rho
    return matrix, graph.sigma, graph.rho, _edge_distances(table) if return_dists else None


def _edge_distances(table: Neighbors) -> Any:
    """Return the distance of every pair in which one row is a neighbor of the other, as a dictionary of keys."""
    there = table.index >= 0
    heads = np.repeat(np.arange(table.n), there.sum(axis=1))
    one_way = coo_matrix((table.distance[there], (heads, table.index[there])), shape=(table.n, table.n))
    return one_way.maximum(one_way.T).todok()


def general_simplicial_set_intersection(
    simplicial_set1: Any, simplicial_set2: Any, weight: float = 0.5, right_complement: bool = False
) -> coo_matrix:
    """Return the fuzzy intersection of two graphs of the same rows; ``weight`` is that of the second one."""
    check_structure(simplicial_set1, "simplicial_set1")
    check_structure(simplicial_set2, "simplicial_set2")
    return intersect(simplicial_set1, simplicial_set2, weight, right_complement)


def general_simplicial_set_union(simplicial_set1: Any, simplicial_set2: Any) -> coo_matrix:
    """Return the fuzzy union of two graphs of the same rows."""
    check_structure(simplicial_set1, "simplicial_set1")
    check_structure(simplicial_set2, "simplicial_set2")
    return unite(simplicial_set1, simplicial_set2)


def reset_local_connectivity(simplicial_set: Any, reset_local_metric: bool = False) -> csr_matrix:
    """Set each row's strongest membership to 1, then return the fuzzy union of both directions."""
    check_structure(simplicial_set, "simplicial_set")
    return reset_connectivity(simplicial_set, reset_local_metric).astype(np.float32)


def discrete_metric_simplicial_set_intersection(
    simplicial_set: Any,
    discrete_space: ArrayLike,
    unknown_dist: float = 1.0,
    far_dist: float = 5.0,
    metric: Any = None,
    metric_kws: Mapping[str, Any] | None = None,
    metric_scale: float = 1.0,
) -> csr_matrix:
    """Return the graph intersected with labels of the rows.

    Without ``metric`` the labels are classes (-1 = unknown), and edges between classes fade by exp(-``far_dist``). With
    "categorical", "ordinal" (keyword ``support_size``), "count" (``poisson_lambda``, ``normalization``), "string"
    (``normalization``, ``max_dist``) or a metric of rows, edges fade by exp(-``metric_scale`` d).
    """
    check_structure(simplicial_set, "simplicial_set")
    faded, labels = simplicial_set.tocoo(copy=True), np.asarray(discrete_space)
    if metric is None:
        factors = class_factors(faded.row, faded.col, labels, unknown_dist, far_dist)
    else:
        apart = _label_distances(faded.row, faded.col, labels, metric, dict(metric_kws or {}))
        factors = np.exp(-metric_scale * apart)
    faded.data = faded.data * factors
    faded.eliminate_zeros()
    return reset_local_connectivity(faded)


def _label_distances(
    heads: NDArray[np.int32], tails: NDArray[np.int32], labels: NDArray[Any], metric: Any, keywords: dict[str, Any]
) -> NDArray[np.float64]:
    """Return the distance of the labels of every edge."""
    if metric == "categorical":
        return np.asarray(labels[heads] != labels[tails], dtype=np.float64)
    if metric == "ordinal":
        return np.asarray(np.abs(labels[heads] - labels[tails]) / float(keywords.get("support_size", 1.0)))
    if metric == "count":
        levels = count_levels(np.asarray(labels, dtype=np.float64), float(keywords.get("poisson_lambda", 1.0)))
        return np.asarray(np.abs(levels[heads] - levels[tails]) / abs(float(keywords.get("normalization", 1.0))))
    if metric == "string":
        texts, codes = np.unique(labels, return_inverse=True)
        edits = edit_distances(texts.tolist(), codes[heads], codes[tails])
        most = float(keywords.get("max_dist", keywords.get("max_distance", 20.0)))
        return np.asarray(np.minimum(edits, most) / float(keywords.get("normalization", 1.0)))
    rows = labels.reshape(len(labels), -1)
    index, apart = NeighborIndex(rows, metric, metric_kwds=keywords), np.empty(len(heads))
    order = np.argsort(heads, kind="stable")
    for begin in range(0, len(rows), BLOCK_ROWS):
        some = order[slice(*np.searchsorted(heads[order], (begin, begin + BLOCK_ROWS)))]
        if some.size:
            apart[some] = index.distances(rows[begin : begin + BLOCK_ROWS])[heads[some] - begin, tails[some]]
    return apart


def make_epochs_per_sample(weights: ArrayLike, n_epochs: int) -> NDArray[np.float64]:
    """Return the epochs between two samples of each edge, if the heaviest fires in each; -1 if it never fires."""
    share = np.asarray(weights, dtype=np.float64)
    heaviest = share.max(initial=0.0)
    fires = (share > 0) & (n_epochs > 0)
    return np.asarray(np.divide(heaviest, share, out=np.full(len(share), -1.0), where=fires))


def simplicial_set_embedding(
    data: Any,
    graph: Any,
    n_components: int,
    initial_alpha: float,
    a: float,
    b: float,
    gamma: float,
    negative_sample_rate: int,
    n_epochs: int | list[int] | None,
    init: Any,
    random_state: Any,
    metric: Any,
    metric_kwds: Mapping[str, Any] | None,
    densmap: bool,
    densmap_kwds: Mapping[str, Any] | None,
    output_dens: bool,
    output_metric: Any = "euclidean",
    output_metric_kwds: Mapping[str, Any] | None = None,
    euclidean_output: bool = True,
    parallel: bool = False,
    verbose: bool = False,
    tqdm_kwds: dict[str, Any] | None = None,
) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """Lay out a graph in ``n_components`` dimensions; return the embedding and a dictionary of auxiliary data.

    If ``n_epochs`` is a list, the embeddings at these epochs are in ``aux_data["embedding_list"]``. ``output_metric``
    is a name or a function that returns (distance, gradient), and is used if ``euclidean_output`` is false. With
    ``densmap`` or ``output_dens``, ``densmap_kwds`` must have the distances of the edges as "graph_dists"; it may have
    "lambda", "frac", "var_shift" and "n_neighbors". The radii are in ``aux_data["rad_orig"]`` and ``["rad_emb"]``.
    """
    metric_of_map = "euclidean" if euclidean_output else output_metric
    keywords_of_map = {} if euclidean_output else dict(output_metric_kwds or {})
    space = output_space(metric_of_map, keywords_of_map, n_components)
    edges = Graph.from_scipy(graph)
    radii = _graph_radii(edges, densmap_kwds) if densmap or output_dens else None
    named = {"lambda": "dens_lambda", "frac": "fraction", "var_shift": "variance_shift"}
    given = {named[key]: float(value) for key, value in (densmap_kwds or {}).items() if key in named}
    seed = random_seed(random_state)
    wanted = default_epochs(edges.n) if n_epochs is None else n_epochs
    stops = sorted({int(epoch) for epoch in np.atleast_1d(wanted)})
    last = stops[-1]
    progress = Progress(verbose=verbose, tqdm_kwds=tqdm_kwds)
    with progress.stage("initialize"):
        start = space.start(_start(init, InitialTask(edges, dense_rows(data, edges.n), n_components, seed, -1)))
    forces = Forces(Kernel(float(a), float(b)), space=space)
    density = None if radii is None else DensityPlan(bool(densmap), **given).term(radii)
    sampled = SampledPlan(
        forces,
        learning_rate=initial_alpha,
        negative_sample_rate=int(negative_sample_rate),
        repulsion_strength=gamma,
    )
    schedule = sampled.schedule(last, edges.n)
    layout = Layout(edges, start, forces, schedule, seed=seed, density=density)
    listed = run_layout(layout, stops, progress, lambda: layout.embedding)
    aux: dict[str, Any] = {"embedding_list": listed} if isinstance(n_epochs, list | tuple) else {}
    if output_dens and radii is not None:
        embedded = embedding_radii(layout.embedding, int((densmap_kwds or {}).get("n_neighbors", 15)))
        aux |= {"rad_orig": finite_radii(radii.log_radius), "rad_emb": finite_radii(embedded)}
    return layout.embedding, aux


def _graph_radii(edges: Graph, densmap_kwds: Mapping[str, Any] | None) -> Radii:
    """Return the local radii of the rows from the distances of their edges."""
    distances = (densmap_kwds or {}).get("graph_dists")
    if distances is None:
        raise ValueError("densmap_kwds must have 'graph_dists', as fuzzy_simplicial_set(return_dists=True) returns it")
    lengths = distances.tocsr()[edges.heads(), edges.indices]
    return Radii.of(edges, np.asarray(lengths, dtype=np.float32).reshape(-1))


def _start(init: Any, task: InitialTask) -> NDArray[np.float32]:
    start = given_start(init, task.graph.n, task.n_components)
    if start is not None:
        return start
    name = INITIALIZER_ALIASES.get(init, init)
    if name not in INITIALIZERS:
        raise ValueError(f"init must be one of {sorted(INITIALIZERS)} or an array, got {init!r}")
    return initial_embedding(name, task)[0]


def dense_rows(data: Any, n: int) -> NDArray[np.float32] | None:
    """Return the rows if they are dense coordinates of the graph's rows, else None: a start does not require them."""
    if data is None or not hasattr(data, "shape") or hasattr(data, "tocsr"):
        return None
    rows = np.asarray(data, dtype=np.float32)
    return rows if rows.ndim == 2 and rows.shape[0] == n and np.isfinite(rows).all() else None
