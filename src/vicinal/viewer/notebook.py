"""Fitted models in a notebook: a widget whose selection is shared with Python, or the page stored in the notebook."""

from __future__ import annotations

import base64
import functools
import html
import importlib.util
from typing import Any

from sklearn.exceptions import NotFittedError

from vicinal.viewer.export import neighbor_table, page
from vicinal.viewer.packing import pack, row_columns
from vicinal.viewer.pictures import still

HEIGHT = 640
# Pixels of the height for the note above the picture, and for the frame's own note below it.
BESIDE_PICTURE = 120
NOTE = (
    "This is a picture of the map. To explore it, trust the notebook (<code>jupyter trust NOTEBOOK.ipynb</code>, or "
    "<i>Trust Notebook</i> in the command palette) and run this cell again."
)


class OfflinePage:
    """A map whose whole page is stored in the notebook: needs no server, but selections stay on the page.

    Viewers that run no scripts of a notebook (one that is not trusted, GitHub) show a picture of the map instead.
    ``text`` is the page, or nothing if it is too large to be stored.
    """

    def __init__(self, text: str, height: int, picture: bytes) -> None:
        self._text, self._height, self._picture = text, height, picture

    def _repr_html_(self) -> str:
        # the page in the frame covers note and picture; where frames are removed or run no scripts, these are seen
        cover = "position:absolute;inset:0;box-sizing:border-box;border:1px solid #8884;border-radius:8px"
        stored = html.escape(self._text)
        frame = f'<iframe srcdoc="{stored}" width="100%" height="{self._height}" style="{cover}"></iframe>'
        picture = base64.b64encode(self._picture).decode("ascii")
        high = max(self._height - BESIDE_PICTURE, self._height // 2)
        # notebooks have style sheets that override the attribute, and viewers that remove styles
        fit = f"height:{high}px;width:auto;max-width:100%;object-fit:contain;object-position:left top"
        still = f'<img src="data:image/png;base64,{picture}" alt="A picture of the map" height="{high}" style="{fit}">'
        return (
            f'<div style="position:relative;height:{self._height + 2}px;overflow:hidden">'
            f'<p style="margin:12px">{NOTE}</p>'
            f"{still if picture else ''}{frame if stored else ''}</div>"
        )

    def _repr_png_(self) -> bytes | None:
        return self._picture or None


class Explorer(OfflinePage):
    """A map shown in a notebook by a local server; ``selection`` has the ids of the selected rows in data order."""

    def __init__(self, server: Any, ids: list[Any], stored: OfflinePage) -> None:
        super().__init__(stored._text, stored._height, stored._picture)
        self._server, self._ids = server, ids

    @property
    def address(self) -> str:
        """The address of the page, which also opens in a browser on the same machine."""
        return str(self._server.address)

    @property
    def selection(self) -> list[Any]:
        # rows that were placed on the page have no ids
        return [self._ids[row] for row in sorted(self._server.session.selection) if row < len(self._ids)]

    def close(self) -> None:
        """Stop the server of the page."""
        self._server.close()

    def _repr_html_(self) -> str:
        """Return a frame with the served page; when the server is gone, it shows the page stored in the notebook."""
        # the address of the server is tried first; a saved notebook that is opened later falls back to its own copy
        load = (
            "const frame = this.previousElementSibling.querySelector('iframe'); "
            "fetch(this.dataset.address, {mode: 'no-cors'})"
            ".then(() => { frame.removeAttribute('srcdoc'); frame.src = this.dataset.address; }).catch(() => {})"
        )
        pixel = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
        return (
            f'<div>{super()._repr_html_()}<img src="{pixel}" alt="" hidden data-address="{self.address}" '
            f'onload="{html.escape(load)}"></div>'
        )


def explore(
    model: Any,
    labels: Any = None,
    *,
    values: Any = None,
    hover: Any = None,
    images: Any = None,
    ids: Any = None,
    title: str | None = None,
    label: str = "",
    color_by: str | None = None,
    height: int = HEIGHT,
    live: bool = True,
    neighbors: Any = False,
) -> Any:
    """Show the interactive page of a fitted model in a notebook.

    Parameters
    ----------
    model : fitted model
        A model whose ``embedding_`` has 2 or 3 dimensions.
    labels, values, hover, images, ids, label, color_by
        Data of the rows, as in :func:`vicinal.viewer.export`.
    title : str, optional
        Title of the page; by default the class name of the model.
    height : int, default=640
        Height of the page in pixels.
    live : bool, default=True
        Whether selections are available in Python. False stores the page in the notebook, where it needs no kernel.
    neighbors : bool, int or array [rows, k], default=False
        Whether the page can draw the nearest rows in the data of a point, as in :func:`vicinal.viewer.export`.

    Returns
    -------
    MapWidget, Explorer or OfflinePage
        An object that the notebook displays. With the extra ``notebook`` it is a widget, which works wherever the
        kernel runs; without it, the page is served from the machine that runs Python. ``selection`` has the ids of the
        selected rows.
    """
    if not hasattr(model, "embedding_"):
        raise NotFittedError(f"this {type(model).__name__} is not fitted: call fit before explore")
    columns = row_columns(labels, values, hover, ids, label)
    name = type(model).__name__ if title is None else title
    near = neighbor_table(model, neighbors)
    packed = pack(model, columns, images=images, title=name, color_by=color_by, neighbors=near)
    rows = list(range(len(model.embedding_))) if ids is None else list(ids)
    picture = functools.partial(still, model, columns, packed.meta["clusters"])
    if live and importlib.util.find_spec("anywidget") is not None:
        from vicinal.viewer.widget import MapWidget

        return MapWidget.of(packed, rows, height, picture)
    stored = OfflinePage(page(packed), height, picture())
    if not live:
        return stored
    from vicinal.viewer.server import LiveServer
    from vicinal.viewer.session import Session

    session = Session.of(model, columns=columns, images=images, title=name)
    return Explorer(LiveServer(session).start(), rows, stored)
