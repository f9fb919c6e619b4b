"""Write maps to one offline HTML file that contains page, script and data."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vicinal.files.atomic import StagedFiles
from vicinal.plot.annotations import coordinates
from vicinal.plot.points import aligned, map_names
from vicinal.viewer.bundle import bundled_text
from vicinal.viewer.new_rows import RowsKept
from vicinal.viewer.packing import Packed, neighbors_of, pack, row_columns
from vicinal.viewer.relayout import size_line, with_layout


def export(
    path: str | Path,
    embedding: Any,
    labels: Any = None,
    *,
    values: Any = None,
    hover: Any = None,
    images: Any = None,
    ids: Sequence[Any] | None = None,
    title: str | None = None,
    label: str = "",
    theme: str = "auto",
    color_by: str | None = None,
    clusters: bool = True,
    neighbors: Any = False,
    interactive: bool | int = False,
    rows: RowsKept | None = None,
) -> Path:
    """Write an interactive page of a map: zoom, hover, search, color by any column, select, export.

    The file is self-contained: it opens from any location, without a network.

    Parameters
    ----------
    path : path
        File to write.
    embedding : fitted model or array [rows, 2] or [rows, 3]
        The map.
    labels : array-like, data frame or mapping, optional
        Classes, one per row: one column, or several with their names. None, NaN, and -1 among whole numbers mean
        unlabeled. Numbers with fractions, or with more than 64 distinct values, are treated as ``values``.
    values : array-like, data frame or mapping, optional
        Numbers, one per row: one column, or several with their names. Numbers that are not finite are missing.
    hover : data frame, mapping or sequence of str, optional
        Columns to show for the point under the pointer. Numbers and texts that repeat can also color the points.
    images : array [rows, height, width] or [rows, height, width, channels], optional
        Small pictures to show for the point under the pointer.
    ids : sequence, optional
        Ids of the rows in selections; by default the row numbers.
    title : str, optional
        Title of the page; by default the file name without its suffix.
    label : str, optional
        Name of the labels, or of the values if there are no labels.
    theme : {"auto", "light", "dark"}
        Colors of the page; "auto" follows the browser.
    color_by : str, optional
        Name of the column that colors the points at first; by default the first of ``labels`` or ``values``.
    clusters : bool, default=True
        Whether to name areas of a map without labels by the words, categories or numbers that set them apart.
    neighbors : bool, int or array [rows, k], default=False
        Whether the page can draw the nearest rows in the data of a point: those that a fitted model keeps (True: 8), or
        a table of row numbers. A neighbor takes 1 to 4 bytes per row; a table above 16 MiB keeps fewer neighbors.
    interactive : bool or int, default=False
        Whether the page of a fitted model can lay out selected rows or the whole map again, with other parameters, by
        the compiled core. The neighbors of the rows travel with it, about 5 bytes each: those of the fit (True: at most
        30), or this number. The size is printed before the file is written.
    rows : {"float16"}, int or None, default=None
        How the rows of the model travel with an interactive page, so that readers can place new rows: their values, or
        this many principal components. By default they do not travel.
    """
    path = Path(path)
    if rows is not None and interactive is False:
        raise ValueError(f"rows={rows!r} is for new rows, which only an interactive page places: add interactive=True")
    columns = row_columns(labels, values, hover, ids, label)
    name = path.stem if title is None else title
    shown: dict[str, Any] = {"theme": theme, "color_by": color_by, "clusters": clusters}
    near = neighbor_table(embedding, neighbors)
    packed = pack(embedding, columns, images=images, title=name, neighbors=near, **shown)
    if interactive is not False:
        packed = with_layout(packed, embedding, interactive, rows)
        print(size_line(packed))
    return write_page(path, packed)


def neighbor_table(embedding: Any, neighbors: Any) -> Any:
    """Return the table of neighbors that an argument asks for: of a fitted model, or the given one; None for none."""
    if neighbors is None or neighbors is False:
        return None
    if neighbors is True:
        return neighbors_of(embedding)
    if isinstance(neighbors, int):
        if neighbors < 1:
            raise ValueError(f"neighbors must be at least 1, got {neighbors}")
        return neighbors_of(embedding, neighbors)
    return neighbors


def compare(
    path: str | Path,
    maps: Mapping[str, Any] | Sequence[Any],
    labels: Any = None,
    *,
    align: bool = True,
    title: str | None = None,
    **described: Any,
) -> Path:
    """Write an interactive page of several maps of the same rows, side by side, with linked selection.

    Parameters
    ----------
    path : path
        File to write.
    maps : mapping or sequence
        Fitted models or arrays of the same rows; the keys of a mapping are the titles.
    labels : array-like, data frame or mapping, optional
        Classes, as in :func:`export`.
    align : bool, default=True
        Whether to translate, rotate, reflect and scale each map to match the first, so that differences are real.
    title : str, optional
        Title of the page; by default the file name without its suffix.
    **described
        Further arguments of :func:`export`: values, hover, images, ids, label, theme, color_by, neighbors. The
        neighbors are those of the first map.
    """
    path = Path(path)
    placed = comparable_maps(map_names(maps), align=align)
    rows = {name: described.pop(name) for name in ("values", "hover", "ids", "label") if name in described}
    first = next(iter(map_names(maps).values()))
    described["neighbors"] = neighbor_table(first, described.pop("neighbors", False))
    packed = pack(placed, row_columns(labels, **rows), title=path.stem if title is None else title, **described)
    return write_page(path, packed)


def comparable_maps(maps: Mapping[str, Any], *, align: bool) -> dict[str, Any]:
    """Return the coordinates of at least two maps, each moved to match the first if ``align`` is true."""
    if len(maps) < 2:
        raise ValueError(f"maps must contain at least two maps, got {len(maps)}")
    placed = {name: coordinates(one, 3) for name, one in maps.items()}
    first = next(iter(placed.values()))
    return {name: aligned(xy, first) if align and xy.shape == first.shape else xy for name, xy in placed.items()}


def write_page(path: Path, packed: Packed) -> Path:
    """Write the page of a packed map, completely or not at all."""
    with StagedFiles() as staged:
        staged.path_for(path).write_text(page(packed), encoding="utf-8")
    return path


# The element of the page that counts its points; the columns of the file are described below it.
COUNT = '<p id="count" aria-live="polite"></p>'


def _about(text: str) -> str:
    """Return what the columns of the file are used for, folded, as HTML."""
    return f"<details><summary>Columns</summary><small>{html.escape(text)}</small></details>" if text else ""


def page(packed: Packed) -> str:
    """Return the HTML of a packed map."""
    bundle = "interactive" if "layout" in packed.meta else "page"
    differs = "diff" in packed.meta
    parts = {
        "title": html.escape(str(packed.meta["title"])),
        "style": bundled_text(f"{bundle}.css") + (bundled_text("diff.css") if differs else ""),
        "body": bundled_text("body.html").replace(COUNT, COUNT + _about(packed.meta.get("about") or "")),
        "data": packed.html(),
        "extension": f"<script>{_script('diff.js')}</script>\n" if differs else "",
        "script": _script(f"{bundle}.js"),
    }
    # a single pass, so that text inserted for one field is not taken for another field
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], bundled_text("page.html"))


def _script(name: str) -> str:
    """Return a script of the page as the content of an element."""
    # only these two sequences could end a script element or start a comment in it
    return re.sub(r"<(?=/script|!--)", r"\\x3c", bundled_text(name))
