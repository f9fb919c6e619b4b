"""Batches contain all rows once, in order, with their labels, and only one batch is in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from vicinal.files.batches import batches, read_batches
from vicinal.files.data_table import ColumnChoice
from vicinal.files.readers import ReadError, read_table

Rows = NDArray[np.float32]


def frame(iris: Rows) -> pl.DataFrame:
    columns = {name: iris[:, a] for a, name in enumerate(("sl", "sw", "pl", "pw"))}
    return pl.DataFrame({**columns, "kind": [f'"{"abc"[i // 50]}",\n{i}' for i in range(150)]})


def written(path: Path, iris: Rows) -> Path:
    table = frame(iris)
    {
        ".csv": lambda: table.write_csv(path),
        ".tsv": lambda: table.write_csv(path, separator="\t"),
        ".parquet": lambda: table.write_parquet(path, row_group_size=40),
        ".feather": lambda: table.write_ipc(path),
        ".jsonl": lambda: table.write_ndjson(path),
    }[path.suffix]()
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".feather", ".jsonl"])
@pytest.mark.parametrize("size", [1, 40, 64, 1000])
def test_batches_of_a_file_equal_the_whole_file(iris: Rows, tmp_path: Path, suffix: str, size: int) -> None:
    path = written(tmp_path / f"rows{suffix}", iris)
    whole = read_table(path, ColumnChoice(label="kind"))
    found = list(batches(path, size, label="kind"))
    assert all(0 < len(X) <= size for X, _ in found)
    np.testing.assert_array_equal(np.concatenate([X for X, _ in found]), whole.X)
    np.testing.assert_array_equal(np.concatenate([y for _, y in found]), whole.labels)


def test_npy_file_is_memory_mapped(iris: Rows, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", iris.astype(np.float64))
    found = list(batches(tmp_path / "rows.npy", 64))
    assert [len(X) for X, _ in found] == [64, 64, 22]
    np.testing.assert_array_equal(np.concatenate([X for X, _ in found]), iris)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    part, labels = next(batches(mapped, 10, np.arange(150)))
    assert isinstance(part, np.memmap)
    np.testing.assert_array_equal(labels, np.arange(10))


def test_iterator_is_consumed_lazily(iris: Rows) -> None:
    asked = []

    def source() -> Iterator[Any]:
        for begin in range(0, 150, 50):
            asked.append(begin)
            yield iris[begin : begin + 50], np.arange(begin, begin + 50)

    found = batches(source(), 30)
    first = [next(found), next(found)]
    assert asked == [0]
    rest = list(found)
    assert [len(X) for X, _ in first + rest] == [30, 20] * 3
    np.testing.assert_array_equal(np.concatenate([y for _, y in first + rest]), np.arange(150))
    assert [y for _, y in batches([iris[:3], iris[3:7]], 5)] == [None, None]


def test_invalid_value_is_reported_with_its_row_in_the_file(iris: Rows, tmp_path: Path) -> None:
    broken = iris.copy()
    broken[97, 2] = np.nan
    written(tmp_path / "rows.parquet", broken)
    np.save(tmp_path / "rows.npy", broken)
    for name in ("rows.parquet", "rows.npy"):
        found = batches(tmp_path / name, 40)
        next(found), next(found)
        with pytest.raises(ReadError, match="row 97"):
            next(found)


def test_column_must_be_numeric_in_every_batch(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,4\nfive,6\n")
    found = batches(tmp_path / "rows.csv", 2)
    assert next(found)[0].tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ReadError, match="'a' is not numeric"):
        next(found)


def test_invalid_combinations_of_arguments_are_refused(iris: Rows, tmp_path: Path) -> None:
    for bad in ({"size": 0}, {"y": np.zeros(3)}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            batches(iris, **bad)
    with pytest.raises(TypeError, match="label"):
        batches(iris, label="kind")
    with pytest.raises(ReadError, match="does not exist"):
        batches(tmp_path / "nothing.csv")


def test_sparse_rows_are_split_too(iris: NDArray[np.float32]) -> None:
    from scipy.sparse import coo_matrix, csr_matrix

    for source in (coo_matrix(iris), [csr_matrix(iris[:70]), csr_matrix(iris[70:])]):
        found = [rows for rows, _ in batches(source, 40)]
        assert max(rows.shape[0] for rows in found) == 40
        np.testing.assert_array_equal(np.concatenate([rows.toarray() for rows in found]), iris)
    labels = [part for _, part in batches(csr_matrix(iris), 40, np.arange(150))]
    np.testing.assert_array_equal(np.concatenate(labels), np.arange(150))


def test_the_first_batch_decides_the_decimal_mark(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    first, later = ['"1,5",1.100', '"2,5",2.200', '"0,5",4.300'], ["3,1.400", "4,2.500", "7,3.600"]
    path.write_text("\n".join(["a,b", *first, *later]))
    whole = read_table(path).X.tolist()
    assert whole == [[1.5, 1100], [2.5, 2200], [0.5, 4300], [3, 1400], [4, 2500], [7, 3600]]
    assert np.concatenate([table.X for table in read_batches(path, 3)]).tolist() == whole
