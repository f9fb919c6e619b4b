"""Spectral initialization: a Laplacian eigenmap for each connected component of the graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, cpu, say_fallback
from vicinal.graph.graph import Graph
from vicinal.initialize.task import DEVICE_ROWS, LEAST_EXTENT, NOISE, InitialTask, to_extent
from vicinal.neighbors.rows import HasRows
from vicinal.neighbors.search import nearest_points

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


# On an eigenmap a few rows lie far out and most of them in little room, where clusters cover each other. On the evened
# map of a component of at least EVENED_ROWS rows, far rows are closer: a distance from the median, in units of NEAR
# times the median distance, becomes its inverse hyperbolic sine. Loss J and correlation of distances of Fashion-MNIST,
# mean of 2 seeds: 167,430, 0.617 on the eigenmap itself, 165,690, 0.589 on the evened one; whole maps of the digit 1,
# of 5 seeds: 4 and 5. Medians are those of a sample of MEDIAN_ROWS rows.
EVENED_ROWS, NEAR, MEDIAN_ROWS = 500, 0.3, 1_023
HALVINGS = 5


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Boxes:
    """Where the components of a graph are put: for each a center, a width, and a matrix that turns its map.

    The rows of ``scattered`` components are put at random places.
    """

    centers: NDArray[np.float64]
    width: NDArray[np.floating]
    turns: NDArray[np.float64] | None
    scattered: NDArray[np.bool_]


@dataclass(frozen=True)
class ShapedPlaces:
    """First places in a box whose sides are ``shape`` times the usual ones. Those on a device have the same methods."""

    places: NDArray[np.floating]
    shape: Floats | float = 1.0

    def is_finite(self) -> bool:
        """Tell whether all places are finite numbers."""
        return bool(np.isfinite(self.places).all())

    def to_numpy(self) -> Floats:
        """Return the places in their box."""
        return to_extent(self.places, self.shape)

    def start(self, extent: float, noise: float, seed: int) -> NDArray[np.float32]:
        """Return the places with noise, in their box before and after."""
        noisy = self.to_numpy() + np.random.default_rng(seed).normal(scale=noise, size=self.places.shape)
        return to_extent(noisy, self.shape).astype(np.float32)


@dataclass(frozen=True)
class ComponentMaps:
    """The rows of each connected component and their places on its eigenmap. Those on a device have the same methods.

    Component c has the rows ``order[bounds[c] : bounds[c + 1]]``, in ascending order; components are numbered by their
    lowest rows. ``vectors`` [rows, n_components] holds the smoothest nontrivial eigenvectors of each component's
    normalized Laplacian, the smoothest first; those beyond the number of the component's rows less one are zero.
    ``shape`` [components, n_components] holds the proportions of the maps; None means squares.
    """

    order: NDArray[np.int32]
    bounds: NDArray[np.int64]
    vectors: NDArray[np.float32]
    shape: Floats | None = None

    @property
    def count(self) -> int:
        return len(self.bounds) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each component."""
        return np.diff(self.bounds)

    def sample(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the places of the rows ``order[slots]``."""
        return self.vectors[self.order[slots]]

    def with_axes(self, axes: NDArray[np.int64], shape: Floats) -> ComponentMaps:
        """Return maps with some of the axes, one line of numbers per component, and with a shape."""
        of_row = np.empty((len(self.order), axes.shape[1]), dtype=np.int64)
        of_row[self.order] = np.repeat(axes, self.sizes, axis=0)
        return replace(self, vectors=np.take_along_axis(self.vectors, of_row, axis=1), shape=shape)

    def evened(self, middle: Floats, unit: Floats, halvings: int) -> ComponentMaps:
        """Return maps of asinh((place - middle) / unit) / 2^halvings, one line of both per component.

        An axis whose unit is 0 stays as it is. asinh(x) is twice asinh(x / sqrt(2 + 2 sqrt(1 + x^2))), and nearly x for
        a small x. Roots and quotients are correctly rounded on all platforms, NumPy's arcsinh is not.
        """
        vectors = self.vectors.copy()
        for component in np.flatnonzero((unit > 0).any(axis=1)):
            rows = self.order[self.bounds[component] : self.bounds[component + 1]]
            axes = np.flatnonzero(unit[component] > 0)
            x = (vectors[np.ix_(rows, axes)] - middle[component, axes]) / unit[component, axes]
            for _ in range(halvings):
                x /= np.sqrt(2.0 + 2.0 * np.sqrt(1.0 + x * x))
            vectors[np.ix_(rows, axes)] = x
        return replace(self, vectors=vectors)

    def whole(self) -> Floats | ShapedPlaces:
        """Return the vectors as places, for a graph of one component."""
        return self.vectors.astype(np.float64) if self.shape is None else ShapedPlaces(self.vectors, self.shape[0])

    def in_boxes(self, boxes: Boxes, seed: int) -> Floats | ShapedPlaces:
        """Return the places with each axis of each component scaled to its box."""
        inside = self.boxed()
        if boxes.turns is not None:
            inside = np.einsum("ni,nij->nj", inside, np.repeat(boxes.turns, self.sizes, axis=0))
        if boxes.scattered.any():
            anywhere = np.repeat(boxes.scattered, self.sizes)
            inside[anywhere] = np.random.default_rng(seed).uniform(-0.5, 0.5, size=inside.shape)[anywhere]
        inside *= np.repeat(boxes.width, self.sizes)[:, None]
        inside += np.repeat(boxes.centers, self.sizes, axis=0)
        out = np.empty_like(inside)
        out[self.order] = inside
        return out

    def boxed(self) -> Floats:
        """Return the rows in ``order`` on their maps, each axis of each component scaled to its shape around 0."""
        places = self.vectors[self.order].astype(np.float64)
        low, high = (extreme.reduceat(places, self.bounds[:-1], axis=0) for extreme in (np.minimum, np.maximum))
        width = np.where(high > low, high - low, np.inf)  # an axis on which all places are equal is set to 0
        places -= np.repeat((low + high) / 2, self.sizes, axis=0)
        places *= np.repeat((1.0 if self.shape is None else self.shape) / width, self.sizes, axis=0)
        return places


Eigenmaps: TypeAlias = ComponentMaps


def slots_of(maps: Eigenmaps, which: NDArray[np.int64] | slice, n: int) -> NDArray[np.int64]:
    """Return n slots of ``maps.order`` at regular intervals for each of some components, one line per component."""
    begin, size = maps.bounds[:-1][which], maps.sizes[which]
    slots: NDArray[np.int64] = begin[:, None] + np.arange(n) * size[:, None] // n
    return slots


def evened(maps: Eigenmaps) -> Eigenmaps:
    """Return maps on which rows far from the middle of a large component are closer to it, unless it has a shape."""
    square = True if maps.shape is None else (maps.shape == 1.0).all(axis=1)
    large = np.flatnonzero((maps.sizes >= EVENED_ROWS) & square)
    places = maps.sample(slots_of(maps, large, MEDIAN_ROWS)).astype(np.float64)
    middle, unit = np.zeros((2, maps.count, places.shape[2]))
    middle[large] = np.median(places, axis=1)
    unit[large] = NEAR * np.median(np.abs(places - middle[large][:, None]), axis=1)
    return maps.evened(middle, unit, HALVINGS)


def most_device_axes(graph: Graph) -> int:
    """Return how many axes eigenmaps of the graph may have that a device computes; 0 if the CPU does."""
    return int(backend_of(graph.place).MOST_MAP_AXES) if graph.n > DEVICE_ROWS else 0


def component_maps(graph: Graph, n_components: int, *, seed: int = 0, n_jobs: int = -1) -> Eigenmaps:
    """Find the components of a symmetric graph and compute the eigenmap of each; same bits for any ``n_jobs``."""
    most = most_device_axes(graph)
    if n_components <= most:
        maps: Eigenmaps = backend_of(graph.place).component_eigenmaps(*graph.edges, n_components, seed, n_jobs)
        return maps
    if most > 0:
        say_fallback("the spectral start", f"a GPU has none for {n_components} components")
    found = cpu.component_eigenmaps(graph.indptr, graph.indices, graph.weights, n_components, seed, n_jobs)
    return ComponentMaps(*found)


SAMPLE_ROWS = 256  # rows of a component whose mean stands for its centroid
TURN_ROWS, TURN_VALUES = 16, 1 << 19  # rows that decide how a component is turned; values of them in memory at a time
BLOCK_COMPONENTS = 1024  # centroids in memory at a time
AXES_WORK = 4e9  # multiplications for the principal axes of the centroids; of more components a sample is used
# The width of a component's box as a share of the distance to the nearest other center, unless the component has more
# than LARGE_SHARE of the rows, which need their share of the room. Correlation of distances of iris, mean of 10 seeds,
# for 1, 0.4, 0.25: 0.914, 0.925, 0.955 (0.93 over 30 seeds); umap-learn 0.934. Loss J of 17,500 images and ten small
# clusters: all boxes of 1 48,963, of 0.25 49,444, the large component by its rows 48,768.
BOX_SHARE, LARGE_SHARE = 0.25, 0.5


def spectral_places(task: InitialTask) -> Floats | ShapedPlaces:
    """Compute the eigenmap of the graph, or one per component if the graph is disconnected."""
    maps = _maps(task)
    return maps.whole() if maps.count <= 1 else _side_by_side(task, maps)


def _maps(task: InitialTask) -> Eigenmaps:
    """Return evened maps of the smoothest vectors; a sheet is shown in its proportions."""

    def smoothest(n: int) -> Eigenmaps:
        return component_maps(task.graph, n, seed=task.seed, n_jobs=task.n_jobs)

    maps = smoothest(task.n_components)
    curled = curled_components(maps, task.graph)
    if curled.size:
        on_device = most_device_axes(task.graph)
        more = smoothest(on_device if task.n_components <= on_device else max(CANDIDATES, task.n_components))
        axes, shape = independent_axes(more, task.graph, curled, task.n_components)
        if (shape != 1.0).any():
            maps = more.with_axes(axes, shape)
    return evened(maps)


def _side_by_side(task: InitialTask, maps: Eigenmaps) -> Floats | ShapedPlaces:
    """Put every component into a box: narrower than the distance to the nearest other center, except for a large one.

    Components that touch turn each other before they are apart.
    """
    centers, axes = _component_centers(task, maps)
    width = BOX_SHARE * nearest_points(centers, centers, 2, task.n_jobs).distance[:, 1]
    share = maps.sizes / maps.sizes.sum()
    width = np.where(share > LARGE_SHARE, np.ptp(centers, axis=0).max() * np.sqrt(share), width)
    # Components too small for an eigenmap: random places in their box.
    tiny = maps.sizes <= max(task.n_components + 1, 4)
    return maps.in_boxes(Boxes(centers, width, None if axes is None else _turns(task, maps, axes), tiny), task.seed)


def _component_centers(task: InitialTask, maps: Eigenmaps) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Place the components: principal components of their centroids, or at random if there are no coordinates.

    Return the centers and the principal axes, if there are any.
    """
    centers = task.rng.uniform(size=(maps.count, task.n_components)) * LEAST_EXTENT
    if task.source is not None:
        scores, axes = _centroid_scores(task, maps)
        if np.ptp(scores, axis=0).max() > 0:
            return to_extent(scores) + task.rng.normal(scale=NOISE, size=centers.shape), axes
    return centers, None


def _turns(task: InitialTask, maps: Eigenmaps, axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each component the matrix that turns or mirrors its map as its rows lie along the axes of the centers.

    Without it the side of a component that is close to another one may face away from it.
    """
    assert task.source is not None
    turns = np.empty((maps.count, task.n_components, task.n_components))
    step = max(1, TURN_VALUES // (TURN_ROWS * task.source.shape[1]))
    for first in range(0, maps.count, step):
        several = slice(first, first + step)
        slots = slots_of(maps, several, TURN_ROWS)
        rows = task.source[maps.order[slots].reshape(-1).astype(np.int64)]
        scores = (rows.astype(np.float64) @ axes).reshape(*slots.shape, -1)
        places = maps.sample(slots).astype(np.float64)
        places /= np.maximum(np.ptp(places, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        along = np.einsum("csi,csj->cij", places, scores - scores.mean(axis=1, keepdims=True))
        left, _, right = np.linalg.svd(np.nan_to_num(along))
        turns[several] = left @ right
    return turns


def _centroid_scores(task: InitialTask, maps: Eigenmaps) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    source = task.source
    assert source is not None
    begin, end = maps.bounds[:-1].copy(), maps.bounds[1:].copy()

    def centroids(which: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        return _segment_means(source, maps.order, begin[which], end[which], task.n_jobs)

    columns = source.shape[1]
    most = maps.count
    if float(most) * columns * min(most, columns) > AXES_WORK:
        most = min(most, max(int(np.sqrt(AXES_WORK / columns)), 64))
    sample = np.arange(most) * maps.count // most
    mean, axes = cpu.principal_axes(centroids(sample), task.n_components)
    blocks = (slice(first, first + BLOCK_COMPONENTS) for first in range(0, maps.count, BLOCK_COMPONENTS))
    return np.concatenate([(centroids(block) - mean) @ axes for block in blocks]), axes


def _segment_means(
    source: HasRows, order: NDArray[np.int32], begin: NDArray[np.int64], end: NDArray[np.int64], n_jobs: int
) -> NDArray[np.float64]:
    """Return the means of sets of rows. Only the rows that count are moved if all of them are on a device."""
    if source.on_host:
        return cpu.segment_means(source.rows, order, begin, end, SAMPLE_ROWS, n_jobs)
    size = end - begin
    taken = np.minimum(size, SAMPLE_ROWS)
    last = np.cumsum(taken)
    at = np.arange(last[-1]) - np.repeat(last - taken, taken)
    chosen = order[np.repeat(begin, taken) + at * np.repeat(size, taken) // np.repeat(taken, taken)]
    rows = np.ascontiguousarray(source[chosen.astype(np.int64)])
    return cpu.segment_means(rows, np.arange(len(chosen), dtype=np.int32), last - taken, last, SAMPLE_ROWS, n_jobs)
