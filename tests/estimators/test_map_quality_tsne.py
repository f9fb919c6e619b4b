"""Quality of t-SNE's maps of the digits, compared with scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.manifold import TSNE as TheirTSNE

from vicinal import TSNE, quality

Rows = NDArray[np.float32]
ROWS = 600  # scikit-learn takes long


@pytest.fixture(scope="module")
def theirs(digits: Rows, global_random_seed: int) -> Rows:
    return TheirTSNE(random_state=global_random_seed, n_jobs=2, max_iter=500).fit_transform(digits[:ROWS])


@pytest.mark.parametrize("method", ["exact", "fft"])
def test_map_is_as_trustworthy_as_that_of_scikit_learn(
    digits: Rows, theirs: Rows, method: str, global_random_seed: int
) -> None:
    data = digits[:ROWS]
    ours = TSNE(random_state=global_random_seed, method=method).fit_transform(data)
    bar = quality.trustworthiness(data, theirs, n_neighbors=15) - 0.005
    assert quality.trustworthiness(data, ours, n_neighbors=15) >= bar


def test_new_rows_are_placed_in_their_class(
    digits: Rows, digit_labels: NDArray[np.int64], global_random_seed: int
) -> None:
    model = TSNE(random_state=global_random_seed).fit(digits[:1500])
    placed = model.transform(digits[1500:])
    d2 = ((placed[:, None, :] - model.embedding_[None]) ** 2).sum(axis=2)
    nearest = digit_labels[np.argsort(d2, axis=1)[:, :5]]
    majority = np.array([np.bincount(row).argmax() for row in nearest])
    assert (majority == digit_labels[1500:]).mean() >= 0.93
