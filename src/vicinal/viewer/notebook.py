"""Models in a notebook: a summary with a small picture, and the page inline, whose selection comes back."""

from __future__ import annotations

import html
import inspect
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.plot.annotations import coordinates
from vicinal.plot.palette import OKABE_ITO
from vicinal.viewer.export import page
from vicinal.viewer.packing import Columns, pack

# A summary is shown without being asked for: what it draws and measures has to cost next to nothing.
DRAWN = 1500
MEASURED = 100
# Numbers in the data: 100 rows against 70,000 of 784 take about a quarter of a second.
MEASURED_VALUES = 2**26
PICTURE = 220

STYLE = """<style>
.vicinal{display:flex;gap:24px;align-items:flex-start;font:13px/1.5 system-ui,sans-serif}
.vicinal h4{margin:0 0 4px;font-size:14px}.vicinal small{opacity:.65}
.vicinal table{border-collapse:collapse;margin:6px 0 0}
.vicinal td{padding:1px 14px 1px 0!important;text-align:left!important;border:0!important;background:none!important}
.vicinal i{display:inline-block;height:7px;background:#0072b2;border-radius:2px;margin-right:6px}
</style>"""


def summary(model: Any) -> str:
    """HTML of a model: parameters that are not at their defaults, stages with times, quality, a small picture."""
    name = html.escape(type(model).__name__)
    if not hasattr(model, "embedding_"):
        return f"<code>{html.escape(repr(model))}</code> <small>(not fitted)</small>"
    embedding = np.asarray(model.embedding_)
    parts = [f"<h4>{name}</h4><small>{len(embedding):,} rows in {embedding.shape[1]} dimensions</small>"]
    parts.append(_table(_changed(model)))
    times = dict(getattr(model, "stage_times_", {}))
    longest = max(times.values(), default=0.0) or 1.0
    bars = {stage: f'<i style="width:{60 * t / longest:.0f}px"></i>{t:.2f} s' for stage, t in times.items()}
    parts.append(_table(bars, escaped=False))
    parts.append(_table(_measured(model, embedding)))
    if hasattr(model, "radius_correlation_"):
        parts.append(_table({"radius correlation": f"{model.radius_correlation_:.3f}"}))
    picture = _picture(coordinates(embedding)) if embedding.shape[1] == 2 else ""
    return f'{STYLE}<div class="vicinal">{picture}<div>{"".join(parts)}</div></div>'


class Explorer:
    """A map shown in a notebook. `selection` holds the ids of the rows selected last, in the order of the data."""

    def __init__(self, server: Any, ids: list[Any], height: int) -> None:
        self._server, self._ids, self._height = server, ids, height

    @property
    def selection(self) -> list[Any]:
        return [self._ids[row] for row in sorted(self._server.session.selection)]

    def close(self) -> None:
        """End the server behind the page."""
        self._server.close()

    def _repr_html_(self) -> str:
        frame = f'<iframe src="{self._server.address}" width="100%" height="{self._height}"'
        return f'{frame} style="border:1px solid #8884;border-radius:8px"></iframe>'


class Embedded:
    """The offline page inside a notebook: it also works where the notebook's machine cannot be reached."""

    def __init__(self, text: str, height: int) -> None:
        self._text, self._height = text, height

    def _repr_html_(self) -> str:
        frame = f'<iframe srcdoc="{html.escape(self._text)}" width="100%" height="{self._height}"'
        return f'{frame} style="border:1px solid #8884;border-radius:8px"></iframe>'


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
) -> Explorer | Embedded:
    """Show the page of a fitted model inline; what is selected there is `.selection` of what this returns.

    A server on the loopback address of the machine that runs Python makes that possible. Where the browser is on
    another machine, `live=False` puts the whole page into the notebook instead.
    """
    columns = Columns(labels, values, hover, images, ids)
    name = type(model).__name__ if title is None else title
    if not live:
        return Embedded(page(pack(model, columns, title=name)), height)
    from vicinal.viewer.server import LiveServer
    from vicinal.viewer.session import Session

    session = Session.of(model, columns=columns, title=name)
    rows = len(model.embedding_)
    return Explorer(LiveServer(session).start(), list(range(rows)) if ids is None else list(ids), height)


def _changed(model: Any) -> dict[str, str]:
    """Parameters whose values differ from the constructor's defaults."""
    found = {}
    for name, parameter in inspect.signature(type(model)).parameters.items():
        value = getattr(model, name, parameter.default)
        if value is not parameter.default and repr(value) != repr(parameter.default):
            found[name] = f"array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)[:60]
    return found or {"parameters": "defaults"}


def _measured(model: Any, embedding: NDArray[Any]) -> dict[str, str]:
    """Quality on a sample of rows, if the model has kept data that are measured in no time."""
    data = getattr(model, "_raw_data", None)
    metric = getattr(model, "metric", "euclidean")
    if not isinstance(data, np.ndarray) or not isinstance(metric, str) or data.size > MEASURED_VALUES:
        return {}
    from vicinal import quality

    try:
        report = quality.report(data, embedding, metric=metric, sample=MEASURED)
    except ValueError:
        return {}
    return {name: f"{value:.3f}" for name, value in report.measures().items() if value is not None}


def _table(rows: dict[str, str], *, escaped: bool = True) -> str:
    cells = "".join(
        f"<tr><td><small>{html.escape(name)}</small></td><td>{html.escape(value) if escaped else value}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table>{cells}</table>" if rows else ""


def _picture(xy: NDArray[np.float64]) -> str:
    """A sample of the points as an SVG, which needs no drawing library."""
    step = max(1, len(xy) // DRAWN)
    low, high = xy.min(axis=0), xy.max(axis=0)
    scale = (PICTURE - 12) / (float((high - low).max()) or 1.0)
    shown = (xy[::step] - (low + high) / 2) * scale + PICTURE / 2
    radius = float(np.clip(60.0 / np.sqrt(len(shown)), 1.0, 4.0))
    dots = "".join(f'<circle cx="{x:.1f}" cy="{PICTURE - y:.1f}" r="{radius:.1f}"/>' for x, y in shown)
    size = f'width="{PICTURE}" height="{PICTURE}" viewBox="0 0 {PICTURE} {PICTURE}"'
    return f'<svg {size} role="img" aria-label="the map" fill="{OKABE_ITO[0]}" fill-opacity="0.55">{dots}</svg>'
