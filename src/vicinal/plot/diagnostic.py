"""Diagnostics: color each point by a local measure of reliability or by its position in the data; draw losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.table import Neighbors
from vicinal.plot.annotations import coordinates
from vicinal.plot.look import bare_axes, look_of, palette, panels
from vicinal.plot.points import Paint, draw_points, points
from vicinal.quality.reliability import Reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]
Rows = NDArray[np.float32]

# Ranks need the distances from a row to all others; only this many rows are measured and the others are gray.
RANKED_ROWS = 4000
# Numbers in memory while the local dimensions of a block of rows are estimated.
BLOCK_VALUES = 1 << 22
# The kinds that diagnostic_type="all" draws, as in umap-learn.
ALL = ("pca", "ica", "vq", "local_dim", "neighborhood")


class Neighborhood:
    """Measures of how the ``k`` nearest rows of each row appear in the map.

    ``variance`` is the share of the variance that the principal components of the local dimension explain.
    """

    def __init__(self, rows: Rows, xy: Floats, k: int, metric: Any, variance: float = 0.8) -> None:
        self.rows, self.xy, self.k, self.metric, self.variance = rows, xy, k, metric, variance

    def recall(self) -> Floats:
        """Return the fraction of the true neighbors that are neighbors in the map."""
        return self._common() / self.k

    def overlap(self) -> Floats:
        """Return the Jaccard index of the neighbors in the data and in the map, the row itself among both."""
        common = self._common() + 1
        return np.asarray(common / (2 * (self.k + 1) - common))

    def density(self) -> Floats:
        """Return the negative logarithm of the mean distance to the neighbors."""
        mean = self._nearest.distance[:, 1:].mean(axis=1, dtype=np.float64)
        # rows equal to all their neighbors have infinite density and are drawn in gray
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(mean))

    def quality(self) -> Floats:
        """Return the smaller of local trustworthiness and local continuity."""
        from vicinal.quality.measures import local_scores

        return local_scores(self.rows, self.xy, n_neighbors=self.k, metric=self.metric, sample=RANKED_ROWS)

    def dimension(self) -> Floats:
        """Return how many principal components of a row and its neighbors explain enough of their variance."""
        index = self._nearest.index[:, 1:]
        members = np.hstack([np.arange(len(index))[:, None], index])
        out = np.empty(len(index))
        step = max(1, BLOCK_VALUES // max(1, members.shape[1] * self.rows.shape[1]))
        for begin in range(0, len(index), step):
            local = self.rows[members[begin : begin + step]].astype(np.float64)
            variance = np.linalg.svd(local - local.mean(axis=1, keepdims=True), compute_uv=False) ** 2
            total = variance.sum(axis=1, keepdims=True)
            share = np.cumsum(variance, axis=1) / np.where(total > 0, total, 1.0)
            out[begin : begin + step] = (share < self.variance).sum(axis=1) + 1
        return out

    @cached_property
    def _nearest(self) -> Neighbors:
        return NeighborIndex(self.rows, self.metric).search(self.k + 1)

    def _common(self) -> Floats:
        """Return the number of neighbors that a row has both in the data and in the map."""
        true = self._nearest.index[:, 1:]
        seen = NeighborIndex(self.xy.astype(np.float32), "euclidean").search(self.k + 1).index[:, 1:]
        found = np.zeros(len(self.xy))
        # one column at a time: a comparison of all pairs at once would take k times the memory
        for a in range(self.k):
            found += (seen == true[:, a : a + 1]).any(axis=1)
        return found


def diagnostic(
    umap_object: Any,
    X: ArrayLike | str | None = None,
    kind: str = "recall",
    *,
    n_neighbors: int = 15,
    metric: str | None = None,
    ax: Axes | None = None,
    theme: str | None = "light",
    title: str | None = None,
    diagnostic_type: str | None = None,
    nhood_size: int | None = None,
    local_variance_threshold: float = 0.8,
    cmap: Any = None,
    point_size: float | None = None,
    background: str | None = None,
    width: float | None = None,
    height: float | None = None,
    return_diagnostics: bool = False,
    plot_result: bool = True,
) -> Any:
    """Color each point of a map by a measure of its neighborhood, or by where its row lies in the data.

    Parameters
    ----------
    umap_object : fitted model or array [rows, 2]
        The map. An array requires ``X``.
    X : array-like, optional
        The rows of the data; by default those that the model was fitted to. A text is taken as ``diagnostic_type``.
    kind : str, default "recall"
        "recall": fraction of a row's ``n_neighbors`` nearest rows in the data that are also among its nearest in the
        map. "quality": the smaller of local trustworthiness and local continuity, which also take into account how far
        off the wrong neighbors are; measured for up to 4,000 rows. "density": negative logarithm of the mean distance
        to the neighbors in the data, which a map does not show. "neighborhood": Jaccard index of the neighbors in the
        data and in the map, the row itself among both. "local_dim": number of principal components that explain
        ``local_variance_threshold`` of the variance of the neighbors. "pca", "ica", "vq": red, green and blue are three
        principal or independent components, or the distances to three centers of the data. "all": the last five.
    n_neighbors : int, default=15
        Number of neighbors, without the row itself.
    metric : str, optional
        Metric of the data; by default that of the model.
    ax, theme, title, cmap, point_size, background, width, height
        As in :func:`points`.
    diagnostic_type, nhood_size : str and int, optional
        umap-learn's names of ``kind`` and of ``n_neighbors`` + 1.
    local_variance_threshold : float, default 0.8
        See "local_dim".
    return_diagnostics, plot_result : bool, default False and True
        Whether to return the numbers, and whether to draw.

    Returns
    -------
    axes, (axes, numbers), numbers or None
        The axes, a list of them for "all", and the numbers by row, a dict of them for "all", as asked for.
    """
    kind = X if isinstance(X, str) else kind if diagnostic_type is None else diagnostic_type
    if kind not in (*MEASURES, *COLORS, "all"):
        raise ValueError(f"kind must be one of {', '.join((*MEASURES, *COLORS, 'all'))}, got {kind!r}")
    xy = coordinates(umap_object, name="umap_object")
    given = None if isinstance(X, str) else X
    near = _neighborhood(
        umap_object, given, xy, n_neighbors if nhood_size is None else nhood_size - 1, metric, local_variance_threshold
    )
    kinds = ALL if kind == "all" else (kind,)
    found = {one: MEASURES[one][0](near) if one in MEASURES else _row_colors(near.rows, one) for one in kinds}
    numbers: Any = found if kind == "all" else found[kind]
    if not plot_result:
        return numbers if return_diagnostics else None
    style: dict[str, Any] = {"theme": theme, "cmap": cmap, "background": background, "width": width, "height": height}
    look = look_of(**style)
    if kind == "all" and ax is not None:
        raise ValueError("ax cannot be given for 'all', which draws a grid of axes")
    axes: list[Any] = panels(len(kinds), math.ceil(math.sqrt(len(kinds))), look) if kind == "all" else [ax]
    for a, one in enumerate(kinds):
        if one in MEASURES:
            name = title or MEASURES[one][1]
            axes[a] = points(xy, values=found[one], ax=axes[a], title=name, point_size=point_size, **style)
        else:
            paint = Paint(found[one], np.ones(len(xy), dtype=bool))
            axes[a] = bare_axes(axes[a], look)
            draw_points(axes[a], xy, paint, look, title=title or COLORS[one], point_size=point_size)
    drawn: Any = axes if kind == "all" else axes[0]
    return (drawn, numbers) if return_diagnostics else drawn


def _neighborhood(model: Any, X: Any, xy: Floats, k: int, metric: str | None, variance: float) -> Neighborhood:
    data = X
    if data is None and hasattr(model, "rows_"):
        data = model.rows_[: len(xy)]  # the last rows of a growing map may not be placed yet
    elif data is None:
        data = getattr(getattr(getattr(model, "map_", None), "data", None), "rows", None)
    if data is None:
        raise ValueError("X must be given: the model does not contain the rows it was fitted to")
    rows = np.ascontiguousarray(data.toarray() if hasattr(data, "toarray") else data, dtype=np.float32)
    if rows.ndim != 2 or len(rows) != len(xy):
        raise ValueError(f"X must have one row for each of the {len(xy)} points, got shape {rows.shape}")
    if not 1 <= k < len(xy) / 2:
        raise ValueError(f"n_neighbors must be at least 1 and less than half of the {len(xy)} rows, got {k}")
    if not 0 < variance <= 1:
        raise ValueError(f"local_variance_threshold must lie in (0, 1], got {variance!r}")
    return Neighborhood(rows, xy, k, getattr(model, "metric", "euclidean") if metric is None else metric, variance)


def _row_colors(rows: Rows, kind: str) -> Floats:
    """Return three components of the rows, or their distances to three centers, as colors."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA, FastICA

    n = min(3, *rows.shape)
    makers = {
        "pca": PCA(n_components=n, random_state=0),
        "ica": FastICA(n_components=n, random_state=0),
        "vq": KMeans(n_clusters=min(3, len(rows)), random_state=0, n_init=1),
    }
    columns = makers[kind].fit_transform(rows)
    low, width = columns.min(axis=0), np.ptp(columns, axis=0)
    scaled = (columns - low) / np.where(width > 0, width, 1.0)
    return np.hstack([scaled, np.zeros((len(columns), 3 - columns.shape[1]))]).astype(np.float64)


