"""Files that pages of the site load: the viewer's page of the digits, and the data of the pages with sliders."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sphinx.application import Sphinx

import vicinal
from vicinal.plot.points import aligned

SLIDER_ROWS = 600
# The maps between which the sliders of the two main parameters choose.
N_NEIGHBORS, MIN_DIST = (5, 10, 15, 30, 60, 120), (0.0, 0.1, 0.3, 0.6, 0.9)
GRID_EPOCHS = 100
SEED = 42


def write_digits_page(folder: Path) -> None:
    """Write the viewer's own page of the digits."""
    digits = load_digits()
    model = vicinal.UMAP(random_state=SEED).fit(digits.data)
    vicinal.viewer.export(
        folder / "digits.html",
        model,
        digits.target,
        images=digits.images,
        values={"ink": digits.data.mean(axis=1)},
        label="digit",
        title="Handwritten digits",
    )


def write_slider_graph(folder: Path) -> None:
    """Write graph, start and labels of some digits as a script, which a page opened from a file may load."""
    X, labels = load_digits(return_X_y=True)
    X, labels = X[:SLIDER_ROWS], labels[:SLIDER_ROWS]
    graph = vicinal.fuzzy_graph(vicinal.find_neighbors(X, 15))
    start = vicinal.spectral_start(graph, X, seed=SEED)
    kernel = vicinal.fit_ab()
    keep = graph.heads() < graph.indices
    data = {
        "heads": graph.heads()[keep].tolist(),
        "tails": graph.indices[keep].tolist(),
        "weights": np.round(graph.weights[keep] / graph.weights.max(), 4).tolist(),
        "start": np.round(start, 4).tolist(),
        "labels": labels.tolist(),
        "colors": vicinal.plot.palette(10),
        "a": kernel.a,
        "b": kernel.b,
    }
    (folder / "digits-graph.js").write_text(f"window.digitsGraph = {json.dumps(data)};\n")


def write_parameter_maps(folder: Path) -> None:
    """Write maps of the digits for every choice of two parameters, each turned onto the one before, as a script."""
    digits = load_digits()
    maps, before = [], None
    for k in N_NEIGHBORS:
        neighbors = vicinal.find_neighbors(digits.data, k)
        known = (neighbors.index, neighbors.distance)
        for spread in MIN_DIST:
            model = vicinal.UMAP(
                n_neighbors=k, min_dist=spread, n_epochs=GRID_EPOCHS, precomputed_knn=known, random_state=SEED
            ).fit(digits.data)
            xy = model.embedding_.astype(np.float64)
            xy = xy if before is None else aligned(xy, before)
            before = xy
            shown = (xy - xy.mean(axis=0)) / np.abs(xy - xy.mean(axis=0)).max()
            maps.append(base64.b64encode(np.rint(shown * 32767).astype("<i2").tobytes()).decode())
    data = {
        "nNeighbors": N_NEIGHBORS,
        "minDist": MIN_DIST,
        "maps": maps,
        "labels": digits.target.tolist(),
        "colors": {theme: vicinal.plot.palette(10, theme) for theme in ("light", "dark")},
    }
    (folder / "parameter-maps.js").write_text(f"window.parameterMaps = {json.dumps(data)};\n")


def write_site_data(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir) / "_static" / "pages"
        folder.mkdir(parents=True, exist_ok=True)
        write_digits_page(folder)
        write_slider_graph(folder)
        write_parameter_maps(folder)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_site_data)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
