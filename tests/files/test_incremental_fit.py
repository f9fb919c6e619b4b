"""A progressive model that is fitted piece by piece."""

from __future__ import annotations

import numpy as np

from vicinal import ProgressiveUMAP
from vicinal.files.batches import POLISH, READ, REST, fit_in_pieces


def test_rows_that_wait_are_finished_before_the_last_pass() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    model = ProgressiveUMAP(random_state=0).partial_fit(rows[:100]).insert(rows[100:200])
    assert list(fit_in_pieces(model, [])) == [REST, POLISH]
    assert model.pending_ == 0
    assert list(fit_in_pieces(model, [rows[200:]])) == [READ, POLISH]
    assert len(model.embedding_) == 300
