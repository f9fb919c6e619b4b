"""
Pinned points
=============

Rows can be kept at given places: the map arranges the others around them. This keeps a known layout, or puts groups
where readers expect them.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import vicinal

X, y = load_digits(return_X_y=True)

# The 20 most typical images of each digit share a place on a circle.
angles = 2 * np.pi * np.arange(10) / 10
positions = np.full((len(X), 2), np.nan, dtype=np.float32)
for digit in range(10):
    members = np.flatnonzero(y == digit)
    typical = members[((X[members] - X[members].mean(axis=0)) ** 2).sum(axis=1).argsort()[:20]]
    positions[typical] = 10 * np.cos(angles[digit]), 10 * np.sin(angles[digit])
pinned = np.isfinite(positions).all(axis=1)

model = vicinal.UMAP(random_state=42)
model.fit(X, fixed_mask=pinned, fixed_positions=np.nan_to_num(positions))
ax = vicinal.plot.points(model, y)
for row in np.flatnonzero(pinned):
    ax.plot(*model.embedding_[row], "o", mfc="white", mec="black", ms=13)
    ax.annotate(str(y[row]), model.embedding_[row], ha="center", va="center", fontsize=9)
plt.show()

# %%
# Pinned rows stay where they are, bit for bit.
print(np.array_equal(model.embedding_[pinned], positions[pinned]))
