"""BERTopic with `umap_model=vicinal.UMAP(...)`: topics in the docstrings of four packages.

The documents are on disk and their embeddings are TF-IDF vectors reduced by SVD, so that nothing is downloaded.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings

import numpy as np
from bertopic import BERTopic
from hdbscan import HDBSCAN
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

import vicinal

PACKAGES = ("numpy", "scipy", "sklearn", "pandas")
HELD_OUT = 50


def docstrings() -> list[str]:
    """Return the distinct docstrings of more than 300 characters in the packages' public modules."""
    found: dict[str, None] = {}
    for package in PACKAGES:
        root = importlib.import_module(package)
        for part in pkgutil.iter_modules(root.__path__):
            if part.name.startswith(("_", "test", "conftest")):
                continue
            try:
                module = importlib.import_module(f"{package}.{part.name}")
            except ImportError:
                continue
            for _, thing in inspect.getmembers(module, lambda one: inspect.isclass(one) or inspect.isroutine(one)):
                text = inspect.getdoc(thing)
                if text and len(text) > 300:
                    found[text] = None
    return list(found)


def main() -> None:
    warnings.simplefilter("ignore")
    documents = docstrings()
    reduce = make_pipeline(TfidfVectorizer(stop_words="english", min_df=3), TruncatedSVD(100, random_state=0))
    embeddings = reduce.fit_transform(documents).astype(np.float32)
    model = BERTopic(
        umap_model=vicinal.UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=42),
        hdbscan_model=HDBSCAN(min_cluster_size=20, prediction_data=True),
        vectorizer_model=CountVectorizer(stop_words="english"),
    )
    topics, _ = model.fit_transform(documents[:-HELD_OUT], embeddings[:-HELD_OUT])
    new, _ = model.transform(documents[-HELD_OUT:], embeddings[-HELD_OUT:])
    n_topics = len(set(topics) - {-1})
    assert n_topics >= 5, f"only {n_topics} topics"
    assert set(new) <= set(topics)
    words = ", ".join(word for word, _ in model.get_topic(0)[:4])
    print(f"BERTopic: {n_topics} topics of {len(topics)} documents, {len(new)} new ones assigned; largest: {words}")


if __name__ == "__main__":
    main()
