"""What a page carries so that it can lay out again: the compiled core, the neighbor table, and the fit's parameters.

The table holds the nearest rows of every row without the row itself, with their distances as float32: the page builds
the same graph as the fit, and a layout of it has the bits of the library. Row numbers are stored as those of
``neighbors`` in packing.py, a missing neighbor as the row itself. Of the distances of a row, which ascend, each is the
difference of its bits from those of the one before, and again the low bytes come first. Rows that equal an earlier row
are listed with it, since equal rows share one position. The decoder of this format is web/src/knn.ts.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import replace
from typing import Any

import numpy as np

from vicinal.graph.supervision import UNKNOWN_DISTANCE, far_distance
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.recipe import FuzzyAffinity, LargeVisPlan, SampledPlan
from vicinal.viewer.bundle import bundled
from vicinal.viewer.new_rows import RowsKept, pack_rows
from vicinal.viewer.packing import Packed, byte_planes, compressed, row_bytes

# Neighbors of a row that travel unless a number is asked for: t-SNE and LargeVis search three times their perplexity.
MOST_NEIGHBORS = 30
# Parameters that a layout needs and that fits of other methods lack.
DEFAULTS: dict[str, Any] = {
    "n_neighbors": 15,
    "min_dist": 0.1,
    "spread": 1.0,
    "n_epochs": None,
    "random_state": 0,
    "repulsion_strength": 1.0,
    "negative_sample_rate": 5,
    "local_connectivity": 1.0,
    "set_op_mix_ratio": 1.0,
}
# Factors of edges between two classes, and of those of unlabeled rows: an exponential in a browser may differ in its
# last bit.
SUPERVISION = {"far": math.exp(-far_distance(0.5)), "unknown": math.exp(-UNKNOWN_DISTANCE)}


def with_layout(packed: Packed, model: Any, neighbors: bool | int, rows: RowsKept | None = None) -> Packed:
    """Return the page of a fitted model with what a layout in the browser needs.

    ``neighbors`` is the number of neighbors of a row that travel, itself included; True keeps those of the fit, at most
    30 of them. ``rows`` says how the rows travel, so that new ones can be placed; None leaves them out.
    """
    fitted = _fitted(model)
    known = fitted.neighbors.k
    if neighbors is True:
        k = min(known, MOST_NEIGHBORS)
    elif 2 <= neighbors <= known:
        k = int(neighbors)
    else:
        raise ValueError(f"interactive must be from 2 to the {known} neighbors that the model keeps, got {neighbors}")
    n, table = fitted.data.n, fitted.neighbors.first(k)
    limit = fitted.recipe.affinity.limit(fitted.data.unrelated_distance)
    if limit < math.inf:
        table = table.within(limit)
    index = np.where(table.index < 0, np.arange(n)[:, None], table.index)[:, 1:]
    bits = np.ascontiguousarray(table.distance[:, 1:]).view(np.uint32)
    steps = np.diff(bits, axis=1, prepend=np.uint32(0))
    width = row_bytes(n)
    described = {"k": k, "bytes": width, "dimensions": fitted.recipe.n_components, **_parameters(model, fitted, k)}
    sections = {
        "table": compressed(byte_planes(index, width)),
        "distances": compressed(byte_planes(steps, 4)),
        "core": zlib.compress(bundled("core.wasm")),
        "worker": zlib.compress(bundled("core-worker.js")),
    }
    first = fitted.selection.position
    equal = np.flatnonzero(first != np.arange(n))
    if equal.size:
        sections["equal"] = compressed(np.stack([equal, first[equal]]).astype("<u4"))
    if rows is not None:
        described["rows"], kept = pack_rows(model, fitted, described["method"], rows)
        sections |= kept
    return replace(packed, meta=packed.meta | {"layout": described}, sections=packed.sections | sections)


def _fitted(model: Any) -> FittedMap:
    """Return the map of a model, or refuse a model whose page cannot lay out again."""
    fitted = getattr(model, "map_", None)
    if not isinstance(fitted, FittedMap) or fitted.embedding is None:
        raise ValueError(f"interactive requires a fitted model that keeps its neighbors, got a {type(model).__name__}")
    if fitted.laid_out is not None:
        raise ValueError("interactive requires a map whose rows were all laid out: without unique=True or weights of 0")
    if not fitted.recipe.plan.has_outside:
        raise ValueError("interactive requires a map in the euclidean plane or space")
    return fitted


def _parameters(model: Any, fitted: FittedMap, k: int) -> dict[str, Any]:
    """Return the parameters of a fit that the page shows and a layout needs, with UMAP's defaults if it had none."""
    recipe, found = fitted.recipe, {**DEFAULTS, "method": "UMAP"}
    given = model.get_params()
    found |= {name: float(given[name]) for name in ("min_dist", "spread") if name in given}
    if isinstance(recipe.affinity, FuzzyAffinity):
        found |= _named(recipe.affinity, "n_neighbors", "local_connectivity", "set_op_mix_ratio")
    else:
        # the page takes a third of the neighbors as perplexity
        found["n_neighbors"] = k
    if isinstance(recipe.plan, LargeVisPlan):
        found["method"] = "LargeVis"
    elif isinstance(recipe.plan, SampledPlan):
        found |= _named(recipe.plan, "repulsion_strength", "negative_sample_rate")
        found["n_epochs"] = None if recipe.plan.stops is None else recipe.plan.stops[-1]
    else:
        found["method"] = "TSNE"
    if recipe.density is not None and recipe.density.match:
        found["method"] = "DensMAP"
    found["n_neighbors"] = min(found["n_neighbors"], k)
    if isinstance(given.get("random_state"), int):
        found["random_state"] = given["random_state"]
    return found | {"supervision": SUPERVISION}


def _named(value: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def size_line(packed: Packed) -> str:
    """Return a line that says how large a page will be, and why."""
    text = {name: 4 * ((len(content) + 2) // 3) for name, content in packed.sections.items()}
    n, layout = packed.meta["n"], packed.meta["layout"]
    graph = text["table"] + text["distances"]
    parts = [f"{layout['k'] - 1} neighbors of {n:,} rows {graph / 1e6:.1f} MB ({graph / n:.0f} bytes per row)"]
    program = text["core"] + text["worker"]
    parts.append(f"the program {program / 1e6:.1f} MB")
    rows = sum(text.get(name, 0) for name in ("rows", "mean", "axes"))
    if "rows" in layout:
        parts.append(f"the rows {rows / 1e6:.1f} MB")
    parts.append(f"the map {(sum(text.values()) - graph - program - rows) / 1e6:.1f} MB")
    return f"the page can lay out again: {', '.join(parts)}"
