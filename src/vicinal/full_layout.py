"""t-SNE's layout: gradient descent on all pairs (survey eq. 20, 22), resumable.

``step(10); step(240)`` equals ``step(250)`` bit for bit. Repulsion is exact (``"exact"``) or comes from a grid
(``"fft"``): the repulsive gradient is that of a single potential, the sum of Student's kernel over all rows, so one
convolution by FFT and the slope of its spline serve all components and all degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vicinal import _core
from vicinal.graph import Graph
from vicinal.sharing import blas

Repulsion = Literal["auto", "exact", "fft"]

# Every pair up to this many rows, where that is as fast as the grid (measured, ARCHITECTURE.md).
EXACT_ROWS = 3_000
GRID_COMPONENTS = 3

# Distance between nodes. The kernel falls over a length of 1. Divergence of 10,000 images after 750 iterations, spacing
# 0.4: 1.623, 0.3: 1.601, 0.2: 1.592, every pair: 1.592 (openTSNE 1.629). A map that is narrow yet has to be resolved
# within itself; below FINEST the differences of the potential drown in the rounding of float32.
SPACING, FINEST, NARROW_NODES = 0.25, 0.0625, 32
SPACING_3D = 0.5  # twice as fine would be eight times the work, and in three dimensions rows are never as lonely
# Nodes around the data: a spline reaches two beyond a point, and undoing the spreading rings for a few more.
MARGIN = 6
MOST_NODES = 2**23  # of the padded grid; a wider map gets a wider spacing


@dataclass(frozen=True)
class Phase:
    """Iterations that share an exaggeration, a learning rate and a momentum."""

    n_epochs: int
    exaggeration: float = 1.0
    learning_rate: float = 200.0
    momentum: float = 0.8


@dataclass(frozen=True)
class Box:
    """Where the nodes of a grid lie."""

    origin: tuple[float, ...]
    shape: tuple[int, ...]
    padded: tuple[int, ...]
    spacing: float


class FullLayout:
    """Moves the rows of an embedding along the gradient of the KL divergence, iteration by iteration.

    With ``reference`` the graph leads from the embedding's rows to the reference's, which stay where they are; every
    row then minimises a divergence of its own, whatever the others do.
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
    ) -> None:
        places = np.ascontiguousarray(embedding, dtype=np.float32)
        n_sources, n_components = graph.n_tails, places.shape[1]
        if n_sources * n_components >= 2**31:
            raise ValueError(f"n_components={n_components} is too large for {n_sources} rows")
        self.phases = tuple(phases)
        self.n_jobs = n_jobs
        self.dof = float(dof)
        self.method = choose_repulsion(method, n_sources, n_components)
        self._frozen = reference is not None
        self._core = _core.FullLayout(
            graph.indptr,
            graph.indices,
            graph.weights,
            places,
            None if reference is None else np.ascontiguousarray(reference, dtype=np.float32),
            self.dof,
        )
        self._convolution: Convolution | None = None
        self._potential: tuple[Box, NDArray[np.float32]] | None = None

    @property
    def epoch(self) -> int:
        """Iterations done so far."""
        return self._core.epoch

    @property
    def n_epochs(self) -> int:
        """Iterations of all phases."""
        return sum(phase.n_epochs for phase in self.phases)

    @property
    def embedding(self) -> NDArray[np.float32]:
        """A copy of the places of all rows."""
        return self._core.embedding()

    def step(self, n: int = 1) -> None:
        """Runs ``n`` more iterations; beyond the last phase it goes on as that one does."""
        steps = self._steps(self.epoch, self.epoch + n)
        if self.method == "exact":
            self._core.step_exact(steps, self.n_jobs)
        elif self._frozen:
            box, potential = self._potential = self._potential or self._find_potential()
            self._run(box, potential, steps)
        else:
            for t in range(n):
                self._run(*self._find_potential(), steps[t : t + 1])

    def _steps(self, begin: int, end: int) -> NDArray[np.float32]:
        ends = np.cumsum([phase.n_epochs for phase in self.phases])
        which = np.minimum(np.searchsorted(ends, np.arange(begin, end), side="right"), len(ends) - 1)
        table = [(p.exaggeration, p.learning_rate, p.momentum) for p in self.phases]
        return np.asarray(table, dtype=np.float32)[which]

    def _run(self, box: Box, potential: NDArray[np.float32], steps: NDArray[np.float32]) -> None:
        self._core.step_grid(potential, list(box.shape), list(box.origin), box.spacing, steps, self.n_jobs)

    def _find_potential(self) -> tuple[Box, NDArray[np.float32]]:
        """The potential of the sources at the nodes of a grid around them."""
        box = enclose(*self._core.bounds())
        density = self._core.spread(list(box.shape), list(box.origin), box.spacing, self.n_jobs)
        kind = (box.padded, box.spacing)
        if self._convolution is None or self._convolution.kind != kind:
            self._convolution = Convolution(*kind, self.dof, self.n_jobs)
        return box, self._convolution(density.reshape(box.shape)).reshape(-1)


