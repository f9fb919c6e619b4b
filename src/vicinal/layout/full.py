"""The layout of t-SNE: gradient descent over all pairs (survey eq. 20, 22).

It is resumable: ``step(10); step(240)`` equals ``step(250)`` bit for bit. The repulsion is exact (``"exact"``) or
interpolated from a grid (``"fft"``). The repulsive gradient is that of a single potential, the sum of Student's kernel
over all rows, so one convolution by FFT and the slope of its spline serve all components and any degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, cpu, resolve_place
from vicinal.graph.graph import Graph

# An array of NumPy or of a device.
Nodes = Any

GRID_COMPONENTS = 3

# Distance between nodes; the kernel decays over a length of 1. Divergence of 10,000 images after 750 iterations by
# spacing: 0.4 1.623, 0.3 1.601, 0.2 1.592, all pairs 1.592 (openTSNE 1.629). A narrow map gets a finer grid, so that
# its own extent is resolved; below FINEST the differences of the potential are lost in the rounding of float32.
SPACING, FINEST, NARROW_NODES = 0.25, 0.0625, 32
# Half the spacing would cost eight times the work, and in three dimensions rows have more neighbors at each distance.
SPACING_3D = 0.5
# Errors between nodes average out over many rows: a wide map in a plane with more rows than this per unit of area gets
# the spacing of dense maps (docs/decisions/2026-11-tsne-dense-maps.md).
DENSE, WIDE = 1.0, 50.0
# Nodes around the data: a spline reaches two nodes beyond a point, and the deblurring decays over a few more.
MARGIN = 6
# The kernel has a kink where its periods meet. With fewer nodes than this, it would disturb the slope in a narrow map.
LEAST_PADDED = 96


@dataclass(frozen=True)
class Box:
    """Position and size of a grid: the place of its first node, and the nodes per axis without and with padding."""

    origin: tuple[float, ...]
    shape: tuple[int, ...]
    padded: tuple[int, ...]
    spacing: float


def enclose(low: NDArray[np.float32], high: NDArray[np.float32], transforms: cpu.Transforms, n_rows: int = 0) -> Box:
    """Return the grid around the box from ``low`` to ``high``, which has ``n_rows`` rows in it.

    The grid depends on these only, so that an iteration does not depend on earlier ones.
    """
    width = np.asarray(high, dtype=np.float64) - low
    spacing = FINEST * transforms.fineness
    coarsest = (SPACING if len(width) < GRID_COMPONENTS else SPACING_3D) * transforms.fineness
    while spacing < coarsest and width.max() > spacing * NARROW_NODES:
        spacing *= 2.0
    if len(width) == 2 and width.max() > WIDE and n_rows > DENSE * np.prod(width):
        spacing *= transforms.dense_factor
    while np.prod(2.0 * (width / spacing + 2 * MARGIN)) > transforms.most_nodes:
        spacing *= 2.0
    shape = tuple(int(np.ceil(one / spacing)) + 2 * MARGIN for one in width)
    # Twice the width, so that the periodic convolution does not reach around the grid.
    least = LEAST_PADDED if len(width) < GRID_COMPONENTS else 0
    padded = transforms.lengths(tuple(max(2 * nodes, least) for nodes in shape))
    origin = tuple(float(one) - (MARGIN - 1) * spacing for one in low)
    return Box(origin, shape, padded, spacing)


class Convolution:
    """Convolution with Student's kernel on a padded grid, corrected for the blur of the splines.

    Spreading and gathering by cubic B-splines multiply a wave of frequency f (per node) by b(f)^2, b = sinc^4, and add
    its aliases. The kernel's own transform is therefore multiplied by b(f)^2 / (sum over aliases of b^2)^2, which
    minimizes the mean error over all places between the nodes (Hockney and Eastwood).
    """

    def __init__(self, padded: tuple[int, ...], spacing: float, dof: float, transforms: cpu.Transforms) -> None:
        self.kind = (padded, spacing)
        axes, xp = range(len(padded)), transforms.xp
        # The kernel and its transform are even along each axis, so both are computed for half of it.
        halves = [padded[axis] // 2 + 1 for axis in axes]
        d2 = xp.zeros(())
        for axis, half in enumerate(halves):
            d2 = d2 + ((xp.arange(half) * spacing) ** 2).reshape([-1 if a == axis else 1 for a in axes])
        transfer = transforms.transform_even((1.0 + d2 / dof) ** (-(dof + 1.0) / 2.0), padded)
        for axis, half in enumerate(halves):
            deblur = xp.asarray(_deblur(np.arange(half) / padded[axis]))
            transfer *= deblur.reshape([-1 if a == axis else 1 for a in axes])
        self._convolve = transforms.convolution(transfer.astype(np.float32), padded)

    def __call__(self, density: Nodes) -> Nodes:
        """Return the potential of ``density`` at the nodes."""
        return self._convolve(density)


def _deblur(frequency: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return b^2 / (sum over aliases of b^2)^2 of the cubic B-spline, for frequencies in waves per node."""
    # The sum over aliases is the Fourier series of the spline's autocorrelation, the B-spline of degree 7 at the nodes.
    aliases = np.full(frequency.shape, 2416.0)
    for k, count in enumerate((1191.0, 120.0, 1.0), start=1):
        aliases += 2.0 * count * np.cos(2.0 * np.pi * k * frequency)
    blur = np.sinc(np.where(frequency > 0.5, 1.0 - frequency, frequency)) ** 8
    return np.asarray(blur / (aliases / 5040.0) ** 2)


