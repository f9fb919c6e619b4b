"""Write the golden files: small graphs, kernels and one layout epoch as umap-learn 0.5.12 gives them.

Run it in the benchmark environment: `.venv-bench/bin/python tests/golden/make_golden.py`.
The files hold plain arrays, and running it again gives the same bytes.

`iris.npz`, `digits.npz`, `repeated.npz` (iris rows, some of them many times):
  data                      float32 [n, d]
  index, distance           the exact neighbour table [n, 15], self first, ties by index (float32 distances)
  local_connectivity        float64 [c], the values that `sigma`, `rho` and `weights` were made for
  set_op_mix_ratio          float64 [m]
  sigma, rho                float32 [c, n], from `smooth_knn_dist`
  rows, cols                uint16 [e], the entries above the diagonal (rows < cols) of the union graph
  weights                   float32 [c, m, e], from `fuzzy_simplicial_set` of that table, 0 where this graph
                            has no entry; the graphs are bitwise symmetric and have no entry elsewhere
  nnz                       int64 [c, m], entries of the whole graph
`kernel.npz`: spread, min_dist, a, b from `find_ab_params`.
`epoch.npz`: one sequential epoch of umap-learn's layout on iris, every edge firing:
  initial, final [n, 2]; edges [e, 2]; negatives [e, 5]; a, b, gamma, learning_rate.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import umap
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, load_iris
from umap.layouts import _nb_optimize_layout_euclidean_single_epoch
from umap.umap_ import find_ab_params, fuzzy_simplicial_set, smooth_knn_dist
from umap.utils import tau_rand_int

GOLDEN = Path(__file__).parent
VERSION = "0.5.12"
N_NEIGHBORS = 15
MIX_RATIOS = (1.0, 0.5, 0.0)
CONNECTIVITIES = (1.0, 1.5, 2.0)
NEGATIVES = 5


def repeated_rows(iris: np.ndarray) -> np.ndarray:
    """Forty iris rows, one of them 20 times (more than k) and one 10 times (fewer than k)."""
    order = np.concatenate([np.arange(40), np.full(19, 0), np.full(9, 1)])
    return iris[order]


def neighbor_table(data: np.ndarray, k: int = N_NEIGHBORS) -> tuple[np.ndarray, np.ndarray]:
    """Exact neighbours from float64 distances, self first, ties by index."""
    distances = cdist(data.astype(np.float64), data.astype(np.float64))
    key = distances.copy()
    np.fill_diagonal(key, -1.0)
    index = np.argsort(key, axis=1, kind="stable")[:, :k]
    return index.astype(np.int32), np.take_along_axis(distances, index, axis=1).astype(np.float32)


def union_graph(data: np.ndarray, table: tuple[np.ndarray, np.ndarray], connectivity: float, mix: float):
    graph, _, _ = fuzzy_simplicial_set(
        data,
        N_NEIGHBORS,
        np.random.RandomState(0),
        "euclidean",
        knn_indices=table[0],
        knn_dists=table[1],
        set_op_mix_ratio=mix,
        local_connectivity=connectivity,
    )
    graph = graph.tocsr()
    if (graph != graph.T).nnz or graph.diagonal().any():
        raise AssertionError("the golden format relies on symmetric graphs without a diagonal")
    return graph


def write_graphs(name: str, data: np.ndarray) -> None:
    table = neighbor_table(data)
    smooth = [smooth_knn_dist(table[1], float(N_NEIGHBORS), local_connectivity=c) for c in CONNECTIVITIES]
    graphs = [[union_graph(data, table, c, m) for m in MIX_RATIOS] for c in CONNECTIVITIES]
    upper = graphs[0][0].tocoo()
    above = upper.row < upper.col
    rows, cols = upper.row[above], upper.col[above]
    weights = np.array([[np.asarray(g[rows, cols]).ravel() for g in line] for line in graphs], dtype=np.float32)
    nnz = np.array([[g.nnz for g in line] for line in graphs])
    if (nnz != 2 * np.count_nonzero(weights, axis=2)).any():
        raise AssertionError("a graph has entries outside the pattern that is written")
    np.savez_compressed(
        GOLDEN / f"{name}.npz",
        data=data,
        index=table[0].astype(np.int16),
        distance=table[1],
        local_connectivity=np.array(CONNECTIVITIES),
        set_op_mix_ratio=np.array(MIX_RATIOS),
        sigma=np.array([s for s, _ in smooth]),
        rho=np.array([r for _, r in smooth]),
        rows=rows.astype(np.uint16),
        cols=cols.astype(np.uint16),
        weights=weights,
        nnz=nnz,
    )


def write_kernel() -> None:
    pairs = [
        (spread, min_dist)
        for spread in (0.5, 1.0, 1.5, 2.0, 3.0)
        for min_dist in (0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.8, 0.99)
        if min_dist <= spread
    ]
    fitted = [find_ab_params(spread, min_dist) for spread, min_dist in pairs]
    np.savez_compressed(
        GOLDEN / "kernel.npz",
        spread=np.array([p[0] for p in pairs]),
        min_dist=np.array([p[1] for p in pairs]),
        a=np.array([f[0] for f in fitted]),
        b=np.array([f[1] for f in fitted]),
    )


def write_epoch(data: np.ndarray) -> None:
    """One call of umap-learn's sequential epoch; a copy of the generator's state replays its negatives."""
    graph = union_graph(data, neighbor_table(data), 1.0, 1.0).tocoo()
    n, n_edges = graph.shape[0], graph.nnz
    a, b = find_ab_params(1.0, 0.1)
    # At a learning rate near 1 the sequential steps are chaotic: rounding grows to the size of the map.
    gamma, learning_rate = 1.3, 0.02
    rng = np.random.RandomState(7)
    initial = rng.uniform(0.0, 10.0, size=(n, 2)).astype(np.float32)
    state = rng.randint(1, 2**31 - 1, size=(n, 3)).astype(np.int64)
    replay = state.copy()
    negatives = np.array([[tau_rand_int(replay[h]) % n for _ in range(NEGATIVES)] for h in graph.row])

    final = initial.copy()
    nothing = np.zeros(1, dtype=np.float32)
    each = np.ones(n_edges)
    _nb_optimize_layout_euclidean_single_epoch(
        *(final, final, graph.row, graph.col, n, each, a, b, state, gamma, 2, True, learning_rate),
        # With both clocks at 0 and epoch 1 every edge fires, with 1 / (1/5) negatives.
        *(each / NEGATIVES, np.zeros(n_edges), np.zeros(n_edges), 1),
        *(False, nothing, nothing, 0, 0, 0, 0, nothing, nothing, 0),
    )
    if not np.array_equal(state, replay):
        raise AssertionError("the replayed negatives are not those that the epoch drew")
    np.savez_compressed(
        GOLDEN / "epoch.npz",
        initial=initial,
        final=final,
        edges=np.stack([graph.row, graph.col], axis=1).astype(np.uint16),
        negatives=negatives.astype(np.uint16),
        a=np.float64(a),
        b=np.float64(b),
        gamma=np.float64(gamma),
        learning_rate=np.float64(learning_rate),
    )


def main() -> None:
    if umap.__version__ != VERSION:
        raise SystemExit(f"the golden files are umap-learn {VERSION}'s; this is {umap.__version__}")
    iris = load_iris().data.astype(np.float32)
    write_graphs("iris", iris)
    write_graphs("repeated", repeated_rows(iris))
    write_graphs("digits", load_digits().data[:500].astype(np.float32))
    write_kernel()
    write_epoch(iris)


if __name__ == "__main__":
    main()
