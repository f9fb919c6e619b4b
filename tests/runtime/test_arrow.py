"""Arrow data is read through its C data interface, type by type."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from arrow_streams import Chained

from vicinal.runtime.arrow import join_rows, read_batches, read_column, read_table, row_batches

pl = pytest.importorskip("polars", reason="polars is not installed: pip install 'vicinal[app]'")

LONG = "a text of more than twelve bytes: äöü"


def columns(frame: Any) -> dict[str, Any]:
    return dict(read_table(frame))


@pytest.mark.parametrize(
    "name",
    ["Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Float32", "Float64"],
)
def test_numbers_keep_their_type_and_their_memory(name: str) -> None:
    frame = pl.DataFrame({"a": pl.Series([1, 2, 3], dtype=getattr(pl, name))})
    (batch,) = read_batches(frame)
    assert batch.names == ["a"]
    assert batch.columns[0].dtype == np.dtype(name.lower())
    assert not batch.columns[0].flags.writeable
    np.testing.assert_array_equal(batch.columns[0], [1, 2, 3])


def test_missing_values_of_every_kind() -> None:
    frame = pl.DataFrame(
        {
            "whole": pl.Series([1, None, 3], dtype=pl.Int32),
            "real": pl.Series([1.5, None, 3.0], dtype=pl.Float32),
            "truth": [True, None, False],
            "text": [LONG, None, "b"],
            "class": pl.Series(["x", None, "y"], dtype=pl.Categorical),
            "money": pl.Series([1, None, -3], dtype=pl.Decimal(10, 2)),
            "none": pl.Series([None, None, None], dtype=pl.Null),
        }
    )
    for part in (frame, frame.head(3), pl.concat([frame.head(1), frame.tail(2)], rechunk=False)):
        found = columns(part)
        np.testing.assert_array_equal(found["whole"], [1, np.nan, 3])
        np.testing.assert_array_equal(found["real"], np.array([1.5, np.nan, 3], np.float32))
        np.testing.assert_array_equal(found["truth"], [1, np.nan, 0])
        assert found["text"].tolist() == [LONG, None, "b"]
        assert found["class"].tolist() == ["x", None, "y"]
        np.testing.assert_array_equal(found["money"], [1, np.nan, -3])
        assert np.isnan(found["none"].astype(float)).all()
    assert columns(frame[1:])["text"].tolist() == [None, "b"]
    assert columns(frame[2:])["class"].tolist() == ["y"]


def test_dates_are_dates() -> None:
    frame = pl.DataFrame({"day": pl.Series(["2020-01-02", None]).str.to_date()})
    frame = frame.with_columns(time=pl.col("day").cast(pl.Datetime("us")), past=pl.duration(days=pl.Series([2, None])))
    found = columns(frame)
    assert found["day"].dtype == np.dtype("M8[D]")
    assert found["day"][0] == np.datetime64("2020-01-02")
    assert np.isnat(found["day"][1])
    assert found["time"][0] == np.datetime64("2020-01-02")
    assert found["past"][0] == np.timedelta64(2, "D")


def test_decimals_of_128_bits_have_their_sign() -> None:
    values = ["-1.50", "0.25", "-123456789012345678901234.00"]
    found = read_column(pl.Series(values).cast(pl.Decimal(38, 2)), "y")
    np.testing.assert_allclose(found, [float(value) for value in values], rtol=1e-15)


@pytest.mark.parametrize("kind", ["array", "list"])
def test_vectors_are_rows_and_arrays_are_not_copied(kind: str) -> None:
    X = np.arange(12, dtype=np.int8).reshape(4, 3)
    dtype = pl.Array(pl.Int8, 3) if kind == "array" else pl.List(pl.Int8)
    frame = pl.DataFrame({"v": pl.Series(X.tolist(), dtype=dtype)})
    (found,) = row_batches(frame[1:], kept=(np.dtype(np.int8),))
    rows, names = found
    assert names == ["v[0]", "v[1]", "v[2]"]
    assert rows.dtype == np.int8
    del frame
    gc.collect()  # the rows keep the memory of the frame alive
    np.testing.assert_array_equal(rows, X[1:])


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pl.DataFrame({"a": [1], "b": ["x"]}), "column 'b' of X holds text"),
        (pl.DataFrame({"a": [1], "b": [b"x"]}), "column 'b' of X holds bytes"),
        (pl.DataFrame({"s": [{"a": 1}]}), "column 's' of X holds structures"),
        (pl.DataFrame({"v": [[1.0]], "id": [1]}), r"vectors in column 'v' beside other columns \('id'\)"),
        (pl.DataFrame({"v": [[1.0], None]}), "column 'v' of X has no vector in row 1"),
        (pl.DataFrame({"v": [[1.0], [1.0, 2.0]]}), "column 'v' of X has 2 numbers in row 1, but 1 in row 0"),
        (pl.DataFrame({"v": [[["x"]]]}), "something other than numbers"),
        (pl.Series([1.0, 2.0]), "must have columns or vectors"),
    ],
    ids=["text", "bytes", "structures", "beside", "no vector", "lengths", "nested", "one column"],
)
def test_what_is_no_row_of_numbers_names_column_and_row(frame: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        list(row_batches(frame))


def test_batches_follow_each_other_and_lengths_must_agree() -> None:
    parts = [pl.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}), pl.DataFrame({"a": [5.0], "b": [6]})]
    found = list(row_batches(Chained(parts)))
    assert [len(rows) for rows, _ in found] == [2, 1]
    np.testing.assert_array_equal(join_rows([rows for rows, _ in found]), [[1, 3], [2, 4], [5, 6]])
    lists = Chained([pl.DataFrame({"v": [[1.0]]}), pl.DataFrame({"v": [[1.0, 2.0]]})])
    with pytest.raises(ValueError, match="vectors of 2 numbers from row 1 on, before of 1"):
        list(row_batches(lists))


def test_no_rows_are_one_empty_batch() -> None:
    (found,) = row_batches(pl.DataFrame({"a": pl.Series([], dtype=pl.Float32), "b": pl.Series([], dtype=pl.Int8)}))
    assert found[0].shape == (0, 2)


def test_the_message_of_a_source_that_fails_is_passed_on() -> None:
    def frames() -> Iterator[Any]:
        yield pl.DataFrame({"a": [1.0]})
        raise OSError("the disk is gone")

    with pytest.raises(ValueError, match="X cannot be read: the disk is gone"):
        list(row_batches(Chained(frames())))


def test_a_stream_that_was_released_is_refused() -> None:
    source = Chained([pl.DataFrame({"a": [1.0]})])
    source._stream.release = type(source._stream.release)()
    with pytest.raises(ValueError, match="the Arrow data was read already"):
        list(row_batches(source))


def test_types_that_polars_does_not_export() -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = pa.table({"half": pa.array(np.array([1, 2], np.float16)), "old": pa.array(["ä", LONG])})
    found = columns(table)
    assert found["half"].dtype == np.float16
    assert found["old"].tolist() == ["ä", LONG]
    views = pa.ListViewArray.from_arrays([2, 0], [2, 2], pa.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(read_column(views, "X"), [[3, 4], [1, 2]])
    tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((3, 2), np.float32))
    assert read_column(tensor, "X").shape == (3, 2)
    batch = pa.record_batch({"a": [1, 2, 3]}).slice(1)
    np.testing.assert_array_equal(columns(batch)["a"], [2, 3])
