"""
A network as the map: parametric UMAP
=====================================

A neural network learns to map rows to points, and a second one, the decoder, to map points back to images. New rows
then need one forward pass.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import vicinal

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X.astype(np.float32), y, random_state=0)

model = vicinal.ParametricUMAP(parametric_reconstruction=True, batch_size=2048, n_epochs=4, random_state=42).fit(
    X_train
)
ax = vicinal.plot.points(model, y_train, alpha=0.3, legend=False)
vicinal.plot.points(model.transform(X_test), y_test, ax=ax, title="training rows (pale) and new rows")
plt.show()

# %%
# The decoder turns any point of the map into an image. A walk across the map morphs one digit into another:
first, last = (np.median(model.embedding_[y_train == digit], axis=0) for digit in (4, 9))
walk = np.linspace(first, last, 10)
figure, axes = plt.subplots(1, 10, figsize=(10, 1.3), layout="constrained")
for ax, image in zip(axes, model.inverse_transform(walk), strict=True):
    ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
    ax.axis("off")
figure.suptitle("from the 4s to the 9s", fontsize=10)
plt.show()

# %%
# How well new rows survive the way to the map and back:
back = model.inverse_transform(model.transform(X_test))
error = ((back - X_test) ** 2).mean() / X_test.var(axis=0).mean()
print(f"{1 - error:.0%} of the variance of new rows is kept by two numbers per image")
