"""
Which points to believe
=======================

Every fitted model reports a per-row reliability, 0 to 1: whether the neighbors of a row are kept better than by chance,
whether its point stays where it is if the random numbers change, and which edges of the graph the map tears.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import vicinal

digits = load_digits()
X, y = digits.data[:1000], digits.target[:1000]
model = vicinal.UMAP(random_state=42).fit(X)
found = model.reliability_
print(found)

# %%
figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
vicinal.plot.points(model, y, ax=axes[0], title="classes")
vicinal.plot.reliability(model, ax=axes[1], title="reliability")
vicinal.plot.torn_edges(model, ax=axes[2], title="heavy edges that the map tears")
plt.show()

# %%
# The least reliable rows are those that lie between classes, and images that are hard to read:
doubtful = np.argsort(found.reliability)[:12]
figure, axes = plt.subplots(1, 12, figsize=(12, 1.5), layout="constrained")
for ax, row in zip(axes, doubtful, strict=True):
    ax.imshow(digits.images[row], cmap="gray_r")
    ax.set_title(f"{y[row]}: {found.reliability[row]:.2f}", fontsize=8)
    ax.axis("off")
plt.show()

# %%
# Shuffling every column on its own destroys all relations between columns. The map of such rows has clumps that look
# like clusters, but no point is trustworthy:
shuffled = np.random.default_rng(0).permuted(X[:500], axis=0)
imagined = vicinal.UMAP(n_neighbors=5, min_dist=0.0, random_state=42).fit(shuffled)
labels = imagined.reliability_.label
print(f"{np.mean(labels == 'trustworthy'):.0%} of the points of shuffled digits are trustworthy")
vicinal.plot.points(imagined, labels, title="a map of shuffled digits")
plt.show()

# %%
# How these figures are measured, and where they fail: :doc:`/guides/reliability`.
