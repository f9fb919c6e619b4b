"""The layout of t-SNE: gradient descent over all pairs (survey eq. 20, 22).

It is resumable: ``step(10); step(240)`` equals ``step(250)`` bit for bit. The repulsion is exact (``"exact"``) or
interpolated from a grid (``"fft"``). The repulsive gradient is that of a single potential, the sum of Student's kernel
over all rows, so one convolution by FFT and the slope of its spline serve all components and any degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, resolve_place
from vicinal.graph.graph import Graph
from vicinal.layout.convolution import GRID_COMPONENTS, Box, Convolution, HostTransforms, Nodes, Transforms, enclose
from vicinal.runtime.residence import working_on

Repulsion = Literal["auto", "exact", "fft"]

# Up to this number of rows the exact repulsion is as fast as the grid (measured, ARCHITECTURE.md).
EXACT_ROWS = 3_000


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
        Places of a finished map, which do not move. Every row then minimises its own divergence, independent of the
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
        place = self._place = graph.place
        places = np.ascontiguousarray(embedding, dtype=np.float32)
        n_sources, n_components = graph.n_tails, places.shape[1]
        if n_sources * n_components >= 2**31:
            raise ValueError(f"n_components={n_components} is too large for {n_sources} rows")
        self.phases = tuple(phases)
        self.n_jobs = n_jobs
        self.dof = float(dof)
        self.method = choose_repulsion(method, n_sources, n_components)
        self._frozen = reference is not None
        work = backend_of(place)
        self._engine = work.FullLayout(
            *(graph.array(name) for name in ("indptr", "indices", "weights")),
            places,
            None if reference is None else np.ascontiguousarray(reference, dtype=np.float32),
            self.dof,
        )
        self._transforms: Transforms = HostTransforms(n_jobs) if place is None else work.transforms()
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
        with working_on(self._place):
            if self.method == "exact":
                self._engine.step_exact(steps, self.n_jobs)
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

    def _run(self, box: Box, potential: Nodes, steps: NDArray[np.float32]) -> None:
        self._engine.step_grid(potential, list(box.shape), list(box.origin), box.spacing, steps, self.n_jobs)

    def _find_potential(self) -> tuple[Box, Nodes]:
        """Compute the potential of the repelling points on a grid around them."""
        low, high = self._engine.bounds()
        box = enclose(low, high, self._transforms)
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
