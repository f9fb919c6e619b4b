"""umap-learn's other functions: interactive pages, showing figures, and a histogram of edge weights."""

from __future__ import annotations

import importlib
import sys
import tempfile
import webbrowser
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from vicinal.files.atomic import atomic_write
from vicinal.plot.annotations import coordinates
from vicinal.plot.points import row_subset
from vicinal.runtime.inputs import check_structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 640


def interactive(
    umap_object: Any,
    labels: ArrayLike | None = None,
    values: ArrayLike | None = None,
    hover_data: Any = None,
    *,
    subset_points: ArrayLike | None = None,
    height: int = HEIGHT,
    tools: None = None,
    **page_style: Any,
) -> Any:
    """Return the interactive page of a map, which a notebook displays and :func:`show` opens in a browser.

    Parameters
    ----------
    umap_object : fitted model
        A model with ``embedding_``.
    labels, values : array-like, optional
        Classes or numbers that color the points.
    hover_data : DataFrame or mapping, optional
        Columns that are shown beside the pointer and can color the points.
    subset_points : array of bool, optional
        Which rows to show.
    height : int, default 640
        Height of the page in pixels.
    tools : None
        umap-learn's argument for Bokeh; the page has its own tools.
    **page_style
        umap-learn's ``theme``, ``cmap``, ``color_key``, ``color_key_cmap``, ``background``, ``width``, ``point_size``,
        ``alpha`` and ``interactive_text_search...`` have no effect: the reader of the page chooses colors and sizes
        there, and every page has a search.
    """
    if tools is not None:
        raise ValueError("tools must be None: Bokeh's tools do not work on this page, which has its own")
    unknown = [name for name in page_style if name not in PAGE_STYLE and not name.startswith("interactive_text_search")]
    if unknown:
        raise TypeError(f"interactive has no argument {unknown[0]!r}")
    import vicinal  # the page is made by vicinal.viewer, which is built on this package

    shown = SimpleNamespace(embedding_=coordinates(umap_object, most=3, name="umap_object"))
    described: dict[str, Any] = {"labels": labels, "values": values, "hover": hover_data}
    if subset_points is not None:
        chosen = row_subset(subset_points, len(shown.embedding_))
        shown.embedding_ = shown.embedding_[chosen]
        described = {name: _rows_of(column, chosen) for name, column in described.items()}
    return vicinal.viewer.explore(shown, title=type(umap_object).__name__, height=height, live=False, **described)


PAGE_STYLE = ("theme", "cmap", "color_key", "color_key_cmap", "background", "width", "point_size", "alpha")


def _rows_of(column: Any, chosen: Any) -> Any:
    """Return some rows of labels, of a frame, or of each column of a mapping."""
    if column is None:
        return None
    if hasattr(column, "loc"):
        return column[chosen]
    if hasattr(column, "items"):
        return {name: np.asarray(values)[chosen] for name, values in column.items()}
    return np.asarray(column)[chosen]


def show(plot_to_show: Any) -> None:
    """Show axes in matplotlib's window, or a page in the notebook or in a browser."""
    if hasattr(plot_to_show, "_repr_html_"):
        ipython = sys.modules.get("IPython")  # a notebook has imported it already
        if ipython is not None and hasattr(ipython.get_ipython(), "kernel"):
            importlib.import_module("IPython.display").display(plot_to_show)
            return
        page = plot_to_show._repr_html_().encode()
        if "page" in _chosen:
            path = _chosen["page"].absolute()
            with atomic_write(path) as chosen:
                chosen.write(page)
        else:
            with tempfile.NamedTemporaryFile("wb", suffix=".html", delete=False) as file:
                file.write(page)
            path = Path(file.name)
        webbrowser.open(path.as_uri())
        return
    axes = plot_to_show[0] if isinstance(plot_to_show, list | tuple) and plot_to_show else plot_to_show
    if not hasattr(axes, "get_figure"):
        raise ValueError(f"plot_to_show must be axes or a page, got {type(plot_to_show).__name__}")
    from matplotlib import pyplot as plt

    plt.show()


# Where show writes the next pages, if a program has chosen a file.
_chosen: dict[str, Path] = {}


def output_file(filename: str | Path | None, title: str | None = None, mode: Any = None, root_dir: Any = None) -> None:
    """Choose the file in which :func:`show` writes pages from now on; None chooses a temporary file.

    ``title``, ``mode`` and ``root_dir`` are Bokeh's and have no effect: a page is one file with its own title.
    """
    _chosen.clear()
    if filename is not None:
        _chosen["page"] = Path(filename)


def output_notebook(*_: Any, **__: Any) -> None:
    """Do nothing: pages and figures need no preparation in a notebook. umap-learn's programs call it."""


def nearest_neighbour_distribution(umap_object: Any, bins: int = 25, ax: Axes | None = None) -> Axes:
    """Draw a histogram of the mean weight of each row's edges, as umap-learn does.

    Parameters
    ----------
    umap_object : fitted model
        A model with ``graph_``. Rows without edges are left out.
    bins : int, default 25
        Number of bars.
    ax : matplotlib axes, optional
        Axes to draw on; by default those of a new figure.
    """
    from matplotlib import pyplot as plt

    graph = getattr(umap_object, "graph_", None)
    if graph is None:
        raise ValueError("umap_object must be a fitted model with graph_")
    check_structure(graph, "graph_")
    edges = graph.tocsr()
    count = np.diff(edges.indptr)
    total = np.asarray(edges.sum(axis=1), dtype=np.float64).reshape(-1)
    ax = plt.subplots(layout="constrained")[1] if ax is None else ax
    ax.hist(total[count > 0] / count[count > 0], bins=bins)
    ax.set_xlabel("mean weight of a row's edges")
    ax.set_ylabel("rows")
    return ax
