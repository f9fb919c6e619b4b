"""
Density: densMAP
================

UMAP makes all neighborhoods look equally dense. densMAP adds a term that keeps their radii: loose groups stay loose.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import vicinal

data = load_breast_cancer()
X = StandardScaler().fit_transform(data.data)
kinds = data.target_names[data.target]

plain = vicinal.UMAP(random_state=42, output_dens=True).fit(X)
dense = vicinal.DensMAP(random_state=42, output_dens=True).fit(X)

figure, axes = plt.subplots(2, 2, figsize=(9, 8), layout="constrained")
for column, (name, model) in enumerate((("UMAP", plain), ("densMAP", dense))):
    correlation = model.radius_correlation_
    vicinal.plot.points(model, kinds, ax=axes[0, column], title=f"{name}: correlation of radii {correlation:.2f}")
    vicinal.plot.points(model, values=model.rad_orig_, ax=axes[1, column], title="log radius in the data")
plt.show()

# %%
# Malignant tumors vary much more than benign ones. In UMAP's map both groups are equally tight; densMAP shows the
# difference.
