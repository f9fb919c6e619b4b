"""UMAP.inverse_transform: rows for places of the map."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from vicinal import UMAP
from vicinal.layout.forces import fit_ab
from vicinal.pipeline.place import inverse_rows

Rows = NDArray[np.float32]


@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_inverse_is_closer_to_held_out_rows_than_the_nearest_training_row(digits: Rows, n_components: int) -> None:
    train, held = digits[:1500], digits[1500:]
    model = UMAP(n_components=n_components, n_epochs=100, random_state=0).fit(train)
    places = model.transform(held)
    error = np.linalg.norm(model.inverse_transform(places) - held, axis=1).mean()
    nearest = cdist(places, model.embedding_).argmin(axis=1)
    assert error < 0.95 * np.linalg.norm(train[nearest] - held, axis=1).mean()


def test_inverse_of_places_outside_the_map_stays_within_the_data(digits: Rows) -> None:
    model = UMAP(n_epochs=20, random_state=0).fit(digits[:300])
    places = np.array([[-1e3, 1e3], [5.0, 5.0], [1e6, 0.0]], dtype=np.float32)
    rows = model.inverse_transform(places)
    assert np.isfinite(rows).all()
    assert rows.min() >= digits[:300].min()
    assert rows.max() <= digits[:300].max()
    np.testing.assert_array_equal(model.inverse_transform(places[1:2]), rows[1:2])


def test_inverse_of_a_fit_to_sparse_rows_is_sparse(digits: Rows) -> None:
    model = UMAP(n_epochs=20, random_state=0).fit(sparse.csr_matrix(digits[:300]))
    rows = model.inverse_transform(model.embedding_[:5])
    assert sparse.issparse(rows)
    expected = inverse_rows(model.embedding_[:5], model.embedding_, digits[:300], fit_ab(), n_neighbors=15)
    np.testing.assert_allclose(rows.toarray(), expected, rtol=1e-5, atol=1e-5)


def test_inverse_of_precomputed_distances_is_refused() -> None:
    line = np.arange(20.0)
    model = UMAP(metric="precomputed", n_neighbors=3, n_epochs=5).fit(np.abs(line[:, None] - line))
    with pytest.raises(ValueError, match="precomputed"):
        model.inverse_transform(np.zeros((1, 2)))
