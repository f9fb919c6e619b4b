"""
On a GPU
========

The same estimator, with the work done on the GPU:

.. code-block:: python

    import cupy, vicinal

    places = vicinal.UMAP(device="cuda").fit_transform(X)  # a NumPy array in and out
    places = vicinal.UMAP().fit_transform(cupy.asarray(X))  # an array of the GPU in and out

This site is built without a GPU. The figures are those that ``benchmarks/gpu.py`` recorded in
``benchmarks/results/gpu.json``.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from gallery_data import STAGES, recorded_gpu_fits

import vicinal

card, fits = recorded_gpu_fits()
figure, ax = plt.subplots(figsize=(8, 0.7 * len(fits) + 1.2), layout="constrained")
done = np.zeros(len(fits))
for stage, color in zip(STAGES, vicinal.plot.palette(len(STAGES)), strict=True):
    seconds = np.array([record[stage] for record in fits.values()])
    ax.barh(range(len(fits)), seconds, left=done, color=color, label=stage)
    done += seconds
for line, record in enumerate(fits.values()):
    ax.text(done[line], line, f" {record['seconds']:.2f} s in all", va="center")
ax.set_yticks(range(len(fits)), list(fits))
ax.invert_yaxis()
ax.set_xlim(0, 1.3 * done.max())
ax.set_xlabel(f"seconds of a fit of rows that lie on the {card}, by stage")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# A fast search is worth nothing if it misses neighbors. Its recall, the share of true neighbors found:
for data, record in fits.items():
    print(f"{data:28} {record['seconds']:6.2f} s, neighbor recall {record['recall']:.4f}")

# %%
# The layout of a given graph and start has the same bits as on the CPU, so a map does not depend on where it was made:
# see :doc:`/guides/gpu`.
