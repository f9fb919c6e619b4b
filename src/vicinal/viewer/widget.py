"""The widget of a map in a notebook, whose selection is shared with Python; needs anywidget."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

import anywidget
import traitlets

from vicinal.viewer.bundle import bundled_text
from vicinal.viewer.export import page
from vicinal.viewer.notebook import OfflinePage
from vicinal.viewer.packing import Packed

# Larger pages are not stored in the notebook, for viewers without a kernel.
MOST_STORED = 30 * 2**20
VIEW = "application/vnd.jupyter.widget-view+json"


class MapWidget(anywidget.AnyWidget):
    """A map in a notebook.

    The data are not part of the widget's state, which a notebook may store: the page asks for them. So a saved notebook
    holds them once, in the stored page.

    Attributes
    ----------
    selection : list
        Ids of the selected rows, in the order of the data; may be set.
    color_by : str or None
        The column that colors the points; may be set.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _meta = traitlets.Unicode().tag(sync=True)
    _selected = traitlets.List(traitlets.Int()).tag(sync=True)
    _zoom = traitlets.Dict().tag(sync=True)
    color_by = traitlets.Unicode(allow_none=True, default_value=None).tag(sync=True)
    height = traitlets.Int(640).tag(sync=True)

    @classmethod
    def of(cls, packed: Packed, ids: list[Any], height: int, picture: Callable[[], bytes]) -> MapWidget:
        """Create the widget of a packed map; ``picture`` draws a still picture of it."""
        widget = cls(
            _esm=bundled_text("widget.js"),
            _meta=json.dumps(packed.meta, allow_nan=False),
            color_by=packed.meta["color"],
            height=height,
        )
        widget._packed, widget._ids, widget._picture = packed, ids, picture
        widget._rows_of = {}
        widget.on_msg(widget._answer)
        return widget

    def _answer(self, _: Any, asked: Any, buffers: Any) -> None:
        """Send the data to a page that asks for them."""
        if isinstance(asked, dict) and asked.get("type") == "data":
            names = list(self._packed.sections)
            self.send({"type": "data", "names": names}, [self._packed.sections[name] for name in names])

    _packed: Packed
    _picture: Callable[[], bytes]
    _ids: list[Any]
    _rows_of: dict[Any, int]

    @traitlets.validate("color_by")
    def _known_column(self, proposal: Any) -> Any:
        name = proposal["value"]
        columns = json.loads(self._meta)["columns"] if self._meta else []
        able = [one["name"] for one in columns if one["kind"] != "texts"]
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
        """Add the page and a picture, for viewers that show saved notebooks without a kernel.

        A program that executes a notebook for others, such as nbconvert, gets no widget: nobody would answer it later.
        """
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        if data is None:
            return data, metadata
        text = page(self._packed)
        stored = OfflinePage(text if len(text) <= MOST_STORED else "", self.height, self._picture())
        data = {**data, "text/html": stored._repr_html_()}
        if (png := stored._repr_png_()) is not None:
            data["image/png"] = base64.b64encode(png).decode("ascii")
        if _nobody_watches():
            data.pop(VIEW, None)
        return data, metadata


def _nobody_watches() -> bool:
    """Return whether the notebook is executed by a program: then nobody can answer a question of the kernel."""
    ipython = sys.modules.get("IPython")
    kernel = None if ipython is None else getattr(ipython.get_ipython(), "kernel", None)
    return kernel is not None and not getattr(kernel, "_allow_stdin", True)
