"""Fitted models in a notebook: the interactive page inline, whose selection is available in Python."""

from __future__ import annotations

import html
from typing import Any

from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from vicinal.viewer.export import page
from vicinal.viewer.packing import Columns, pack


class Explorer:
    """A map shown in a notebook by a local server; ``selection`` has the ids of the selected rows in data order."""

    def __init__(self, server: Any, ids: list[Any], height: int) -> None:
        self._server, self._ids, self._height = server, ids, height

    @property
    def address(self) -> str:
        """The address of the page, which also opens in a browser on the same machine."""
        return str(self._server.address)

    @property
    def selection(self) -> list[Any]:
        return [self._ids[row] for row in sorted(self._server.session.selection)]

    def close(self) -> None:
        """Stop the server of the page."""
        self._server.close()

    def _repr_html_(self) -> str:
        return _frame(f'src="{self.address}"', self._height)


class OfflinePage:
    """A map whose whole page is stored in the notebook: needs no server, but selections stay on the page."""

    def __init__(self, text: str, height: int) -> None:
        self._text, self._height = text, height

    def _repr_html_(self) -> str:
        return _frame(f'srcdoc="{html.escape(self._text)}"', self._height)


def explore(
    model: Any,
    labels: ArrayLike | None = None,
    *,
    values: ArrayLike | None = None,
    hover: Any = None,
    images: ArrayLike | None = None,
    ids: Any = None,
    title: str | None = None,
    height: int = 640,
    live: bool = True,
) -> Explorer | OfflinePage:
    """Show the interactive page of a fitted model in a notebook.

    Parameters
    ----------
    model : fitted model
        A model with a 2-dimensional ``embedding_``.
    labels, values, hover, images, ids
        Data of the rows, as in :func:`vicinal.viewer.export`.
    title : str, optional
        Title of the page; by default the class name of the model.
    height : int, default=640
        Height of the page in pixels.
    live : bool, default=True
        Whether to serve the page from the machine that runs Python, on its loopback address, so that selections are
        available in Python. If the browser is on another machine, use False: the page is then stored in the notebook.

    Returns
    -------
    Explorer or OfflinePage
        An object that the notebook displays; ``Explorer.selection`` has the ids of the selected rows.
    """
    if not hasattr(model, "embedding_"):
        raise NotFittedError(f"this {type(model).__name__} is not fitted: call fit before explore")
    columns = Columns(labels, values, hover, images, ids)
    name = type(model).__name__ if title is None else title
    if not live:
        return OfflinePage(page(pack(model, columns, title=name)), height)
    from vicinal.viewer.server import LiveServer
    from vicinal.viewer.session import Session

    session = Session.of(model, columns=columns, title=name)
    rows = len(model.embedding_)
    return Explorer(LiveServer(session).start(), list(range(rows)) if ids is None else list(ids), height)


def _frame(content: str, height: int) -> str:
    style = "border:1px solid #8884;border-radius:8px"
    return f'<iframe {content} width="100%" height="{height}" style="{style}"></iframe>'
