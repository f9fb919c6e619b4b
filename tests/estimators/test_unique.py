"""unique=True: equal rows are laid out once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal import UMAP

Rows = NDArray[np.float32]


def test_unique_lays_out_distinct_rows_once(digits: Rows) -> None:
    """Otherwise all neighbors of a row that occurs 31 times would be copies of it."""
    X = np.concatenate([digits[:200], np.repeat(digits[:1], 30, axis=0)])
    model = UMAP(unique=True, n_epochs=50, random_state=0).fit(X)
    assert model.embedding_.shape == (230, 2)
    assert model.graph_.shape == (200, 200)
    assert (model.embedding_[200:] == model.embedding_[0]).all()
    once = UMAP(unique=True, n_epochs=50, random_state=0).fit(digits[:200])
    np.testing.assert_array_equal(model.embedding_[:200], once.embedding_)
    np.testing.assert_array_equal(model.transform(X[195:]), model.embedding_[195:])
    np.testing.assert_array_equal(model.transform(digits[200:210]), once.transform(digits[200:210]))
    model.update(digits[200:220])
    assert model.embedding_.shape == (250, 2)