MEASURES: dict[str, tuple[Callable[[Neighborhood], Floats], str]] = {
    "recall": (Neighborhood.recall, "Neighbor recall"),
    "quality": (Neighborhood.quality, "Local quality"),
    "density": (Neighborhood.density, "Density in the data"),
    "neighborhood": (Neighborhood.overlap, "Jaccard index of the neighbors"),
    "local_dim": (Neighborhood.dimension, "Local dimension"),
}
COLORS = {
    "pca": "Principal components as colors",
    "ica": "Independent components as colors",
    "vq": "Distances to three centers as colors",
}


# Parts that can color the points, with the titles of their figures.
PARTS = {
    "reliability": "Reliability",
    "near": "Near neighbors kept",
    "wide": "Wide neighbors kept",
    "stability": "Stability",
    "spread": "Spread",
    "stretch": "Stretch",
    "torn": "Torn edge weight",
    "q_value": "q-value",
    "label": "Labels",
}
# The most torn edges that are drawn one by one; the worst come first.
MOST_EDGES = 2000


def reliability(
    model: Any,
    found: Reliability | None = None,
    part: str = "reliability",
    *,
    ax: Axes | None = None,
    theme: str = "light",
    title: str | None = None,
    **drawn: Any,
) -> Axes:
    """Color each point of a map by its reliability or by a part of it.

    Parameters
    ----------
    model : fitted model or array [rows, 2]
        The map. An array requires ``found``.
    found : Reliability, optional
        The measurement; by default ``model.reliability_``.
    part : str, default "reliability"
        What to show: "reliability", "near", "wide", "stability", "spread", "stretch", "torn", "q_value" or "label".
    ax, theme, title
        As in :func:`points`.
    **drawn
        Further arguments of :func:`points`.
    """
    if part not in PARTS:
        raise ValueError(f"part must be one of {', '.join(PARTS)}, got {part!r}")
    xy, found = coordinates(model, name="model"), _measured(model, found)
    column = found.columns()[part]
    labels, values = (column, None) if part == "label" else (None, column)
    return points(xy, labels, values, ax=ax, theme=theme, title=PARTS[part] if title is None else title, **drawn)


