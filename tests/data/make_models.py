"""Writes the model files of the present version to tests/data/models/<version>, with rows and where they are placed.

Run once a release; files of earlier ones are never written again: tests/files/test_golden_models.py loads them all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_iris

import vicinal
from vicinal import TSNE, UMAP, AlignedUMAP, DensMAP, KNeighborsTransformer, LargeVis, ParametricUMAP, ProgressiveUMAP

MODELS = Path(__file__).parent / "models"
FITTED, NEW = 60, 6
FAST: dict[str, Any] = {"n_neighbors": 6, "n_epochs": 20, "random_state": 0, "init": "pca"}


def iris() -> tuple[np.ndarray, np.ndarray]:
    """Every second row: the fitted ones, and new ones beside them."""
    rows = load_iris().data.astype(np.float32)[::2]
    return rows[:FITTED], rows[FITTED : FITTED + NEW] + np.float32(0.01)


def models(X: np.ndarray) -> dict[str, Any]:
    names = np.array(["setosa", "other", None], dtype=object)[np.arange(FITTED) % 3]
    halves = [UMAP(**FAST).fit(X[:, :2]), UMAP(**FAST).fit(X[:, 2:])]
    return {
        "umap": UMAP(**FAST).fit(X),
        "umap-supervised": UMAP(unique=True, **FAST).fit(X, names),
        "umap-sparse": UMAP(metric="cosine", **FAST).fit(sparse.csr_matrix(X)),
        "umap-weighted": UMAP(**FAST).fit(X, sample_weight=np.arange(1, FITTED + 1)),
        "densmap": DensMAP(**FAST).fit(X),
        "composed": halves[0] * halves[1],
        "aligned": AlignedUMAP(n_neighbors=6, n_epochs=10, random_state=0).fit(
            [X[:40], X[20:]], relations=[{i + 20: i for i in range(20)}]
        ),
        "largevis": LargeVis(perplexity=5, n_epochs=20, random_state=0).fit(X),
        "tsne": TSNE(perplexity=5, max_iter=50, random_state=0).fit(X),
        "kneighbors": KNeighborsTransformer(n_neighbors=4).fit(X),
        "parametric": ParametricUMAP(
            n_neighbors=6, n_epochs=1, batch_size=64, random_state=0, init="random", device="cpu"
        ).fit(X),
        "progressive": ProgressiveUMAP(n_neighbors=6, batch_size=30, random_state=0).fit(X),
        "unfitted": UMAP(n_neighbors=7, metric_kwds={"p": 3.0}, init=np.zeros((3, 2), dtype=np.float32)),
    }


def placed(name: str, model: Any, new: np.ndarray) -> np.ndarray:
    """Where a model puts new rows, as one array whatever the model wants and returns."""
    if name == "unfitted":
        return np.empty((0, 2), dtype=np.float32)
    if name == "aligned":
        return np.concatenate(model.transform([new, new]))
    given = {"composed": (new[:, :2], new[:, 2:]), "umap-sparse": sparse.csr_matrix(new)}.get(name, new)
    places = model.transform(given)
    return places.toarray() if sparse.issparse(places) else places


def main() -> None:
    folder = MODELS / vicinal.__version__
    folder.mkdir(parents=True, exist_ok=True)
    X, new = iris()
    expected = {"new": new}
    for name, model in models(X).items():
        model.save(folder / f"{name}.vicinal")
        expected[name] = placed(name, model, new)
    np.savez_compressed(folder / "expected.npz", **expected)


if __name__ == "__main__":
    main()
