"""
Where a map is wrong
====================

Two dimensions cannot keep all neighbors. Coloring each point by what its neighborhood lost shows which parts of a map
to believe.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import vicinal

X, y = load_digits(return_X_y=True)
model = vicinal.UMAP(random_state=42).fit(X)

figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
for ax, kind in zip(axes, ("recall", "quality", "density"), strict=True):
    vicinal.plot.diagnostic(model, kind=kind, ax=ax, title=kind)
plt.show()

# %%
# *Recall* is the share of a row's 15 nearest rows that are among its nearest in the map. *Quality* also takes into
# account how far off the wrong neighbors are. *Density* is what a map does not show: how close the neighbors are in the
# data.
#
# The same measures as numbers, for maps with more neighbors and other methods:
for name, other in {
    "UMAP": model,
    "UMAP, n_neighbors=50": vicinal.UMAP(n_neighbors=50, random_state=42).fit(X),
    "t-SNE": vicinal.TSNE(random_state=42).fit(X),
}.items():
    report = vicinal.quality.report(X, other.embedding_, y)
    print(f"{name}\n{report}\n")
