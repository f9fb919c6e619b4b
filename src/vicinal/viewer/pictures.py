"""Still pictures of a map with the names of its areas: files, and what a notebook shows where no script may run."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators.clustering import named_clusters
from vicinal.files.data_table import Column, Role, values_of
from vicinal.plot.annotations import categories, coordinates

STILL_DPI = 110
# A map in space is drawn as the page shows it first: turned by these angles around the vertical and horizontal axis.
ORBIT = (0.5, 0.35)


def draw_map(
    embedding: Any,
    columns: Sequence[Column],
    title: str | None = None,
    clusters: Sequence[Mapping[str, Any]] | None = None,
) -> Any:
    """Draw a map, colored by its labels or by the first of its values, with the names of areas; return the axes.

    ``clusters`` are the named ones of a map without labels, if they are known.
    """
    # Figure instead of pyplot: needs no display and leaves no global state
    from matplotlib.figure import Figure

    from vicinal import plot
    from vicinal.plot.look import OWN

    places = coordinates(embedding, 3)
    figure = Figure(figsize=plot.FIGURE_INCHES, layout="constrained")
    figure.set_gid(OWN)
    labels = values_of(columns, Role.LABEL)
    classes = categories(labels)
    numbers = values_of(columns, Role.VALUE) if labels is None else labels if classes is None else None
    colors = next((column.colors for column in columns if column.role is Role.LABEL), None)
    flat = places.shape[1] == 2
    named: Any = classes is not None
    if flat and not named:
        named = named_clusters(embedding, columns) if clusters is None else clusters
    return plot.points(
        places if flat else _turned(places),
        classes,
        numbers,
        ax=figure.add_subplot(),
        title=title,
        names=named,
        color_key=None if classes is None else colors,
    )


def still(embedding: Any, columns: Sequence[Column], clusters: Sequence[Mapping[str, Any]]) -> bytes:
    """Return a picture of a map as PNG; nothing without matplotlib."""
    from vicinal.plot.look import PAD_INCHES

    try:
        axes = draw_map(embedding, columns, clusters=clusters)
    except ModuleNotFoundError:
        return b""
    with io.BytesIO() as file:
        axes.figure.savefig(file, format="png", dpi=STILL_DPI, bbox_inches="tight", pad_inches=PAD_INCHES)
        return file.getvalue()


def _turned(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the positions of a map in space as they are seen from the front, after turning it."""
    (c, d), (s, e) = np.cos(ORBIT), np.sin(ORBIT)
    across = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    up = np.array([[1.0, 0.0, 0.0], [0.0, d, -e], [0.0, e, d]])
    turned = (places - places.mean(axis=0)) @ (up @ across).T
    return np.ascontiguousarray(turned[:, :2])