def torn_edges(
    model: Any,
    found: Reliability | None = None,
    *,
    ax: Axes | None = None,
    theme: str = "light",
    title: str | None = None,
    most: int = MOST_EDGES,
) -> Axes:
    """Draw the heavy edges of the graph that a map tears over its points; heavier edges are more opaque.

    Parameters
    ----------
    model : fitted model or array [rows, 2]
        The map. An array requires ``found``.
    found : Reliability, optional
        The measurement; by default ``model.reliability_``.
    ax, theme, title
        As in :func:`points`.
    most : int, default 2000
        The most edges to draw, the worst first.
    """
    from matplotlib.collections import LineCollection

    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 0:
        raise ValueError(f"most must be a whole number of at least 0, got {most!r}")
    xy, edges = coordinates(model, name="model"), _measured(model, found).torn_edges
    name = f"{len(edges):,} torn edges" if title is None else title
    ax = points(xy, ax=ax, theme=theme, title=name)
    head, tail, weight = edges.head[:most], edges.tail[:most], edges.weight[:most]
    if len(head):
        opacity = 0.15 + 0.65 * weight / weight.max()
        lines = list(np.stack([xy[head], xy[tail]], axis=1))
        colors = [(0.84, 0.37, 0.0, alpha) for alpha in opacity]
        ax.add_collection(LineCollection(lines, colors=colors, linewidths=0.8, zorder=3, rasterized=True))
    return ax


