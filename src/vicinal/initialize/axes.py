"""The axes of an eigenmap: not only the smoothest vectors, if these are functions of one another.

The smoothest vectors of a long sheet, of length L and width W, are cos(pi s / L), cos(2 pi s / L), ... of the place s
along it. The second is a function of the first, so a map of these two is a curve: the width is lost, and a layout that
begins with it ends torn. The vector that shows the width is the first one that the smoothest one does not determine,
about the L/W-th.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.initialize.eigenmap import MEDIAN_ROWS, Eigenmaps, slots_of

LEAST_ROWS = 500  # of a component whose axes are examined
BINS = 64

# The rows of a component are divided into bins by their places on the first axis. Another axis is a function of the
# first if the share of its variance within bins is at most DETERMINED, and if the means of neighboring bins differ by
# at most SMOOTH of their range: axes that tell clusters apart have steps. Places are divided by the roots of the
# degrees, which are factors of the vectors; an axis that varies by more than LIKELY without that is not examined.
# Share and largest step of the second axis: swiss roll 0.001, 0.07; a Gaussian of 5 x 1 0.003, 0.07; mixture of
# clusters 0.02 and more, 0.4 and more; ten spheres in a large one 0.07, 0.46; Fashion-MNIST 0.06, 0.22; digits 0.25,
# 0.58. An axis with a share of INDEPENDENT shows something else.
LIKELY, DETERMINED, SMOOTH, INDEPENDENT = 0.3, 0.01, 0.15, 0.5
# Vectors among which axes are looked for.
CANDIDATES = 12


def curled_components(maps: Eigenmaps, graph: Graph) -> NDArray[np.int64]:
    """Return the components whose second axis is a function of the first."""
    large = np.flatnonzero(maps.sizes >= LEAST_ROWS)
    share, _ = _given_first(_sampled(maps, large))
    if share.shape[1] < 2:
        return large[:0]
    likely = large[share[:, 1] <= LIKELY]
    if likely.size == 0:
        return likely
    share, step = _given_first(_sampled(maps, likely, graph))
    return likely[(share[:, 1] <= DETERMINED) & (step[:, 1] <= SMOOTH)]


def independent_axes(
    maps: Eigenmaps, graph: Graph, components: NDArray[np.int64], n_axes: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Choose the axes of every component, and the proportions of its map.

    The given ``components`` get the first axis, then the axes that it does not determine, then the rest. All others
    get their smoothest axes, and so does a component without any independent axis; their maps are squares.
    """
    share, _ = _given_first(_sampled(maps, components, graph))
    preference = np.where(share >= INDEPENDENT, 1, 2)
    preference[:, 0] = 0
    smoothest = np.arange(n_axes)
    axes, shape = np.tile(smoothest, (maps.count, 1)), np.ones((maps.count, n_axes))
    axes[components] = np.argsort(preference, axis=1, kind="stable")[:, :n_axes]
    # As many vectors show the length alone as the width fits into the length. The map covers as much as a square.
    chosen = (axes != smoothest).any(axis=1)
    length = np.where(axes[chosen] == 0, 1.0, axes[chosen] + 0.5)
    shape[chosen] = np.sqrt(length[:, 1:2]) / length
    return axes, shape


def _sampled(maps: Eigenmaps, components: NDArray[np.int64], graph: Graph | None = None) -> NDArray[np.float64]:
    """Return places of some rows of each component, [components, rows, axes].

    If there is a graph, they are divided by the roots of the degrees.
    """
    slots = slots_of(maps, components, MEDIAN_ROWS)
    places = maps.sample(slots).astype(np.float64)
    return places if graph is None else places / np.sqrt(graph.degree()[maps.order[slots]])[:, :, None]


def _given_first(places: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for each axis the share of its variance within bins of the first, and the largest step between bins."""
    order = np.argsort(places[:, :, 0], axis=1, kind="stable")
    bins = np.array_split(np.take_along_axis(places, order[:, :, None], axis=1), BINS, axis=1)
    within = sum(((part - part.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for part in bins)
    total = ((places - places.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    means = np.stack([part.mean(axis=1) for part in bins], axis=1)
    least = np.finfo(np.float64).tiny
    step = np.abs(np.diff(means, axis=1)).max(axis=1)
    return within / np.maximum(total, least), step / np.maximum(np.ptp(means, axis=1), least)
