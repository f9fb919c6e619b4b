"""
Clusters on a map, and why to be careful
========================================

Islands of a map are often clusters of the data. They are not always: small neighborhoods tear continuous data into
islands. Two checks tell the cases apart: other parameters, and other seeds.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import load_diabetes, load_digits
from sklearn.metrics import adjusted_rand_score

import vicinal

X, y = load_digits(return_X_y=True)

# %%
# **Where it helps.** Ten digits are ten clusters, but curved ones. A clustering of the map finds them more easily than
# a clustering of the 64 columns. Maps for clustering should be tight: ``min_dist=0`` and more neighbors.
places = vicinal.UMAP(n_neighbors=30, min_dist=0.0, random_state=42).fit_transform(X)
found = HDBSCAN(min_cluster_size=50, copy=True).fit_predict(places)
direct = KMeans(10, n_init=3, random_state=0).fit_predict(X)
print(f"HDBSCAN on the map: {found.max() + 1} clusters, {(found < 0).mean():.1%} of the rows in none,")
print(f"  adjusted Rand index with the digits {adjusted_rand_score(y, found):.2f} (k-means on the pixels:", end=" ")
print(f"{adjusted_rand_score(y, direct):.2f})")

# %%
# **Where it misleads.** The diabetes data are ten measurements of 442 patients. They vary continuously: there is no
# reason to expect groups, apart from the sex, which is one of the columns. Small neighborhoods show islands
# nevertheless, and these change with the seed.
patients, sex = load_diabetes().data, load_diabetes().data[:, 1] > 0
figure, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
for line, n_neighbors in zip(axes, (4, 30), strict=True):
    labels = []
    for ax, seed in zip(line, (0, 1, 2), strict=True):
        places = vicinal.UMAP(n_neighbors=n_neighbors, min_dist=0.0, random_state=seed).fit_transform(patients)
        labels.append(HDBSCAN(min_cluster_size=10, copy=True).fit_predict(places))
        vicinal.plot.points(places, np.where(sex, "sex 1", "sex 2"), ax=ax, legend=False)
        islands = labels[-1].max() + 1
        ax.set_title(f"n_neighbors {n_neighbors}, seed {seed}: {islands} clusters", fontsize=10, loc="left")
    agreement = np.mean([adjusted_rand_score(labels[i], labels[j]) for i, j in ((0, 1), (0, 2), (1, 2))])
    print(f"n_neighbors {n_neighbors}: agreement of the clusters between seeds {agreement:.2f}")
plt.show()

# %%
# So: report the parameters with a map, compare seeds and values of ``n_neighbors``, and test groups on the data itself,
# never on the coordinates of a map. Distances between islands, their sizes and their densities have no meaning of their
# own (``DensMAP`` keeps densities).
