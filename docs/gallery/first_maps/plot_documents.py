"""
Documents
=========

The documents are the descriptions of about 2,000 functions and classes of NumPy, SciPy and scikit-learn: real texts
that every installation has. Each becomes a sparse row of word weights (TF-IDF), compared by the cosine of the angle
between rows. Sparse rows stay sparse.
"""

# %%
import importlib
import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import vicinal

TOPICS = {
    "numpy arrays": ["numpy"],
    "linear algebra": ["numpy.linalg", "scipy.linalg", "scipy.sparse.linalg"],
    "Fourier transforms": ["numpy.fft", "scipy.fft"],
    "statistics": ["scipy.stats"],
    "signals": ["scipy.signal"],
    "images": ["scipy.ndimage"],
    "special functions": ["scipy.special"],
    "optimization": ["scipy.optimize"],
    "interpolation": ["scipy.interpolate"],
    "linear models": ["sklearn.linear_model"],
    "trees and ensembles": ["sklearn.ensemble", "sklearn.tree"],
    "clustering": ["sklearn.cluster"],
    "metrics": ["sklearn.metrics"],
}
texts, topics, names = [], [], []
for topic, modules in TOPICS.items():
    for module in map(importlib.import_module, modules):
        for name in dir(module):
            text = re.sub(r"\d", "", inspect.getdoc(getattr(module, name)) or "")  # some examples have random numbers
            if not name.startswith("_") and callable(getattr(module, name)) and len(text) > 300 and text not in texts:
                texts.append(text)
                topics.append(topic)
                names.append(name)
words = TfidfVectorizer(min_df=3, max_df=0.3, stop_words="english", sublinear_tf=True)
rows = words.fit_transform(texts)
print(f"{rows.shape[0]:,} documents, {rows.shape[1]:,} words, {rows.nnz / rows.shape[0]:.0f} per document")

# %%
# Topics were not given to the map; they color the points.
model = vicinal.UMAP(metric="cosine", n_neighbors=10, random_state=42).fit(rows)
ax = vicinal.plot.points(model, topics)
for wanted in ("fft", "svd", "KMeans", "minimize", "RandomForestClassifier", "median_filter", "gamma"):
    if wanted in names:
        ax.annotate(wanted, model.embedding_[names.index(wanted)], fontsize=8)
plt.show()

# %%
# A new document is placed among its neighbors without moving them.
question = words.transform(["discrete cosine transform of a real sequence"])
place = model.transform(question)[0]
nearest = np.linalg.norm(model.embedding_ - place, axis=1).argsort()[:5]
print("next to:", ", ".join(names[i] for i in nearest))
