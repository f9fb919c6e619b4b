"""
Sphere and hyperbolic plane
===========================

``output_metric`` changes the space of the map. A sphere has no border, so no cluster is pushed outwards; a hyperbolic
plane has room for trees.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import vicinal

X, y = load_digits(return_X_y=True)
colors = np.array(vicinal.plot.palette(10))[y]

# %%
# On the sphere, the two coordinates are the polar angle and the azimuth.
sphere = vicinal.UMAP(output_metric="haversine", random_state=42).fit_transform(X)
polar, azimuth = sphere.T
x, z, height = np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)

figure = plt.figure(figsize=(10, 4.8), layout="constrained")
left = figure.add_subplot(1, 2, 1, projection="3d")
left.scatter(x, z, height, s=4, c=colors, linewidths=0)
left.set(title="on the sphere", box_aspect=(1, 1, 1), xticks=[], yticks=[], zticks=[])
right = figure.add_subplot(1, 2, 2, projection="mollweide")
longitude = np.arctan2(x, z)
right.scatter(longitude, np.arcsin(np.clip(height, -1, 1)), s=4, c=colors, linewidths=0)
right.set(title="as a map of the world", xticklabels=[], yticklabels=[])
right.grid(alpha=0.3)
plt.show()

# %%
# The hyperbolic plane, drawn in Poincare's disk: the third coordinate of a point is :math:`z = \sqrt{1 + x^2 + y^2}`,
# and it is seen from :math:`z = -1`.
plane = vicinal.UMAP(output_metric="hyperboloid", random_state=42).fit_transform(X)
disk = plane / (1 + np.sqrt(1 + (plane**2).sum(axis=1, keepdims=True)))
figure, ax = plt.subplots(figsize=(5.4, 5.4), layout="constrained")
ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="0.6"))
ax.scatter(*disk.T, s=5, c=colors, linewidths=0)
ax.set(aspect="equal", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), xticks=[], yticks=[])
plt.show()
