"""Write a model file of every estimator, with new rows and the places that the models give them.

    python tests/data/make_models.py [FOLDER]

The default folder is tests/data/models/<version>: run this once per release. The files of a release are never written
again; tests/files/test_golden_models.py loads those of all releases. Tests of the present format write to a folder of
their own.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_iris

import vicinal
from vicinal import TSNE, UMAP, AlignedUMAP, DensMAP, KNeighborsTransformer, LargeVis, ParametricUMAP, ProgressiveUMAP

MODELS = Path(__file__).parent / "models"
FITTED, NEW = 60, 6
# Models of ``models``; the name of a model is that of its file.
NAMES = (
    "umap", "umap-supervised", "umap-sparse", "umap-weighted", "densmap", "composed", "aligned", "largevis", "tsne",
    "kneighbors", "parametric", "progressive", "unfitted",
)  # fmt: skip
FAST: dict[str, Any] = {"n_neighbors": 6, "n_epochs": 20, "random_state": 0, "init": "pca"}


def iris() -> tuple[np.ndarray, np.ndarray]:
    """Return rows to fit, and new rows close to others of the data."""
    rows = load_iris().data.astype(np.float32)[::2]
    return rows[:FITTED], rows[FITTED : FITTED + NEW] + np.float32(0.01)


def models(X: np.ndarray) -> dict[str, Any]:
    """Fit a small model of every estimator."""
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
    """Transform new rows with any of the models and return one dense array."""
    if name == "unfitted":
        return np.empty((0, 2), dtype=np.float32)
    if name == "aligned":
        return np.concatenate(model.transform([new, new]))
    if name == "clusters":
        return np.asarray(model.predict(new))
    given = {"composed": (new[:, :2], new[:, 2:]), "umap-sparse": sparse.csr_matrix(new)}.get(name, new)
    places = model.transform(given)
    return places.toarray() if sparse.issparse(places) else places


def write(folder: Path) -> None:
    """Write all models and ``expected.npz``, which holds the new rows and their places."""
    folder.mkdir(parents=True, exist_ok=True)
    X, new = iris()
    expected = {"new": new}
    # The clusters of a map are no estimator, but have files too.
    clusters = vicinal.clusters(UMAP(**FAST).fit(X))
    for name, model in (models(X) | {"clusters": clusters}).items():
        model.save(folder / f"{name}.vicinal")
        expected[name] = placed(name, model, new)
    np.savez_compressed(folder / "expected.npz", **expected)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else MODELS / vicinal.__version__)
