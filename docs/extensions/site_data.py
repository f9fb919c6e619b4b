"""Files that pages of the site load: the viewer's page of the digits, and the data of the pages with sliders."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import numpy as np
from algorithm_records import N_NEIGHBORS as RECORDED_NEIGHBORS
from algorithm_records import ROWS, parametric_states, progressive_states
from matplotlib import colormaps
from matplotlib.colors import to_hex
from sklearn.datasets import load_digits, make_swiss_roll
from sphinx.application import Sphinx

import vicinal
from vicinal.plot.points import aligned
from vicinal.viewer.bundle import bundled
from vicinal.viewer.relayout import DEFAULTS, SUPERVISION

ROLL_ROWS, ROLL_COLORS = 1500, 64
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


def write_slider_data(folder: Path) -> None:
    """Write the core and two small data sets as a script, which a page opened from a file may load."""
    digits, classes = load_digits(return_X_y=True)
    roll, along = make_swiss_roll(ROLL_ROWS, random_state=SEED)
    turns = np.floor(ROLL_COLORS * (along - along.min()) / (np.ptp(along) * 1.0001)).astype(int)
    scale = [to_hex(colormaps["viridis"](color / (ROLL_COLORS - 1))) for color in range(ROLL_COLORS)]
    themes = ("light", "dark")
    sets = {
        "digits": (digits, classes, {theme: vicinal.plot.palette(10, theme) for theme in themes}),
        "roll": (roll, turns, dict.fromkeys(themes, scale)),
    }
    data = {
        "core": _text(zlib.compress(bundled("core.wasm"))),
        "worker": _text(zlib.compress(bundled("core-worker.js"))),
        "fixed": {name: DEFAULTS[name] for name in ("negative_sample_rate", "local_connectivity", "set_op_mix_ratio")}
        | {"supervision": SUPERVISION},
        "sets": {
            name: {
                "n": len(X),
                "d": X.shape[1],
                "rows": _text(zlib.compress(X.astype("<f4").tobytes())),
                "codes": codes.tolist(),
                "colors": colors,
            }
            for name, (X, codes, colors) in sets.items()
        },
    }
    (folder / "slider-data.js").write_text(f"window.sliderData = {json.dumps(data)};\n")


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


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


def write_algorithm_records(folder: Path) -> None:
    """Write the recorded states of Algorithms 2 and 3, and what Algorithm 1 is run with, as a script."""
    X = load_digits().data[:ROWS]
    data = {
        "rows": ROWS,
        "nNeighbors": RECORDED_NEIGHBORS,
        "states": {"2": parametric_states(X), "3": progressive_states(X)},
    }
    (folder / "algorithm-records.js").write_text(f"window.algorithmRecords = {json.dumps(data)};\n")


def write_site_data(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir) / "_static" / "pages"
        folder.mkdir(parents=True, exist_ok=True)
        write_digits_page(folder)
        write_slider_data(folder)
        write_parameter_maps(folder)
        write_algorithm_records(folder)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_site_data)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
