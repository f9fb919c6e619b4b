"""n_epochs as a list: the maps at several epochs of one run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal import UMAP

Rows = NDArray[np.float32]


def test_maps_at_several_epochs_are_those_of_one_run(digits: Rows) -> None:
    model = UMAP(n_epochs=[30, 10, 20], random_state=0).fit(digits[:300])
    assert len(model.embedding_list_) == 3
    np.testing.assert_array_equal(model.embedding_list_[-1], model.embedding_)
    assert model.n_epochs_ == 30
    # A run of 10 epochs has another schedule than the first 10 epochs of 30.
    assert not np.array_equal(model.embedding_list_[0], UMAP(n_epochs=10, random_state=0).fit(digits[:300]).embedding_)
    np.testing.assert_array_equal(model.embedding_, UMAP(n_epochs=30, random_state=0).fit(digits[:300]).embedding_)


def test_list_of_one_epoch_gives_a_list_of_one_map(digits: Rows) -> None:
    model = UMAP(n_epochs=[20], random_state=0).fit(digits[:200])
    np.testing.assert_array_equal(np.stack(model.embedding_list_), model.embedding_[None])
