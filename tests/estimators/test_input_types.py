"""One place decides what an argument is: every library's rows give the same map, anything else is refused at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from arrow_streams import Chained
from numpy.typing import NDArray
from scipy import sparse

import vicinal
from vicinal import UMAP
from vicinal.files.batches import batches

pl = pytest.importorskip("polars", reason="polars is not installed: pip install 'vicinal[app]'")

N, D = 60, 4
NAMES = ["a", "b", "c", "d"]


def rows() -> NDArray[np.float32]:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(3, D))[rng.integers(3, size=N)] * 5 + rng.normal(size=(N, D))).astype(np.float32)


def umap(**params: Any) -> UMAP:
    return UMAP(n_epochs=10, random_state=0, **params)


class Exchanged:
    """An array of an unknown library that offers DLPack only."""

    def __init__(self, X: NDArray[np.float32]) -> None:
        self._X = X

    def __dlpack__(self, **options: Any) -> Any:
        return self._X.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._X.__dlpack_device__()


def duckdb_relation(X: NDArray[np.float32]) -> Any:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    con = duckdb.connect()
    con.register("given", pd.DataFrame(X, columns=NAMES))  # polars would need pyarrow
    return con.sql("SELECT * FROM given")


def pyarrow_table(X: NDArray[np.float32]) -> Any:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return pa.table(dict(zip(NAMES, X.T, strict=True)))


def vectors(X: NDArray[np.float32]) -> Any:
    return pl.DataFrame({"v": pl.Series(X.tolist(), dtype=pl.Array(pl.Float32, D))})


KINDS: dict[str, Any] = {
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "vectors": vectors,
    "lists": lambda X: pl.DataFrame({"v": X.tolist()}, schema={"v": pl.List(pl.Float32)}),
    "series of vectors": lambda X: vectors(X)["v"],
    "duckdb": duckdb_relation,
    "pyarrow": pyarrow_table,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "pandas of vectors": lambda X: pd.DataFrame({"v": list(X)}),
    "DLPack": Exchanged,
    "buffer": memoryview,
    "list": lambda X: X.tolist(),
    "nothing masked": np.ma.array,
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_library_give_the_same_map(kind: str) -> None:
    X = rows()
    expected, given = umap().fit(X), KINDS[kind](X)
    model = umap().fit(given)
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)
    np.testing.assert_array_equal(model.transform(KINDS[kind](X + 1)), expected.transform(X + 1))
    names = {"polars": NAMES, "duckdb": NAMES, "pyarrow": NAMES, "pandas": NAMES}
    wide = [f"v[{a}]" for a in range(D)]
    named = names.get(kind, wide if kind in ("vectors", "lists", "pandas of vectors") else None)
    assert list(getattr(model, "feature_names_in_", [])) == (named or [])
    np.testing.assert_array_equal(vicinal.find_neighbors(given, 5).index, vicinal.find_neighbors(X, 5).index)
    grown = vicinal.ProgressiveUMAP(random_state=0).partial_fit(given)
    assert grown.n_rows_ == N


def test_transform_reads_arrow_data_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    X = rows()
    model, sizes = umap().fit(pl.DataFrame(X, schema=NAMES)), []
    check = UMAP.check_new_rows

    def counted(self: Any, given: Any, *options: Any) -> Any:
        found = check(self, given, *options)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(UMAP, "check_new_rows", counted)
    monkeypatch.setattr("vicinal.estimators.base.BATCH_ROWS", 20)
    parts = [pl.DataFrame(X[i : i + 15], schema=NAMES) for i in range(0, N, 15)]
    placed = model.transform(Chained(parts))
    assert sizes == [30, 30]
    np.testing.assert_array_equal(placed, model.embedding_)


def test_batches_of_arrow_data_grow_a_map() -> None:
    X = rows()
    frame, model = pl.DataFrame(X, schema=NAMES), vicinal.ProgressiveUMAP(random_state=0)
    for batch, labels in batches(frame, 25):
        assert labels is None
        model.partial_fit(batch)
    assert model.n_rows_ == N
    assert list(model.feature_names_in_) == NAMES


def test_columns_of_new_arrow_data_are_those_of_the_fit() -> None:
    X = rows()
    model = umap().fit(pl.DataFrame(X, schema=NAMES))
    with pytest.raises(ValueError, match="column 0 of X is 'b', but that of the fit was 'a'"):
        model.transform(pl.DataFrame(X, schema=["b", "a", "c", "d"]))
    with pytest.raises(ValueError, match="X has 3 features, but UMAP is expecting 4 features"):
        model.transform(pl.DataFrame(X[:, :3], schema=NAMES[:3]))


def test_the_memory_limit_ends_the_reading_of_arrow_data() -> None:
    read = []

    def frames() -> Iterator[Any]:
        while True:
            read.append(1)
            yield pl.DataFrame({"a": np.zeros(10_000, np.float32)})

    with pytest.raises(MemoryError, match="more than memory_limit='100 MB'"):
        umap(memory_limit="100 MB").fit(Chained(frames()))
    assert len(read) < 100


def masked() -> Any:
    hidden = np.zeros((N, D), bool)
    hidden[3, 1] = True
    return np.ma.array(rows(), mask=hidden)


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "masked": (masked(), ValueError, "X has masked values, first in row 3"),
    "masked rows": (list(masked()), ValueError, "X has masked values, first in row 3"),
    "dates": (np.zeros((N, D), "M8[D]"), ValueError, r"X holds dates \(datetime64\[D\]\)"),
    "durations": (np.zeros((N, D), "m8[s]"), ValueError, r"X holds durations \(timedelta64\[s\]\)"),
    "dates as objects": (np.full((N, D), np.datetime64("2020"), object), ValueError, "X holds dates"),
    "dates of pandas": (
        pd.DataFrame({"a": range(N), "when": pd.date_range("2020", periods=N, tz="UTC")}), ValueError,
        "column 'when' of X holds dates",
    ),
    "dates of polars": (
        pl.DataFrame({"a": range(N)}).with_columns(when=pl.lit("2020-01-01").str.to_date()), ValueError,
        "column 'when' of X holds dates",
    ),
    "dates of pandas as objects": (
        pd.DataFrame({"a": range(N), "when": np.full(N, date(2020, 1, 1), object)}), ValueError,
        "column 'when' of X holds dates",
    ),
    "texts of pandas": (pd.DataFrame({"a": range(N), "kind": "x"}), ValueError, "column 'kind' of X must hold numbers"),
    "classes of pandas": (
        pd.DataFrame({"a": range(N), "kind": pd.Categorical(["x"] * N)}), ValueError,
        "column 'kind' of X must hold numbers: could not convert string to float: 'x'",
    ),
    "periods of pandas": (
        pd.DataFrame({"when": pd.period_range("2020", periods=N)}), TypeError, "column 'when' of X must hold numbers"
    ),
    "texts as objects": (np.full((N, D), "x", object), ValueError, "X must hold numbers: could not convert string"),
    "times as objects": (np.full((N, D), time(1), object), TypeError, "X must hold numbers: float"),
    "complex objects": (np.full((N, D), 1j, object), TypeError, "X must hold numbers: float"),
    "huge objects": (np.full((N, D), 10**400, object), ValueError, "X must hold numbers: int too large"),
    "NA as objects": (np.full((N, D), pd.NA, object), TypeError, "X must hold numbers: float"),
    "texts": (np.full((N, D), "1"), ValueError, "X holds text"),
    "records": (np.zeros(N, dtype=[("a", "f4")]), ValueError, "X holds records"),
    "ragged": ([[1, 2], [3]], ValueError, "X must hold values that NumPy can read"),
    "lazy frame": (pl.LazyFrame({"a": [1]}), TypeError, r"LazyFrame; call its method collect\(\) first"),
    "object": (object(), TypeError, "X must be an array, a data frame or Arrow data, got object"),
    "mapping": ({"a": [1.0]}, TypeError, "got dict"),
    "generator": ((i for i in range(3)), TypeError, "got generator"),
    "path": (Path("rows.csv"), TypeError, "got pathlib"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_only_looks_like_rows_is_refused_in_one_sentence(kind: str) -> None:
    given, error, words = REFUSED[kind]
    model = umap().fit(rows())
    for call in (umap().fit, model.transform, model.update, vicinal.ProgressiveUMAP().fit):
        with pytest.raises(error, match=words) as caught:
            call(given)
        assert "\n" not in str(caught.value)
    with pytest.raises(error, match=words):
        vicinal.find_neighbors(given, 3)


def test_an_annotated_table_names_what_to_call() -> None:
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    with pytest.raises(TypeError, match=r"X is an AnnData; call vicinal.tl.umap\(adata\)"):
        umap().fit(anndata.AnnData(rows()))


@pytest.mark.parametrize("kind", ["masked", "dates", "object"])
@pytest.mark.parametrize("argument", ["y", "sample_weight", "init", "precomputed_knn", "X"])
def test_other_arguments_follow_the_same_rules(argument: str, kind: str) -> None:
    wrong = {"masked": np.ma.masked_all(N), "dates": np.zeros(N, "M8[D]"), "object": object()}[kind]
    words = {"masked": "masked values", "dates": "holds dates", "object": "must be .*array"}[kind]
    X, params, fit = rows(), {}, {}
    if argument in ("y", "sample_weight"):
        fit[argument] = wrong
    elif argument == "X":
        params["metric"] = "precomputed"
        X = {"masked": np.ma.masked_all((N, N)), "dates": np.zeros((N, N), "M8[D]"), "object": object()}[kind]
    elif argument == "precomputed_knn":
        params[argument] = np.zeros((N, 15), int), wrong
    else:
        params[argument] = wrong
    with pytest.raises((TypeError, ValueError), match=f"{argument}.* {words}"):
        umap(**params).fit(X, **fit)


def test_labels_and_weights_of_arrow_data() -> None:
    X, y = rows(), np.arange(N) % 3
    weight = np.linspace(1, 2, N)
    expected = umap().fit(X, y, sample_weight=weight).embedding_
    found = umap().fit(X, pl.Series(y), sample_weight=pl.Series(weight)).embedding_
    np.testing.assert_array_equal(found, expected)
    texts = pl.DataFrame({"class": y}).select(pl.col("class").cast(pl.String))
    np.testing.assert_array_equal(umap().fit(X, texts, sample_weight=weight).embedding_, expected)


def test_sparse_rows_are_no_labels() -> None:
    with pytest.raises(TypeError, match="y must be a dense array, got a sparse matrix"):
        umap().fit(rows(), sparse.eye_array(N, format="csr"))


@pytest.mark.parametrize("declared", ["float64", "sparse"])
def test_chunks_of_another_type_than_declared_are_refused(declared: str) -> None:
    da = pytest.importorskip("dask.array", reason="the extra 'cluster' is not installed: no Dask")
    import dask

    X = rows()
    meta = np.empty((0, D)) if declared == "float64" else sparse.csr_matrix((0, D), dtype=np.float32)
    chunk = da.from_delayed(dask.delayed(lambda: X)(), shape=X.shape, meta=meta)
    words = (
        f"of X is dense float32, but the array declares {'sparse float32' if declared == 'sparse' else 'dense float64'}"
    )
    with pytest.raises(ValueError, match=f"chunk 0 {words}"):
        umap().fit(chunk)
    with pytest.raises(ValueError, match=f"chunk 0 {words}"):
        umap().fit(X).transform(chunk).compute()


def test_masked_chunks_are_refused() -> None:
    da = pytest.importorskip("dask.array", reason="the extra 'cluster' is not installed: no Dask")
    with pytest.raises(ValueError, match="X holds masked arrays"):
        umap().fit(da.ma.masked_invalid(da.from_array(rows(), chunks=20)))
    last = da.from_array(rows(), chunks=(20, D)).map_blocks(
        lambda chunk, block_info: np.ma.masked_less(chunk, 0) if block_info[0]["chunk-location"][0] == 2 else chunk,
        meta=np.empty((0, D), np.float32),
    )
    words = r"chunk 2 of X has masked values; fill them first: dask.array.ma.filled\(X\)"
    with pytest.raises(ValueError, match=words):
        umap().fit(last)
    with pytest.raises(ValueError, match=words):
        umap().fit(rows()).transform(last).compute()


def test_pages_show_columns_of_arrow_data() -> None:
    from vicinal.viewer.packing import row_columns

    frame = pl.DataFrame({"kind": ["x", None], "size": [1.5, 2.0]})
    found = row_columns(frame.select("kind"), frame.select("size"), frame, frame["kind"])
    assert [(one.name, None if one.values is None else one.values.tolist()) for one in found] == [
        ("kind", ["x", None]), ("size", [1.5, 2.0]), ("kind", ["x", None]), ("size", [1.5, 2.0]), ("id", ["x", None]),
    ]  # fmt: skip


@pytest.mark.parametrize("change", [lambda X: X[:-1], lambda X: X[:, :-1], np.ravel])
def test_chunks_of_another_shape_than_declared_are_refused(change: Callable[[Any], Any]) -> None:
    da = pytest.importorskip("dask.array", reason="the extra 'cluster' is not installed: no Dask")
    import dask

    X = rows()
    chunk = da.from_delayed(dask.delayed(lambda: change(X))(), shape=X.shape, meta=X[:0])
    with pytest.raises(ValueError, match=r"chunk 0 of X has shape .* but the array declares"):
        umap().fit(chunk)
    with pytest.raises(ValueError, match=r"chunk 0 of X has shape .* but the array declares"):
        umap().fit(X).transform(chunk).compute()
