"""The start that is chosen by the data: principal components or eigenvectors, and for large data a coarse layout.

Principal components keep more of the global structure, but they show a curled sheet folded, and early folds are never
repaired. Eigenvectors of the graph unroll sheets. So up to LARGE_ROWS rows both starts are laid out for a short time,
by aggregates of rows if there are many, and the principal components are taken unless their loss is clearly higher.
Beyond, the aggregates are laid out completely from eigenvectors in a box of their own, and the rows start at their
aggregates. This keeps global structure too, and the layout of the rows needs fewer epochs.

Measurements: docs/decisions/2026-11-arrangement.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vicinal.initialize.aggregates import Aggregates
from vicinal.initialize.spectral import ShapedPlaces
from vicinal.initialize.start import initial_embedding
from vicinal.initialize.task import NOISE, CannotInitialize, InitialTask, extent, leading_scores
from vicinal.layout.forces import Forces
from vicinal.layout.sampled import Layout
from vicinal.layout.schedule import DECAY, LARGE_ROWS, LONGEST_PUSH, SMALL_HOLD, Schedule

Places = NDArray[np.float32]

# Principal components start this wide, and in their own proportions. Correlation of distances for
# 10 and 16: lineage 0.759 and 0.804, mammoth 0.892 and 0.898, a tree 0.773 and 0.775, clusters of different density
# 0.548 and 0.616; the loss is the same.
PCA_WIDTH = 16.0
# Coordinates are rounded to this share of the width: BLAS and LAPACK have different last bits on different machines.
GRID = 2.0**-12

# The trial: its epochs and sweeps, and how much higher the loss of principal components may be. Loss relative to that
# of eigenvectors after 60 epochs: swiss roll 1.13, S curve 1.08, roll with a hole 1.09, shells 1.20; 13 other data sets
# 0.97 to 1.03. Up to TRIAL_ROWS rows there are no aggregates.
TRIAL_EPOCHS, TRIAL_SWEEPS, HIGHER, TRIAL_ROWS, TRIAL_SAMPLES = 60, 8, 1.05, 1_000, 64

# The layout of all aggregates, which starts in a box of its own. Losses by width and epochs: the decision pages.
COARSE_EPOCHS, COARSE_SWEEPS, COARSE_BOX = 700, 2, 14.0


def arranged(task: InitialTask, forces: Forces, schedule: Schedule) -> tuple[Places, str]:
    """Compute first places, and the name of the initializer that was chosen.

    ``schedule`` gives learning rate and negatives of the layouts that are run on the way.
    """
    graph = task.graph
    aggregates = Aggregates.of(graph, task.n_jobs) if graph.n > TRIAL_ROWS else None
    trial = Trial(task, forces, schedule, aggregates)
    if aggregates is None or graph.n <= LARGE_ROWS:
        return trial.chosen()
    start, used = initial_embedding("spectral", task)
    start *= COARSE_BOX / extent(graph.n, task.n_components)
    return aggregates.lifted(trial.laid_out(start), graph, task.seed, task.n_jobs), used


def _principal(task: InitialTask) -> Places | None:
    """Return the rows along their principal axes in one scale, or None if there are fewer axes than wanted."""
    try:
        scores = leading_scores(task)
    except (CannotInitialize, np.linalg.LinAlgError):
        return None
    scores = scores - (scores.min(axis=0) + scores.max(axis=0)) / 2
    width = np.ptp(scores, axis=0)
    widest = width.max(initial=0.0)
    if not np.isfinite(scores).all() or not (width > GRID * widest).all():
        return None
    # The sign of an axis is arbitrary.
    farthest = np.abs(scores).argmax(axis=0)
    turned = scores * np.sign(np.take_along_axis(scores, farthest[None, :], axis=0))
    rounded = np.rint(turned / (GRID * widest)) * GRID
    shape = np.ptp(rounded, axis=0) * PCA_WIDTH / extent(*rounded.shape)
    return ShapedPlaces(rounded, shape).start(extent(*rounded.shape), NOISE, task.seed)


class Trial:
    """Layouts of the aggregates of a graph, or of its rows if there are few, from several starts of its rows."""

    def __init__(self, task: InitialTask, forces: Forces, schedule: Schedule, aggregates: Aggregates | None) -> None:
        self._task, self._forces, self._aggregates = task, forces, aggregates
        self._graph = task.graph if aggregates is None else aggregates.graph
        self._schedule = replace(schedule, decay=DECAY, constant_rate_share=SMALL_HOLD, longest_push=LONGEST_PUSH)
        if aggregates is not None:
            strength = schedule.repulsion_strength * aggregates.repulsion
            self._schedule = replace(self._schedule, repulsion_strength=strength)

    def chosen(self) -> tuple[Places, str]:
        """Return the start that is taken, and its name."""
        spectral, used = initial_embedding("spectral", self._task)
        principal = _principal(self._task) if used == "spectral" else None
        if principal is None or not self._loss(principal) <= HIGHER * self._loss(spectral):
            return spectral, used
        return principal, "pca"

    def laid_out(self, start: Places, n_epochs: int = COARSE_EPOCHS, sweeps: int = COARSE_SWEEPS) -> Places:
        """Return the places of the aggregates after a layout from a start of the rows."""
        task, coarse = self._task, self._aggregates
        schedule = replace(self._schedule, n_epochs=n_epochs, sweeps=sweeps)
        layout = Layout(
            self._graph,
            start if coarse is None else coarse.means(start),
            self._forces,
            schedule if coarse is None else schedule.with_firings(coarse.firings),
            seed=task.seed,
            n_jobs=task.n_jobs,
            negative_weights=None if coarse is None else coarse.mass,
        )
        layout.step(n_epochs)
        return layout.embedding

    def _loss(self, start: Places) -> float:
        from vicinal.quality.losses import LARGEST_PLACE, effective_loss

        places = self.laid_out(start, TRIAL_EPOCHS, TRIAL_SWEEPS)
        if not (np.abs(places) <= LARGEST_PLACE).all():
            return np.inf
        graph, kernel, task = self._graph.on(None), self._forces.kernel, self._task
        return effective_loss(
            graph, places, kernel, self._schedule, samples=TRIAL_SAMPLES, seed=task.seed, n_jobs=task.n_jobs
        ).value
