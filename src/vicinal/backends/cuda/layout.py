"""The sampled layout on a device, with the bits of the CPU's (cpp/cuda/layout.cu)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.backends.cuda.density import DensityForce, DensityOptions, Summary
from vicinal.backends.cuda.device import NULL, Defines, Device, DeviceArray, Kernel, launch
from vicinal.backends.cuda.random_keys import LAYOUT_STREAM, PHASE_STREAM, stream_key

# Rows per slice of edges, and the number of edges to a multiple of which they are filled up (cpp/cuda/layout.cu).
SLICE_ROWS, CLOCKS_AHEAD = 32, 8
# The launches that wait for the device at a time. Python answers an interrupt between two launches, so a call returns
# within the time of as many sweeps.
SWEEPS_AHEAD = 64

FORCES = {"umap": "UmapForce", "largevis": "LargeVisForce"}
SPACES = {
    "euclidean": "EuclideanSpace",
    "minkowski": "MinkowskiSpace",
    "chebyshev": "ChebyshevSpace",
    "mahalanobis": "MahalanobisSpace",
    "canberra": "CanberraSpace",
    "braycurtis": "BrayCurtisSpace",
    "cosine": "AngleSpace<false>",
    "correlation": "AngleSpace<true>",
    "haversine": "HaversineSpace",
    "hyperboloid": "HyperboloidSpace",
}


class LayoutOptions:
    """Options of a layout, with the names of the core's."""

    negatives: int
    pulls: int
    firings_per_sweep: float
    update_negatives: bool
    seed: int
    first_sweep: int = 0

    def set_force(self, name: str, a: float, b: float, gamma: float) -> None:
        """Choose the force by its name."""
        self.force = FORCES[name]
        self.coefficients = np.float32(a), np.float32(b), np.float32(gamma)

    def set_space(self, name: str, values: list[float], dim: int) -> None:
        """Choose the distance of the map by its name."""
        self.space = SPACES[name]
        self.space_values = np.array(values or [0.0], dtype=np.float32)

    def defines(self, dim: int, weighted: bool) -> Defines:
        """Return what a kernel is compiled for."""
        return (
            ("VICINAL_FORCE", self.force),
            ("VICINAL_SPACE", self.space),
            ("VICINAL_DIM", str(dim)),
            ("VICINAL_PULLS", str(self.pulls)),
            ("VICINAL_NEGATIVES", str(self.negatives)),
            ("VICINAL_MOVING", str(int(self.update_negatives))),
            ("VICINAL_WEIGHTED", str(int(weighted))),
        )


