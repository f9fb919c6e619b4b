"""
Outliers
========

A map gives every row a place among its neighbors, even if they are far away, so an outlier does not show as a lonely
point. The distances in the data tell what the map hides.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import LocalOutlierFactor

import vicinal

digits = load_digits()
model = vicinal.UMAP(random_state=42, output_dens=True).fit(digits.data)

# %%
# ``rad_orig_`` is the logarithm of the local radius of every row: how far away its neighbors are in the data. The rows
# with the largest radii lie all over the map.
unusual = np.argsort(model.rad_orig_)[-20:]
ax = vicinal.plot.points(model, values=model.rad_orig_, title="log radius in the data; the 20 largest are circled")
ax.scatter(*model.embedding_[unusual].T, s=60, facecolors="none", edgecolors="black", linewidths=0.8)
plt.show()

figure, axes = plt.subplots(2, 10, figsize=(10, 2.4), layout="constrained")
for ax, row in zip(axes.flat, unusual, strict=True):
    ax.imshow(digits.images[row], cmap="gray_r")
    ax.set_title(digits.target[row], fontsize=8)
    ax.axis("off")
plt.show()

# %%
# scikit-learn's local outlier factor, computed on the map and on the data, gives different outliers. Trust the data.
in_data = LocalOutlierFactor(20).fit(digits.data).negative_outlier_factor_
in_map = LocalOutlierFactor(20).fit(model.embedding_).negative_outlier_factor_
worst_data, worst_map = (set(np.argsort(scores)[:50]) for scores in (in_data, in_map))
print(f"of the 50 largest outliers of the data, {len(worst_data & worst_map)} are among the 50 of the map")
