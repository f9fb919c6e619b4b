"""Initialization by principal components."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of
from vicinal.initialize.eigenmap import DEVICE_ROWS
from vicinal.initialize.task import CannotInitialize, InitialTask
from vicinal.runtime.interruption import interruptible

BLOCK_ROWS = 4096  # rows converted to float64 at a time
MOST_COLUMNS = 5_000  # with more rows and more columns than this the covariance matrix takes too long
# Axes of more rows are those of a sample at regular intervals: 70,000 images take 0.35 s instead of 1.1 s.
SAMPLE_ROWS = 16_384


def pca_places(task: InitialTask) -> NDArray[np.float64]:
    """Project the rows onto their leading principal axes."""
    source = task.source
    if source is None:
        raise CannotInitialize("there are no coordinates")
    n, d = source.shape
    if min(n, d) > MOST_COLUMNS:
        raise CannotInitialize(f"{d} columns are too many for principal components")
    scores: NDArray[np.float64]
    if source.on_device and n > max(DEVICE_ROWS, d):
        scores = backend_of(source.place).principal_scores(source.array("rows"), task.n_components)
    else:
        scores = principal_scores(source.rows, task.n_components)
    if not np.ptp(scores[:, 0]) > 0:
        raise CannotInitialize("the data does not vary")
    return scores


def principal_scores(rows: NDArray[np.floating], n_components: int) -> NDArray[np.float64]:
    """Return coordinates along the leading principal axes; axes beyond the rank of the data are zero."""
    mean, axes = principal_axes(rows, n_components)
    return np.concatenate([rows[block] @ axes for block in _blocks(len(rows))]) - mean @ axes


def principal_axes(rows: NDArray[np.floating], n_components: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean of the rows and the leading principal axes of a sample [columns, n_components].

    Axes are divided by the largest deviation from the mean, which keeps scores of extreme data finite; those beyond the
    rank of the data are zero.
    """
    mean = rows.mean(axis=0, dtype=np.float64)
    largest = max(np.max(rows.max(axis=0) - mean), np.max(mean - rows.min(axis=0))) if rows.size else 0.0
    scale = 1.0 / largest if largest > 0 else 1.0
    sample = rows[:: max(1, len(rows) // SAMPLE_ROWS)]
    n, d = sample.shape

    def axes() -> NDArray[np.float64]:
        if n <= d:
            return np.asarray(np.linalg.svd((sample - mean) * scale, full_matrices=False)[2].T)
        gram = np.zeros((d, d))
        for block in _blocks(n):
            centred = (sample[block] - mean) * scale
            gram += centred.T @ centred
        return np.asarray(np.linalg.eigh(gram)[1][:, ::-1])

    found = interruptible(axes, float(n) * d * min(n, d))[:, :n_components] * scale
    return mean, np.pad(found, ((0, 0), (0, n_components - found.shape[1])))


def _blocks(n: int) -> list[slice]:
    return [slice(begin, begin + BLOCK_ROWS) for begin in range(0, n, BLOCK_ROWS)]
