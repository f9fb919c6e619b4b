"""Diagnostics: colour each point by a local measure of how reliable the map is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.plot.annotations import coordinates, training_rows
from vicinal.plot.points import points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

# Ranks need the distances from a row to all others; only this many rows are measured and the others are grey.
RANKED_ROWS = 4000


def diagnostic(
    model: Any,
    X: ArrayLike | None = None,
    kind: str = "recall",
    *,
    n_neighbors: int = 15,
    metric: str | None = None,
    ax: Axes | None = None,
    theme: str = "light",
    title: str | None = None,
) -> Axes:
    """Colour each point of a map by a measure of its neighborhood.

    Parameters
    ----------
    model : fitted model or array [rows, 2]
        The map. An array requires ``X``.
    X : array-like, optional
        The rows of the data; by default those that the model was fitted to.
    kind : {"recall", "quality", "density"}
        "recall": fraction of a row's ``n_neighbors`` nearest rows in the data that are also among its nearest in the
        map. "quality": the smaller of local trustworthiness and local continuity, which also take into account how far
        off the wrong neighbors are; measured for up to 4,000 rows. "density": negative logarithm of the mean distance
        to the neighbors in the data, which a map does not show.
    n_neighbors : int, default=15
        Number of neighbors, without the row itself.
    metric : str, optional
        Metric of the data; by default that of the model.
    ax, theme, title
        As in :func:`points`.
    """
    if kind not in MEASURES:
        raise ValueError(f"kind must be one of {', '.join(MEASURES)}, got {kind!r}")
    xy = coordinates(model)
    data = training_rows(model) if X is None else X
    if data is None:
        raise ValueError("X must be given: the model does not contain the rows it was fitted to")
    rows = np.ascontiguousarray(data, dtype=np.float32)
    if rows.ndim != 2 or len(rows) != len(xy):
        raise ValueError(f"X must have one row for each of the {len(xy)} points, got shape {rows.shape}")
    if not 1 <= n_neighbors < len(xy) / 2:
        raise ValueError(f"n_neighbors must be at least 1 and less than half of the {len(xy)} rows, got {n_neighbors}")
    measure, name = MEASURES[kind]
    chosen = getattr(model, "metric", "euclidean") if metric is None else metric
    ax = points(model, values=measure(rows, xy, n_neighbors, chosen), ax=ax, theme=theme, title=title or name)
    return ax


def local_recall(rows: NDArray[np.float32], xy: Floats, k: int, metric: str) -> Floats:
    true, seen = _neighbors(rows, k, metric)[0], _neighbors(xy.astype(np.float32), k, "euclidean")[0]
    found = np.zeros(len(xy))
    # one column at a time: a comparison of all pairs at once would take k times the memory
    for a in range(k):
        found += (seen == true[:, a : a + 1]).any(axis=1)
    return found / k


def local_density(rows: NDArray[np.float32], xy: Floats, k: int, metric: str) -> Floats:
    mean = _neighbors(rows, k, metric)[1].mean(axis=1, dtype=np.float64)
    # rows equal to all their neighbors have infinite density and are drawn in grey
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(mean))


def local_quality(rows: NDArray[np.float32], xy: Floats, k: int, metric: str) -> Floats:
    from vicinal.quality.measures import local_scores

    return local_scores(rows, xy, n_neighbors=k, metric=metric, sample=RANKED_ROWS)


def _neighbors(rows: NDArray[np.float32], k: int, metric: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return indices and distances of the k nearest other rows."""
    from vicinal.neighbors.index import find_neighbors

    found = find_neighbors(rows, n_neighbors=k + 1, metric=metric)
    return found.index[:, 1:], found.distance[:, 1:]


MEASURES: dict[str, tuple[Callable[[NDArray[np.float32], Floats, int, str], Floats], str]] = {
    "recall": (local_recall, "Neighbor recall"),
    "quality": (local_quality, "Local quality"),
    "density": (local_density, "Density in the data"),
}
