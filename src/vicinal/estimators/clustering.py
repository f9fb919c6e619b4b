"""Clusters of fitted models and of maps made elsewhere: layers, names, predictions, gaps."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.areas.hierarchy import Labels, majority, shares
from vicinal.areas.layers import RESOLUTIONS, Layer, find_layers, matched, same_area
from vicinal.areas.separation import Gap, measure_gaps
from vicinal.areas.traits import Namer, Trait, describe_columns, traits
from vicinal.estimators.base import Estimator, MapEstimator, require_fitted
from vicinal.estimators.evaluation import judged_maps, map_made_elsewhere
from vicinal.files.data_table import Column, Role
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.neighbors.metrics import is_sparse
from vicinal.neighbors.search import nearest_points
from vicinal.neighbors.training_data import recognize
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.place import memberships
from vicinal.runtime.constraints import whole
from vicinal.runtime.inputs import resolve_n_jobs

# Points of the map by which a new row is assigned if the model has no graph for new rows.
NEAREST = 15
EXAMPLES = 5
# Fewer rows have no neighborhoods; a map of fewer rows needs no names of areas.
LEAST_ROWS, FEWEST_NAMED = 4, 200
# Names of the areas of a page are counted from at most this many rows.
MOST_COUNTED = 100_000

# Called for each cluster with a description; returns its name, or "" to keep the one it has.
NameHook = Callable[[dict[str, Any]], str]


@dataclass(frozen=True)
class Clusters:
    """Clusters of the rows of a map, in layers from coarse to fine; :func:`vicinal.clusters` makes it.

    Attributes
    ----------
    layers : tuple of Layer
        From coarse to fine; every cluster lies inside one of the layer before.
    main : int
        The layer of ``labels``, ``strength`` and ``names``.
    model : estimator or None
        The model of the map; ``predict`` needs it.

    See Also
    --------
    clusters : finds them.

    Examples
    --------
    >>> import vicinal
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> found = vicinal.clusters(vicinal.UMAP(random_state=42).fit(X))
    >>> found.predict(X[:3]).tolist() == found.labels[:3].tolist()
    True
    """

    layers: tuple[Layer, ...]
    main: int = 0
    model: Any = None

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together: a file may hold anything."""
        if not self.layers or not 0 <= self.main < len(self.layers):
            raise ValueError("clusters must have layers, and one of them must be the main one")
        for before, after in zip((self.layers[0], *self.layers), self.layers, strict=False):
            if len(before.labels) != len(after.labels) or after.parent.max(initial=-1) >= before.n_clusters:
                raise ValueError("the layers of clusters do not fit together")

    def __len__(self) -> int:
        return len(self.layers)

    @property
    def labels(self) -> Labels:
        """The cluster of each row in the main layer; -1 is noise."""
        return self.layers[self.main].labels

    @property
    def strength(self) -> NDArray[np.float32]:
        """How firmly each row belongs to its cluster in the main layer, 0 to 1."""
        return self.layers[self.main].strength

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the clusters of the main layer."""
        return self.layers[self.main].names

    def layer(self, number: int | None = None) -> Layer:
        """Return a layer by its number, 0 is the coarsest; by default the main one."""
        number = self.main if number is None else number
        if not isinstance(number, int | np.integer) or not -len(self.layers) <= number < len(self.layers):
            raise ValueError(f"layer must be a whole number below {len(self.layers)}, got {number!r}")
        return self.layers[number]

    # New rows

    def predict(self, X: Any, layer: int | None = None) -> Labels:
        """Return the cluster of each row of ``X`` in a layer; rows of the training data have their own."""
        return majority(self.membership(X, layer))[0]

    def membership(self, X: Any, layer: int | None = None) -> csr_matrix:
        """Return the share of each cluster of a layer in the edges of each row of ``X``, as a sparse matrix."""
        chosen = self.layer(layer)
        if self.model is None:
            raise ValueError("these clusters were saved without their model; give it with with_model(model)")
        known, weights = edges_of_rows(self.model, X)
        fitted = _fitted(self.model)
        laid_out = None if fitted is None else fitted.laid_out
        labels = chosen.labels if laid_out is None else chosen.labels[laid_out]
        if weights.shape[1] != len(labels):
            raise ValueError(f"the model has {weights.shape[1]} rows, the clusters have {len(labels)}")
        found = shares(weights, labels, chosen.n_clusters)
        own = np.flatnonzero(known >= 0)
        if not len(own):
            return found
        inside = own[chosen.labels[known[own]] >= 0]
        rows = known[inside]
        shape = (len(known), chosen.n_clusters)
        new = csr_matrix(
            (np.ones(found.shape[0]), (np.flatnonzero(known < 0), np.arange(found.shape[0]))),
            shape=(len(known), found.shape[0]),
        )
        return (
            new @ found
            + csr_matrix((chosen.strength[rows].astype(np.float64), (inside, chosen.labels[rows])), shape=shape)
        ).tocsr()

    def with_model(self, model: Any) -> Clusters:
        """Return the clusters with the model of their map, as ``predict`` needs it."""
        return replace(self, model=model)

    # What sets clusters apart

    def describe(self, columns: Any = None, layer: int | None = None, *, most: int = 10) -> list[list[Trait]]:
        """Return what sets each cluster of a layer apart, the largest effects first.

        Parameters
        ----------
        columns : data frame, mapping of str to sequences, or sequence of str
            Texts, categories and numbers of the rows. By default the columns of the training data, if they have names.
        layer : int, optional
            Number of the layer; by default the main one.
        most : int, default 10
            Properties per cluster.
        """
        chosen = self.layer(layer)
        return traits(self._described(columns), chosen.labels, chosen.n_clusters, most)

    def named(self, columns: Any = None, hook: NameHook | None = None) -> Clusters:
        """Return the clusters with names from the columns of their rows.

        ``hook`` is called for each cluster with a dictionary (``layer``, ``cluster``, ``size``, ``name``, ``parent``:
        name of the coarser cluster, ``traits``, ``examples``: texts of the most typical rows) and returns the name, for
        example from a language model, or "" to keep the one it has.
        """
        described = self._described(columns)
        namer, layers = Namer(described), list[Layer]()
        lineage: list[frozenset[str]] = []  # names of each cluster of the last layer and of the areas around it
        for number, layer in enumerate(self.layers):
            before = layers[-1] if layers else None
            if before is None:
                names = namer.names(layer.labels, layer.n_clusters)
                around = [frozenset[str]()] * layer.n_clusters
            else:
                same = np.flatnonzero(same_area(layer, before)).tolist()
                kept = {cluster: before.names[layer.parent[cluster]] for cluster in same}
                around = [lineage[above] if above >= 0 else frozenset() for above in layer.parent]
                parents = (before.labels, before.names)
                names = namer.names(layer.labels, layer.n_clusters, layer.parent, parents, kept, around)
            if hook is not None:
                names = self._hooked(hook, number, replace(layer, names=tuple(names)), before, described, columns)
            layers.append(replace(layer, names=tuple(names)))
            lineage = [above | {name} for above, name in zip(around, names, strict=True)]
        return replace(self, layers=tuple(layers))

    def _hooked(
        self, hook: NameHook, number: int, layer: Layer, before: Layer | None, described: Any, columns: Any
    ) -> list[str]:
        names = list(layer.names)
        known, sizes = traits(described, layer.labels, layer.n_clusters), layer.sizes
        texts = _texts(columns)
        for cluster in range(layer.n_clusters):
            rows = np.flatnonzero(layer.labels == cluster)
            typical = rows[np.argsort(-layer.strength[rows], kind="stable")[:EXAMPLES]]
            around = "" if before is None or layer.parent[cluster] < 0 else before.names[layer.parent[cluster]]
            given = {
                "layer": number,
                "cluster": cluster,
                "size": int(sizes[cluster]),
                "name": names[cluster],
                "parent": around,
                "traits": known[cluster],
                "examples": [] if texts is None else [str(texts[row]) for row in typical],
            }
            names[cluster] = str(hook(given) or names[cluster])
        return names

    def _described(self, columns: Any) -> Any:
        n = len(self.labels)
        return describe_columns(named_columns(columns, self.model), n)

    def gaps(self, layer: int | None = None) -> list[Gap]:
        """Return for pairs of neighboring clusters whether the gap between them is in the data or made by the map."""
        chosen = self.layer(layer)
        weights, places, rows = graph_and_places(self.model)
        labels = chosen.labels if rows is None else chosen.labels[rows]
        return measure_gaps(weights, places, labels, chosen.n_clusters, chosen.places)

    # Comparison, tables and files

    def match(self, other: Clusters, layer: int | None = None, other_layer: int | None = None) -> list[dict[str, Any]]:
        """Return the best partner of each cluster among those of another clustering of the same rows.

        Partners are chosen so that the shared rows are as many as possible in total, each cluster at most once. Rows
        beyond the end of the shorter clustering are left out.
        """
        own, others = self.layer(layer), other.layer(other_layer)
        return matched(own.labels, others.labels, own.n_clusters, others.n_clusters)

    def table(self) -> list[dict[str, Any]]:
        """Return one dictionary per cluster of every layer: layer, cluster, parent, name, size and place."""
        return [
            {
                "layer": number,
                "cluster": cluster,
                "parent": int(layer.parent[cluster]),
                "name": layer.names[cluster],
                "size": int(size),
                "place": [float(one) for one in layer.places[cluster]],
            }
            for number, layer in enumerate(self.layers)
            for cluster, size in enumerate(layer.sizes)
        ]

    def spots(self) -> list[dict[str, Any]]:
        """Return the named areas for a page or a figure: name, place, size and level, 0 for the coarsest.

        An area that continues unchanged in a finer layer is listed once.
        """
        found = []
        for number, layer in enumerate(self.layers):
            repeated = same_area(layer, self.layers[number - 1]) if number else np.zeros(layer.n_clusters, dtype=bool)
            for one in self.table_of(number):
                if one["name"] and not repeated[one["cluster"]]:
                    found.append({key: one[key] for key in ("name", "place", "size")} | {"level": number})
        return found

    def table_of(self, number: int) -> list[dict[str, Any]]:
        """Return the rows of the table of one layer."""
        return [one for one in self.table() if one["layer"] == number]

    def save(self, path: str | os.PathLike[str], *, include_model: bool = True) -> None:
        """Write the clusters to a file that :func:`vicinal.load` reads, with their model unless it is left out."""
        from vicinal.files.models import save

        save(self if include_model else replace(self, model=None), path)

    def __str__(self) -> str:
        lines = [f"clusters of {len(self.labels):,} rows"]
        for number, layer in enumerate(self.layers):
            mark = " (main)" if number == self.main else ""
            shares_of_rows = f"{100 * layer.noise:5.1f} % noise, {100 * layer.stability:5.1f} % stable"
            lines.append(f"  layer {number}: {layer.n_clusters:5} clusters, {shares_of_rows}{mark}")
        return "\n".join(lines)


def clusters(
    model_or_X: Any,
    embedding: Any = None,
    *,
    columns: Any = None,
    resolutions: Sequence[float] = RESOLUTIONS,
    min_size: int | None = None,
    name: NameHook | None = None,
    metric: Any = "euclidean",
    metric_kwds: dict[str, Any] | None = None,
    n_jobs: int | None = -1,
) -> Any:
    """Divide the rows of a map into clusters, in layers from coarse to fine.

    Dense areas of the map are merged by the graph of the data, so clusters follow what is connected in the data.
    The result does not depend on the number of threads and draws nothing at random.

    Parameters
    ----------
    model_or_X : fitted model, or array or sparse matrix of shape (n_rows, n_features)
        The model whose rows are divided, or the rows of a map that was made elsewhere.
    embedding : array of shape (n_rows, n_components), optional
        The map; required with rows, and not allowed with a model.
    columns : data frame, mapping of str to sequences, or sequence of str, optional
        Texts, categories and numbers of the rows, which give the names. By default the columns of the training data,
        if they have names.
    resolutions : sequence of float, default (1/32, 1/8, 1/2, 2, 8)
        One for each layer: two areas are one cluster if at least this multiple of the weight joins them that chance
        would give them. Layers that divide nothing further are left out.
    min_size : int, optional
        Smallest cluster. By default a quarter of the square root of the number of rows, and at least 10.
    name : callable, optional
        Called for each cluster with a description, returns its name (see :meth:`Clusters.named`).
    metric, metric_kwds
        Metric of the rows, or "precomputed"; not used with a model, which has its own.
    n_jobs : int or None, default -1
        Number of threads for a map made elsewhere; a model uses its own.

    Returns
    -------
    Clusters
        For :class:`AlignedUMAP`, a list with one for each slice.

    See Also
    --------
    reliability : which points of a map to believe.

    Examples
    --------
    >>> import vicinal
    >>> from sklearn.datasets import load_digits
    >>> found = vicinal.clusters(vicinal.UMAP(random_state=42).fit(load_digits().data))
    >>> found.labels.shape, len(found.layers) > 1
    ((1797,), True)
    """
    _check(resolutions, min_size, name)
    options: dict[str, Any] = {"resolutions": tuple(map(float, resolutions)), "min_size": min_size}
    is_model = isinstance(model_or_X, Estimator)
    if is_model and embedding is not None:
        raise ValueError("embedding must be None with a model; give the rows instead of the model")
    if is_model:
        require_fitted(model_or_X)
        maps = judged_maps(model_or_X)
    else:
        jobs = resolve_n_jobs(n_jobs)
        maps = [(map_made_elsewhere(model_or_X, embedding, metric, metric_kwds, jobs), None, None)]
    models = getattr(model_or_X, "mappers_", [model_or_X if is_model else None])
    found = []
    for (judged, position, _), model in zip(maps, models, strict=True):
        if len(judged.places) < LEAST_ROWS:
            raise ValueError(f"the map must have at least {LEAST_ROWS} rows to have clusters, got {len(judged.places)}")
        layers, main = find_layers(judged.graph.to_scipy(), judged.places, n_jobs=judged.n_jobs, **options)
        if position is not None:
            layers = [layer.spread_to(position) for layer in layers]
        one = Clusters(tuple(layers), main, model)
        found.append(one.named(columns, name) if columns is not None or name or _have_names(model) else one)
    return found if hasattr(model_or_X, "mappers_") else found[0]


def _check(resolutions: Any, min_size: Any, name: Any) -> None:
    values = np.asarray(resolutions, dtype=np.float64) if len(resolutions) else np.zeros(1)
    if not (np.isfinite(values).all() and (values > 0).all() and values.ndim == 1):
        raise ValueError(f"resolutions must be one or more positive numbers, got {resolutions!r}")
    if min_size is not None and not whole(2).allows(min_size):
        raise ValueError(f"min_size must be {whole(2)}, got {min_size!r}")
    if name is not None and not callable(name):
        raise ValueError(f"name must be a function, got {name!r}")


def _have_names(model: Any) -> bool:
    return hasattr(model, "feature_names_in_")


def named_columns(columns: Any, model: Any = None) -> dict[str, Any]:
    """Return columns by name; by default those of the training data of a model, if they have names."""
    if columns is None:
        if not _have_names(model):
            return {}
        fitted = _fitted(model)
        if fitted is None or is_sparse(fitted.data.rows):
            return {}
        return {str(one): fitted.data.rows[:, a] for a, one in enumerate(model.feature_names_in_)}
    if hasattr(columns, "columns"):
        return {str(one): columns[one] for one in columns.columns}
    if isinstance(columns, Mapping):
        return {str(one): values for one, values in columns.items()}
    return {"text": columns}


def _texts(columns: Any) -> Sequence[Any] | None:
    """Return the column with the longest texts, for examples."""
    given = {} if columns is None else named_columns(columns)
    texts = {name: list(values) for name, values in given.items()}
    able = {name: sum(len(one) for one in some if isinstance(one, str)) for name, some in texts.items()}
    best = max(able, key=lambda name: able[name], default=None)
    return texts[best] if best is not None and able[best] else None


def _fitted(model: Any) -> FittedMap | None:
    """Return the map of a model in memory, or None if the model has no graph from new rows to its rows."""
    if hasattr(model, "to_umap"):
        model = model.to_umap()
    fitted = model.local_map if isinstance(model, MapEstimator) else None
    return fitted if isinstance(fitted, FittedMap) else None


def edges_of_rows(model: Any, X: Any) -> tuple[NDArray[np.int64], csr_matrix]:
    """Return the training row of the same content for each row, or -1, and the edges of the others.

    Edges lead to the rows that were laid out; of a model that has no such edges, to the nearest points of the map.
    """
    umap = model.to_umap() if hasattr(model, "to_umap") else model
    fitted = _fitted(umap)
    if fitted is None:
        places = np.ascontiguousarray(model.transform(X), dtype=np.float32)
        near = nearest_points(model.embedding_, places, min(NEAREST, len(model.embedding_)))
        bounds = np.arange(0, near.index.size + 1, near.k)
        shape = (len(places), len(model.embedding_))
        return np.full(len(places), -1), csr_matrix((np.ones(near.index.size), near.index.ravel(), bounds), shape=shape)
    rows = umap.check_new_rows(X)
    known = recognize(fitted.data, rows)[0]
    new = np.flatnonzero(known < 0)
    if not len(new):
        return known, csr_matrix((0, fitted.searched.n))
    return known, memberships(fitted, rows if len(new) == len(known) else rows[new]).to_scipy()


def graph_and_places(model: Any) -> tuple[csr_matrix, NDArray[np.float32], NDArray[np.int64] | None]:
    """Return the graph and the places of the rows that were laid out, and which these are if not all."""
    if model is None:
        raise ValueError("these clusters have no model; give it with with_model(model)")
    ((judged, _, rows),) = judged_maps(model)
    return judged.graph.to_scipy(), judged.places, rows


def named_clusters(model_or_places: Any, columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Return named areas of a map for a page or a figure: name, place, size and level, 0 for the coarsest.

    There are none if the columns have labels, which name the areas themselves, or if nothing gives names.
    """
    described = {one.name: one.values for one in columns if one.role in (Role.DISPLAY, Role.FEATURE)}
    described = {name: values for name, values in described.items() if values is not None}
    places = getattr(model_or_places, "embedding_", model_or_places)
    n = len(places)
    if any(one.role is Role.LABEL for one in columns) or not described or n < FEWEST_NAMED:
        return []
    if isinstance(model_or_places, Estimator):
        found: Clusters = clusters(model_or_places)
    else:
        points = np.ascontiguousarray(places, dtype=np.float32)
        graph = fuzzy_graph(nearest_points(points, points, min(NEAREST + 1, n)))
        found = Clusters(tuple(find_layers(graph.to_scipy(), points, repeats=0)[0]))
    counted = np.sort(np.random.default_rng(0).permutation(n)[:MOST_COUNTED])
    some = replace(found, layers=tuple(layer.spread_to(counted) for layer in found.layers))
    named = some.named({name: np.asarray(values)[counted] for name, values in described.items()})
    pairs = zip(found.layers, named.layers, strict=True)
    return replace(found, layers=tuple(replace(layer, names=other.names) for layer, other in pairs)).spots()
