"""
Handwritten digits
==================

1,797 images of 8 x 8 pixels. Every image is a row of 64 numbers; the map places similar images next to each other. The
classes only color the points.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import vicinal

digits = load_digits()
model = vicinal.UMAP(random_state=42).fit(digits.data)
vicinal.plot.points(model, digits.target)

# %%
# The report measures how faithful the map is. Trustworthiness is low if rows are neighbors in the map that are far
# apart in the data; continuity is low if neighbors in the data were separated.
print(vicinal.quality.report(digits.data, model.embedding_, digits.target))

# %%
# One call writes an interactive page, a single file that needs no network. This is that page: point at a digit to see
# it.
#
# .. raw:: html
#
#    <iframe class="map-page" src="../../_static/pages/digits.html" title="Interactive map of the digits"></iframe>

# %%
# t-SNE and LargeVis are built from the same parts. They repel more strongly, so clusters fill more of the plane.
maps = {
    "UMAP": model,
    "t-SNE": vicinal.TSNE(random_state=42).fit(digits.data),
    "LargeVis": vicinal.LargeVis(random_state=42).fit(digits.data),
}
vicinal.plot.compare(maps, digits.target)
plt.show()
