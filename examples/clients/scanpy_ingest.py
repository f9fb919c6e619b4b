"""scanpy.tl.ingest unchanged, with vicinal in place of umap-learn: cells placed in a map and labeled by its cells."""

from __future__ import annotations

import sys

import numpy as np

import vicinal

# scanpy imports `umap` and `umap.umap_` inside its functions; these entries make it use vicinal.
sys.modules["umap"] = vicinal
sys.modules["umap.umap_"] = vicinal.umap_

import scanpy as sc  # noqa: E402


def main() -> None:
    cells = sc.datasets.pbmc68k_reduced()
    held_out = np.arange(cells.n_obs) % 4 == 0
    known, unseen = cells[~held_out].copy(), cells[held_out].copy()
    sc.pp.pca(known)
    sc.pp.neighbors(known, n_neighbors=15)
    sc.tl.umap(known, random_state=0)
    true = np.asarray(unseen.obs["bulk_labels"])
    sc.tl.ingest(unseen, known, obs="bulk_labels", embedding_method="umap")
    places = unseen.obsm["X_umap"]
    assert "umap.layouts" not in sys.modules, "scanpy used umap-learn"
    assert np.isfinite(places).all()

    # The nearest cell of the map has the label of the placed cell about as often as the nearest known cells agree.
    other = known.obsm["X_umap"]
    nearest = ((places[:, None, :] - other[None]) ** 2).sum(axis=2).argmin(axis=1)
    placed = float(np.mean(np.asarray(known.obs["bulk_labels"])[nearest] == true))
    labeled = float(np.mean(np.asarray(unseen.obs["bulk_labels"]) == true))
    assert placed > labeled - 0.15, f"accuracy {placed:.3f} in the map, {labeled:.3f} by scanpy's neighbors"
    print(
        f"scanpy.tl.ingest on vicinal: {len(places)} cells placed among {known.n_obs}, accuracy "
        f"{placed:.3f} in the map, {labeled:.3f} by scanpy's neighbors"
    )


if __name__ == "__main__":
    main()
