"""Print a digest of the result of every stage for scikit-learn's digits, with an installed vicinal.

The rows are integers from 0 to 16, so their distances are exact at every instruction-set level. The start of the
layouts and the curve of the kernel are given: NumPy's and LAPACK's last bits depend on the platform.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

import vicinal

ROWS = 900
A, B = 1.577, 0.8951


def show(name: str, *arrays: NDArray[Any]) -> None:
    """Print one line."""
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays))
    print(f"{name}: {digest.hexdigest()[:16]}", flush=True)


def main() -> None:
    """Print the digests of neighbors, graphs, layouts and a fitted model."""
    images = load_digits().data.astype(np.float32)
    rows, unseen = images[:ROWS], images[ROWS : ROWS + 50]
    # Integers below 2^24 divided by a power of two: exact in float32.
    start = (np.arange(2 * ROWS, dtype=np.int64) * 7919 % 10007).reshape(ROWS, 2).astype(np.float32) / 1024
    for method in ("exact", "approximate"):
        table = vicinal.find_neighbors(rows, 15, method=method)
        show(f"neighbors {method}", table.index, table.distance)
    table = vicinal.find_neighbors(rows, 15)
    graph = vicinal.fuzzy_graph(table)
    show("graph", graph.indptr, graph.indices, graph.weights)
    layout = vicinal.Layout(graph, start, vicinal.Kernel(A, B), vicinal.Schedule(50), seed=1)
    layout.step(50)
    show("layout", layout.embedding)
    model = vicinal.UMAP(n_epochs=50, a=A, b=B, init=start, random_state=0).fit(rows)
    show("UMAP", model.embedding_)
    show("UMAP transform", model.transform(unseen))
    labeled = vicinal.UMAP(n_epochs=20, a=A, b=B, init=start, random_state=0).fit(rows, load_digits().target[:ROWS])
    show("UMAP with labels", labeled.embedding_)


if __name__ == "__main__":
    main()
