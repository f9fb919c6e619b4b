"""The caller's arrays are not changed, and float32 rows are not copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from vicinal import UMAP

DTYPES = (np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8, np.bool_)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_labels_and_init_are_not_changed(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((60, 5)) * 3).astype(dtype)
    y = rng.integers(-1, 3, size=60)
    init = rng.normal(size=(60, 2)).astype(np.float32)
    kept = X.copy(), y.copy(), init.copy()
    for array in (X, y, init):
        array.setflags(write=False)
    model = UMAP(n_epochs=10, init=init, n_neighbors=5).fit(X, y)
    model.transform(X)
    model.transform(1 - X if dtype != np.bool_ else ~X)
    for array, copy in zip((X, y, init), kept, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation", "manhattan"])
def test_float32_rows_are_not_copied(metric: str) -> None:
    X = np.random.default_rng(0).normal(size=(80, 6)).astype(np.float32)
    model = UMAP(n_epochs=5, metric=metric).fit(X)
    assert np.shares_memory(model._raw_data, X)


def test_memory_mapped_rows_are_not_copied(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(80, 6)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    model = UMAP(n_epochs=5, random_state=0).fit(X)
    assert np.shares_memory(model._raw_data, X)
    np.testing.assert_array_equal(model.embedding_, UMAP(n_epochs=5, random_state=0).fit(rows).embedding_)


def test_all_kinds_of_input_give_the_same_map(iris: NDArray[np.float32]) -> None:
    def embed(X: Any) -> NDArray[np.float32]:
        return np.asarray(UMAP(n_epochs=10, random_state=0).fit_transform(X))

    expected = embed(iris)
    strided = np.zeros((300, 8), dtype=np.float32)
    strided[::2, ::2] = iris
    kinds: dict[str, Any] = {
        "fortran": np.asfortranarray(iris),
        "strided": strided[::2, ::2],
        "float64": iris.astype(np.float64),
        "list": iris.tolist(),
        "frame": pd.DataFrame(iris),
        "big-endian": iris.astype(">f4"),
        "unaligned": unaligned(iris),
    }
    for name, X in kinds.items():
        np.testing.assert_array_equal(embed(X), expected, err_msg=name)


def unaligned(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    store = np.zeros(rows.nbytes + 1, dtype=np.uint8)
    view = store[1:].view(np.float32).reshape(rows.shape)
    view[:] = rows
    return view


def test_transformed_places_are_copies(iris: NDArray[np.float32]) -> None:
    model = UMAP(n_epochs=10, random_state=0).fit(iris)
    placed = model.transform(iris)
    kept = model.embedding_.copy()
    placed[:] = 0.0
    np.testing.assert_array_equal(model.embedding_, kept)
