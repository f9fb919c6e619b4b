"""AnnData in scanpy's conventions. scanpy is slow to import, so its tests are in this one file."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vicinal

anndata = pytest.importorskip("anndata")
CELLS, GENES, COMPONENTS = 150, 60, 10


@pytest.fixture(scope="module")
def sc() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scanpy = pytest.importorskip("scanpy")
        import matplotlib

        matplotlib.use("Agg")
    return scanpy


@pytest.fixture(scope="module")
def pbmc(sc: Any) -> Any:
    """Some real cells, without the results that scanpy stored with them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells = sc.datasets.pbmc68k_reduced()[::3].copy()
    del cells.uns["neighbors"], cells.obsp["distances"], cells.obsp["connectivities"], cells.obsm["X_umap"]
    return cells


@pytest.fixture
def cells(global_random_seed: int) -> Any:
    """Three groups of cells with more genes than scanpy compares directly, and components of them."""
    rng = np.random.default_rng(global_random_seed)
    group = np.arange(CELLS) % 3
    X = rng.normal(size=(CELLS, GENES)) + 4 * (np.arange(GENES) % 3 == group[:, None])
    made = anndata.AnnData(X.astype(np.float32))
    made.obs["group"] = [f"g{one}" for one in group]
    made.obs["group"] = made.obs["group"].astype("category")
    u, s, vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    made.obsm["X_pca"] = (u * s)[:, :COMPONENTS].astype(np.float32)
    made.varm["PCs"] = vt[:COMPONENTS].T
    return made


def agreement(places: Any, groups: Any, known: Any = None, known_groups: Any = None) -> float:
    """Return how often the nearest other point has the group of a point."""
    targets = places if known is None else known
    apart = ((places[:, None] - targets[None]) ** 2).sum(axis=2)
    if known is None:
        np.fill_diagonal(apart, np.inf)
    others = np.asarray(groups if known_groups is None else known_groups)
    return float(np.mean(others[apart.argmin(axis=1)] == np.asarray(groups)))


# scanpy on our results


