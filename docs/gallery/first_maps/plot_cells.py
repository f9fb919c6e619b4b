"""
Cells: transcript counts
========================

700 blood cells, 765 genes, and the number of transcripts of each gene in each cell. Counts need three steps before any
neighbor search: divide by the total of the cell, take logarithms, and reduce to principal components.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from gallery_data import load_cells
from sklearn.decomposition import PCA

import vicinal

counts, types, genes = load_cells()
print(
    f"{counts.shape[0]} cells, {counts.shape[1]} genes, {counts.nnz / np.prod(counts.shape):.0%} of the counts above 0"
)

depth = counts.sum(axis=1)
logarithms = np.log1p(counts.multiply(np.median(np.asarray(depth)) / depth).toarray())
components = PCA(30, random_state=0).fit_transform(logarithms)

# %%
model = vicinal.UMAP(n_neighbors=15, min_dist=0.3, random_state=42).fit(components)
vicinal.plot.points(model, types)

# %%
# Coloring the map by a gene shows which cells express it: NKG7 is a marker of natural killer and cytotoxic T cells,
# CD79A of B cells, LYZ of monocytes and dendritic cells.
markers = [gene for gene in ("NKG7", "CD79A", "LYZ") if gene in genes]
figure, axes = plt.subplots(1, len(markers), figsize=(4 * len(markers), 3.6), layout="constrained")
for ax, gene in zip(axes, markers, strict=True):
    vicinal.plot.points(model, values=logarithms[:, list(genes).index(gene)], ax=ax, title=gene)
plt.show()

# %%
# Without the first two steps the map mostly shows how many transcripts were caught per cell, which is an artifact of
# the measurement:
raw = vicinal.UMAP(random_state=42).fit(counts)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for ax, name, one in zip(axes, ("raw counts", "normalized"), (raw, model), strict=True):
    vicinal.plot.points(one, values=np.log10(np.asarray(depth).ravel()), ax=ax, title=f"{name}, log10 of the total")
plt.show()
