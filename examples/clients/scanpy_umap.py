"""scanpy.pp.neighbors and scanpy.tl.umap unchanged, with vicinal in place of umap-learn (`import vicinal as umap`)."""

from __future__ import annotations

import sys

import numpy as np

import vicinal

# scanpy imports `umap` and `umap.umap_` inside its functions; these entries make it use vicinal.
sys.modules["umap"] = vicinal
sys.modules["umap.umap_"] = vicinal.umap_

import scanpy as sc  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402


def main() -> None:
    cells = sc.datasets.pbmc68k_reduced()
    types = np.asarray(cells.obs["bulk_labels"])

    def accuracy() -> float:
        return float(cross_val_score(KNeighborsClassifier(15), cells.obsm["X_umap"], types, cv=5).mean())

    shipped = accuracy()  # of the map in the file, which umap-learn made
    sc.pp.neighbors(cells, n_neighbors=15, use_rep="X_pca")
    sc.tl.umap(cells, random_state=0)
    assert "umap.layouts" not in sys.modules, "scanpy used umap-learn"
    ours = accuracy()
    assert ours > shipped - 0.03, f"15-NN accuracy {ours:.3f}, in the shipped map {shipped:.3f}"
    print(f"scanpy.tl.umap on vicinal: {cells.n_obs} cells, 15-NN accuracy {ours:.3f}, shipped map {shipped:.3f}")


if __name__ == "__main__":
    main()
