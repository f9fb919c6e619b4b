"""
New rows: transform, update, save and load
==========================================

A fitted map places new rows among the known ones. The place of a row depends on this row and the model only, never on
the other rows of the call.
"""

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import vicinal

X, y = load_digits(return_X_y=True)
old, new = slice(0, 1500), slice(1500, None)
model = vicinal.UMAP(random_state=42).fit(X[old])
places = model.transform(X[new])

ax = vicinal.plot.points(model, y[old], alpha=0.25, legend=False)
vicinal.plot.points(places, y[new], ax=ax, title="known rows (pale) and new rows")
plt.show()

# %%
# One at a time or all at once: the same bits. A training row returns its own position.
one_by_one = np.concatenate([model.transform(row[None]) for row in X[new][:20]])
print("one by one equals all at once:", np.array_equal(one_by_one, places[:20]))
print("training rows keep their places:", np.array_equal(model.transform(X[old]), model.embedding_))

# %%
# A model file holds arrays and JSON. Loading it runs no code.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "digits.vicinal"
    model.save(path)
    loaded = vicinal.load(path)
    print(f"{path.stat().st_size / 1e6:.1f} MB; the same places:", np.array_equal(loaded.transform(X[new]), places))

# %%
# ``update`` adds the rows to the map; the others move a little.
before = model.embedding_.copy()
model.update(X[new])
moved = np.linalg.norm(model.embedding_[: len(before)] - before, axis=1)
print(f"{len(model.embedding_)} rows; the others moved by {np.median(moved):.2f} (median)")