def _measured(model: Any, found: Reliability | None) -> Reliability:
    found = getattr(model, "reliability_", None) if found is None else found
    if not isinstance(found, Reliability):
        raise ValueError("found must be given: what vicinal.reliability returned for this map")
    n = len(coordinates(model, name="model"))
    if len(found) != n:
        raise ValueError(f"found must have one entry for each of the {n} points, got {len(found)}")
    return found


LOSS_INCHES = (6.4, 3.6)


def loss(
    history: Any, *, ax: Axes | None = None, theme: str = "light", title: str | None = None, log: bool = False
) -> Axes:
    """Draw losses over epochs.

    Parameters
    ----------
    history : fitted model, mapping or sequence
        A model with ``loss_history_``, a mapping of names to losses per epoch, or one sequence of losses. A mapping may
        contain the epoch numbers as "epoch"; by default they are 1, 2, ….
    ax : matplotlib axes, optional
        Axes to draw on; by default those of a new figure.
    theme : {"light", "dark"}
        Colors of the figure.
    title : str, optional
        Title of the axes.
    log : bool, default=False
        Whether the loss axis is logarithmic.
    """
    found = getattr(history, "loss_history_", history)
    if hasattr(found, "get_params"):
        raise ValueError(
            f"this {type(found).__name__} has no loss history: fit it with compute_loss=True if it has that parameter, "
            "or give losses"
        )
    curves = dict(found) if isinstance(found, Mapping) else {"loss": found}
    given = curves.pop("epoch", None)
    lines = {str(name): np.asarray(values, dtype=np.float64) for name, values in curves.items()}
    for name, values in lines.items():
        if values.ndim != 1 or len(values) == 0:
            raise ValueError(f"history must contain one number per epoch; {name!r} has shape {values.shape}")
        if given is not None and len(given) != len(values):
            raise ValueError(f"history has {len(given)} epochs, but {len(values)} numbers of {name!r}")
    look = look_of(theme)
    colors = look.theme
    if ax is None:
        from matplotlib import pyplot as plt

        figure, ax = plt.subplots(figsize=LOSS_INCHES, layout="constrained")
        figure.set_facecolor(look.background)
    ax.set_facecolor(look.background)
    for (name, values), color in zip(lines.items(), palette(len(lines), look.name), strict=True):
        epochs = np.arange(1, len(values) + 1) if given is None else np.asarray(given)
        ax.plot(epochs, values, color=color, linewidth=1.8, label=name)
        last = np.flatnonzero(np.isfinite(values))
        if len(lines) > 1 and len(last):
            end = last[-1]
            ax.annotate(
                name, (epochs[end], values[end]), xytext=(6, 0), textcoords="offset points", color=color, va="center"
            )
    if log:
        ax.set_yscale("log")
    ax.set_xlabel("epoch", color=colors.ink)
    ax.set_ylabel("loss" if len(lines) > 1 else next(iter(lines)), color=colors.ink)
    ax.grid(axis="y", color=colors.faint, alpha=0.45, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(colors=colors.ink, length=0)
    ax.margins(x=0.02)
    for side, spine in ax.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(colors.faint)
    if title:
        ax.set_title(title, color=colors.ink, fontsize=13, loc="left", pad=10)
    return ax
