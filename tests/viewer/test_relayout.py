"""Pages that can lay out again: the table that travels, what the page is told of the fit, and sizes."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris

import vicinal
from vicinal.viewer import export
from vicinal.viewer.bundle import bundled
from vicinal.viewer.packing import Packed, pack
from vicinal.viewer.relayout import size_line, with_layout

IRIS = load_iris().data
MODEL = vicinal.UMAP(n_neighbors=12, min_dist=0.3, repulsion_strength=2.0, n_epochs=5, random_state=7).fit(IRIS)


def packed(model: Any, neighbors: bool | int = True) -> Packed:
    return with_layout(pack(model, title=""), model, neighbors)


def planes(content: bytes, width: int, k: int) -> np.ndarray[Any, Any]:
    """Return the whole numbers of byte planes [width, k, rows] as [rows, k]."""
    parts = np.frombuffer(zlib.decompress(content), dtype=np.uint8).reshape(width, k, -1).astype(np.uint64)
    return np.asarray((parts << (8 * np.arange(width, dtype=np.uint64))[:, None, None]).sum(axis=0).T)


@pytest.mark.parametrize("k", [True, 2, 12])
def test_table_travels_with_all_bits(k: bool | int) -> None:
    page = packed(MODEL, k)
    kept, table = 12 if k is True else k, MODEL.map_.neighbors
    assert page.meta["layout"]["k"] == kept
    index = planes(page.sections["table"], page.meta["layout"]["bytes"], kept - 1)
    assert np.array_equal(index, table.index[:, 1:kept])
    steps = planes(page.sections["distances"], 4, kept - 1)
    bits = (np.cumsum(steps, axis=1) % 2**32).astype(np.uint32)
    assert np.array_equal(bits.view(np.float32), table.distance[:, 1:kept])


def test_missing_neighbors_are_the_row_itself() -> None:
    with pytest.warns(UserWarning, match="rows are disconnected"):
        model = vicinal.UMAP(n_neighbors=5, disconnection_distance=0.2, n_epochs=2, random_state=0).fit(IRIS)
    page = packed(model)
    index = planes(page.sections["table"], page.meta["layout"]["bytes"], 4)
    own = index == np.arange(len(IRIS))[:, None]
    assert np.array_equal(own, model.map_.neighbors.within(0.2).index[:, 1:] < 0)
    assert own.any()


def test_page_is_told_the_parameters_of_the_fit() -> None:
    told = packed(MODEL).meta["layout"]
    wanted = {"method": "UMAP", "n_neighbors": 12, "min_dist": 0.3, "repulsion_strength": 2.0, "dimensions": 2}
    assert {name: told[name] for name in wanted} == wanted
    others = [
        (vicinal.LargeVis(perplexity=5), "LargeVis", 16),
        (vicinal.DensMAP(), "DensMAP", 15),
        (vicinal.TSNE(perplexity=5), "TSNE", 16),
    ]
    for model, method, k in others:
        told = packed(model.set_params(random_state=0).fit(IRIS)).meta["layout"]
        assert (told["method"], told["n_neighbors"]) == (method, k)


def test_large_tables_are_cut() -> None:
    model = vicinal.LargeVis(perplexity=20, random_state=0).fit(IRIS)
    assert model.map_.neighbors.k > 30
    assert packed(model).meta["layout"]["k"] == 30
    assert packed(model, 40).meta["layout"]["k"] == 40


def test_graph_takes_about_60_bytes_per_row() -> None:
    X = np.random.default_rng(0).normal(size=(3000, 20))
    model = vicinal.UMAP(n_epochs=1, init="random", random_state=0).fit(X)
    page = packed(model)
    assert len(page.sections["table"]) + len(page.sections["distances"]) < 65 * len(X)
    assert re.search(r"14 neighbors of 3,000 rows 0.2 MB \(7\d bytes per row\)", size_line(page))


def test_size_is_said_before_the_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OSError, match=r"no/map\.html"):
        export(tmp_path / "no" / "map.html", MODEL, interactive=True)
    assert "the page can lay out again" in capsys.readouterr().out


def test_page_that_cannot_lay_out_again_is_not_larger(tmp_path: Path) -> None:
    """Layouts add nothing to the program and styles of a plain page, which has 0.1 MB of them."""
    assert sum(len(bundled(name)) for name in ("page.js", "page.css", "body.html", "page.html")) <= 116_000
    plain = export(tmp_path / "plain.html", MODEL).read_text()
    able = export(tmp_path / "able.html", MODEL, interactive=True).read_text()
    for mark in ('id="vicinal-core"', 'id="vicinal-table"', 'id="vicinal-worker"'):
        assert mark in able
        assert mark not in plain
    assert "new Worker" not in plain
    meta = re.search(r'id="vicinal-meta">(.*?)</script>', plain)
    assert meta is not None
    assert "layout" not in json.loads(meta[1])


@pytest.mark.parametrize(
    ("model", "neighbors", "message"),
    [
        (IRIS[:, :2], True, "interactive requires a fitted model that keeps its neighbors, got a ndarray"),
        (MODEL, 13, "interactive must be from 2 to the 12 neighbors that the model keeps, got 13"),
        (MODEL, 1, "interactive must be from 2 to the 12"),
        (vicinal.UMAP(unique=True, n_epochs=1, random_state=0).fit(np.repeat(IRIS, 2, axis=0)), True, "all laid out"),
        (vicinal.UMAP(output_metric="haversine", n_epochs=1, random_state=0).fit(IRIS), True, "euclidean"),
    ],
    ids=["array", "more", "fewer", "unique", "sphere"],
)
def test_model_that_cannot_be_laid_out_again_is_refused(
    tmp_path: Path, model: Any, neighbors: bool | int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        export(tmp_path / "map.html", model, interactive=neighbors)
    assert list(tmp_path.iterdir()) == []


def test_table_among_rows_is_numbered_anew() -> None:
    table = MODEL.map_.neighbors
    rows = np.arange(0, 150, 2)
    some = table.among(rows)
    for row, index, distance in zip(rows, some.index, some.distance, strict=True):
        known = np.isin(table.index[row], rows)
        assert np.array_equal(rows[index[index >= 0]], table.index[row][known])
        assert np.array_equal(distance[: known.sum()], table.distance[row][known])
        assert (index[known.sum() :] == -1).all()
        assert np.isinf(distance[known.sum() :]).all()
    assert table.among(np.arange(5)).k == 5
    for wrong in ([1, 0], [0, 0], [0.5], [-1, 3], [3, 150]):
        with pytest.raises(ValueError, match="rows must be"):
            table.among(np.array(wrong))


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e7], ids=["usual", "small", "large"])
def test_rows_travel_in_half_precision(scale: float) -> None:
    X = IRIS * scale
    model = vicinal.UMAP(n_neighbors=5, n_epochs=2, random_state=0).fit(X)
    page = with_layout(pack(model, title=""), model, True, "float16")
    told = page.meta["layout"]["rows"]
    assert (told["columns"], told["kept"], told["components"], told["names"]) == (4, 4, False, None)
    stored = np.frombuffer(zlib.decompress(page.sections["rows"]), dtype="<f2").reshape(X.shape).astype(np.float64)
    assert np.abs(stored * told["scale"] - X).max() < 1e-3 * X.max()
    assert "the rows 0.0 MB" in size_line(page)


def test_rows_travel_as_components() -> None:
    page = with_layout(pack(MODEL, title=""), MODEL, True, 2)
    told = page.meta["layout"]["rows"]
    assert (told["columns"], told["kept"], told["components"]) == (4, 2, True)
    parts = {name: np.frombuffer(zlib.decompress(page.sections[name]), dtype="<f4") for name in ("mean", "axes")}
    scores = (IRIS - parts["mean"]) @ parts["axes"].reshape(4, 2)
    stored = (
        np.frombuffer(zlib.decompress(page.sections["rows"]), dtype="<f2").reshape(150, 2).astype(np.float64)
        * told["scale"]
    )
    assert np.abs(stored - scores).max() < 2e-3 * np.abs(scores).max()
    # nearly all of the variance of the four columns
    assert scores.var(axis=0).sum() > 0.97 * IRIS.var(axis=0).sum()


def fitted(method: Any = vicinal.UMAP, X: Any = IRIS, **parameters: Any) -> Any:
    return method(n_epochs=1, random_state=0, **parameters).fit(X)


@pytest.mark.parametrize(
    ("make", "rows", "message"),
    [
        (lambda: MODEL, 5, "rows must be 'float16' or a number of components up to 4, got 5"),
        (lambda: MODEL, "float32", "rows must be 'float16' or a number of components"),
        (lambda: fitted(metric="cosine"), 2, "rows as principal components require the euclidean metric, got 'cosine'"),
        (lambda: fitted(metric="canberra"), "float16", "rows can travel with the metrics euclidean, .* got 'canberra'"),
        (lambda: fitted(X=csr_matrix(IRIS)), "float16", "rows can travel if they are a dense matrix"),
        (lambda: fitted(vicinal.DensMAP), "float16", "a page places no new rows by DensMAP"),
    ],
    ids=["too_many", "unknown", "cosine", "canberra", "sparse", "densmap"],
)
def test_rows_that_cannot_travel_are_refused(tmp_path: Path, make: Any, rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        export(tmp_path / "map.html", make(), interactive=True, rows=rows)
    with pytest.raises(ValueError, match="add interactive=True"):
        export(tmp_path / "map.html", make(), rows=rows)
    assert list(tmp_path.iterdir()) == []