def choose_repulsion(method: Repulsion, n_sources: int, n_components: int) -> Literal["exact", "fft"]:
    """The way to compute the repulsion, or an error where there is none."""
    if method == "auto":
        return "exact" if n_sources <= EXACT_ROWS or n_components > GRID_COMPONENTS else "fft"
    if method == "fft" and n_components > GRID_COMPONENTS:
        raise ValueError(f"method='fft' is for at most {GRID_COMPONENTS} components, got {n_components}; use 'exact'")
    return method


def enclose(low: NDArray[np.float32], high: NDArray[np.float32]) -> Box:
    """A grid around a box: a function of the box alone, so that an iteration does not depend on earlier ones."""
    from scipy.fft import next_fast_len

    width = np.asarray(high, dtype=np.float64) - low
    spacing, coarsest = FINEST, SPACING if len(width) < GRID_COMPONENTS else SPACING_3D
    while spacing < coarsest and width.max() > spacing * NARROW_NODES:
        spacing *= 2.0
    while np.prod(2.0 * (width / spacing + 2 * MARGIN)) > MOST_NODES:
        spacing *= 2.0
    shape = tuple(int(np.ceil(one / spacing)) + 2 * MARGIN for one in width)
    # Twice the width, so that no row sees another around the corner.
    padded = tuple(next_fast_len(2 * nodes, real=axis == len(shape) - 1) for axis, nodes in enumerate(shape))
    origin = tuple(float(one) - (MARGIN - 1) * spacing for one in low)
    return Box(origin, shape, padded, spacing)


class Convolution:
    """Student's kernel as a convolution on a padded grid, with the blur of the splines undone.

    Spreading and gathering by cubic B-splines multiply a wave of frequency f (a node) by b(f)^2, b = sinc^4, and add
    its aliases. The multiplier that comes nearest to the kernel in the mean over all places between the nodes is
    b(f)^2 / (sum over aliases of b^2)^2 times the kernel's own (Hockney and Eastwood's).
    """

    def __init__(self, padded: tuple[int, ...], spacing: float, dof: float, n_jobs: int) -> None:
        self.kind = (padded, spacing)
        self._padded = padded
        self._workers = _core.resolve_jobs(n_jobs)
        axes = range(len(padded))
        d2 = np.zeros(())
        for axis in axes:
            offset = np.minimum(np.arange(padded[axis]), padded[axis] - np.arange(padded[axis])) * spacing
            d2 = d2 + (offset**2).reshape([-1 if a == axis else 1 for a in axes])
        self._transfer = self._forward(((1.0 + d2 / dof) ** (-(dof + 1.0) / 2.0)).astype(np.float32)).real
        for axis in axes:
            n_waves = self._transfer.shape[axis]
            deblur = _deblur(np.arange(n_waves) / padded[axis]).astype(np.float32)
            self._transfer *= deblur.reshape([-1 if a == axis else 1 for a in axes])

    @blas()
    def __call__(self, density: NDArray[np.float32]) -> NDArray[np.float32]:
        """The potential at the nodes where the density is."""
        from scipy.fft import ifft, irfft

        waves = self._forward(density)
        waves *= self._transfer
        # What lies in the padding is never looked at, so it is cut off before the next axis.
        for axis in range(density.ndim - 1):
            waves = ifft(waves, axis=axis, workers=self._workers, overwrite_x=True)
            waves = waves[(slice(None),) * axis + (slice(density.shape[axis]),)]
        potential = irfft(waves, self._padded[-1], axis=-1, workers=self._workers, overwrite_x=True)
        return np.ascontiguousarray(potential[..., : density.shape[-1]])

    @blas()
    def _forward(self, values: NDArray[np.float32]) -> NDArray[np.complex64]:
        from scipy.fft import fft, rfft

        # Only the lines that hold data are transformed; the padding is added axis by axis.
        waves = rfft(values, self._padded[-1], axis=-1, workers=self._workers)
        for axis in reversed(range(values.ndim - 1)):
            waves = fft(waves, self._padded[axis], axis=axis, workers=self._workers, overwrite_x=True)
        return waves  # type: ignore[no-any-return]


def _deblur(frequency: NDArray[np.float64]) -> NDArray[np.float64]:
    """b^2 / (sum over aliases of b^2)^2 of the cubic B-spline, frequencies in waves a node."""
    # The sum over aliases is the Fourier series of the spline's autocorrelation, the B-spline of degree 7 at the nodes.
    aliases = np.full(frequency.shape, 2416.0)
    for k, count in enumerate((1191.0, 120.0, 1.0), start=1):
        aliases += 2.0 * count * np.cos(2.0 * np.pi * k * frequency)
    blur = np.sinc(np.where(frequency > 0.5, 1.0 - frequency, frequency)) ** 8
    return np.asarray(blur / (aliases / 5040.0) ** 2)
