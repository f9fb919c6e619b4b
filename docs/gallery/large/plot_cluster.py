"""
More rows than memory holds
===========================

Rows in files, as a Dask array, are fitted within a limit of memory or on the workers of a cluster:

.. code-block:: python

    import dask.array as da, vicinal

    X = da.from_zarr("rows.zarr")
    model = vicinal.UMAP(random_state=0, memory_limit="2GB").fit(X)  # this machine
    model.embedding_.to_zarr("map.zarr")

With a ``distributed.Client`` the same call runs on its workers. The figures are those that ``benchmarks/cluster.py``
recorded in ``benchmarks/results``.
"""

# %%
import matplotlib.pyplot as plt
from gallery_data import recorded_cluster_fits

import vicinal

records = recorded_cluster_fits()
names = [record["case"] for record in records]
measures = {
    "processor time, s": [record["processor_seconds"] for record in records],
    "largest process, MB": [record["largest_worker_bytes"] / 1e6 for record in records],
    "neighbor recall": [record["quality"]["neighbor_recall"] for record in records],
    "recall of 15 neighbors in the map": [record["quality"]["map_recall_15"] for record in records],
}
figure, axes = plt.subplots(2, 2, figsize=(10, 1.2 + 0.9 * len(names)), layout="constrained", sharey=True)
for ax, (title, values), color in zip(axes.flat, measures.items(), vicinal.plot.palette(4), strict=True):
    ax.barh(names, values, color=color)
    for line, value in enumerate(values):
        ax.text(value, line, f" {value:,.3f}" if value < 10 else f" {value:,.0f}", va="center")
    ax.set_xlim(0, 1.25 * max(values))
    ax.set_title(title, fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
axes[0, 0].invert_yaxis()
figure.suptitle(f"{records[0]['rows']:,} rows of a mixture of clusters, in memory and as a Dask array", fontsize=11)
plt.show()

# %%
# The map of a Dask array has the same bits for any chunks, workers and threads, also if workers are lost.
# :doc:`/guides/cluster` describes how, and what 100 million rows need.
