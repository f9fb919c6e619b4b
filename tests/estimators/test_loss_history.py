"""compute_loss: the loss along the layout."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import UMAP, find_neighbors, fit_ab, fuzzy_graph, losses

Rows = NDArray[np.float32]


def test_recorded_loss_falls_and_recording_does_not_change_the_map(digits: Rows) -> None:
    model = UMAP(n_epochs=100, random_state=0, compute_loss=True).fit(digits[:500])
    plain = UMAP(n_epochs=100, random_state=0).fit(digits[:500])
    np.testing.assert_array_equal(model.embedding_, plain.embedding_)
    assert not hasattr(plain, "loss_history_")
    history = model.loss_history_
    assert history["epoch"] == list(range(5, 101, 5))
    assert history["loss"][-1] < 0.9 * history["loss"][0]


@pytest.mark.parametrize("moving", [False, True])
def test_recorded_loss_is_that_of_the_negatives_of_the_fit(digits: Rows, moving: bool) -> None:
    model = UMAP(n_epochs=20, random_state=0, compute_loss=True, update_negatives=moving).fit(digits[:300])
    graph, kind = fuzzy_graph(find_neighbors(digits[:300], 15)), "moving" if moving else "resting"
    wanted = losses.effective_loss(graph, model.embedding_, fit_ab(), negatives=kind)
    assert model.loss_history_["loss"][-1] == pytest.approx(wanted.value, rel=1e-6)


def test_loss_is_recorded_beside_a_callback_and_saved(digits: Rows) -> None:
    epochs: list[int] = []
    model = UMAP(
        n_epochs=40, random_state=0, compute_loss=True, unique=True, callback=lambda s, e, n, y: epochs.append(e)
    ).fit(np.concatenate([digits[:200], digits[:50]]))
    assert len(model.loss_history_["loss"]) == 20
    assert 40 in epochs
    assert pickle.loads(pickle.dumps(model.set_params(callback=None))).loss_history_ == model.loss_history_
