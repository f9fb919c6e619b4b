"""
A stream: progressive UMAP
==========================

Rows arrive in batches. There is a map after the first of them, and every step has a bounded cost.
"""

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import vicinal

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order], y[order]

model = vicinal.ProgressiveUMAP(random_state=42)
figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
shown = iter(axes)
for start in range(0, len(X), 100):
    begin = time.perf_counter()
    model.partial_fit(X[start : start + 100])
    milliseconds = 1000 * (time.perf_counter() - begin)
    n = model.n_rows_
    if n in (100, 400, 1000) or n == len(X):
        title = f"{n} rows, last batch in {milliseconds:.0f} ms"
        vicinal.plot.points(model, y[:n], ax=next(shown), legend=False, title=title)
plt.show()

# %%
# ``run`` finishes what is pending, ``polish`` is a last pass over all rows. The result is nearly as faithful as the map
# of all rows at once.
model.run().polish()
at_once = vicinal.UMAP(random_state=42).fit(X)
for name, places in (("progressive", model.embedding_), ("at once", at_once.embedding_)):
    recall = vicinal.quality.neighbor_recall(X, places, n_neighbors=15)
    accuracy = vicinal.quality.knn_accuracy(places, y, n_neighbors=10)
    print(f"{name:12} neighbor recall {recall:.3f}, 10-NN accuracy {accuracy:.3f}")
