"""
Your own distances: a map of genes
==================================

``metric="precomputed"`` takes distances instead of rows. Here they are 1 - Spearman's correlation between genes over
700 blood cells: genes that are active in the same cells come to lie together.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from gallery_data import load_cells
from scipy.stats import rankdata

import vicinal

counts, types, genes = load_cells()
depth = np.asarray(counts.sum(axis=1))
expression = counts.toarray() / depth
frequent = (expression > 0).sum(axis=0) >= 70
expression, genes = expression[:, frequent], genes[frequent]

ranks = rankdata(expression, axis=0)
distances = np.clip(1 - np.corrcoef(ranks.T), 0, 2)
np.fill_diagonal(distances, 0)
model = vicinal.UMAP(metric="precomputed", n_neighbors=10, random_state=42).fit(distances)

# %%
# The color is the share of a gene's transcripts in monocytes and dendritic cells.
myeloid = np.isin(types, ["CD14+ Monocyte", "Dendritic"])
share = expression[myeloid].sum(axis=0) / expression.sum(axis=0)
ax = vicinal.plot.points(model, values=share, title=f"{len(genes)} genes, share in myeloid cells")
for gene in ("CD79A", "MS4A1", "NKG7", "GZMB", "LYZ", "S100A8", "CD3D", "RPS12", "HLA-DRA"):
    if gene in genes:
        ax.annotate(gene, model.embedding_[list(genes).index(gene)], fontsize=8)
plt.show()

# %%
# Neighbors that another library found are given by ``precomputed_knn``, each row itself included; there is then no
# search.
index = np.argsort(distances, axis=1, kind="stable")[:, :10]
nearest = np.take_along_axis(distances, index, axis=1)
given = vicinal.UMAP(n_neighbors=10, precomputed_knn=(index, nearest), random_state=42).fit(expression.T)
print("the same graph:", abs(given.graph_ - model.graph_).max() < 1e-6)
