"""compute_loss: the loss along the layout."""

from __future__ import annotations

import pickle

import numpy as np
from numpy.typing import NDArray

from vicinal import UMAP

Rows = NDArray[np.float32]


def test_recorded_loss_falls_and_recording_does_not_change_the_map(digits: Rows) -> None:
    model = UMAP(n_epochs=100, random_state=0, compute_loss=True).fit(digits[:500])
    plain = UMAP(n_epochs=100, random_state=0).fit(digits[:500])
    np.testing.assert_array_equal(model.embedding_, plain.embedding_)
    assert not hasattr(plain, "loss_history_")
    history = model.loss_history_
    assert history["epoch"] == list(range(5, 101, 5))
    assert history["loss"][-1] < 0.9 * history["loss"][0]


def test_loss_is_recorded_beside_a_callback_and_saved(digits: Rows) -> None:
    epochs: list[int] = []
    model = UMAP(
        n_epochs=40, random_state=0, compute_loss=True, unique=True, callback=lambda s, e, n, y: epochs.append(e)
    ).fit(np.concatenate([digits[:200], digits[:50]]))
    assert len(model.loss_history_["loss"]) == 20
    assert 40 in epochs
    assert pickle.loads(pickle.dumps(model.set_params(callback=None))).loss_history_ == model.loss_history_
