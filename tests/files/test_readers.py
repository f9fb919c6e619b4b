"""Readers of data files: features, names, labels and extra columns of every format."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import h5py
import numpy as np
import polars as pl
import pytest
from fuzz.targets import TARGETS

from vicinal.files import readers, tabular_files
from vicinal.files.batches import join_columns, read_batches
from vicinal.files.data_table import NOT_CHOSEN, ColumnChoice, DataTable, Dates, Role, refusing
from vicinal.files.frame_table import columns_of_frame
from vicinal.files.number_texts import FileFormat
from vicinal.files.preparation import Preparation
from vicinal.files.readers import ReadError, read_table, row_count

ROWS = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)


def values(table: DataTable, name: str) -> Any:
    return next(column.values for column in table.columns if column.name == name and column.role != "label")


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
    table = readers.read_table(path, ColumnChoice(label="kind"))
    assert table.labels is not None
    assert table.labels.tolist() == ["x", None, "y"]
    assert table.feature_names == ("a", "size")
    sizes = readers.read_table(path, ColumnChoice(features=["a"], label="size"))
    assert sizes.labels is not None
    assert sizes.labels.tolist() == [3, 4, 5]
    assert sizes.names(Role.DISPLAY) == ("kind",)


def test_npy_columns_are_selected_by_number(tmp_path: Path) -> None:
    path = tmp_path / "data.npy"
    np.save(path, np.asfortranarray(np.arange(12.0).reshape(4, 3)))
    table = readers.read_table(path, ColumnChoice(features=["2", "0"], label="1"))
    assert table.X.tolist() == [[2, 0], [5, 3], [8, 6], [11, 9]]
    assert table.X.flags.c_contiguous
    assert table.labels is not None
    assert table.labels.tolist() == [1, 4, 7, 10]
    assert table.labels.dtype.kind == "i"


def test_npz_feather_and_jsonl(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", X=ROWS, other=ROWS[:3], kind=np.arange(60) % 4)
    table = readers.read_table(tmp_path / "one.npz", ColumnChoice(label="kind"))
    assert np.array_equal(table.X, ROWS)
    assert table.labels is not None
    assert table.labels.tolist() == [a % 4 for a in range(60)]
    frame = pl.DataFrame(ROWS, schema=["a", "b", "c", "d"]).with_columns(pl.Series("t", ["x"] * 60))
    frame.write_ipc(tmp_path / "two.feather")
    frame.write_ndjson(tmp_path / "two.jsonl")
    for name in ("two.feather", "two.jsonl"):
        read = readers.read_table(tmp_path / name, ColumnChoice(display=["t"]))
        assert pytest.approx(ROWS) == read.X
        assert values(read, "t").tolist() == ["x"] * 60


def test_members_of_npz_that_are_no_arrays(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, X=ROWS)
    with ZipFile(path, "a") as archive:
        archive.writestr("notes.txt", "made today")
    assert np.array_equal(read_table(path).X, ROWS)
    for name, message in (("notes.txt", "no array in 'notes.txt'"), ("X.npy", "no array in 'X'")):
        with ZipFile(path, "w") as archive:
            archive.writestr(name, "made today")
        with pytest.raises(ReadError, match=message):
            read_table(path)


# A day and a time that polars has no date for, and a year that Python has no date for.
@pytest.mark.parametrize(("number", "kind"), [(2**31 - 1, pl.Date), (2**62, pl.Datetime("ms")), (10**7, pl.Date)])
def test_unreadable_date_names_its_column(tmp_path: Path, number: int, kind: Any) -> None:
    path = tmp_path / "data.feather"
    when = pl.Series("when", [0, number]).cast(pl.Int32 if kind == pl.Date else pl.Int64).cast(kind)
    frame = pl.DataFrame({"a": [1.0, 2.0], "when": when})
    frame.write_ipc(path)
    message = "data.feather: column 'when' has a value that cannot be read"
    with pytest.raises(ReadError, match=message):
        read_table(path)
    with pytest.raises(ReadError, match=message):
        columns_of_frame(path, frame, FileFormat())
    if number != 10**7:
        with pytest.raises(ReadError, match=message):
            read_table(path, ColumnChoice(dates=Dates.NUMBER))


def test_panics_of_every_rust_library_are_refused_and_interrupts_are_not() -> None:
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})
    with pytest.raises(ReadError, match=r"^data.xlsx is odd \(index out of bounds\)$"), refusing("data.xlsx is odd"):
        raise panic("index out of bounds")
    with pytest.raises(KeyboardInterrupt), refusing("data.xlsx is odd"):
        raise KeyboardInterrupt


@pytest.mark.parametrize("name", sorted(TARGETS.keys() - {"model"}))
def test_seeds_of_the_fuzzer_are_read(name: str) -> None:
    for content in TARGETS[name].seeds():
        TARGETS[name].feed(content)


# What polars takes for a pattern of several columns, or of several files.
@pytest.mark.parametrize("write", ["write_csv", "write_parquet", "write_ipc", "write_ndjson"])
def test_names_of_columns_and_files_are_no_patterns(tmp_path: Path, write: str) -> None:
    suffix = {"write_csv": "csv", "write_parquet": "parquet", "write_ipc": "feather", "write_ndjson": "jsonl"}[write]
    columns = {"*": ["1.5", "2.25"], "^.*$": ["a", "b"], "^a": ["3,5", "4"], "n": [1, 4]}
    getattr(pl.DataFrame({"n": [1.0]}), write)(tmp_path / f"x1.{suffix}")
    path = tmp_path / f"x[1].{suffix}"
    getattr(pl.DataFrame(columns), write)(path)
    table = read_table(path)
    assert table.feature_names == ("*", "^a", "n")
    assert table.X.tolist() == [[1.5, 3.5, 1], [2.25, 4, 4]]
    assert values(table, "^.*$").tolist() == ["a", "b"]
    assert sum(len(part.X) for part in read_batches(path, 1)) == 2
    assert row_count(path) == 2


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
    table = readers.read_table(path, ColumnChoice(label="kind", display=["depth"]))
    assert np.array_equal(table.X, ROWS[:, :2])
    assert table.labels is not None
    assert table.labels[:3].tolist() == ["T", "B", None]
    assert values(table, "depth").tolist() == list(range(60))
    assert np.array_equal(readers.read_table(path, ColumnChoice(array="X")).X, sparse.toarray())


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
    table = readers.read_table(tmp_path / "data.npz", ColumnChoice(label="name", display=["name"]))
    assert table.labels is not None
    assert table.labels.tolist() == values(table, "name").tolist() == ["a", "b\ufffd", ""]


def test_missing_numbers_stay_numbers(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b,age\n1,2,30\n2,3,\n3,5,41\n")
    table = readers.read_table(path, ColumnChoice(label="age"))
    assert table.labels is not None
    assert table.labels.dtype.kind == "f"
    assert table.labels[[0, 2]].tolist() == [30, 41]
    assert np.isnan(table.labels[1])


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".feather"])
def test_vectors_are_the_features(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data{suffix}"
    frame = pl.DataFrame({"id": range(60), "embedding": ROWS.tolist(), "other": np.arange(60) / 7})
    {".jsonl": frame.write_ndjson, ".parquet": frame.write_parquet, ".feather": frame.write_ipc}[suffix](path)
    for asked in (None, "embedding"):
        table = readers.read_table(path, ColumnChoice(vectors=asked, display=["id"]))
        assert pytest.approx(ROWS) == table.X
        assert table.feature_names[:2] == ("embedding[0]", "embedding[1]")
        assert table.names(Role.DISPLAY) == ("id", "other")
        assert values(table, "id").tolist() == list(range(60))


def test_array_columns_of_parquet_are_vectors(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    pl.DataFrame({"v": pl.Series(ROWS.tolist(), dtype=pl.Array(pl.Float32, 4))}).write_parquet(path)
    assert np.array_equal(readers.read_table(path).X, ROWS)
    assert np.array_equal(np.vstack([one.X for one in read_batches(path, 25)]), ROWS)


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        ({"id": [1, 2, 3]}, {}, "looks like row ids"),
        ({"v": [[1.0], [1.0, 2.0], [1.0, 2.0]]}, {}, "row 0 has a vector of 1 numbers in column 'v', others have 2"),
        ({"v": [[1.0], None, [2.0]]}, {}, "row 1 has no vector in column 'v'"),
        ({"v": [[1.0], [float("nan")], [2.0]]}, {}, r"row 1 has nan in column 'v\[0\]'"),
        ({"v": [[1.0]] * 3, "w": [[1.0]] * 3}, {}, "choose one with --vectors: 'v', 'w'"),
        ({"a": [0.5] * 3}, {"vectors": "a"}, "does not contain lists of numbers"),
        ({"a": [0.5] * 3}, {"vectors": "b"}, "has no column 'b'"),
        ({"v": [[1.0]] * 3, "a": [0.5] * 3}, {"vectors": "v", "features": ["a"]}, "cannot be used together"),
    ],
)
def test_invalid_vectors_are_named(tmp_path: Path, columns: Any, arguments: Any, message: str) -> None:
    path = tmp_path / "data.parquet"
    pl.DataFrame(columns).write_parquet(path)
    with pytest.raises(readers.ReadError, match=message):
        readers.read_table(path, ColumnChoice(**arguments))


def test_id_columns_are_no_features_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("user_id,a,b\n7,1,2\n8,3,4\n9,5,7\n")
    table = readers.read_table(path)
    assert table.feature_names == ("a", "b")
    assert table.names(Role.DISPLAY) == ("user_id",)
    assert readers.read_table(path, ColumnChoice(features=["user_id", "a"])).feature_names == ("user_id", "a")


def test_missing_features_are_accepted_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,2\n,4\n5,7\n")
    with pytest.raises(readers.ReadError, match="row 1 has no value in column 'a'"):
        readers.read_table(path)
    assert np.isnan(readers.read_table(path, ColumnChoice(missing=True)).X).tolist() == [
        [False] * 2,
        [True, False],
        [False] * 2,
    ]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("größe;b\n1,5;2\n3,25;4\n", "utf-8"),
        ("größe\tb\n1.5\t2\n3.25\t4\n", "latin-1"),
        ("größe|b\n1.5|2\n3.25|4\n", "utf-16"),
        ('größe,b\n1.5,"2"\n3.25,4\n', "cp1252"),
    ],
)
def test_separator_and_encoding_are_detected(tmp_path: Path, text: str, encoding: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode(encoding))
    for table in (readers.read_table(path), next(read_batches(path, 10))):
        assert table.feature_names == ("größe", "b")
        assert table.X.tolist() == [[1.5, 2], [3.25, 4]]
    assert row_count(path) == (None if encoding == "utf-16" else 2)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Name, first;Size, cm\nDoe, Jo;1.5\nRoe, Al;2\n", ["Name, first", "Size, cm"]),
        ("a;b,c\n1;2,x;y\n3;4,z;z\n", ["a;b", "c"]),
        ('a;b, c\n"x, y";1,5\n"z";2,5\n', ["a", "b, c"]),
        # line 20 is within quotes
        ("a;b, c\n" + "1;2\n" * 18 + '"3, or\nmore";2\n', ["a", "b, c"]),
    ],
)
def test_of_two_separators_the_one_with_more_numbers_is_taken(tmp_path: Path, text: str, names: list[str]) -> None:
    path = tmp_path / "data.csv"
    path.write_text(text)
    assert tabular_files.read_delimited(path).columns == names


def test_an_encoding_that_is_not_known_is_a_question(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes("ville,prénom,a\nNîmes,Zoë,1.5\nSète,Agnès,2\n".encode("mac-roman"))
    with pytest.raises(readers.ReadError, match=r"neither UTF-8 nor .* name its --encoding, such as mac-roman"):
        tabular_files.detect(path)
    assert "prénom" in tabular_files.read_delimited(path, FileFormat(encoding="mac-roman")).columns


def test_an_open_separator_is_a_question(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b;c\nx,y;z\n")
    with pytest.raises(readers.ReadError, match="may be separated by any of ',', ';': choose one with --separator"):
        tabular_files.detect(path)
    form = FileFormat(separator=";")
    assert tabular_files.read_delimited(path, form).columns == ["a,b", "c"]
    assert row_count(path, form) == 1


def test_lines_longer_than_the_sample_are_separated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.csv"
    row = ";".join(f"{a},5" for a in range(300))
    path.write_text(";".join(f"g{a}" for a in range(300)) + f"\n{row}\n{row}\n")
    for sample in (500, 2000, 3200):  # within the header and within the rows
        monkeypatch.setattr(tabular_files, "SAMPLE", sample)
        assert tabular_files.read_delimited(path).columns == [f"g{a}" for a in range(300)]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy"])
def test_work_for_wide_tables_is_linear_in_columns(tmp_path: Path, suffix: str) -> None:
    def counts(n: int) -> tuple[int, int]:
        """Return the number of calls, and how often the names or types of all columns are listed."""
        path, rows = tmp_path / f"wide{n}{suffix}", np.random.default_rng(0).normal(size=(3, n))
        frame = pl.DataFrame(rows, schema=[f"g{a}" for a in range(n)])
        write = {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".npy": lambda path: np.save(path, rows)}
        write[suffix](path)
        readers.read_table(path)  # imports
        calls, lists = 0, 0
        listing = [getattr(pl.DataFrame, name).fget.__code__ for name in ("columns", "dtypes", "schema")]

        def count(frame: Any, event: str, argument: Any) -> None:
            nonlocal calls, lists
            calls += 1
            lists += event == "call" and frame.f_code in listing

        sys.setprofile(count)
        try:
            table = readers.read_table(path)
        finally:
            sys.setprofile(None)
        assert table.X.shape == (3, n)
        return calls, lists

    (few, a), (more, b), (most, c) = (counts(n) for n in (100, 200, 400))
    assert most - more == pytest.approx(2 * (more - few), rel=0.05)
    assert a == b == c


@pytest.mark.parametrize("name", ["data.csv.gz", "data.npy.gz", "data.parquet.gz"])
def test_compressed_files_are_unpacked(tmp_path: Path, name: str) -> None:
    plain = tmp_path / name.removesuffix(".gz")
    frame = pl.DataFrame(ROWS, schema=list("abcd"))
    {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".npy": lambda path: np.save(path, ROWS)}[plain.suffix](
        plain
    )
    (tmp_path / name).write_bytes(gzip.compress(plain.read_bytes()))
    assert pytest.approx(ROWS) == readers.read_table(tmp_path / name).X
    assert pytest.approx(ROWS) == np.vstack([one.X for one in read_batches(tmp_path / name, 25)])


def test_messages_name_the_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\nx,y\nz,w\n"))
    with pytest.raises(readers.ReadError, match=rf"^{path} has no numeric column"):
        readers.read_table(path)
    path.write_bytes(gzip.compress(b"a,b\n1,2\n" * 100)[:20])
    with pytest.raises(readers.ReadError, match="is not a complete gzip file"):
        readers.read_table(path)


def test_cell_names_of_h5ad_are_row_names(tmp_path: Path) -> None:
    path = tmp_path / "cells.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = ROWS
        file["obs/barcode"] = np.array([f"AC{a}" for a in range(60)], dtype=h5py.string_dtype())
        file["obs"].attrs["_index"] = "barcode"
    table = readers.read_table(path)
    assert values(table, "cell")[:2].tolist() == ["AC0", "AC1"]


def test_source_columns_are_matched_by_name(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d"]
    frame = pl.DataFrame(ROWS, schema=names).with_columns(pl.Series("kind", ["x"] * 60))
    source = Preparation(ColumnChoice(names, label="kind", ids="name", display=["note"]))
    frame.select("d", "kind", "c", "b", "a").with_columns(more=pl.lit(1.0)).write_csv(tmp_path / "new.csv")
    table = source.read(tmp_path / "new.csv")
    assert pytest.approx(ROWS) == table.X
    assert [(one.name, one.reason) for one in table.columns if one.role is Role.DISPLAY] == [("more", NOT_CHOSEN)]
    assert table.labels is not None
    np.save(tmp_path / "new.npy", ROWS)
    assert np.array_equal(source.read(tmp_path / "new.npy").X, ROWS)
    np.save(tmp_path / "narrow.npy", ROWS[:, :3])
    with pytest.raises(readers.ReadError, match="has 3 features, but the model was fitted to 4"):
        source.read(tmp_path / "narrow.npy")
    frame.rename({"b": "B"}).write_csv(tmp_path / "other.csv")
    with pytest.raises(readers.ReadError, match="has no column 'b'; the model was fitted to 'a', 'b'"):
        source.read(tmp_path / "other.csv")
    with pytest.raises(readers.ReadError, match="no column 'sort'"):
        source.read(tmp_path / "new.csv", ColumnChoice(label="sort"))


def test_every_column_has_a_role_and_ignored_ones_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    frame = pl.DataFrame(ROWS[:, :2], schema=["a", "b"]).with_columns(
        pl.Series("row_id", range(60)),
        pl.Series("kind", ["x", "y"] * 30),
        pl.Series("depth", np.linspace(0, 1, 60)),
        pl.Series("note", ["text"] * 60),
        pl.Series("more", ["text"] * 60),
    )
    frame.write_csv(path)
    choice = ColumnChoice(label="kind", values=["depth"], display=["note", "depth"], exclude=["depth"])
    table = read_table(path, choice)
    assert [(column.name, str(column.role), column.reason) for column in table.columns] == [
        ("a", "feature", ""),
        ("b", "feature", ""),
        ("kind", "label", ""),
        ("depth", "value", ""),
        ("note", "display", ""),
        ("row_id", "display", "row ids, by its name"),
        ("more", "ignored", "constant"),
    ]
    assert [column.name for column in table.shown_columns()] == ["kind", "depth", "note", "row_id", "a", "b"]
    chosen = read_table(path, ColumnChoice(features=["a"]))
    assert {column.reason for column in chosen.columns if column.name != "a"} == {NOT_CHOSEN}
    table = read_table(path, replace(choice, whole=False))
    parts = [part.columns for part in read_batches(path, 25, choice)]
    for joined, whole in zip(join_columns(parts, 50), table.part(slice(50)).columns, strict=True):
        assert (joined.name, joined.role) == (whole.name, whole.role)
        np.testing.assert_array_equal(joined.values, whole.values)


def test_a_table_of_ids_alone_names_the_option_that_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    pl.DataFrame({"Row No.": range(20), "kind": ["x"] * 20}).write_csv(path)
    with pytest.raises(readers.ReadError, match=r"row ids: 'Row No\.'; use --features 'Row No\.' to embed it"):
        readers.read_table(path)