def test_scanpy_draws_and_clusters_what_we_store(sc: Any, pbmc: Any, tmp_path: Path) -> None:
    cells = pbmc.copy()
    vicinal.tl.umap(cells)
    for tool in (vicinal.tl.densmap, vicinal.tl.tsne, vicinal.tl.reliability):
        tool(cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sc.tl.leiden(cells, flavor="igraph", n_iterations=2, directed=False)
        sc.tl.paga(cells, "leiden")
        figures = [
            sc.pl.umap(cells, color=["leiden", "umap_reliability", "HES4"], return_fig=True, show=False),
            sc.pl.tsne(cells, color="bulk_labels", return_fig=True, show=False),
            sc.pl.embedding(cells, "densmap", color="umap_reliability_label", return_fig=True, show=False),
        ]
        for number, figure in enumerate(figures):
            figure.savefig(tmp_path / f"{number}.png")
        cells.write_h5ad(tmp_path / "cells.h5ad")
    assert 4 <= cells.obs["leiden"].nunique() <= 20
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    vicinal.tl.reliability(again, null=False)  # parameters come back from the file as arrays
    assert again.uns["umap"]["params"]["a"] == pytest.approx(0.583, abs=0.001)


def test_graph_and_map_are_those_of_scanpy_and_of_the_estimator(sc: Any, pbmc: Any, global_random_seed: int) -> None:
    ours, theirs = pbmc.copy(), pbmc.copy()
    vicinal.pp.neighbors(ours, n_neighbors=10, n_pcs=30, random_state=global_random_seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sc.pp.neighbors(theirs, n_neighbors=10, n_pcs=30, random_state=global_random_seed)
    assert ours.uns["neighbors"] == theirs.uns["neighbors"]
    assert abs(ours.obsp["connectivities"] - theirs.obsp["connectivities"]).max() < 1e-4
    assert abs(ours.obsp["distances"] - theirs.obsp["distances"]).max() < 1e-3
    vicinal.tl.umap(ours, random_state=global_random_seed)
    vicinal.tl.umap(theirs, random_state=global_random_seed)
    model = vicinal.UMAP(n_neighbors=10, min_dist=0.5, init="spectral", random_state=global_random_seed)
    model.fit(ours.obsm["X_pca"][:, :30])
    np.testing.assert_array_equal(ours.obsm["X_umap"], model.embedding_)
    types = ours.obs["bulk_labels"]
    assert abs(agreement(ours.obsm["X_umap"], types) - agreement(theirs.obsm["X_umap"], types)) < 0.15


def test_paga_start_and_scanpys_map_are_used(sc: Any, pbmc: Any) -> None:
    cells = pbmc.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sc.pp.neighbors(cells)
        sc.tl.paga(cells, "bulk_labels")
        with pytest.raises(ValueError, match=r"call scanpy\.pl\.paga"):
            vicinal.tl.umap(cells, init_pos="paga")
        sc.pl.paga(cells, plot=False)
        vicinal.tl.umap(cells, init_pos="paga", maxiter=20)
        sc.tl.umap(cells, maxiter=20)
    vicinal.tl.reliability(cells, null=False)
    assert np.isfinite(cells.obs["umap_reliability"]).all()


# keys


def test_key_added_and_copy_follow_scanpy(cells: Any) -> None:
    before = set(cells.obsm), set(cells.uns), set(cells.obsp)
    made = vicinal.pp.neighbors(cells, key_added="mine", use_rep="X", metric="cosine", copy=True)
    assert before == (set(cells.obsm), set(cells.uns), set(cells.obsp))
    assert set(made.obsp) == {"mine_distances", "mine_connectivities"}
    assert made.uns["mine"]["params"]["use_rep"] == "X"
    assert vicinal.tl.umap(made, key_added="here", neighbors_key="mine", n_components=3, random_state=7) is None
    assert made.obsm["here"].shape == (CELLS, 3)
    assert made.uns["here"]["params"] | {"a": 0, "b": 0} == {
        "a": 0, "b": 0, "random_state": 7, "neighbors_key": "mine",
    }  # fmt: skip
    vicinal.tl.reliability(made, basis="here", key_added="trust", null=False)
    assert made.obs["trust"].between(0, 1).all()
    assert set(made.obs["trust_label"].cat.categories) == {"trustworthy", "undecided", "dubious"}
    moved = vicinal.tl.umap(made, init_pos="here", neighbors_key="mine", n_components=3, maxiter=0, copy=True)
    assert "X_umap" in moved.obsm
    assert "X_umap" not in made.obsm


def test_layer_and_few_genes(cells: Any) -> None:
    cells.layers["scaled"] = cells.X * 2
    vicinal.pp.neighbors(cells, layer="scaled")
    expected = vicinal.find_neighbors(cells.layers["scaled"], 15).distance[:, 1:]
    np.testing.assert_allclose(np.sort(cells.obsp["distances"].data), np.sort(expected.ravel()), rtol=1e-6)
    vicinal.tl.tsne(cells, layer="scaled")
    vicinal.tl.update(cells[:5].copy(), cells, basis="tsne")
    few = anndata.AnnData(cells.X[:, :20])
    vicinal.pp.neighbors(few)
    assert few.obsp["distances"].nnz == CELLS * 14


def test_densities_shape_the_map(cells: Any) -> None:
    vicinal.pp.neighbors(cells)
    vicinal.tl.densmap(cells, key_added="dense", dens_lambda=5.0)
    vicinal.tl.densmap(cells, key_added="plain", dens_lambda=0.0)
    assert cells.uns["dense"]["params"]["dens_lambda"] == 5.0
    assert not np.array_equal(cells.obsm["dense"], cells.obsm["plain"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda cells: vicinal.tl.umap(cells.X), "adata must be an AnnData, got numpy"),
        (lambda cells: vicinal.tl.umap(cells, neighbors_key="no"), r"has no uns\['no'\]: call vicinal.pp.neighbors"),
        (lambda cells: vicinal.pp.neighbors(cells, use_rep="X_scvi"), r"no obsm\['X_scvi'\]; obsm has X_pca"),
        (lambda cells: vicinal.pp.neighbors(cells, layer="no"), r"no layers\['no'\]; layers has no matrices"),
        (lambda cells: vicinal.pp.neighbors(cells, layer="a", n_pcs=3), "layer cannot be given together"),
        (lambda cells: vicinal.pp.neighbors(cells, n_pcs=99), r"obsm\['X_pca'\] has 10 columns"),
        (lambda cells: vicinal.tl.reliability(cells), r"adata has no map obsm\['X_umap'\]"),
        (lambda cells: vicinal.tl.update(cells, None), "reference must be an AnnData"),
        (lambda cells: vicinal.tl.update(cells, cells, move=True, copy=True), "copy=True is not possible"),
        (lambda cells: vicinal.pp.neighbors(anndata.AnnData(cells.X)), r"60 genes and no obsm\['X_pca'\]"),
    ],
)
def test_refusals_say_what_to_do(cells: Any, call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call(cells)
    assert set(cells.obsm) == {"X_pca"}
    assert not cells.uns


# new cells


def test_new_cells_join_the_map(cells: Any) -> None:
    reference, new = cells[::2].copy(), cells[1::2].copy()
    vicinal.tl.umap(reference)
    before = reference.obsm["X_umap"].copy()
    vicinal.tl.update(new, reference)
    groups = new.obs["group"], before, reference.obs["group"]
    assert agreement(new.obsm["X_umap"], *groups) > 0.9
    np.testing.assert_array_equal(reference.obsm["X_umap"], before)
    known = vicinal.tl.update(reference, reference, copy=True)
    np.testing.assert_array_equal(known.obsm["X_umap"], before)  # known cells keep their places
    vicinal.tl.update(new, reference, move=True)
    assert not np.array_equal(reference.obsm["X_umap"], before)
    assert agreement(new.obsm["X_umap"], new.obs["group"], reference.obsm["X_umap"], groups[2]) > 0.9


def test_new_cells_are_projected_and_matched_by_gene(cells: Any) -> None:
    reference = cells.copy()
    vicinal.tl.umap(reference)
    new = cells[:20, ::-1].copy()
    del new.obsm["X_pca"]
    vicinal.tl.update(new, reference)
    places = new.obsm["X_umap"]
    assert agreement(places, new.obs["group"], reference.obsm["X_umap"], cells.obs["group"]) > 0.9
    with pytest.raises(ValueError, match="does not have 59 of the genes of reference: "):
        vicinal.tl.update(new[:, :1].copy(), reference)
    reference.obsm["X_pca"] = reference.obsm["X_pca"] + 1
    with pytest.raises(ValueError, match="is not the projection"):
        vicinal.tl.update(new, reference)


# files and Dask


@pytest.mark.parametrize("sparse", [False, True])
def test_backed_cells_are_mapped(cells: Any, tmp_path: Path, sparse: bool) -> None:
    from scipy.sparse import csr_matrix

    cells.X = csr_matrix(np.where(cells.X > 2, cells.X, 0)) if sparse else cells.X
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    for one in (cells, backed):
        vicinal.pp.neighbors(one, use_rep="X")
        vicinal.tl.umap(one)
    np.testing.assert_array_equal(backed.obsm["X_umap"], cells.obsm["X_umap"])
    assert not vicinal.tl.umap(backed, copy=True).isbacked
    backed.file.close()


@pytest.mark.parametrize("sparse", [False, True])
def test_zarr_and_dask_cells_are_mapped(cells: Any, tmp_path: Path, sparse: bool) -> None:
    da = pytest.importorskip("dask.array")
    pytest.importorskip("zarr")
    from scipy.sparse import csr_matrix

    rows = csr_matrix(np.where(cells.X > 2, cells.X, 0)) if sparse else cells.X
    cells.X = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells.write_zarr(tmp_path / "cells.zarr")
        stored = anndata.read_zarr(tmp_path / "cells.zarr")
    lazy = anndata.AnnData(da.from_array(rows, chunks=(50, GENES), asarray=not sparse), obs=cells.obs)
    for one in (cells, stored, lazy):
        vicinal.pp.neighbors(one, use_rep="X")
        vicinal.tl.umap(one)
        vicinal.tl.reliability(one, null=False)
    np.testing.assert_array_equal(stored.obsm["X_umap"], cells.obsm["X_umap"])
    assert agreement(lazy.obsm["X_umap"], cells.obs["group"]) > 0.9
    assert abs(lazy.obsp["connectivities"] - cells.obsp["connectivities"]).max() < 1e-3


def test_nothing_imports_anndata_until_it_is_used(child_environment: dict[str, str]) -> None:
    program = "import sys, vicinal; vicinal.tl.umap, vicinal.pp.neighbors; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True, check=True)
    assert not {"anndata", "scanpy"} & set(done.stdout.split())
