"""transform_mode="graph": the graph is the result, and no map is made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal import UMAP

Rows = NDArray[np.float32]


def test_graph_mode_returns_memberships_instead_of_places(digits: Rows) -> None:
    model = UMAP(transform_mode="graph", random_state=0)
    graph = model.fit_transform(digits[:300])
    assert not hasattr(model, "embedding_")
    np.testing.assert_array_equal(graph.toarray(), model.graph_.toarray())
    new = model.transform(digits[300:310])
    assert new.shape == (10, 300)
    assert (new.max(axis=1).toarray() > 0.2).all()
    assert (np.diff(new.indptr) == 15).all()
