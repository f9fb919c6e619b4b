"""
With some classes: semi-supervised UMAP
=======================================

Labels of a tenth of the rows are enough to pull the classes apart; the others are -1.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import vicinal
from vicinal import quality

X, y = load_digits(return_X_y=True)
known = np.random.default_rng(0).random(len(y)) < 0.1
partial = np.where(known, y, -1)

figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
for ax, name, labels in zip(
    axes, ("no labels", "a tenth of the labels", "all labels"), (None, partial, y), strict=True
):
    model = vicinal.UMAP(random_state=42).fit(X, labels)
    vicinal.plot.points(model, y, ax=ax, legend=False)
    unlabeled = quality.knn_accuracy(model.embedding_[~known], y[~known], n_neighbors=10)
    ax.set_title(f"{name}\n10-NN accuracy of the other rows {unlabeled:.3f}", fontsize=10, loc="left")
plt.show()

# %%
# Numbers instead of classes: a target metric arranges the rows by a number. Here it is the mean ink of an image; NaN
# means unknown.
ink = X.mean(axis=1)
some = np.where(known, ink, np.nan)
model = vicinal.UMAP(target_metric="l2", random_state=42).fit(X, some)
vicinal.plot.points(model, values=ink, title="arranged by ink, known for a tenth of the rows")
plt.show()
