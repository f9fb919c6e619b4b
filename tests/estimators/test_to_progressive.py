"""UMAP.to_progressive: a fitted map that goes on as a stream."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import vicinal
from vicinal import UMAP, DensMAP, ProgressiveUMAP
from vicinal.quality import trustworthiness

Rows = NDArray[np.float32]
SEEDED: dict[str, Any] = {"random_state": 0, "n_neighbors": 10}


def manhattan(x: Rows, y: Rows) -> float:
    return float(np.abs(x - y).sum())


def groups(sizes: list[int], d: int = 6) -> Rows:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(n, d)) + 50 * i for i, n in enumerate(sizes)]).astype(np.float32)


@pytest.mark.parametrize(
    "kind", ["digits", "repeated", "few", "cosine", "sparse", "function", "isolated", "bytes", "3d"]
)
def test_the_stream_holds_the_same_rows_edges_and_places(digits: Rows, kind: str) -> None:
    X: Any = digits[:300]
    more: dict[str, Any] = {}
    if kind == "repeated":
        X = np.concatenate([X, X[:100], X[:20]])
    elif kind == "few":
        X = X[:8]
    elif kind == "sparse":
        X, more = sparse.csr_matrix(X), {"metric": "cosine"}
    elif kind == "isolated":
        X, more = np.concatenate([X, groups([1, 1, 1], 64) + 1000]), {"disconnection_distance": 60.0}
    elif kind == "bytes":
        X = X.astype(np.uint8)
    elif kind == "3d":
        more = {"n_components": 3, "min_dist": 0.3, "init": "auto"}
    elif kind in ("cosine", "function"):
        X, more = X[:150], {"metric": {"cosine": "cosine", "function": manhattan}[kind]}
    with pytest.warns(UserWarning, match="disconnected") if kind == "isolated" else nullcontext():
        model = UMAP(**(SEEDED | more)).fit(X)
    stream = model.to_progressive(window=100_000)
    assert isinstance(stream, ProgressiveUMAP)
    assert stream.embedding_.tobytes() == model.embedding_.tobytes()
    assert (stream.graph_ != model.graph_).nnz == 0
    assert (np.asarray(stream.rows_ != X).sum() if kind != "sparse" else (stream.rows_ != X).nnz) == 0
    assert (stream.n_rows_, stream.pending_, stream.window) == (X.shape[0], 0, 100_000)
    assert stream.get_params()["min_dist"] == model.min_dist
    before = model.embedding_.copy()
    stream.partial_fit(digits[500:560] if kind != "sparse" else sparse.csr_matrix(digits[500:560])).run()
    assert stream.n_rows_ == X.shape[0] + 60
    assert np.isfinite(stream.embedding_).all()
    np.testing.assert_array_equal(model.embedding_, before)


def test_the_map_is_as_good_as_one_fit_after_more_rows(digits: Rows) -> None:
    stream = UMAP(**SEEDED).fit(digits[:500]).to_progressive()
    for begin in range(500, 900, 200):
        stream.partial_fit(digits[begin : begin + 200])
    stream.run().polish()
    best = UMAP(**SEEDED).fit_transform(digits[:900])
    assert trustworthiness(digits[:900], stream.embedding_) >= trustworthiness(digits[:900], best) - 0.01


def test_few_new_rows_leave_most_old_rows_in_place(digits: Rows) -> None:
    model = UMAP(**SEEDED).fit(digits[:1000])
    stream = model.to_progressive().partial_fit(digits[1000:1003])
    stay = (stream.embedding_[:1000] == model.embedding_).all(axis=1)
    assert stay.mean() >= 0.9


def test_a_saved_stream_of_a_fitted_map_goes_on_with_the_same_bits(digits: Rows, tmp_path: Path) -> None:
    one = UMAP(**SEEDED).fit(digits[:300]).to_progressive(window=400)
    one.save(tmp_path / "stream.vicinal")
    other = vicinal.load(tmp_path / "stream.vicinal")
    three = UMAP(**SEEDED, n_jobs=3).fit(digits[:300]).to_progressive(window=400)
    for model in (one, other, three):
        model.partial_fit(digits[600:750]).run()
    assert one.embedding_.tobytes() == other.embedding_.tobytes() == three.embedding_.tobytes()
    back = one.to_umap()
    assert back.embedding_.tobytes() == one.embedding_.tobytes()
    assert back.to_progressive().embedding_.tobytes() == one.embedding_.tobytes()


REFUSED = {
    "labels": "labels",
    "weights": "sample_weight",
    "pins": "fixed_mask",
    "densmap": "densMAP",
    "sphere": "output_metric",
    "distances": "metric='precomputed'",
    "knn": "precomputed_knn",
    "graph": "transform_mode is 'graph'",
    "unique": "unique=True",
    "negatives": "update_negatives=True",
}


def refused_model(kind: str, X: Rows) -> UMAP:
    few: dict[str, Any] = {"n_epochs": 5, **SEEDED}
    fit: dict[str, Any] = {}
    if kind == "distances":
        X = np.linalg.norm(X[:, None] - X[None], axis=2)
    if kind == "knn":
        table = vicinal.find_neighbors(X, 10)
        few["precomputed_knn"] = (table.index, table.distance)
    few |= {
        "sphere": {"output_metric": "haversine"},
        "distances": {"metric": "precomputed"},
        "graph": {"transform_mode": "graph"},
        "unique": {"unique": True},
        "negatives": {"update_negatives": True},
    }.get(kind, {})
    fit |= {
        "labels": {"y": np.arange(len(X)) % 3},
        "weights": {"sample_weight": 1.0 + np.arange(len(X))},
        "pins": {"fixed_mask": np.arange(len(X)) < 5, "fixed_positions": np.zeros((len(X), 2))},
    }.get(kind, {})
    X = np.concatenate([X, X[:5]]) if kind == "unique" else X
    return (DensMAP if kind == "densmap" else UMAP)(**few).fit(X, **fit)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_a_stream_cannot_have_is_refused_by_name(kind: str) -> None:
    model = refused_model(kind, groups([40]))
    with pytest.raises(ValueError, match=f"to_progressive: this .* has .*{REFUSED[kind]}"):
        model.to_progressive()


def test_a_composed_model_is_refused() -> None:
    X = groups([40])
    composed = UMAP(n_epochs=5, **SEEDED).fit(X) + UMAP(n_epochs=5, **SEEDED).fit(2 * X)
    with pytest.raises(TypeError, match="a composed model follows from its parts"):
        composed.to_progressive()


def test_wrong_parameters_and_models_without_a_map_are_refused(digits: Rows) -> None:
    with pytest.raises(vicinal.estimators.progressive.NotFittedError):
        UMAP().to_progressive()
    model = UMAP(n_epochs=5, **SEEDED).fit(digits[:100])
    with pytest.raises(TypeError, match=r"takes the parameters move, .*window, got 'min_dist'"):
        model.to_progressive(min_dist=0.5)
    with pytest.raises(ValueError, match="window"):
        model.to_progressive(window=0)
