"""
Sheets: unrolled, not torn
==========================

5,000 points of a rolled sheet, 4.3 times as long as it is wide. The map should be the sheet.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_swiss_roll
from sklearn.manifold import spectral_embedding

import vicinal

rows, angle = make_swiss_roll(5000, random_state=0)
figure = plt.figure(figsize=(4.5, 4), layout="constrained")
figure.add_subplot(projection="3d").scatter(*rows.T, c=angle, s=2)
plt.show()

# %%
model = vicinal.UMAP(random_state=42).fit(rows)
vicinal.plot.points(model, values=angle)

# %%
# UMAP starts from the smoothest eigenvectors of its graph. On a long sheet these are waves along the sheet, the second
# with twice the frequency of the first. Together they form a curve that does not show the width. vicinal detects this
# and takes a vector that is not a function of the first. From the two smoothest vectors the same layout is torn:
curve = spectral_embedding(model.graph_, n_components=2, random_state=0)
torn = vicinal.UMAP(random_state=42, init=curve).fit(rows)

figure, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
for column, (name, one, start) in enumerate(
    [
        ("two smoothest vectors", torn, curve),
        ("vectors that differ", model, vicinal.spectral_start(model.map_.graph, rows, seed=42)),
    ]
):
    vicinal.plot.points(start, values=angle, ax=axes[0, column], title=f"start: {name}")
    vicinal.plot.points(one, values=angle, ax=axes[1, column], title="map")
plt.show()

# %%
# The weight of edges longer than 2 in the map measures how much is torn; neighbors are closer than 1:
edges = model.graph_.tocoo()
for name, one in (("two smoothest vectors", torn), ("vectors that differ", model)):
    length = np.linalg.norm(one.embedding_[edges.row] - one.embedding_[edges.col], axis=1)
    print(f"{name}: {edges.data[length > 2].sum() / edges.data.sum():.2%} of the weight")
