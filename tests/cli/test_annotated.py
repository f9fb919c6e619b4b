"""The command line on .h5ad files: obs columns, genes, stored maps and palettes, and results written back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import polars as pl
import pytest
from cli.command_inputs import Run

N, GENES = 60, 5
TEXT = h5py.string_dtype()
RED, BLUE = "#ff0000", "#0000ff"


def store(group: Any, name: str, values: Any, kind: str = "array") -> None:
    group[name] = values
    group[name].attrs.update({"encoding-type": kind, "encoding-version": "0.2.0"})


def frame(file: h5py.File, name: str, index: list[str], columns: list[str]) -> Any:
    group = file.create_group(name)
    group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"})
    group.attrs["column-order"] = np.array(columns, dtype=TEXT)
    store(group, "_index", np.array(index, dtype=TEXT), "string-array")
    return group


@pytest.fixture
def cells(run: Run) -> dict[str, Any]:
    """Write cells.h5ad: two groups, expression in X (dense) and raw (sparse), components, a map and a palette."""
    from scipy.sparse import csc_matrix, csr_matrix

    rng = np.random.default_rng(0)
    X, raw = rng.normal(size=(N, GENES)), rng.poisson(1.0, size=(N, GENES + 1)).astype(np.float32)
    codes = np.arange(N) % 2
    with h5py.File("cells.h5ad", "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        store(file, "X", X)
        obs = frame(file, "obs", [f"c{a}" for a in range(N)], ["kind", "depth"])
        store(obs, "depth", raw.sum(axis=1))
        kinds = obs.create_group("kind")
        kinds.attrs.update({"encoding-type": "categorical", "encoding-version": "0.2.0", "ordered": False})
        store(kinds, "codes", codes.astype(np.int8))
        store(kinds, "categories", np.array(["T", "B"], dtype=TEXT), "string-array")
        frame(file, "var", [f"g{a}" for a in range(GENES)], [])
        for name, matrix in (("raw", csr_matrix(raw)), ("layers", csc_matrix(raw[:, :GENES]))):
            group = file.create_group(f"{name}/{'X' if name == 'raw' else 'counts'}")
            group.attrs.update({"encoding-type": f"{matrix.format}_matrix", "encoding-version": "0.1.0"})
            group.attrs["shape"] = matrix.shape
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(matrix, part)
        file["raw"].attrs.update({"encoding-type": "raw", "encoding-version": "0.1.0"})
        file["layers"].attrs.update({"encoding-type": "dict", "encoding-version": "0.1.0"})
        frame(file, "raw/var", [f"g{a}" for a in range(1, GENES)] + ["LYZ", "g9"], [])
        for part in ("obsm", "uns"):
            file.create_group(part).attrs.update({"encoding-type": "dict", "encoding-version": "0.1.0"})
        store(file["obsm"], "X_pca", X[:, :3] + 6 * codes[:, None])
        store(file["obsm"], "X_umap", X[:, :2])
        store(file["uns"], "kind_colors", np.array([RED, BLUE], dtype=TEXT), "string-array")
    return {"X": X, "raw": raw, "kind": np.array(["T", "B"])[codes]}


def described(page: str) -> Any:
    found = re.search(r'id="vicinal-meta">(.*?)</script>', Path(page).read_text())
    assert found
    return json.loads(found[1])


def test_obs_columns_and_genes_travel_to_the_page(run: Run, cells: dict[str, Any]) -> None:
    code, out, err = run(
        "embed", "cells.h5ad", "-o", "map.csv", "--label", "kind", "--value", "LYZ,g0", "--html", "map.html",
        "--png", "map.png", "--n-epochs", "20",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "from 60 rows of 3 columns of obsm/X_pca" in out
    written = pl.read_csv("map.csv")
    np.testing.assert_allclose(written["LYZ"], cells["raw"][:, GENES - 1])  # raw comes first, as in scanpy's plots
    np.testing.assert_allclose(written["g0"], cells["X"][:, 0])  # raw does not have this gene
    assert written["depth"].to_list() == cells["raw"].sum(axis=1).tolist()
    columns = {one["name"]: one for one in described("map.html")["columns"]}
    assert {"kind", "LYZ", "g0", "depth"} <= set(columns)
    assert (columns["kind"]["names"], columns["kind"]["colors"]) == (["B", "T"], [BLUE, RED])
    import matplotlib.image

    pixels = {tuple(one) for one in (255 * matplotlib.image.imread("map.png")[:, :, :3]).round().reshape(-1, 3)}
    assert {(255, 0, 0), (0, 0, 255)} <= pixels


def test_a_stored_map_is_shown(run: Run, cells: dict[str, Any]) -> None:
    code, out, err = run("page", "cells.h5ad", "-o", "page.html", "--label", "kind", "--value", "g1")
    assert (code, err) == (0, "")
    assert out.startswith("2 coordinates: columns of obsm/X_umap; label: kind (2 classes);")
    meta = described("page.html")
    np.testing.assert_allclose(meta["maps"][0]["box"][:2], cells["X"][:, :2].min(axis=0), rtol=1e-5)
    assert meta["color"] == "kind"
    assert run("page", "cells.h5ad", "-o", "other.html", "--array", "obsm/X_pca")[0] == 0
    with h5py.File("cells.h5ad", "r+") as file:
        del file["obsm/X_umap"], file["obsm/X_pca"]
        file["obsm/X_pca"] = cells["X"]
    assert "has no map, a matrix of 2 or 3 columns in obsm" in run("page", "cells.h5ad", "-o", "no.html")[2]


def test_results_are_written_back(run: Run, cells: dict[str, Any]) -> None:
    anndata = pytest.importorskip("anndata")
    before = Path("cells.h5ad").read_bytes()
    code, _, err = run("embed", "cells.h5ad", "-o", "mapped.h5ad", "--report", "report.json", "--n-epochs", "20")
    assert (code, err) == (0, "")
    assert Path("cells.h5ad").read_bytes() == before
    mapped, given = anndata.read_h5ad("mapped.h5ad"), anndata.read_h5ad("cells.h5ad")
    assert mapped.obsm["X_umap"].shape == (N, 2)
    assert not np.array_equal(mapped.obsm["X_umap"], given.obsm["X_umap"])
    assert mapped.uns["umap"]["params"]["a"] == pytest.approx(1.58, abs=0.02)
    assert list(mapped.obs) == ["kind", "depth", "umap_reliability", "umap_reliability_label"]
    assert mapped.obs["umap_reliability_label"].dtype == "category"
    np.testing.assert_array_equal(mapped.raw.X.toarray(), cells["raw"])
    np.testing.assert_array_equal(mapped.layers["counts"].toarray(), cells["raw"][:, :GENES])
    assert mapped.obs["kind"].tolist() == cells["kind"].tolist()
    assert run("embed", "cells.h5ad", "-o", "tsne.h5ad", "--method", "tsne", "--model", "t.vicinal", "--quiet")[0] == 0
    assert run("transform", "t.vicinal", "cells.h5ad", "-o", "placed.h5ad", "--quiet") == (0, "", "")
    placed = [anndata.read_h5ad(f"{name}.h5ad").obsm["X_tsne"] for name in ("tsne", "placed")]
    np.testing.assert_array_equal(*placed)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "type"], "has no gene and no column of obs 'type'; it has 'kind', 'depth'"),
        (["--value", "NKG7"], "has no gene and no column of obs 'NKG7'; it has 'kind', 'depth'"),
        (["--array", "obsm/X_no"], "has no array 'obsm/X_no'; it has 'X', 'layers/counts', 'obsm/X_pca'"),
    ],
)
def test_errors_list_the_columns_of_obs(run: Run, cells: dict[str, Any], options: list[str], message: str) -> None:
    assert message in run("embed", "cells.h5ad", "-o", "map.npy", *options)[2]
    assert not Path("map.npy").exists()


def test_the_matrix_is_named_by_every_format(run: Run, cells: dict[str, Any]) -> None:
    out = run("describe", "cells.h5ad")[1]
    assert re.search(r"obsm/X_pca +│ features 3 columns", out)
    assert re.search(r"kind +│ shown +2 classes.*\n.*depth +│ shown +numbers", out)
    np.savez("two.npz", X=cells["X"], other=cells["raw"])
    assert re.search(rf"X +│ features {GENES} columns", run("describe", "two.npz")[1])
    out = run("embed", "two.npz", "-o", "map.csv", "--array", "other", "--n-epochs", "5")[1]
    assert out.startswith(f"{cells['raw'].shape[1]} features: columns of other\n")


def test_h5ad_is_written_only_from_h5ad(run: Run, cells: dict[str, Any]) -> None:
    np.save("rows.npy", cells["X"])
    assert "only if the rows are read from one" in run("embed", "rows.npy", "-o", "map.h5ad")[2]
    with h5py.File("old.h5ad", "w") as file:  # as anndata wrote files before 0.7
        file["X"], file["obs"] = cells["X"], np.zeros(N, dtype=[("index", "S4"), ("kind", "i1")])
    assert "was written by anndata before 0.7" in run("embed", "old.h5ad", "-o", "map.npy")[2]


def test_columns_with_missing_values_of_any_type_travel(run: Run) -> None:
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    ages = [None if a % 5 == 0 else a for a in range(N)]
    obs = pandas.DataFrame(
        {"age": pandas.array(ages, dtype="Int64"), "sick": pandas.array([*[None] * 6, *[True] * 54], dtype="boolean")},
        index=[f"c{a}" for a in range(N)],
    )
    X = np.random.default_rng(0).normal(size=(N, 4)).astype(np.float32)
    anndata.AnnData(X, obs=obs).write_h5ad("nullable.h5ad")
    assert run("embed", "nullable.h5ad", "-o", "map.csv", "--label", "sick", "--n-epochs", "5", "--quiet")[0] == 0
    written = pl.read_csv("map.csv", infer_schema_length=None)
    assert written["sick"].to_list() == [None] * 6 + [True] * 54
    known = np.array([np.nan if age is None else age for age in ages])
    np.testing.assert_array_equal(written["age"].cast(float, strict=False).fill_null(np.nan), known)
    out = run("describe", "nullable.h5ad")[1]
    assert re.search(r"age +│ shown +numbers.*\n.*sick +│ shown +1 classes", out)


def test_cells_without_columns_are_written_back(run: Run) -> None:
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)).write_h5ad("bare.h5ad")
    assert run("embed", "bare.h5ad", "-o", "mapped.h5ad", "--n-epochs", "5", "--quiet") == (0, "", "")
    assert anndata.read_h5ad("mapped.h5ad").obsm["X_umap"].shape == (N, 2)


def test_several_genes_of_one_name_are_named(run: Run, cells: dict[str, Any]) -> None:
    with h5py.File("cells.h5ad", "r+") as file:
        file["raw/var/_index"][-1] = "LYZ"
    assert "has several genes 'LYZ'" in run("embed", "cells.h5ad", "-o", "map.csv", "--value", "LYZ")[2]


def test_a_name_of_a_column_and_a_gene_is_refused_as_a_value(run: Run, cells: dict[str, Any]) -> None:
    with h5py.File("cells.h5ad", "r+") as file:
        file["raw/var/_index"][0] = "depth"
    assert (
        "has a column of obs and a gene 'depth'" in run("embed", "cells.h5ad", "-o", "map.csv", "--value", "depth")[2]
    )
    assert run("embed", "cells.h5ad", "-o", "map.csv", "--hover", "depth", "--n-epochs", "5", "--quiet") == (0, "", "")


def test_a_description_names_missing_numbers(run: Run, cells: dict[str, Any]) -> None:
    with h5py.File("cells.h5ad", "r+") as file:
        file["obsm/X_pca"][3, 2] = np.nan
    code, _, err = run("describe", "cells.h5ad")
    assert (code, "row 3 has nan in column '2'; --impute fills them in" in err) == (2, True)
    assert run("embed", "cells.h5ad", "-o", "map.csv")[2].endswith(err[err.index("row 3") :])
