"""What an atlas stores of a fit: the unfitted estimator, the neighbor table, and the areas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from vicinal.areas.hierarchy import NOISE
from vicinal.atlas.versions import Folder
from vicinal.estimators.clustering import LEAST_ROWS, clusters
from vicinal.estimators.parameters import given_knn
from vicinal.estimators.tsne import LargeVis
from vicinal.files.container import packed, read_file
from vicinal.files.models import encoded
from vicinal.files.preparation import COLUMNS_ATTRIBUTE, STEPS_ATTRIBUTE
from vicinal.neighbors.metrics import PRECOMPUTED
from vicinal.neighbors.table import Neighbors

if TYPE_CHECKING:
    import polars as pl

SEED = 0
# Attributes that an unfitted estimator keeps: how rows are read and prepared, and the names of their columns.
KEPT_ATTRIBUTES = (COLUMNS_ATTRIBUTE, STEPS_ATTRIBUTE, "feature_names_in_")


def checked_estimator(estimator: Any) -> Any:
    """Return an unfitted copy of an estimator that an atlas can use."""
    from vicinal.estimators.umap import UMAP

    given = UMAP(random_state=SEED) if estimator is None else estimator
    if not isinstance(given, UMAP | LargeVis):
        raise TypeError(f"estimator must be a UMAP, DensMAP or LargeVis, got {type(given).__name__}")
    params = given.get_params(deep=False)
    if isinstance(params["metric"], str) and params["metric"] == PRECOMPUTED:
        raise ValueError("an atlas stores rows: metric='precomputed' has none")
    for name, usual in (("output_metric", "euclidean"), ("transform_mode", "embedding"), ("disconnected", "around")):
        if params.get(name, usual) != usual:
            raise ValueError(f"{name} must be {usual!r} for an atlas, got {params[name]!r}")
    if not isinstance(params.get("init", "auto"), str):
        raise ValueError("init must be a name for an atlas: an array has the places of one fit only")
    if given_knn(params.get("precomputed_knn")) is not None:
        raise ValueError("precomputed_knn must be None for an atlas: every fit has other rows")
    if params["random_state"] is not None and not isinstance(params["random_state"], int | np.integer):
        raise TypeError(f"random_state must be a number for an atlas, got {params['random_state']!r}")
    made = clone(given)
    made.set_params(random_state=SEED if params["random_state"] is None else int(params["random_state"]))
    vars(made).update(kept_attributes(given))
    return made


def kept_attributes(model: Any) -> dict[str, Any]:
    """Return what an unfitted estimator keeps of a fitted one."""
    return {name: vars(model)[name] for name in KEPT_ATTRIBUTES if name in vars(model)}


def put_estimator(folder: Folder, model: Any) -> str:
    """Store the parameters of a model and how its rows are read."""
    plain = clone(model)
    vars(plain).update(kept_attributes(model))
    return folder.put(packed(*encoded(plain)), ".vicinal")


def put_table(folder: Folder, table: Neighbors) -> str:
    """Store the neighbor table of a fit."""
    arrays = {"index": np.asarray(table.index), "distance": np.asarray(table.distance)}
    return folder.put(packed(arrays, {"share": table.share}), ".vicinal")


def read_table(folder: Folder, name: str | None) -> Neighbors | None:
    """Read the neighbor table of a fit; None if it was deleted."""
    if name is None or not folder.has(name):
        return None
    arrays, document = read_file(folder.object(name))
    return Neighbors(arrays["index"], arrays["distance"], float(document["share"]))


def find_areas(
    model: Any, columns: pl.DataFrame, resolution: float | None = None, zoom: float = 1.0
) -> tuple[NDArray[np.int32], tuple[dict[str, Any], ...], float | None]:
    """Return the area of each row of a fit, the areas with the names that their columns propose, and their resolution.

    With the ``resolution`` of earlier areas, areas are not replaced by coarser or finer ones. ``zoom`` is the scale of
    the layout, relative to the published map.
    """
    n = model.map_.data.n
    if n < LEAST_ROWS:
        return np.full(n, NOISE, dtype=np.int32), (), resolution
    given = {name: columns[name].to_list() for name in columns.columns}
    found = clusters(model, columns=given or None)
    # A layer that divides nothing further is left out: then the next coarser one holds.
    able = [number for number, one in enumerate(found.layers) if resolution is None or one.resolution <= resolution]
    layer = found.layer(found.main if resolution is None else max(able, default=0))
    places = [[float(one) / zoom for one in place] for place in layer.places]
    areas = tuple({"name": name, "place": at} for name, at in zip(layer.names, places, strict=True))
    return layer.labels, areas, layer.resolution if resolution is None else resolution
