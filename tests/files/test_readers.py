"""Readers of data files: features, names, labels and extra columns of every format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import polars as pl
import pytest

from vicinal.files import readers
from vicinal.files.readers import ReadError, read_table

ROWS = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("a, b\n1, 2\n3, 4\n", ("a", "b"), [[1, 2], [3, 4]]),
        ("5,6\n1,2\n", ("0", "1"), [[5, 6], [1, 2]]),
        ("0,1\n1,2\n", ("0", "1"), [[1, 2]]),
        (",a,b\n0,1,2\n1,3,4\n", ("a", "b"), [[1, 2], [3, 4]]),
        ("\ufeffa,b\n1,2\n", ("a", "b"), [[1, 2]]),
        ("a,b,t\n1,2,true\n3,4,false\n", ("a", "b", "t"), [[1, 2, 1], [3, 4, 0]]),
        ('a,"b,c"\n1,2\n', ("a", "b,c"), [[1, 2]]),
        ("a,b\r\n1,2\r\n", ("a", "b"), [[1, 2]]),
    ],
)
def test_csv_with_blanks_index_quotes_and_missing_header(
    tmp_path: Path, text: str, names: tuple[str, ...], rows: list[list[float]]
) -> None:
    path = tmp_path / "data.CSV"
    path.write_bytes(text.encode())
    table = readers.read_table(path)
    assert table.X.tolist() == rows
    assert table.feature_names == names
    assert table.X.dtype == np.float32
    assert table.X.flags.c_contiguous


def test_missing_labels_are_none(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,kind,size\n1,x,3\n2,NA,4\n3,y,5\n")
    table = readers.read_table(path, label="kind")
    assert table.labels is not None
    assert table.labels.tolist() == ["x", None, "y"]
    assert table.feature_names == ("a", "size")
    sizes = readers.read_table(path, label="size")
    assert sizes.labels is not None
    assert sizes.labels.tolist() == [3, 4, 5]
    assert sizes.ignored == ("kind",)


def test_npy_columns_are_selected_by_number(tmp_path: Path) -> None:
    path = tmp_path / "data.npy"
    np.save(path, np.asfortranarray(np.arange(12.0).reshape(4, 3)))
    table = readers.read_table(path, columns=["2", "0"], label="1")
    assert table.X.tolist() == [[2, 0], [5, 3], [8, 6], [11, 9]]
    assert table.X.flags.c_contiguous
    assert table.labels is not None
    assert table.labels.tolist() == [1, 4, 7, 10]
    assert table.labels.dtype.kind == "i"


def test_npz_feather_and_jsonl(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", X=ROWS, other=ROWS[:3], kind=np.arange(60) % 4)
    table = readers.read_table(tmp_path / "one.npz", label="kind")
    assert np.array_equal(table.X, ROWS)
    assert table.labels is not None
    assert table.labels.tolist() == [a % 4 for a in range(60)]
    frame = pl.DataFrame(ROWS, schema=["a", "b", "c", "d"]).with_columns(pl.Series("t", ["x"] * 60))
    frame.write_ipc(tmp_path / "two.feather")
    frame.write_ndjson(tmp_path / "two.jsonl")
    for name in ("two.feather", "two.jsonl"):
        read = readers.read_table(tmp_path / name, extra=["t"])
        assert pytest.approx(ROWS) == read.X
        assert read.extra["t"].tolist() == ["x"] * 60


def test_h5ad_with_sparse_matrix_and_components(tmp_path: Path) -> None:
    from scipy.sparse import csr_matrix

    path = tmp_path / "cells.h5ad"
    sparse = csr_matrix(np.where(ROWS > 0, ROWS, 0))
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs["encoding-type"] = "csr_matrix"
        group.attrs["shape"] = sparse.shape
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(sparse, name)
        file["obsm/X_pca"] = ROWS[:, :2]
        file["obs/depth"] = np.arange(60)
        file["obs/kind/codes"] = np.array([0, 1, -1] * 20, dtype=np.int8)
        file["obs/kind/categories"] = np.array(["T", "B"], dtype=h5py.string_dtype())
    table = readers.read_table(path, label="kind", extra=["depth"])
    assert np.array_equal(table.X, ROWS[:, :2])
    assert table.labels is not None
    assert table.labels[:3].tolist() == ["T", "B", None]
    assert table.extra["depth"].tolist() == list(range(60))
    assert np.array_equal(readers.read_table(path, array="X").X, sparse.toarray())


def _external_link(file: h5py.File, folder: Path) -> None:
    file["obs/name"] = h5py.ExternalLink(str(folder / "other.h5"), "secret")


def _soft_link_to_an_external_link(file: h5py.File, folder: Path) -> None:
    file["uns/hidden"] = h5py.ExternalLink(str(folder / "other.h5"), "/")
    file["obs/name"] = h5py.SoftLink("/uns/hidden/secret")


def _external_group(file: h5py.File, folder: Path) -> None:
    file["obsm"] = h5py.ExternalLink(str(folder / "other.h5"), "/")


def _external_storage(file: h5py.File, folder: Path) -> None:
    file["obs"].create_dataset("name", (3,), "S4", external=[(str(folder / "secret.txt"), 0, 12)])


def _external_matrix(file: h5py.File, folder: Path) -> None:
    del file["X"]
    file.create_dataset("X", (3, 2), "u1", external=[(str(folder / "secret.txt"), 0, 6)])


def _virtual_dataset(file: h5py.File, folder: Path) -> None:
    layout = h5py.VirtualLayout((3,), "S4")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "secret", (3,))
    file["obs"].create_virtual_dataset("name", layout)


@pytest.mark.parametrize(
    "refer",
    [
        _external_link, _soft_link_to_an_external_link, _external_group, _external_storage, _external_matrix,
        _virtual_dataset,
    ],
    ids=lambda one: one.__name__,
)  # fmt: skip
def test_h5ad_that_refers_to_another_file_is_refused(refer: Callable[[h5py.File, Path], None], tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_bytes(b"do not read!")
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["secret"] = np.array([b"do", b"not", b"read"], "S4")
    path = tmp_path / "data.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.eye(3, 2, dtype=np.float32)
        file.create_group("obs")
        refer(file, tmp_path)
    with pytest.raises(ReadError, match="other file"):
        read_table(path)


def test_h5ad_with_links_inside_is_read(tmp_path: Path) -> None:
    path = tmp_path / "data.h5ad"
    with h5py.File(path, "w") as file:
        file["layers/counts"] = np.eye(3, 2, dtype=np.float32)
        file["X"] = h5py.SoftLink("/layers/counts")
        file["obsm/X_other"] = file["layers/counts"]
    np.testing.assert_array_equal(read_table(path).X, np.eye(3, 2, dtype=np.float32))


def test_columns_of_bytes_are_text(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", X=ROWS[:3], name=np.array([b"a", b"b\xff", b""]))
    table = readers.read_table(tmp_path / "data.npz", label="name", extra=["name"])
    assert table.labels is not None
    assert table.labels.tolist() == table.extra["name"].tolist() == ["a", "b\ufffd", ""]
