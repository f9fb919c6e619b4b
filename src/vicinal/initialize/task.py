"""What every initializer receives, and the box that its places are scaled to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.neighbors.rows import HasRows, PlacedRows

EXTENT = 10.0  # an initial embedding spans [0, EXTENT] on each axis, as in umap-learn
NOISE = 1e-4  # separates rows that the eigenvectors put at the same place
NARROW = 1e-4  # standard deviation of t-SNE's start along its widest axis, as in scikit-learn and openTSNE


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
    def rows(self) -> NDArray[np.float32] | None:
        """The rows on the host."""
        return None if self.source is None else self.source.rows

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


def to_extent(places: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scale each axis to [0, EXTENT]; an axis on which all places are equal is set to the middle."""
    out: NDArray[np.float64] = np.array(places, dtype=np.float64)
    if out.shape[0] == 0:
        return out
    # One axis at a time: NumPy reduces the long side of a narrow array slowly.
    low = np.array([axis.min() for axis in out.T])
    width = np.array([axis.max() for axis in out.T]) - low
    flat = ~(width > 0)
    out = EXTENT * (out - low) / np.where(flat, 1.0, width)
    out[:, flat] = EXTENT / 2
    return out
