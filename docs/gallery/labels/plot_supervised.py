"""
With classes: supervised UMAP
=============================

Given labels, the map separates the classes. New rows are placed without their labels, so the separation can be tested:
a map is only trustworthy if held-out rows land in their class.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

import vicinal

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, name, labels in zip(axes, ("without labels", "with labels"), (None, y_train), strict=True):
    model = vicinal.UMAP(random_state=42).fit(X_train, labels)
    places = model.transform(X_test)
    near = KNeighborsClassifier(10).fit(model.embedding_, y_train)
    vicinal.plot.points(model, y_train, ax=ax, legend=False)
    colors = np.array(vicinal.plot.palette(10))
    ax.scatter(*places.T, s=14, c=colors[y_test], edgecolors="black", linewidths=0.4)
    ax.set_title(f"{name}: {near.score(places, y_test):.1%} of new rows in their class", fontsize=10, loc="left")
plt.show()

# %%
# Circled points are the new rows. ``target_weight`` says how far the labels count: 0 ignores them, 1 cuts every edge
# between classes.
#
# **A warning.** Labels without any relation to the data also give separate islands. Only held-out rows show that
# nothing was learned:
random = np.random.default_rng(0).permutation(y_train)
model = vicinal.UMAP(random_state=42).fit(X_train, random)
on_training = KNeighborsClassifier(10).fit(model.embedding_, random).score(model.embedding_, random)
on_new = KNeighborsClassifier(10).fit(model.embedding_, random).score(model.transform(X_test), y_test)
print(f"random labels: {on_training:.0%} of training rows in their class, {on_new:.0%} of new rows")