class SlicedEdges:
    """The edges of all rows in the order in which they pull, in slices of rows that have about as many edges."""

    def __init__(
        self,
        device: Device,
        graph: tuple[DeviceArray, DeviceArray, DeviceArray],
        row_key: DeviceArray | None,
        options: LayoutOptions,
        heaviest: float,
    ) -> None:
        xp = device.xp
        indptr, tails, weights = graph
        self._device = device
        self.n_heads, n_edges = int(indptr.shape[0]) - 1, int(tails.shape[0])
        degree = xp.diff(indptr)
        self.head_of = xp.argsort(-degree, kind="stable").astype(np.int32)
        self.degree = degree[self.head_of].astype(np.int32)
        slot = xp.empty(self.n_heads, np.int32)
        slot[self.head_of] = xp.arange(self.n_heads, dtype=np.int32)
        widest = self.degree[::SLICE_ROWS].astype(np.int64)
        width = -(-widest // CLOCKS_AHEAD) * CLOCKS_AHEAD * SLICE_ROWS
        ends = xp.cumsum(width)
        self.begin = ends - width
        slots = int(ends[-1]) if self.n_heads else 0
        self.tails, self.clock = xp.zeros(max(slots, 1), np.int32), xp.zeros((max(slots, 1), 2), np.uint32)

        head, phase = xp.empty(n_edges, np.int32), xp.empty(n_edges, np.uint32)
        launch(device.kernel("layout", "edge_heads"), self.n_heads, (indptr, np.int64(self.n_heads), head))
        key = np.uint64(stream_key(options.seed, PHASE_STREAM))
        names = NULL if row_key is None else row_key
        arguments: tuple[Any, ...] = head, tails, NULL, names, key, np.int64(n_edges), phase
        launch(device.kernel("layout", "edge_phases"), n_edges, arguments)
        rates = np.float32(heaviest), np.float64(options.firings_per_sweep), np.int64(n_edges)
        arguments = indptr, head, tails, weights, phase, slot, self.begin, *rates, self.tails, self.clock
        launch(device.kernel("layout", "place_edges"), n_edges, arguments)

    def pin(self, fixed: DeviceArray) -> None:
        """Make the edges of fixed rows never fire."""
        arguments = self.begin, self.degree, self.head_of, fixed, np.int64(self.n_heads), self.clock
        launch(self._device.kernel("layout", "pin_rows"), self.n_heads, arguments)


class SampledLayout:
    """The sampled layout of the core, on a device: all rows move, or rows among a reference that rests.

    The methods are those of ``cpu.SampledLayout``; arrays may be of the host or of the device.
    """

    def __init__(
        self,
        device: Device,
        indptr: Any,
        indices: Any,
        weights: Any,
        embedding: Any,
        reference: Any,
        row_key: Any,
        options: LayoutOptions,
    ) -> None:
        self.device, self.options = device, options
        graph = tuple(device.asarray(part) for part in (indptr, indices, weights))
        # A copy: the sweeps write to it.
        self._points = device.xp.array(device.asarray(embedding, np.float32))
        self._next = device.xp.empty_like(self._points)
        self._reference = None if reference is None else device.asarray(reference, np.float32)
        self._row_key = None if row_key is None else device.asarray(row_key, np.uint64)
        self._n, self._dim = (int(size) for size in self._points.shape)
        self.sweep = options.first_sweep
        self._fixed: DeviceArray | None = None
        self._density: DensityForce | None = None
        self._negatives: tuple[Any, Any] = (NULL, NULL)
        self._moves = device.xp.zeros(self._n * self._dim, np.int64) if options.update_negatives else None
        if not int(graph[0].shape[0]) - 1 == self._n:
            raise ValueError("graph and embedding differ in their rows")
        self._edges = SlicedEdges(device, graph, self._row_key, options, self._heaviest(graph[2]))
        self._values = device.asarray(options.space_values)
        self._kernel = self._compiled(weighted=False)

    def _compiled(self, *, weighted: bool) -> Kernel:
        return self.device.kernel("layout", "layout_sweep", self.options.defines(self._dim, weighted))

    def _heaviest(self, weights: DeviceArray) -> float:
        """Return the weight of the edge that fires most; with a reference, weights are probabilities as they are."""
        if self._reference is not None or weights.size == 0:
            return 1.0
        heaviest = float(weights.max())
        return heaviest if heaviest > 0.0 else 1.0

    def step(self, learning_rates: NDArray[np.float32], n_jobs: int = -1) -> None:
        """Run one sweep per learning rate. An interrupted call leaves the points of the last complete sweep."""
        with self.device.active():
            if self._moves is not None:
                self._moves.fill(0)  # moves of an interrupted sweep
            for count, rate in enumerate(np.asarray(learning_rates, dtype=np.float32)[:, 0], 1):
                self._run_sweep(rate)
                if count % SWEEPS_AHEAD == 0:
                    self.device.synchronize()
            self.device.synchronize()

    def _run_sweep(self, rate: np.float32) -> None:
        edges, options = self._edges, self.options
        reference = self._points if self._reference is None else self._reference
        key = np.uint64(stream_key(options.seed, LAYOUT_STREAM, self.sweep))
        arguments: tuple[Any, ...] = (
            *(edges.begin, edges.degree, edges.head_of, edges.tails, edges.clock, np.int64(self._n), NULL),
            *(NULL if self._row_key is None else self._row_key, self._points, self._next),
            *(reference, np.int64(reference.shape[0]), *self._negatives),
            *(NULL if self._moves is None else self._moves, np.uint32(self.sweep & 0xFFFFFFFF), key, rate, NULL),
            *(*options.coefficients, self._values),
        )
        launch(self._kernel, self._n, arguments)
        if self._moves is not None:
            fixed = NULL if self._fixed is None else self._fixed
            arguments = self._moves, fixed, np.int64(self._n), np.int32(self._dim), self._next
            launch(self.device.kernel("layout", "add_negative_moves"), self._n * self._dim, arguments)
        if self._density is not None and self._density.acts_in(self.sweep):
            self._density.add_moves(self._points, reference, self._fixed, rate, self._next)
        self._points, self._next = self._next, self._points
        self.sweep += 1

    def add_density(
        self,
        target: NDArray[np.float32],
        weight: float,
        variance_shift: float,
        first_sweep: int,
        every: int,
        fitted: list[float] | None,
    ) -> None:
        """Add densMAP's term, to be called before ``pin``."""
        with self.device.active():
            wanted = self.device.asarray(target, np.float32)
            known = None if fitted is None else tuple(fitted)
            options = DensityOptions(wanted, weight, variance_shift, first_sweep, every, known)
            kernel, pulls = self.options.coefficients[:2], self.options.pulls
            self._density = DensityForce(self.device, self._edges, kernel, pulls, self._dim, options)

    def density_summary(self, n_jobs: int = -1) -> Summary:
        """Return (mean, variance, covariance, strength) of the radii of the map as it is."""
        if self._density is None:
            raise ValueError("this layout has no density term")
        with self.device.active():
            reference = self._points if self._reference is None else self._reference
            return self._density.summary(self._points, reference)

    def pin(self, fixed: NDArray[np.bool_]) -> None:
        """Keep marked rows where they are."""
        with self.device.active():
            self._fixed = self.device.asarray(fixed)
            self._edges.pin(self._fixed)

    def weigh_negatives(self, weights: NDArray[np.float32]) -> None:
        """Draw negatives in proportion to weights, one per row of the reference."""
        keep, alias = cpu.alias_table(np.ascontiguousarray(weights, dtype=np.float32))
        with self.device.active():
            self._negatives = self.device.asarray(keep), self.device.asarray(alias)
        self._kernel = self._compiled(weighted=True)

    def place(self, places: NDArray[np.float32]) -> None:
        """Replace all points."""
        with self.device.active():
            self._points = self.device.xp.array(self.device.asarray(places, np.float32))

    def embedding(self) -> NDArray[np.float32]:
        """Return a copy of the points in host memory."""
        return self.device.to_numpy(self._points)
