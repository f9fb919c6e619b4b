"""First places of unseen rows: the medoid of their neighbors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of
from vicinal.graph.graph import Graph


def aligned_to(
    start: NDArray[np.float32], known: NDArray[Any], places: NDArray[np.float32], *, scaled: bool = True
) -> NDArray[np.float64]:
    """Move ``start`` so that its ``known`` rows lie as close as possible to ``places``.

    The transformation is a translation, a rotation or reflection and, if ``scaled``, a scaling. ``known`` holds row
    numbers or is a mask; ``places`` has one line per known row.
    """
    source, target = start.astype(np.float64), places.astype(np.float64)
    if not len(target):
        return source
    center, target_center = source[known].mean(axis=0), target.mean(axis=0)
    left, right = source[known] - center, target - target_center
    spread = np.square(left).sum()
    if spread > 0 and np.square(right).sum() > 0:
        # einsum sums in a fixed order; the order of a BLAS product depends on its number of threads.
        u, s, vt = np.linalg.svd(np.einsum("ni,nj->ij", left, right))
        rotation, scale = u @ vt, s.sum() / spread if scaled else 1.0
    else:  # a single place determines no direction
        rotation, scale = np.eye(source.shape[1]), 1.0
    return np.asarray(scale * np.einsum("nc,cd->nd", source - center, rotation) + target_center)


def neighbor_medoid(graph: Graph, reference: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return for each row the place of the neighbor that is closest to all its neighbors, weighted by membership.

    The graph is bipartite: its tails are the rows of ``reference``. The medoid is used instead of the mean because the
    mean of neighbors in two clusters lies in neither, and few epochs do not lead out of there: 5-NN accuracy of
    held-out digits, without and with labels in the fit, 0.983 and 0.979 from the mean, 0.985 and 0.988 from the medoid.
    A row without neighbors starts in the middle of the map.
    """
    places: NDArray[np.float32] = backend_of(graph.place).neighbor_medoids(*graph.edges, reference)
    return places
