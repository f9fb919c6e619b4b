"""Fitted models in a notebook: a widget whose selection is shared with Python, or the page stored in the notebook."""

from __future__ import annotations

import html
import importlib.util
import json
from collections.abc import Iterable
from typing import Any

import anywidget
import traitlets
from sklearn.exceptions import NotFittedError

from vicinal.viewer.export import page, static_text
from vicinal.viewer.packing import Packed, pack, row_columns

# Larger pages are not stored in the notebook a second time, for viewers without a kernel.
MOST_STORED = 30 * 2**20


class MapWidget(anywidget.AnyWidget):
    """A map in a notebook.

    Attributes
    ----------
    selection : list
        Ids of the selected rows, in the order of the data; may be set.
    color_by : str or None
        The column that colors the points; may be set.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _meta = traitlets.Unicode().tag(sync=True)
    _sections = traitlets.Dict().tag(sync=True)
    _selected = traitlets.List(traitlets.Int()).tag(sync=True)
    _zoom = traitlets.Dict().tag(sync=True)
    color_by = traitlets.Unicode(allow_none=True, default_value=None).tag(sync=True)
    height = traitlets.Int(640).tag(sync=True)

    @classmethod
    def of(cls, packed: Packed, ids: list[Any], height: int) -> MapWidget:
        """Create the widget of a packed map."""
        widget = cls(
            _esm=static_text("widget.js"),
            _meta=json.dumps(packed.meta, allow_nan=False),
            _sections=packed.sections,
            color_by=packed.meta["color"],
            height=height,
        )
        widget._packed, widget._ids = packed, ids
        widget._rows_of = {}
        return widget

    _packed: Packed
    _ids: list[Any]
    _rows_of: dict[Any, int]

    @traitlets.validate("color_by")
    def _known_column(self, proposal: Any) -> Any:
        name = proposal["value"]
        able = (
            [one["name"] for one in json.loads(self._meta)["columns"] if one["kind"] != "texts"] if self._meta else []
        )
        if name is not None and name not in able:
            raise ValueError(f"color_by must be one of {', '.join(able) or 'no column'}, got {name!r}")
        return name

    @property
    def selection(self) -> list[Any]:
        return [self._ids[row] for row in self._selected]

    @selection.setter
    def selection(self, ids: Iterable[Any]) -> None:
        self._selected = sorted(self._rows(ids))

    def zoom_to(self, ids: Iterable[Any] | None = None) -> None:
        """Move the view to rows, given by their ids; without ids it shows everything."""
        # a number that changes each time, so that the same rows can be asked for again
        turn = int(self._zoom.get("turn", 0)) + 1
        self._zoom = {"rows": [] if ids is None else self._rows(ids), "turn": turn}

    def link(self, other: MapWidget) -> Any:
        """Keep the selections of two widgets of the same rows equal; ``unlink()`` of the result ends it."""
        if len(other._ids) != len(self._ids):
            raise ValueError(f"linked maps must have the same rows, got {len(self._ids)} and {len(other._ids)}")
        return traitlets.link((self, "_selected"), (other, "_selected"))

    def _rows(self, ids: Iterable[Any]) -> list[int]:
        if not self._rows_of:
            self._rows_of.update({one: row for row, one in enumerate(self._ids)})
        rows = []
        for one in ids:
            if one not in self._rows_of:
                raise ValueError(f"there is no row with the id {one!r}")
            rows.append(self._rows_of[one])
        return rows

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Add the whole page as HTML, for viewers that show saved notebooks without a kernel."""
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        text = page(self._packed)
        if data is not None and len(text) <= MOST_STORED:
            data = {**data, "text/html": OfflinePage(text, self.height)._repr_html_()}
        return data, metadata


HEIGHT = 640


class Explorer:
    """A map shown in a notebook by a local server; ``selection`` has the ids of the selected rows in data order."""

    def __init__(self, server: Any, ids: list[Any], height: int, stored: str) -> None:
        self._server, self._ids, self._height, self._stored = server, ids, height, stored

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
        """Return a frame with the served page; when the server is gone, it shows the page stored in the notebook."""
        # the address of the server is tried first; a saved notebook that is opened later falls back to its own copy
        load = (
            "const frame = this.previousElementSibling; "
            "fetch(this.dataset.address, {mode: 'no-cors'})"
            ".then(() => { frame.removeAttribute('srcdoc'); frame.src = this.dataset.address; }).catch(() => {})"
        )
        stored = _frame(f'srcdoc="{html.escape(self._stored)}"', self._height)
        pixel = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
        return (
            f'<div>{stored}<img src="{pixel}" alt="" hidden data-address="{self.address}" '
            f'onload="{html.escape(load)}"></div>'
        )


class OfflinePage:
    """A map whose whole page is stored in the notebook: needs no server, but selections stay on the page."""

    def __init__(self, text: str, height: int) -> None:
        self._text, self._height = text, height

    def _repr_html_(self) -> str:
        return _frame(f'srcdoc="{html.escape(self._text)}"', self._height)


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
        return MapWidget.of(packed, rows, height)
    from vicinal.viewer.server import LiveServer
    from vicinal.viewer.session import Session

    session = Session.of(model, columns=columns, images=images, title=name)
    return Explorer(LiveServer(session).start(), rows, height, page(packed))


def _frame(content: str, height: int) -> str:
    style = "border:1px solid #8884;border-radius:8px"
    return f'<iframe {content} width="100%" height="{height}" style="{style}"></iframe>'
