"""Short fits of every estimator that run all of its stages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import vicinal

# ParametricUMAP is not in the list: it needs torch, whose threads do not survive a fork.
ESTIMATORS = (
    "UMAP",
    "UMAP of sparse rows",
    "DensMAP",
    "TSNE",
    "LargeVis",
    "AlignedUMAP",
    "KNeighborsTransformer",
    "ProgressiveUMAP",
)


def embed(name: str, X: NDArray[np.float32], *, verbose: bool = False) -> NDArray[np.float32]:
    """Fit an estimator to rows with two threads and return the map, or the graph of KNeighborsTransformer."""
    common: dict[str, Any] = {"random_state": 0, "n_jobs": 2, "verbose": verbose}
    if name == "KNeighborsTransformer":
        return vicinal.KNeighborsTransformer(n_neighbors=5, n_jobs=2).fit_transform(X).toarray()
    if name == "AlignedUMAP":
        same = {row: row for row in range(len(X))}
        return vicinal.AlignedUMAP(n_epochs=5, **common).fit_transform([X, X + 1], relations=[same])[1]
    if name == "TSNE":
        return vicinal.TSNE(max_iter=15, method="fft", **common).fit_transform(X)
    if name == "ParametricUMAP":
        return vicinal.ParametricUMAP(n_epochs=1, init="random", **common).fit_transform(X[:60])
    if name == "ProgressiveUMAP":
        return vicinal.ProgressiveUMAP(polish_epochs=5, **common).fit_transform(X)
    if name == "UMAP of sparse rows":
        from scipy.sparse import csr_matrix

        return vicinal.UMAP(n_epochs=10, **common).fit_transform(csr_matrix(X * (X > 0.5)))
    return getattr(vicinal, name)(n_epochs=10, **common).fit_transform(X)
