"""The rows that travel with a page, so that new rows can be placed there: as they are in float16, or as components.

Rows are divided by a power of two that brings them into the range of float16, or projected onto their principal axes
first. New rows are stored in the same way before they are compared, so that a row of the fit finds itself. The decoder
is web/src/placing.ts.
"""

from __future__ import annotations

import math
import zlib
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.files.preparation import STEPS_ATTRIBUTE
from vicinal.neighbors.training_data import TrainingRows
from vicinal.pipeline.fitted import FittedMap

# What a page keeps of the rows: their values in float16, or this many principal components.
RowsKept = Literal["float16"] | int
# Metrics of the compiled core of the page.
METRICS = ("euclidean", "manhattan", "chebyshev", "cosine", "correlation")
# Largest number of float16 that is a power of two.
LARGEST_EXPONENT = 15


def pack_rows(model: Any, fitted: FittedMap, method: str, kept: RowsKept) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the description and the sections of the rows of a fit."""
    rows, metric = _rows_of(model, fitted, method)
    described: dict[str, Any] = {"columns": rows.shape[1], "metric": metric, "names": _names(model, rows.shape[1])}
    sections: dict[str, bytes] = {}
    if kept != "float16":
        if isinstance(kept, bool) or not isinstance(kept, int) or not 1 <= kept <= min(rows.shape):
            raise ValueError(f"rows must be 'float16' or a number of components up to {min(rows.shape)}, got {kept!r}")
        if metric != "euclidean":
            raise ValueError(f"rows as principal components require the euclidean metric, got {metric!r}")
        mean, axes = cpu.principal_axes(rows, kept)
        axes = axes / np.linalg.norm(axes, axis=0).clip(min=np.finfo(np.float64).tiny)
        mean, axes = mean.astype("<f4"), axes.astype("<f4")
        sections |= {"mean": zlib.compress(mean.tobytes()), "axes": zlib.compress(axes.tobytes())}
        rows = (rows.astype(np.float64) - mean) @ axes
    largest = float(np.abs(rows).max(initial=0.0))
    scale = 2.0 ** (math.floor(math.log2(largest)) - LARGEST_EXPONENT + 1) if largest > 0 else 1.0
    stored = np.asarray(rows / scale, dtype="<f2")
    described |= {"kept": rows.shape[1], "scale": scale, "components": kept != "float16"}
    return described, sections | {"rows": zlib.compress(stored.tobytes())}


def _rows_of(model: Any, fitted: FittedMap, method: str) -> tuple[NDArray[np.floating[Any]], str]:
    """Return the rows of a fit and their metric, or refuse a fit whose new rows a page cannot place."""
    data = fitted.data
    if method not in ("UMAP", "LargeVis"):
        raise ValueError(f"rows can travel with UMAP and LargeVis: a page places no new rows by {method}")
    if not isinstance(data, TrainingRows) or not isinstance(data.rows, np.ndarray):
        raise ValueError("rows can travel if they are a dense matrix: not sparse ones, and not distances")
    if not isinstance(data.metric, str) or data.metric not in METRICS or data.metric_kwds:
        raise ValueError(f"rows can travel with the metrics {', '.join(METRICS)}, got {data.metric!r}")
    if getattr(model, STEPS_ATTRIBUTE, None):
        raise ValueError("rows cannot travel: the model prepares its rows, which a page does not")
    rows = data.rows.astype(np.float32, copy=False)
    if not np.isfinite(rows).all():
        raise ValueError("rows can travel if they have no missing values")
    return rows, data.metric


def _names(model: Any, n: int) -> list[str] | None:
    """Return the names of the columns, by which a page finds the columns of a file."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None or len(names) != n else [str(name) for name in names]