Repulsion = Literal["auto", "exact", "fft"]

# Up to this number of rows the exact repulsion is as fast as the grid (docs/decisions/2026-11-tsne-grid.md).
EXACT_ROWS = 3_000
# A grid with more nodes than this for each pair of rows costs more than the sum over all pairs.
NODES_PER_PAIR = 64


@dataclass(frozen=True)
class Phase:
    """Iterations with the same settings.

    Parameters
    ----------
    n_epochs : int
        Number of iterations.
    exaggeration : float, default 1
        Factor on the attraction.
    learning_rate : float, default 200
    momentum : float, default 0.8

    See Also
    --------
    FullLayout : runs phases one after the other.

    Examples
    --------
    >>> from vicinal import Phase
    >>> Phase(250, exaggeration=12.0).learning_rate
    200.0
    """

    n_epochs: int
    exaggeration: float = 1.0
    learning_rate: float = 200.0
    momentum: float = 0.8


class FullLayout:
    """Layout by gradient descent on the Kullback-Leibler divergence of t-SNE.

    Parameters
    ----------
    graph : Graph
        Symmetric graph whose weights sum to 1, or with ``reference`` a bipartite graph to the points of the reference.
    embedding : array of shape (n_rows, n_components)
        Initial places of the rows. The array is copied.
    phases : sequence of Phase
        Settings of consecutive iterations.
    dof : float, default 1
        Degrees of freedom of the kernel.
    method : {"auto", "exact", "fft"}, default "auto"
        How the repulsion is computed: over all pairs, or by a grid for up to three components.
    n_jobs : int, default -1
        Number of threads; -1 uses all. The result does not depend on it.
    reference : array of shape (n_points, n_components), optional
        Places of a finished map, which do not move. Every row then minimizes its own divergence, independent of the
        other rows.
    device : {None, "cpu", "cuda", "cuda:N"}, default None
        Where the work is done; None means where the graph lives. The result has the same bits everywhere with exact
        repulsion; that of a grid differs by rounding.

    See Also
    --------
    TSNE : the estimator.
    Layout : a layout by sampling.
    Phase : settings of some iterations.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import FullLayout, Phase, entropic_graph, find_neighbors, pca_start
    >>> X = load_iris().data
    >>> graph = entropic_graph(find_neighbors(X, 61), 20.0)
    >>> layout = FullLayout(graph, pca_start(X), [Phase(50, exaggeration=12.0), Phase(100)])
    >>> layout.step(150)
    >>> layout.embedding.shape, layout.epoch
    ((150, 2), 150)
    """

    def __init__(
        self,
        graph: Graph,
        embedding: NDArray[np.float32],
        phases: Sequence[Phase],
        *,
        dof: float = 1.0,
        method: Repulsion = "auto",
        n_jobs: int = -1,
        reference: NDArray[np.float32] | None = None,
        device: str | None = None,
    ) -> None:
        if device is not None:
            graph = graph.on(resolve_place(device))
        work = self._work = backend_of(graph.place)
        places = np.ascontiguousarray(embedding, dtype=np.float32)
        n_sources, n_components = graph.n_tails, places.shape[1]
        if n_sources * n_components >= 2**31:
            raise ValueError(f"n_components={n_components} is too large for {n_sources} rows")
        self.phases = tuple(phases)
        self.n_jobs = n_jobs
        self.dof = float(dof)
        self.method = choose_repulsion(method, n_sources, n_components)
        self._frozen = reference is not None
        self._n_sources = n_sources
        self._engine = work.FullLayout(
            *graph.edges,
            places,
            None if reference is None else np.ascontiguousarray(reference, dtype=np.float32),
            self.dof,
        )
        self._transforms: cpu.Transforms = work.transforms(n_jobs)
        self._convolution: Convolution | None = None
        self._potential: tuple[Box, Nodes] | None = None

    @property
    def epoch(self) -> int:
        """Number of iterations completed."""
        return int(self._engine.epoch)

    @property
    def n_epochs(self) -> int:
        """Number of iterations of all phases."""
        return sum(phase.n_epochs for phase in self.phases)

    @property
    def embedding(self) -> NDArray[np.float32]:
        """Copy of the places of all rows."""
        places: NDArray[np.float32] = self._engine.embedding()
        return places

    def step(self, n: int = 1) -> None:
        """Run ``n`` more iterations; iterations after the last phase have the settings of the last phase."""
        steps = self._steps(self.epoch, self.epoch + n)
        with self._work.active():
            if self.method == "exact":
                self._engine.step_exact(steps, self.n_jobs)
            elif self._frozen:
                box, potential = self._potential = self._potential or self._find_potential(self._find_box())
                self._run(box, potential, steps)
            else:
                for t in range(n):
                    self._run_one(steps[t : t + 1])

    def _steps(self, begin: int, end: int) -> NDArray[np.float32]:
        ends = np.cumsum([phase.n_epochs for phase in self.phases])
        which = np.minimum(np.searchsorted(ends, np.arange(begin, end), side="right"), len(ends) - 1)
        table = [(p.exaggeration, p.learning_rate, p.momentum) for p in self.phases]
        return np.asarray(table, dtype=np.float32)[which]

    def _run(self, box: Box, potential: Nodes, steps: NDArray[np.float32]) -> None:
        self._engine.step_grid(potential, list(box.shape), list(box.origin), box.spacing, steps, self.n_jobs)

    def _run_one(self, steps: NDArray[np.float32]) -> None:
        """Run one iteration on a grid around the rows, or over all pairs if the rows are few for so large a map."""
        box = self._find_box()
        if math.prod(box.padded) > NODES_PER_PAIR * self._n_sources**2:
            self._engine.step_exact(steps, self.n_jobs)
        else:
            self._run(*self._find_potential(box), steps)

    def _find_box(self) -> Box:
        low, high = self._engine.bounds()
        return enclose(low, high, self._transforms, self._n_sources)

    def _find_potential(self, box: Box) -> tuple[Box, Nodes]:
        """Compute the potential of the repelling points at the nodes of a grid."""
        density = self._engine.spread(list(box.shape), list(box.origin), box.spacing, self.n_jobs)
        kind = (box.padded, box.spacing)
        if self._convolution is None or self._convolution.kind != kind:
            self._convolution = Convolution(*kind, self.dof, self._transforms)
        return box, self._convolution(density.reshape(box.shape)).reshape(-1)


def choose_repulsion(method: Repulsion, n_sources: int, n_components: int) -> Literal["exact", "fft"]:
    """Return the method that computes the repulsion, or raise ValueError if ``method`` is not possible."""
    if method == "auto":
        return "exact" if n_sources <= EXACT_ROWS or n_components > GRID_COMPONENTS else "fft"
    if method == "fft" and n_components > GRID_COMPONENTS:
        raise ValueError(f"method='fft' supports at most {GRID_COMPONENTS} components, got {n_components}; use 'exact'")
    return method
