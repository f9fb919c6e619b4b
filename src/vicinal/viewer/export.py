"""Write a map to one offline HTML file that contains page, script and data."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from vicinal.files.atomic import StagedFiles
from vicinal.viewer.packing import Columns, Packed, pack


def export(
    path: str | Path,
    embedding: Any,
    labels: ArrayLike | None = None,
    *,
    values: ArrayLike | None = None,
    hover: Any = None,
    images: ArrayLike | None = None,
    ids: Sequence[Any] | None = None,
    title: str | None = None,
    label: str = "",
    theme: str = "auto",
) -> Path:
    """Write an interactive page of a map: zoom, hover, search, filter by class, lasso selection, export of ids.

    The file is self-contained: it opens from any location, without a network.

    Parameters
    ----------
    path : path
        File to write.
    embedding : fitted model or array [rows, 2]
        The map.
    labels : array-like, optional
        Classes, one per row; floats with fractions are treated as ``values``.
    values : array-like, optional
        Continuous values, one per row; not together with ``labels``.
    hover : data frame, mapping or sequence of str, optional
        Columns to show for the point under the pointer.
    images : array [rows, height, width] or [rows, height, width, channels], optional
        Small pictures to show for the point under the pointer.
    ids : sequence, optional
        Ids of the rows in selections; by default the row numbers.
    title : str, optional
        Title of the page; by default the file name without its suffix.
    label : str, optional
        Name of the labels, for the legend.
    theme : {"auto", "light", "dark"}
        Colours of the page; "auto" follows the browser.
    """
    path = Path(path)
    columns = Columns(labels, values, hover, images, ids)
    packed = pack(embedding, columns, title=path.stem if title is None else title, label=label, theme=theme)
    with StagedFiles() as staged:
        staged.path_for(path).write_text(page(packed), encoding="utf-8")
    return path


def page(packed: Packed) -> str:
    """Return the HTML of a packed map."""
    static = resources.files("vicinal.viewer") / "static"
    parts = {
        "title": html.escape(str(packed.meta["title"])),
        "style": (static / "page.css").read_text(encoding="utf-8"),
        "data": packed.html(),
        # only these two sequences could end a script element or start a comment in it
        "script": re.sub(r"<(?=/script|!--)", r"\\x3c", (static / "page.js").read_text(encoding="utf-8")),
    }
    template = (static / "page.html").read_text(encoding="utf-8")
    # a single pass, so that text inserted for one field is not taken for another field
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template)
