"""Connected components of a graph in parts: a forest of rows, in which edges join trees.

``parent`` names for every row a row of the same component that is not higher; a root is its own parent. The root of a
component is its lowest row, in whatever order its edges come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from vicinal.cluster.graph import PartSpan, load_graph

Labels = NDArray[np.int32]
JOINED_ROWS = 1 << 18  # edges, or rows of two forests, that are joined at a time


def component_labels(parts: list[PartSpan], n: int) -> Labels:
    """Return for each of the n rows the lowest row that the edges of some parts connect it with."""
    parent = np.arange(n, dtype=np.int32)
    for part, first, _ in parts:
        graph = load_graph(part, n)
        heads = graph.heads() + np.int32(first)
        for begin in range(0, len(heads), JOINED_ROWS):
            some, tails = heads[begin : begin + JOINED_ROWS], graph.indices[begin : begin + JOINED_ROWS]
            one_way = tails < some  # the other direction is the same edge
            _join(parent, some[one_way], tails[one_way])
    return _flat(parent)


def joined_labels(labels: Labels, others: Labels) -> Labels:
    """Return the lowest row that each row is connected with by the edges of either side."""
    parent = labels.copy()
    for first in range(0, len(parent), JOINED_ROWS):
        rows = np.arange(first, min(first + JOINED_ROWS, len(parent)), dtype=np.int32)
        _join(parent, rows, others[first : first + JOINED_ROWS])
    return _flat(parent)


def _join(parent: Labels, heads: Labels, tails: Labels) -> None:
    """Join the trees of pairs of rows."""
    heads, tails = _roots(parent, heads), _roots(parent, tails)
    apart = heads != tails
    if not apart.any():
        return
    roots, at = np.unique(np.concatenate([heads[apart], tails[apart]]), return_inverse=True)
    pairs, size = at.reshape(2, -1), len(roots)
    matrix = csr_matrix((np.ones(pairs.shape[1], np.bool_), (pairs[0], pairs[1])), shape=(size, size))
    count, component = connected_components(matrix, directed=False)
    # Of several entries of a component the last one assigned counts: in descending order that is the lowest.
    lowest = np.empty(count, np.int32)
    lowest[component[::-1]] = roots[::-1]
    parent[roots] = lowest[component]


def _roots(parent: Labels, rows: Labels) -> Labels:
    above = parent[rows]
    while True:
        higher = parent[above]
        if np.array_equal(higher, above):
            return above
        above = higher


def _flat(parent: Labels) -> Labels:
    """Make every row a child of its root."""
    for first in range(0, len(parent), JOINED_ROWS):
        rows = parent[first : first + JOINED_ROWS]
        rows[:] = _roots(parent, rows)
    return parent
