"""Fitted models in a notebook: a widget whose selection is shared with Python, or the page stored in the notebook."""

from __future__ import annotations

import html
import importlib.util
from typing import Any

from sklearn.exceptions import NotFittedError

from vicinal.viewer.export import page
from vicinal.viewer.packing import pack, row_columns

HEIGHT = 640


class OfflinePage:
    """A map whose whole page is stored in the notebook: needs no server, but selections stay on the page."""

    def __init__(self, text: str, height: int) -> None:
        self._text, self._height = text, height

    def _repr_html_(self) -> str:
        style = "border:1px solid #8884;border-radius:8px"
        stored = html.escape(self._text)
        return f'<iframe srcdoc="{stored}" width="100%" height="{self._height}" style="{style}"></iframe>'


class Explorer(OfflinePage):
    """A map shown in a notebook by a local server; ``selection`` has the ids of the selected rows in data order."""

    def __init__(self, server: Any, ids: list[Any], height: int, stored: str) -> None:
        super().__init__(stored, height)
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
            "const frame = this.previousElementSibling; "
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
    packed = pack(model, columns, images=images, title=name, color_by=color_by)
    rows = list(range(len(model.embedding_))) if ids is None else list(ids)
    if not live:
        return OfflinePage(page(packed), height)
    if importlib.util.find_spec("anywidget") is not None:
        from vicinal.viewer.widget import MapWidget

        return MapWidget.of(packed, rows, height)
    from vicinal.viewer.server import LiveServer
    from vicinal.viewer.session import Session

    session = Session.of(model, columns=columns, images=images, title=name)
    return Explorer(LiveServer(session).start(), rows, height, page(packed))
