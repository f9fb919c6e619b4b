"""
Cells in an AnnData: with scanpy
================================

``vicinal.pp`` and ``vicinal.tl`` take an AnnData and store results where scanpy looks for them. Everything else of a
workflow stays as it is: scanpy clusters and draws. The data are 700 blood cells that come with scanpy.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import scanpy as sc

import vicinal

cells = sc.datasets.pbmc68k_reduced()
vicinal.pp.neighbors(cells, n_neighbors=15)
vicinal.tl.umap(cells)
sc.tl.leiden(cells, flavor="igraph", n_iterations=2, directed=False)
sc.pl.umap(cells, color=["bulk_labels", "leiden"], wspace=0.6)

# %%
# Which cells of the map can be believed? The number is low where neighbors of a cell lie elsewhere in the map, or where
# another seed would put it at another place. The comparison with shuffled rows is left out here: principal components
# are uncorrelated, so that shuffled ones look much like the data.
vicinal.tl.reliability(cells, n_neighbors=5, null=False)
sc.pl.umap(cells, color=["umap_reliability", "LYZ", "NKG7"], wspace=0.3)

# %%
# The same graph as densMAP, and t-SNE of the same components:
vicinal.tl.densmap(cells)
vicinal.tl.tsne(cells)
figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for ax, basis in zip(axes, ("densmap", "tsne"), strict=True):
    last = basis == "tsne"
    legend = "right margin" if last else "none"
    sc.pl.embedding(cells, basis, color="bulk_labels", ax=ax, title=basis, legend_loc=legend, show=False)
plt.show()

# %%
# New cells are placed in the map of a reference. Here every fourth cell is new. Most of them lie next to a cell of
# their own type.
new = np.arange(cells.n_obs) % 4 == 0
reference, query = cells[~new].copy(), cells[new].copy()
vicinal.pp.neighbors(reference)
vicinal.tl.umap(reference)
vicinal.tl.update(query, reference)

apart = ((query.obsm["X_umap"][:, None] - reference.obsm["X_umap"]) ** 2).sum(axis=2)
nearest = reference.obs["bulk_labels"].to_numpy()[apart.argmin(axis=1)]
same = np.mean(nearest == query.obs["bulk_labels"].to_numpy())
print(f"{same:.0%} of {query.n_obs} new cells lie at a cell of their type")

figure, ax = plt.subplots(figsize=(6, 4.4), layout="constrained")
ax.scatter(*reference.obsm["X_umap"].T, s=8, color="0.85")
sc.pl.umap(query, color="bulk_labels", ax=ax, title="new cells among the reference", size=60, show=False)
plt.show()
