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
    centre, target_centre = source[known].mean(axis=0), target.mean(axis=0)
    left, right = source[known] - centre, target - target_centre
    spread = np.square(left).sum()
    if spread > 0 and np.square(right).sum() > 0:
        # einsum sums in a fixed order; the order of a BLAS product depends on its number of threads.
        u, s, vt = np.linalg.svd(np.einsum("ni,nj->ij", left, right))
        rotation, scale = u @ vt, s.sum() / spread if scaled else 1.0
    else:  # a single place determines no direction
        rotation, scale = np.eye(source.shape[1]), 1.0
    return np.asarray(scale * np.einsum("nc,cd->nd", source - centre, rotation) + target_centre)


BLOCK_PAIRS = 1 << 20  # pairs of neighbors that are compared at a time, which bounds the memory


def neighbor_medoid(graph: Graph, reference: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return for each row the place of the neighbor that is closest to all its neighbors, weighted by membership.

    The graph is bipartite: its tails are the rows of ``reference``. The medoid is used instead of the mean because the
    mean of neighbors in two clusters lies in neither, and few epochs do not lead out of there: 5-NN accuracy of
    held-out digits, without and with labels in the fit, 0.983 and 0.979 from the mean, 0.985 and 0.988 from the medoid.
    A row without neighbors starts in the middle of the map.
    """
    if graph.place is not None:
        edges = (graph.array(name) for name in ("indptr", "indices", "weights"))
        places: NDArray[np.float32] = backend_of(graph.place).neighbor_medoids(*edges, reference, _middle(reference))
        return places
    lengths = np.diff(graph.indptr)
    out = np.empty((graph.n, reference.shape[1]), dtype=np.float32)
    n_rows = max(1, BLOCK_PAIRS // max(1, int(lengths.max(initial=1))) ** 2)
    for begin in range(0, graph.n, n_rows):
        block = slice(begin, begin + n_rows)
        out[block] = _medoids(graph, reference, lengths, block)
    isolated = lengths == 0
    if isolated.any():
        out[isolated] = _middle(reference)
    return out


def _middle(reference: NDArray[np.float32]) -> NDArray[np.float32]:
    middle: NDArray[np.float32] = reference.mean(axis=0, dtype=np.float64).astype(np.float32)
    return middle


def _medoids(
    graph: Graph, reference: NDArray[np.float32], lengths: NDArray[np.int64], block: slice
) -> NDArray[np.float32]:
    lengths = lengths[block]
    slots = np.arange(int(lengths.max(initial=1)))
    present = slots < lengths[:, None]
    edges = np.where(present, graph.indptr[:-1][block][:, None] + slots, 0)
    tails = np.where(present, graph.indices[edges] if graph.n_edges else 0, 0)
    weights = np.where(present, graph.weights[edges] if graph.n_edges else np.float32(0), np.float32(0))
    places = reference[tails]
    # One component and one neighbor after the other: the order of a sum must not depend on the number of rows.
    d2 = np.square(places[:, None, :, 0] - places[:, :, None, 0])
    for c in range(1, places.shape[2]):
        d2 += np.square(places[:, None, :, c] - places[:, :, None, c])
    pulls = weights[:, :, None] * np.sqrt(d2)
    total = np.where(present, np.float32(0), np.float32(np.inf))
    for slot in slots:
        total += pulls[:, slot]
    nearest = np.argmin(total, axis=1)
    chosen: NDArray[np.float32] = reference[np.take_along_axis(tails, nearest[:, None], axis=1)[:, 0]]
    return chosen
