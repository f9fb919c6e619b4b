"""
Clothes: Fashion-MNIST
======================

20,000 photographs of clothes, 28 x 28 pixels. Shoes, trousers and bags form islands of their own; shirts, coats and
pullovers, which the eye confuses too, share one.
"""

# %%
import time

import matplotlib.pyplot as plt
from gallery_data import load_fashion

import vicinal

images, kinds = load_fashion(20_000)
begin = time.perf_counter()
model = vicinal.UMAP(random_state=42).fit(images)
print(f"{len(images):,} x {images.shape[1]} in {time.perf_counter() - begin:.1f} s")
vicinal.plot.points(model, kinds)

# %%
# Where the time went:
for stage, seconds in model.stage_times_.items():
    print(f"{stage:12} {seconds:5.2f} s")

# %%
# The edges of the graph show which islands are connected. Long edges join rows that are neighbors in the data although
# they lie far apart in the map.
vicinal.plot.connectivity(model, kinds)
plt.show()
