"""Where a map can be trusted: a measure of every row, as the colour of its point."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.plot.annotations import coordinates
from vicinal.plot.points import points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

# Ranks need every row's distance to all others, so that this many rows are measured and the rest stay grey.
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
    """Colour every point of a map by how the data around it were treated.

    `recall`: the share of a row's `n_neighbors` nearest rows in the data that are among as many nearest in the map.
    `quality`: the smaller of local trustworthiness and local continuity, which also tell by how much neighbours were
    missed; of up to 4,000 rows. `density`: minus the logarithm of the mean distance to the neighbours in the data,
    which a map does not show by itself. `X` and `metric` are those of the fitted model unless given.
    """
    if kind not in MEASURES:
        raise ValueError(f"kind must be one of {', '.join(MEASURES)}, got {kind!r}")
    xy = coordinates(model)
    data = getattr(model, "_raw_data", None) if X is None else X
    if data is None:
        raise ValueError("X must be given: the model does not keep the rows it was fitted to")
    rows = np.ascontiguousarray(data, dtype=np.float32)
    if rows.ndim != 2 or len(rows) != len(xy):
        raise ValueError(f"X must have one row for each of the {len(xy)} points, got shape {rows.shape}")
    if not 1 <= n_neighbors < len(xy) / 2:
        raise ValueError(f"n_neighbors must be at least 1 and below half of the {len(xy)} rows, got {n_neighbors}")
    measure, name = MEASURES[kind]
    chosen = getattr(model, "metric", "euclidean") if metric is None else metric
    ax = points(model, values=measure(rows, xy, n_neighbors, chosen), ax=ax, theme=theme, title=title or name)
    return ax


def local_recall(rows: NDArray[np.float32], xy: Floats, k: int, metric: str) -> Floats:
    true, seen = _neighbors(rows, k, metric)[0], _neighbors(xy.astype(np.float32), k, "euclidean")[0]
    found = np.zeros(len(xy))
    # k columns at a time: a table of all pairs of neighbours would take k times the memory
    for a in range(k):
        found += (seen == true[:, a : a + 1]).any(axis=1)
    return found / k


def local_density(rows: NDArray[np.float32], xy: Floats, k: int, metric: str) -> Floats:
    mean = _neighbors(rows, k, metric)[1].mean(axis=1, dtype=np.float64)
    # rows that coincide with all their neighbours have no finite density: they are drawn in grey
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(mean))


def local_quality(rows: NDArray[np.float32], xy: Floats, k: int, metric: str) -> Floats:
    from vicinal.quality.measures import local_scores

    return local_scores(rows, xy, n_neighbors=k, metric=metric, sample=RANKED_ROWS)


def _neighbors(rows: NDArray[np.float32], k: int, metric: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Index and distance of the k nearest other rows."""
    from vicinal.neighbors.index import find_neighbors

    found = find_neighbors(rows, n_neighbors=k + 1, metric=metric)
    return found.index[:, 1:], found.distance[:, 1:]


MEASURES: dict[str, tuple[Callable[[NDArray[np.float32], Floats, int, str], Floats], str]] = {
    "recall": (local_recall, "Neighbour recall"),
    "quality": (local_quality, "Local quality"),
    "density": (local_density, "Density in the data"),
}
