"""The conformance table: small data sets, estimators, and the executors that carry out the steps of a fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vicinal import TSNE, UMAP, AlignedUMAP, DensMAP, LargeVis, ProgressiveUMAP

Rows = NDArray[np.float32]
N, LONERS = 120, 6


@dataclass(frozen=True)
class Data:
    """A data set: rows, the parameters that it needs, what ``fit`` is given besides, and the truth about it.

    ``group`` numbers groups that no edge may join (-1: a row without any neighbor).
    """

    X: Any
    params: dict[str, Any] = field(default_factory=dict)
    fit: dict[str, Any] = field(default_factory=dict)
    group: NDArray[np.int64] | None = None

    @property
    def isolated(self) -> NDArray[np.bool_]:
        n = self.X.shape[0]
        return np.zeros(n, bool) if self.group is None else self.group < 0


def blobs(seed: int = 0, n: int = N) -> Rows:
    rng = np.random.default_rng(seed)
    return (rng.normal(scale=5, size=(4, 6))[rng.integers(4, size=n)] + rng.normal(size=(n, 6))).astype(np.float32)


def unrelated_groups() -> tuple[Rows, NDArray[np.int64]]:
    """Ten groups of twelve rows; rows of different groups have no column in common."""
    rng = np.random.default_rng(1)
    X = np.kron(np.eye(10), np.ones((12, 4))) * rng.uniform(0.2, 1.0, size=(120, 40))
    return X.astype(np.float32), np.repeat(np.arange(10), 12)


def with_loners() -> tuple[Rows, NDArray[np.int64]]:
    """Rows that share columns with each other, then rows with a column of their own each."""
    rng = np.random.default_rng(2)
    X = np.zeros((N, 40), dtype=np.float32)
    for row in X[: N - LONERS]:
        row[rng.choice(15, 6, replace=False)] = 1.0
    X[N - LONERS + np.arange(LONERS), 20 + np.arange(LONERS)] = 1.0
    return X, np.where(np.arange(N) < N - LONERS, 0, -1)


def make_data() -> dict[str, Data]:
    X, rng = blobs(), np.random.default_rng(3)
    groups, number = unrelated_groups()
    loners, lonely = with_loners()
    far = X.copy()
    far[60:] += 1000.0
    repeated = X.copy()
    repeated[100:] = repeated[:20]
    thinned = groups * (rng.random(groups.shape) < 0.8)
    pinned = np.arange(N) % 10 == 0
    pins = {"fixed_mask": pinned, "fixed_positions": rng.uniform(0, 10, size=(N, 2)).astype(np.float32)}
    return {
        "plain": Data(X),
        "int8": Data((10 * X).clip(-120, 120).astype(np.int8)),
        "cosine of unrelated rows": Data(groups, {"metric": "cosine"}, group=number),
        "sparse cosine of unrelated rows": Data(sparse.csr_matrix(groups), {"metric": "cosine"}, group=number),
        "sparse correlation": Data(sparse.csr_matrix(thinned), {"metric": "correlation"}),
        "jaccard": Data(loners, {"metric": "jaccard"}, group=lonely),
        "isolated": Data(loners, {"metric": "cosine"}, group=lonely),
        "disconnected": Data(far, {"disconnection_distance": 100.0}, group=np.repeat([0, 1], 60)),
        "duplicates": Data(repeated),
        "weights": Data(X, fit={"sample_weight": rng.uniform(0.5, 3.0, size=N)}),
        "labels": Data(X, fit={"y": np.where(rng.random(N) < 0.3, -1, rng.integers(3, size=N))}),
        "pins": Data(X, fit=pins),
    }


DATA = make_data()

SHORT: dict[str, Any] = {"n_epochs": 30, "random_state": 0}
ESTIMATORS: dict[str, Any] = {
    "UMAP": lambda **params: UMAP(**SHORT, **params),
    "DensMAP": lambda **params: DensMAP(**SHORT, **params),
    "LargeVis": lambda **params: LargeVis(perplexity=6, **SHORT, **params),
    "TSNE": lambda **params: TSNE(perplexity=6, max_iter=60, random_state=0, **params),
    "ProgressiveUMAP": lambda **params: ProgressiveUMAP(random_state=0, **params),
    "ComposedUMAP": lambda **params: Composed(**params),
    "AlignedUMAP": lambda **params: Aligned(**params),
}

# What an estimator has no parameter or argument for.
ABSENT: dict[str, set[str]] = {
    "LargeVis": {"disconnected", "weights", "labels", "pins"},
    "TSNE": {"disconnected", "weights", "labels", "pins"},
    "ProgressiveUMAP": {"weights", "pins"},
    "ComposedUMAP": {"weights", "pins"},
    "AlignedUMAP": {"disconnected", "weights", "pins"},
}


class Composed:
    """Two maps of the same rows, intersected, with the interface of an estimator."""

    def __init__(self, **params: Any) -> None:
        self._params = params

    def fit(self, X: Any, y: Any = None) -> Any:
        parts = [UMAP(**SHORT, n_neighbors=k, **self._params).fit(X, y) for k in (10, 15)]
        self.model = parts[0] * parts[1]
        self.embedding_, self.graph_ = self.model.embedding_, self.model.graph_
        return self

    def transform(self, X: Any) -> Any:
        return self.model.transform((X, X))


class Aligned:
    """The first of two related slices with the same rows."""

    def __init__(self, **params: Any) -> None:
        self._params = params

    def fit(self, X: Any, y: Any = None) -> Any:
        relation = {row: row for row in range(X.shape[0])}
        labels = None if y is None else [y, y]
        self.model = AlignedUMAP(n_epochs=30, random_state=0, **self._params).fit([X, X], labels, relations=[relation])
        first = self.model.mappers_[0]
        self.embedding_, self.graph_ = first.embedding_, first.graph_
        return self

    def transform(self, X: Any) -> Any:
        return self.model.transform(X, at=0)


CELLS = [(estimator, data) for estimator in ESTIMATORS for data in DATA if data not in ABSENT.get(estimator, set())]
