"""Write `golden/functions.npz`: what umap-learn 0.5.12's module-level functions return for small inputs.

Run it in the benchmark environment: `.venv-bench/bin/python tests/golden/make_golden_functions.py`.
The inputs are iris's neighbour table in `golden/iris.npz`; running it again gives the same bytes.

  sizes                          float64 [s], the k of `smooth_knn_dist`; sigma, rho float32 [s, n], bandwidth 0.8
  rows, cols, vals               from `compute_membership_strengths`, three neighbours of row 3 missing
  left, right                    float32 [60, 60], two graphs of the first 60 rows (8 and 12 neighbours, different
                                 columns), dense with 0 for no edge, as all matrices here
  weight                         float64 [w]
  intersection, difference       float32 [w, 60, 60], from `general_simplicial_set_intersection`, the second with
                                 `right_complement`
  union                          float32 [60, 60]
  reset, reset_metric            float32 [60, 60], from `reset_local_connectivity` of intersection[1]
  labels, classes                int64 [60] with -1; `discrete_metric_simplicial_set_intersection` of left
  directed, edge_distance        float32 [60, 60], from `fuzzy_simplicial_set` with k = 6 on a table of 8 columns
  views                          float32 [2, 150, 3], mixtures of iris's columns
  composed                       float32 [3, 150, 150], graphs of `*`, `+` and `-` of two models of the views
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import umap
import umap.umap_ as peer
from make_golden import neighbor_table
from scipy.sparse import csr_matrix

GOLDEN = Path(__file__).parent
ROWS = 60
SIZES = (4.0, 15.0, 22.5)
WEIGHTS = (0.0, 0.2, 0.5, 0.8, 1.0)
EPOCHS = 200


def views(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two views of the rows without ties: mixtures of the columns."""
    turned = data @ np.linalg.qr(np.random.RandomState(2).normal(size=(4, 4)))[0].astype(np.float32)
    return turned[:, :3], turned[:, 1:]


def dense(matrix: object) -> np.ndarray:
    return matrix.toarray().astype(np.float32)


def graph(data: np.ndarray, k: int, columns: int | None = None, **options: object) -> tuple:
    index, distance = neighbor_table(data, columns or k)
    return peer.fuzzy_simplicial_set(
        data, k, np.random.RandomState(0), "euclidean", knn_indices=index, knn_dists=distance, **options
    )


def main() -> None:
    with np.load(GOLDEN / "iris.npz") as file:
        data, index, distance = file["data"], file["index"].astype(np.int32), file["distance"]
    out: dict[str, np.ndarray] = {"sizes": np.array(SIZES), "weight": np.array(WEIGHTS)}
    smooth = [peer.smooth_knn_dist(distance, k, local_connectivity=1.3, bandwidth=0.8) for k in SIZES]
    out["sigma"], out["rho"] = (np.array(one) for one in zip(*smooth, strict=True))
    index[3, -3:] = -1
    members = peer.compute_membership_strengths(index, distance, out["sigma"][1], out["rho"][1], True)
    out["rows"], out["cols"], out["vals"], out["dists"] = members

    left = csr_matrix(graph(data[:ROWS, :2], 8)[0])
    right = csr_matrix(graph(data[:ROWS, 2:] + 0.01 * data[:ROWS, :2], 12)[0])
    # Copies throughout: some of the functions write to the arrays they are given.
    both = [peer.general_simplicial_set_intersection(left.copy(), right.copy(), w) for w in WEIGHTS]
    without = [
        peer.general_simplicial_set_intersection(left.copy(), right.copy(), w, right_complement=True) for w in WEIGHTS
    ]
    labels = np.random.RandomState(1).randint(-1, 3, size=ROWS)
    one, other = (umap.UMAP(n_neighbors=10, n_epochs=EPOCHS, random_state=0).fit(columns) for columns in views(data))
    directed = graph(data[:ROWS], 6, 8, apply_set_operations=False, return_dists=True)
    out |= {
        "left": dense(left),
        "right": dense(right),
        "intersection": np.array([dense(one) for one in both]),
        "difference": np.array([dense(one) for one in without]),
        "union": dense(peer.general_simplicial_set_union(left.copy(), right.copy())),
        "reset": dense(peer.reset_local_connectivity(both[1].copy())),
        "reset_metric": dense(peer.reset_local_connectivity(both[1].copy(), reset_local_metric=True)),
        "labels": labels,
        "classes": dense(peer.discrete_metric_simplicial_set_intersection(left.copy(), labels, 0.7, 3.0)),
        "directed": dense(directed[0]),
        "edge_distance": dense(directed[3]),
        "views": np.array(views(data)),
        "composed": np.array([dense(model.graph_) for model in (one * other, one + other, one - other)]),
    }
    np.savez_compressed(GOLDEN / "functions.npz", **out)


if __name__ == "__main__":
    main()
