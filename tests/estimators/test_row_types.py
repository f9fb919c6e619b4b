"""Rows of float16, int8, uint8 and packed bits stay in their type, and give the map of the same numbers as float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vicinal
from vicinal.files.data_table import ColumnChoice
from vicinal.files.readers import read_table

N, D = 90, 24
SHORT: dict[str, Any] = {"n_epochs": 10, "random_state": 0}
MODELS: dict[str, Any] = {
    "UMAP": lambda **params: vicinal.UMAP(**SHORT, **params),
    "DensMAP": lambda **params: vicinal.DensMAP(**SHORT, **params),
    "LargeVis": lambda **params: vicinal.LargeVis(perplexity=6, **SHORT, **params),
    "TSNE": lambda **params: vicinal.TSNE(perplexity=6, max_iter=20, random_state=0, **params),
    "KNeighborsTransformer": lambda **params: vicinal.KNeighborsTransformer(n_neighbors=5, **params),
}
SMALL = ("float16", "int8", "uint8")


def rows(kind: str, n: int = N, d: int = D) -> NDArray[Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(scale=40, size=(4, d))[rng.integers(4, size=n)] + rng.normal(scale=10, size=(n, d))
    return np.packbits(X > 0, axis=1) if kind == "bits" else (X.clip(-100, 100) + 100 * (kind == "uint8")).astype(kind)


def result(model: Any) -> NDArray[Any]:
    return np.asarray(model.embedding_ if hasattr(model, "embedding_") else model.kneighbors_graph().toarray())


def placed(model: Any, X: Any) -> NDArray[Any]:
    found = model.transform(X)
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)


def stored(model: Any) -> Any:
    return (model.map_ if hasattr(model, "map_") else model.neighbors_).data.rows


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("name", MODELS)
def test_rows_of_small_types_give_the_bits_of_float32(name: str, kind: str, tmp_path: Path) -> None:
    X = rows(kind)
    model, wide = MODELS[name]().fit(X), MODELS[name]().fit(X.astype(np.float32))
    assert np.shares_memory(stored(model), X)
    np.testing.assert_array_equal(result(model), result(wide))
    new = X[:9].copy()
    new[:, 0] += X.dtype.type(1)
    np.testing.assert_array_equal(placed(model, new), placed(wide, new.astype(np.float32)))
    np.testing.assert_array_equal(placed(model, new.astype(np.float32)), placed(model, new))
    model.save(tmp_path / "model.vicinal")
    loaded = vicinal.load(tmp_path / "model.vicinal")
    assert stored(loaded).dtype == kind
    np.testing.assert_array_equal(placed(loaded, new), placed(model, new))


@pytest.mark.parametrize("kind", SMALL)
def test_updates_inverses_and_reliability_of_small_types(kind: str) -> None:
    X = rows(kind)
    model, wide = (vicinal.UMAP(**SHORT).fit(given[:70]) for given in (X, X.astype(np.float32)))
    some = model.embedding_[:4] + 0.1
    np.testing.assert_array_equal(model.inverse_transform(some), wide.inverse_transform(some))
    model.update(X[70:])
    assert stored(model).dtype == kind
    np.testing.assert_array_equal(model.embedding_, wide.update(X[70:].astype(np.float32)).embedding_)
    one, other = (vicinal.reliability(given, model.embedding_) for given in (X, X.astype(np.float32)))
    np.testing.assert_array_equal(one.reliability, other.reliability)


@pytest.mark.parametrize("metric", ["cosine", "correlation", "manhattan", "hellinger", "seuclidean"])
def test_metrics_read_uint8(metric: str) -> None:
    X = rows("uint8")
    one, other = (vicinal.find_neighbors(given, 8, metric=metric) for given in (X, X.astype(np.float32)))
    np.testing.assert_array_equal(one.index, other.index)
    np.testing.assert_array_equal(one.distance, other.distance)


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_packed_bits_have_the_neighbors_of_the_bits(method: Any) -> None:
    packed = rows("bits", 1500, 96)
    bits = np.unpackbits(packed, axis=1).astype(np.float32)
    for metric, plain in (("bit_hamming", "hamming"), ("bit_jaccard", "jaccard")):
        found = vicinal.find_neighbors(packed, 10, metric=metric, method=method)
        expected = vicinal.find_neighbors(bits, 10, metric=plain, method="exact")
        shared = [len(np.intersect1d(a, b)) for a, b in zip(found.index, expected.index, strict=True)]
        assert np.mean(shared) / 10 > (0.999 if method == "exact" else 0.9)


@pytest.mark.parametrize("name", ["UMAP", "LargeVis", "TSNE", "KNeighborsTransformer"])
def test_packed_bits_are_mapped_saved_and_placed(name: str, tmp_path: Path) -> None:
    X = rows("bits", d=48)
    model = MODELS[name](metric="bit_hamming").fit(X)
    assert np.shares_memory(stored(model), X)
    model.save(tmp_path / "model.vicinal")
    loaded = vicinal.load(tmp_path / "model.vicinal")
    new = X[:5] ^ np.uint8(1)
    np.testing.assert_array_equal(placed(loaded, new), placed(model, new))
    if name != "KNeighborsTransformer":
        np.testing.assert_array_equal(model.transform(X), model.embedding_)


def test_what_works_on_float32_refuses_metrics_of_bits() -> None:
    X = rows("bits")
    with pytest.raises(ValueError, match="ProgressiveUMAP and ParametricUMAP compare rows of float32"):
        vicinal.ProgressiveUMAP(metric="bit_hamming").fit(X)
    with pytest.raises(ValueError, match="X must be rows of uint8"):
        vicinal.UMAP(metric="bit_jaccard").fit(X.astype(np.float32))
    da = pytest.importorskip("dask.array", reason="the extra 'cluster' is not installed: no Dask")
    with pytest.raises(ValueError, match="metric must be one of"):
        vicinal.UMAP(metric="bit_hamming").fit(da.from_array(X, chunks=(30, -1)))


def test_estimates_know_the_type_of_the_rows() -> None:
    sizes = {kind: vicinal.estimate_memory(100_000, 768, dtype=kind) for kind in ("int8", "float32", "int32")}
    assert sizes["int8"] < sizes["float32"] < sizes["int32"]
    grown = [
        vicinal.estimate_memory(10_000, 768, estimator="ProgressiveUMAP", dtype=kind) for kind in ("int8", "int32")
    ]
    assert grown[0] == grown[1]  # both are converted


@pytest.mark.parametrize("suffix", ["npy", "npz", "parquet"])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_files_keep_small_types(kind: str, suffix: str, tmp_path: Path) -> None:
    X, path = rows(kind), tmp_path / f"rows.{suffix}"
    if suffix == "parquet":
        pl = pytest.importorskip("polars", reason="polars is not installed: pip install 'vicinal[app]'")
        inner = {"int8": pl.Int8, "uint8": pl.UInt8}[kind]
        pl.DataFrame({"vector": pl.Series(X.tolist(), dtype=pl.Array(inner, D))}).write_parquet(path)
    else:
        (np.save if suffix == "npy" else np.savez)(path, X)
    table = read_table(path, ColumnChoice())
    assert table.X.dtype == kind
    np.testing.assert_array_equal(table.X, X)
