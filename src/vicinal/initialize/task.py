"""What every initializer receives, and the box that its places are scaled to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, cpu
from vicinal.graph.graph import Graph
from vicinal.neighbors.rows import HasRows, PlacedRows

# An initial embedding spans [0, 10] on each axis, as in umap-learn, and more for many rows: each has the room of a box
# with sides of SPACING. Less room costs epochs, which separate clusters that cover each other; more keeps far what
# belongs together. Loss J and correlation of distances by the extent (one to three seeds): MNIST 14 173,848 0.292, 18
# 173,406 0.276, 23 174,197 0.240; Fashion-MNIST 14 167,943 0.609, 22 166,809 0.567. 70,000 rows get 18.5.
LEAST_EXTENT, SPACING = 10.0, 0.07
NOISE = 1e-4  # separates rows that the eigenvectors put at the same place
NARROW = 1e-4  # standard deviation of t-SNE's start along its widest axis, as in scikit-learn and openTSNE
# A device computes the eigenmaps of more rows than this. Its vectors do not have the CPU's bits, so smaller maps start
# on the CPU and are the same everywhere.
DEVICE_ROWS = 20_000


class CannotInitialize(Exception):
    """An initializer does not apply to the data; the message gives the reason."""


@dataclass(frozen=True)
class InitialTask:
    """Input of an initializer. ``X`` is None if the rows have no coordinates (precomputed distances)."""

    graph: Graph
    X: NDArray[np.float32] | HasRows | None
    n_components: int
    seed: int
    n_jobs: int = -1

    @property
    def source(self) -> HasRows | None:
        """The rows where they live."""
        return self.X if self.X is None or isinstance(self.X, HasRows) else PlacedRows(self.X)

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


def extent(n: int, n_components: int) -> float:
    """Return the width of the box that ``n`` rows start in; a line is as long as a square is wide."""
    return max(LEAST_EXTENT, float(SPACING * n ** (1.0 / max(n_components, 2))))


def to_extent(places: NDArray[np.floating], shape: NDArray[np.floating] | float = 1.0) -> NDArray[np.float64]:
    """Scale each axis to the start box of these rows; an axis on which all places are equal is set to the middle.

    The sides of the box are ``shape`` times the extent.
    """
    out: NDArray[np.float64] = np.array(places, dtype=np.float64)
    if out.shape[0] == 0:
        return out
    # One axis at a time: NumPy reduces the long side of a narrow array slowly.
    low = np.array([axis.min() for axis in out.T])
    width = np.array([axis.max() for axis in out.T]) - low
    flat = ~(width > 0)
    wide = extent(*out.shape) * np.broadcast_to(shape, width.shape)
    out = wide * (out - low) / np.where(flat, 1.0, width)
    out[:, flat] = wide[flat] / 2
    return out


MOST_COLUMNS = 5_000  # with more rows and more columns than this the covariance matrix takes too long


def pca_places(task: InitialTask) -> NDArray[np.float64]:
    """Project the rows onto their leading principal axes."""
    source = task.source
    if source is None:
        raise CannotInitialize("there are no coordinates")
    n, d = source.shape
    if min(n, d) > MOST_COLUMNS:
        raise CannotInitialize(f"{d} columns are too many for principal components")
    large = source.on_device and n > max(DEVICE_ROWS, d)
    where, rows = (source.place, source.array("rows")) if large else (None, source.rows)
    scores: NDArray[np.float64] = backend_of(where).principal_scores(rows, task.n_components)
    if not np.ptp(scores[:, 0]) > 0:
        raise CannotInitialize("the data does not vary")
    return scores


TRIAL_WORK = 4e8  # multiplications for principal axes that are not asked for; of more rows a sample is used


def trial_rows(d: int) -> int:
    """Return the most rows of ``d`` columns that principal axes are computed of within TRIAL_WORK."""
    return max(int(TRIAL_WORK / d**2 if d**3 <= TRIAL_WORK else np.sqrt(TRIAL_WORK / d)), 2)


def leading_scores(task: InitialTask) -> NDArray[np.float64]:
    """Project the rows onto the leading principal axes of as many of them as TRIAL_WORK allows, on the host."""
    source = task.source
    if source is None:
        raise CannotInitialize("there are no coordinates")
    n, d = source.shape
    # A copy of rows of a device is not kept.
    rows = source.rows if source.on_host else source[np.arange(n)]
    mean, axes = cpu.principal_axes(rows[:: -(-n // trial_rows(d))], task.n_components)
    blocks = (rows[begin : begin + cpu.PCA_ROWS] for begin in range(0, n, cpu.PCA_ROWS))
    return np.concatenate([block @ axes for block in blocks]) - mean @ axes
