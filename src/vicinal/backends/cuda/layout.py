"""The sampled layout on a device, with the bits of the CPU's (cpp/cuda/layout.cu)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.backends.cuda.device import (
    CHUNK_ROWS,
    NULL,
    USUAL_KERNELS,
    Defines,
    Device,
    DeviceArray,
    Kernel,
    add_chunks,
    largest_magnitude,
    launch,
    launch_warps,
)
from vicinal.backends.cuda.graph import MOST_ADDERS, edge_heads

Summary = tuple[float, float, float, float]
UNITS = 4294967296.0  # of the rate of an edge


@dataclass(frozen=True)
class DensityOptions:
    """What to match: ``DensityOptions`` of the core (cpp/layout/density.hpp)."""

    target: DeviceArray
    weight: float
    variance_shift: float
    first_sweep: int
    every: int
    fitted: tuple[float, ...] | None


class DensityForce:
    """The term of the rows of a layout, whose edges are ``SortedEdges``."""

    def __init__(
        self,
        device: Device,
        edges: Any,
        kernel: tuple[np.float32, np.float32],
        pulls: int,
        dim: int,
        options: DensityOptions,
    ) -> None:
        xp, n = device.xp, edges.n_heads
        self._device, self._edges, self._options = device, edges, options
        self._a, self._b = kernel
        self._pulls, self._n, self._dim = pulls, n, dim
        self._strength = self._firings() / UNITS / max(n - 1.0, 1.0)
        self._affinity = xp.empty(edges.tails.shape, np.float32)
        self._mass, self._log_radius = xp.empty(n, np.float64), xp.empty(n, np.float64)
        self._share = xp.empty((n, 2), np.float32)
        self._fitted = None if options.fitted is None else device.asarray(np.array(options.fitted, dtype=np.float64))

    def acts_in(self, sweep: int) -> bool:
        """Tell whether the term acts in a sweep."""
        first, every = self._options.first_sweep, self._options.every
        return sweep >= first and (sweep - first) % every == 0

    def summary(self, points: DeviceArray, reference: DeviceArray) -> Summary:
        """Return (mean, variance, covariance, strength) of the radii of the map."""
        mean, variance, covariance, strength = self._device.to_numpy(self._measure(points, reference)).tolist()
        return mean, variance, covariance, strength

    def add_moves(
        self,
        points: DeviceArray,
        reference: DeviceArray,
        fixed: DeviceArray | None,
        learning_rate: np.float32,
        out: DeviceArray,
    ) -> None:
        """Move the rows that are not fixed along the gradient; ``out`` holds their places after the sweep."""
        summary, options, edges = self._measure(points, reference), self._options, self._edges
        arguments: tuple[Any, ...] = summary, options.target, self._log_radius, self._mass, np.int64(self._n)
        launch(self._kernel("share_rows"), self._n, (*arguments, self._share))
        arguments = (
            *(*edges.rows, edges.tails, edges.clock, self._affinity, points, reference),
            *(np.int64(self._n), self._b, summary, np.int32(self._pulls), np.float32(options.weight), self._share),
            *(self._share if self._fitted is None else NULL, NULL if fixed is None else fixed),
            *(learning_rate * np.float32(options.every), out),
        )
        launch(self._kernel("add_density_moves"), self._n, arguments)

    def _measure(self, points: DeviceArray, reference: DeviceArray) -> DeviceArray:
        """Measure the radii of the map and return their summary, an array of the device."""
        xp, edges, n = self._device.xp, self._edges, np.int64(self._n)
        arguments: tuple[Any, ...] = (
            *(*edges.rows, edges.tails, points, reference, n, self._a, self._b),
            *(self._affinity, self._mass, self._log_radius),
        )
        launch(self._kernel("measure_radii"), self._n, arguments)
        if self._fitted is not None:
            return self._fitted
        count = -(-self._n // CHUNK_ROWS)
        rows = self._options.target, self._log_radius, n
        chunks, summary = xp.empty((count, 2), np.float64), xp.empty(4, np.float64)
        launch(self._kernel("sum_radii_of_chunks"), count, (*rows, chunks))
        radii = add_chunks(self._device, chunks)
        launch(self._kernel("sum_deviations_of_chunks"), count, (*rows, radii, chunks))
        deviations = add_chunks(self._device, chunks)
        settings = np.float64(self._options.variance_shift), np.float64(self._strength)
        launch(self._kernel("summarize_radii"), 1, (radii, deviations, *settings, summary))
        return summary

    def _firings(self) -> int:
        """Return the sum of the rates of all edges. They are integers, so it does not depend on the order."""
        n, total = int(self._edges.clock.shape[0]), self._device.xp.zeros(1, np.int64)
        threads = min(n, MOST_ADDERS)
        launch(self._kernel("add_rates"), threads, (self._edges.clock, np.int64(n), np.int64(threads), total))
        return int(self._device.to_numpy(total)[0])

    def _kernel(self, name: str) -> Kernel:
        return self._device.kernel(name, (("VICINAL_DIM", str(self._dim)),))


# Sizes of cpp/cuda/layout.cu: rows per slice of edges, the most edges of such a row, and the number of edges to a
# multiple of which slices are filled up.
SLICE_ROWS, MOST_SLICED, CLOCKS_AHEAD = 32, 128, 8
# Slices per warp: sorting the rows of more of them by their firing edges leaves fewer lanes idle, but a device that has
# room for all rows at once is faster with more warps.
MANY_ROWS, MANY_SLICES, FEW_SLICES = 250_000, 2, 1
# The launches that wait for the device at a time. Python answers an interrupt between two launches, so a call returns
# within the time of as many sweeps.
SWEEPS_AHEAD = 64

# The types of cpp/layout that kernels are compiled for, by name; a function of the caller runs on the CPU only.
FORCES = cpu.FORCES
SPACES = {name: kind for name, kind in cpu.SPACES.items() if name != "function"}


def has_space(kind: str) -> bool:
    """Tell whether a layout has a distance of the map."""
    return kind in SPACES


def sweep_defines(options: cpu.LayoutOptions, negatives: int, rows: int, dim: int, weighted: bool) -> Defines:
    """Return what the kernels of a sweep are compiled for."""
    return (
        ("VICINAL_FORCE", options.force_type),
        ("VICINAL_SPACE", options.space_type),
        ("VICINAL_DIM", str(dim)),
        ("VICINAL_PULLS", str(options.pulls)),
        ("VICINAL_NEGATIVES", str(negatives)),
        ("VICINAL_MOVING", str(int(options.update_negatives))),
        ("VICINAL_WEIGHTED", str(int(weighted))),
        ("VICINAL_SLICES", str(slices_per_warp(rows))),
    )


def slices_per_warp(rows: int) -> int:
    """Return the number of slices whose rows a warp moves."""
    return MANY_SLICES if rows >= MANY_ROWS else FEW_SLICES


def _usual_options() -> cpu.LayoutOptions:
    options = cpu.LayoutOptions()
    options.set_force("umap", 1.0, 1.0, 1.0)
    options.set_space("euclidean", [], 2)
    options.pulls = 2
    return options


for _negatives in (5, 1):
    USUAL_KERNELS.append(("layout_sweep", sweep_defines(_usual_options(), _negatives, FEW_SLICES, 2, weighted=False)))


class SortedEdges:
    """The edges of all rows in the order in which they pull. Rows are sorted by their number of edges, longest first.

    The edges of row r of the sorted rows begin at ``begin[r]`` if it is one of the ``n_long`` long rows; all other rows
    are in slices, which store their edges column by column.
    """

    def __init__(
        self,
        device: Device,
        graph: tuple[DeviceArray, DeviceArray, DeviceArray],
        row_key: DeviceArray | None,
        options: cpu.LayoutOptions,
        heaviest: float,
        defines: Defines,
    ) -> None:
        xp = device.xp
        indptr, tails, weights = graph
        self._device, self._defines = device, defines
        self.n_heads, n_edges = int(indptr.shape[0]) - 1, int(tails.shape[0])
        degree = xp.diff(indptr)
        self.head_of = xp.argsort(-degree, kind="stable").astype(np.int32)
        self.degree = degree[self.head_of].astype(np.int32)
        count = xp.zeros(1, np.int64)
        self._launch("count_long", self.n_heads, (self.degree, np.int64(self.n_heads), np.int32(MOST_SLICED), count))
        self.n_long = int(count[0])
        widest = self.degree[self.n_long :: SLICE_ROWS].astype(np.int64)
        width = -(-widest // CLOCKS_AHEAD) * CLOCKS_AHEAD * SLICE_ROWS
        ends = xp.cumsum(xp.concatenate([self.degree[: self.n_long].astype(np.int64), width]))
        self.begin = xp.concatenate([xp.zeros(1, np.int64), ends])
        stored = max(int(self.begin[-1]), 1)
        self.tails, self.clock = xp.zeros(stored, np.int32), xp.zeros((stored, 2), np.uint32)

        head, phase = edge_heads(device, indptr, n_edges), xp.empty(n_edges, np.uint32)
        key = np.uint64(cpu.stream_key(options.seed, "phase"))
        names = NULL if row_key is None else row_key
        self._launch("edge_phases", n_edges, (head, tails, names, key, np.int64(n_edges), phase))
        slot = xp.empty(self.n_heads, np.int32)
        slot[self.head_of] = xp.arange(self.n_heads, dtype=np.int32)
        rates = np.float32(heaviest), np.float64(options.firings_per_sweep)
        arguments: tuple[Any, ...] = indptr, head, tails, weights, phase, slot, self.begin, np.int64(self.n_long)
        self._launch("place_edges", n_edges, (*arguments, *rates, np.int64(n_edges), self.tails, self.clock))
        if self.n_long:
            edges = self._long_edges(head, tails, phase, slot)
            arguments = edges, tails, weights, phase, *rates, np.int64(len(edges)), self.tails, self.clock
            self._launch("place_long_edges", len(edges), arguments)

    def _launch(self, name: str, n: int, arguments: tuple[Any, ...]) -> None:
        launch(self._device.kernel(name, self._defines), n, arguments)

    def _long_edges(self, head: DeviceArray, tails: DeviceArray, phase: DeviceArray, slot: DeviceArray) -> DeviceArray:
        """Return the edges of long rows in their order: row by row, then by a hash of the phase, then by tail."""
        xp = self._device.xp
        edges = xp.flatnonzero((slot < self.n_long)[head]).astype(np.int64)
        edges = edges[xp.argsort(tails[edges], kind="stable")]
        keys = xp.empty(len(edges), np.uint64)
        arguments = head, phase, slot, edges, np.int64(len(edges)), keys
        self._launch("order_keys", len(edges), arguments)
        return edges[xp.argsort(keys, kind="stable")]

    @property
    def rows(self) -> tuple[Any, ...]:
        """The sorted rows, and where their edges are."""
        return self.begin, np.int64(self.n_long), self.degree, self.head_of

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The edges as a sweep takes them."""
        return *self.rows, self.tails, self.clock, np.int64(self.n_heads)

    def warps(self, slices: int) -> int:
        """Return the number of warps of a sweep in which each warp moves the rows of ``slices`` slices."""
        rows = slices * SLICE_ROWS
        return self.n_long + (self.n_heads - self.n_long + rows - 1) // rows

    def pin(self, fixed: DeviceArray) -> None:
        """Make the edges of fixed rows never fire."""
        self._launch("pin_rows", self.n_heads, (*self.rows, fixed, np.int64(self.n_heads), self.clock))


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
        options: cpu.LayoutOptions,
        head_row: None,
        n_jobs: int,
    ) -> None:
        if head_row is not None:
            raise ValueError("a device moves all rows")
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
        # All kernels of a layout are compiled together.
        self._defines = sweep_defines(options, options.negatives, self._n, self._dim, weighted=False)
        heaviest = options.heaviest or largest_magnitude(device, graph[2]) or 1.0
        self._edges = SortedEdges(device, graph, self._row_key, options, heaviest, self._defines)
        self._values = device.asarray(np.array(options.space_values or [0.0], dtype=np.float32))

    def step(self, learning_rates: NDArray[np.float32], n_jobs: int = -1) -> None:
        """Run one sweep per learning rate. An interrupted call leaves the points of the last complete sweep."""
        with self.device.active():
            if self._moves is not None:
                self._moves.fill(0)  # moves of an interrupted sweep
            warps = self._edges.warps(slices_per_warp(self._n))
            laws: dict[Any, tuple[Kernel, tuple[Any, ...]]] = {}
            for count, rate in enumerate(np.asarray(learning_rates, dtype=np.float32)[:, 0], 1):
                key, negatives, longest_push, force = self.options.sweep(self.sweep)
                law = negatives, force
                kernel, constant = laws.get(law) or laws.setdefault(law, self._law(*law))
                number = np.uint32(self.sweep & 0xFFFFFFFF)
                changing = self._points, self._next, number, np.uint64(key), rate, np.float32(longest_push)
                launch_warps(kernel, warps, constant + changing)
                if self._moves is not None:
                    self._add_negative_moves()
                if self._density is not None and self._density.acts_in(self.sweep):
                    reference = self._points if self._reference is None else self._reference
                    self._density.add_moves(self._points, reference, self._fixed, rate, self._next)
                self._points, self._next = self._next, self._points
                self.sweep += 1
                if count % SWEEPS_AHEAD == 0:
                    self.device.synchronize()
            self.device.synchronize()

    def _law(self, negatives: int, coefficients: tuple[float, ...]) -> tuple[Kernel, tuple[Any, ...]]:
        """Return the kernel of sweeps with this number of negatives, and the arguments that they share."""
        n_reference = np.int64(self._n if self._reference is None else self._reference.shape[0])
        weighted = self._negatives[0] is not NULL
        defines = sweep_defines(self.options, negatives, self._n, self._dim, weighted)
        return self.device.kernel("layout_sweep", defines), (
            *(*self._edges.arguments, NULL if self._row_key is None else self._row_key),
            *(NULL if self._reference is None else self._reference, n_reference, *self._negatives),
            *(NULL if self._moves is None else self._moves, *(np.float32(one) for one in coefficients), self._values),
        )

    def _add_negative_moves(self) -> None:
        fixed = NULL if self._fixed is None else self._fixed
        arguments = self._moves, fixed, np.int64(self._n), np.int32(self._dim), self._next
        launch(self.device.kernel("add_negative_moves", self._defines), self._n * self._dim, arguments)

    def add_density(
        self,
        target: NDArray[np.float32],
        lambda_: float,
        variance_shift: float,
        first_sweep: int,
        every: int,
        fitted: list[float] | None,
    ) -> None:
        """Add densMAP's term, to be called before ``pin``."""
        with self.device.active():
            wanted = self.device.asarray(target, np.float32)
            known = None if fitted is None else tuple(fitted)
            options = DensityOptions(wanted, lambda_, variance_shift, first_sweep, every, known)
            a, b, _ = (np.float32(one) for one in self.options.sweep(self.sweep)[3])
            self._density = DensityForce(self.device, self._edges, (a, b), self.options.pulls, self._dim, options)

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

    def place(self, places: NDArray[np.float32]) -> None:
        """Replace all points."""
        with self.device.active():
            self._points = self.device.xp.array(self.device.asarray(places, np.float32))

    def embedding(self) -> NDArray[np.float32]:
        """Return a copy of the points in host memory."""
        return self.device.to_numpy(self._points)
