"""Maps of cells, stored as scanpy's tools store them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators.base import random_seed
from vicinal.estimators.evaluation import reliability as measure_reliability
from vicinal.estimators.tsne import TSNE
from vicinal.estimators.umap import UMAP, DensMAP
from vicinal.graph.graph import Graph
from vicinal.layout.forces import fit_ab
from vicinal.pipeline.fit import GivenGraph, GivenPlaces, fit
from vicinal.pipeline.recipe import EdgeTotals
from vicinal.runtime.progress import Progress
from vicinal.scverse.annotated_data import (
    check_cells,
    computed,
    graph_of,
    map_keys,
    plain,
    project,
    rows_of,
    rows_of_graph,
    same_genes,
    writable,
)
from vicinal.scverse.pp import neighbors

__all__ = ["densmap", "reliability", "tsne", "umap", "update"]

NEIGHBORS_KEY = "neighbors"


def umap(
    adata: Any,
    *,
    min_dist: float = 0.5,
    spread: float = 1.0,
    n_components: int = 2,
    maxiter: int | None = None,
    alpha: float = 1.0,
    gamma: float = 1.0,
    negative_sample_rate: int = 5,
    init_pos: Any = "spectral",
    random_state: Any = 0,
    a: float | None = None,
    b: float | None = None,
    key_added: str | None = None,
    neighbors_key: str = NEIGHBORS_KEY,
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Map cells by UMAP of their neighbor graph, with the arguments and results of ``scanpy.tl.umap``.

    The graph is the one in ``adata``, from :func:`vicinal.pp.neighbors`, scanpy, or any tool that stores one as scanpy
    does. If ``uns["neighbors"]`` is missing, :func:`vicinal.pp.neighbors` is called with its defaults first.

    Parameters
    ----------
    adata : AnnData
        The cells.
    min_dist, spread, n_components, negative_sample_rate, a, b
        As in :class:`vicinal.UMAP`; ``min_dist`` is 0.5, as in scanpy.
    maxiter : int, optional
        Number of epochs.
    alpha, gamma : float, default 1
        First learning rate, and weight of the repulsion.
    init_pos : str or array, default "spectral"
        First positions: "spectral", "random", a key of ``obsm``, an array, or "paga" for the positions of
        ``scanpy.pl.paga``.
    random_state : int, default 0
        Seed. The same seed gives the same bits on any number of threads.
    key_added : str, optional
        Key of the map in ``obsm`` and of its parameters in ``uns``; by default "X_umap" and "umap".
    neighbors_key : str, default "neighbors"
        Key of the graph in ``uns``.
    copy : bool, default False
        Whether to return a copy and leave ``adata`` as it is.
    **parameters
        Other parameters of :class:`vicinal.UMAP`: ``n_jobs``, ``device``, ``callback``, ``verbose``, ...

    Returns
    -------
    AnnData or None
        The copy, if one was asked for.

    See Also
    --------
    densmap, tsne, reliability, update

    Examples
    --------
    >>> import numpy as np, vicinal
    >>> from anndata import AnnData
    >>> adata = AnnData(np.random.default_rng(0).normal(size=(100, 20)).astype("float32"))
    >>> vicinal.tl.umap(adata)
    >>> adata.obsm["X_umap"].shape
    (100, 2)
    """
    cells = writable(adata, copy)
    given = {
        "min_dist": min_dist,
        "spread": spread,
        "n_components": n_components,
        "n_epochs": maxiter,
        "learning_rate": alpha,
        "repulsion_strength": gamma,
        "negative_sample_rate": negative_sample_rate,
        "init": init_pos,
        "random_state": random_state,
        "a": a,
        "b": b,
    }
    _map_graph(cells, UMAP, given | parameters, ("umap", key_added), neighbors_key)
    return cells if copy else None


def densmap(
    adata: Any,
    *,
    dens_lambda: float = 2.0,
    dens_frac: float = 0.3,
    dens_var_shift: float = 0.1,
    min_dist: float = 0.5,
    init_pos: Any = "spectral",
    random_state: Any = 0,
    key_added: str | None = None,
    neighbors_key: str = NEIGHBORS_KEY,
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Map cells by densMAP: the crowding of the map follows the density of the cells.

    Parameters
    ----------
    adata : AnnData
        The cells.
    dens_lambda, dens_frac, dens_var_shift : float
        As in :class:`vicinal.DensMAP`.
    min_dist, init_pos, random_state, neighbors_key, copy
        As in :func:`umap`.
    key_added : str, optional
        Key of the map in ``obsm`` and of its parameters in ``uns``; by default "X_densmap" and "densmap".
    **parameters
        Other parameters of :class:`vicinal.DensMAP`.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for.

    See Also
    --------
    umap

    Examples
    --------
    >>> import numpy as np, vicinal
    >>> from anndata import AnnData
    >>> adata = AnnData(np.random.default_rng(0).normal(size=(100, 20)).astype("float32"))
    >>> vicinal.tl.densmap(adata)
    >>> adata.obsm["X_densmap"].shape
    (100, 2)
    """
    cells = writable(adata, copy)
    density = {"dens_lambda": dens_lambda, "dens_frac": dens_frac, "dens_var_shift": dens_var_shift}
    given = {"min_dist": min_dist, "init": init_pos, "random_state": random_state, **density, **parameters}
    key = _map_graph(cells, DensMAP, given, ("densmap", key_added), neighbors_key)
    cells.uns[key]["params"] |= density
    return cells if copy else None


def _map_graph(
    cells: Any, method: type[UMAP], parameters: dict[str, Any], keys: tuple[str, str | None], neighbors_key: str
) -> str:
    """Lay out the graph of cells and store the map; return its key in ``uns``."""
    if neighbors_key == NEIGHBORS_KEY and neighbors_key not in cells.uns:
        shared = {name: parameters[name] for name in ("n_jobs", "device", "random_state") if name in parameters}
        neighbors(cells, **shared)
    params, distances, connectivities = graph_of(cells, neighbors_key)
    init, seed = parameters["init"], parameters["random_state"]
    if isinstance(init, str) and init in cells.obsm:
        init = computed(cells.obsm[init])
    elif isinstance(init, str) and init == "paga":
        init = _paga_places(cells, random_seed(seed))
    k = params.get("n_neighbors", int(np.diff(distances.indptr).max(initial=1)) + 1)
    model = method(**parameters | {"n_neighbors": k, "metric": "precomputed", "init": init})
    progress = Progress(callback=model.callback, verbose=model.verbose, tqdm_kwds=model.tqdm_kwds)
    fitted = fit(GivenGraph(Graph.from_scipy(connectivities), model.executor(distances)), progress)
    name, key_added = keys
    in_obsm, in_uns = (f"X_{name}", name) if key_added is None else (key_added, key_added)
    kernel = fitted.recipe.plan.forces.kernel
    stored = {"a": kernel.a, "b": kernel.b}
    if isinstance(seed, int) and seed != 0:
        stored["random_state"] = seed
    if neighbors_key != NEIGHBORS_KEY:
        stored["neighbors_key"] = neighbors_key
    cells.obsm[in_obsm] = fitted.embedding
    cells.uns[in_uns] = {"params": stored}
    return in_uns


def _paga_places(cells: Any, seed: int) -> NDArray[np.float64]:
    """Return the position of each cell's group in the plot of PAGA, with noise of a tenth of the plot."""
    stored = cells.uns.get("paga", {})
    if "pos" not in stored:
        raise ValueError("init_pos='paga' needs uns['paga']['pos']: call scanpy.pl.paga(adata) first")
    places = np.asarray(stored["pos"], dtype=np.float64)
    own = places[cells.obs[stored["groups"]].cat.codes]
    noise = np.random.default_rng(seed).normal(size=own.shape)
    return np.asarray(own + 0.1 * np.ptp(places, axis=0).max() * noise)


def tsne(
    adata: Any,
    n_pcs: int | None = None,
    *,
    use_rep: str | None = None,
    layer: str | None = None,
    perplexity: float = 30.0,
    metric: Any = "euclidean",
    early_exaggeration: float = 12.0,
    learning_rate: Any = "auto",
    random_state: Any = 0,
    key_added: str | None = None,
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Map cells by t-SNE, with the arguments and results of ``scanpy.tl.tsne``.

    Parameters
    ----------
    adata : AnnData
        The cells. Dask arrays are computed first.
    n_pcs, use_rep, layer
        The rows, as in :func:`vicinal.pp.neighbors`.
    perplexity, metric, early_exaggeration, learning_rate
        As in :class:`vicinal.TSNE`. The learning rate follows from the number of cells; scanpy's is 1000.
    random_state : int, default 0
        Seed.
    key_added : str, optional
        Key of the map in ``obsm`` and of its parameters in ``uns``; by default "X_tsne" and "tsne".
    copy : bool, default False
        Whether to return a copy and leave ``adata`` as it is.
    **parameters
        Other parameters of :class:`vicinal.TSNE`.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for.

    See Also
    --------
    umap

    Examples
    --------
    >>> import numpy as np, vicinal
    >>> from anndata import AnnData
    >>> adata = AnnData(np.random.default_rng(0).normal(size=(100, 20)).astype("float32"))
    >>> vicinal.tl.tsne(adata)
    >>> adata.obsm["X_tsne"].shape
    (100, 2)
    """
    cells = writable(adata, copy)
    rows = computed(rows_of(cells, use_rep, n_pcs, layer))
    shown = {
        "perplexity": perplexity,
        "early_exaggeration": early_exaggeration,
        "learning_rate": learning_rate,
        "metric": metric,
    }
    model = TSNE(random_state=random_state, **shown, **parameters).fit(rows)
    in_obsm, in_uns = ("X_tsne", "tsne") if key_added is None else (key_added, key_added)
    named = {"use_rep": use_rep, "n_pcs": n_pcs, "layer": layer}
    cells.obsm[in_obsm] = model.embedding_
    cells.uns[in_uns] = {"params": shown | {name: value for name, value in named.items() if value is not None}}
    return cells if copy else None


def reliability(
    adata: Any, *, basis: str = "umap", key_added: str | None = None, copy: bool = False, **options: Any
) -> Any:
    """Measure how far each cell of a map can be believed, from 0 to 1.

    The map is compared with the rows of its graph (t-SNE: the rows it was made from). It may be scanpy's.

    Parameters
    ----------
    adata : AnnData
        The cells and their map.
    basis : str, default "umap"
        Name of the map, as in ``scanpy.pl.embedding``.
    key_added : str, optional
        Key in ``obs`` of the number, by default ``basis + "_reliability"``. The labels "trustworthy", "undecided" and
        "dubious" are in ``obs[key_added + "_label"]``, averages in ``uns[key_added]``.
    copy : bool, default False
        Whether to return a copy and leave ``adata`` as it is.
    **options
        Options of :func:`vicinal.reliability`.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for.

    See Also
    --------
    vicinal.reliability

    Examples
    --------
    >>> import numpy as np, vicinal
    >>> from anndata import AnnData
    >>> adata = AnnData(np.random.default_rng(0).normal(size=(100, 20)).astype("float32"))
    >>> vicinal.tl.umap(adata)
    >>> vicinal.tl.reliability(adata, null=False)
    >>> bool(adata.obs["umap_reliability"].between(0, 1).all())
    True
    """
    import pandas as pd

    cells = writable(adata, copy)
    measured = measure_reliability(_model_of(cells, basis), **options)
    key, summary = f"{basis}_reliability" if key_added is None else key_added, measured.summary()
    cells.obs[key] = measured.reliability
    cells.obs[f"{key}_label"] = pd.Categorical(measured.label.astype(object), categories=list(summary["labels"]))
    cells.uns[key] = {
        "params": {name: summary[name] for name in ("n_neighbors", "within")},
        "mean": {name: value for name, value in summary["mean"].items() if value is not None},
        "labels": summary["labels"],
    }
    return cells if copy else None


def update(adata: Any, reference: Any, *, basis: str = "umap", move: bool = False, copy: bool = False) -> Any:
    """Place new cells in the map of a reference.

    Parameters
    ----------
    adata : AnnData
        The new cells, with the rows that the reference's graph was made from: the same ``use_rep`` or ``layer``.
        A missing ``obsm["X_pca"]`` is computed by the reference's loadings.
    reference : AnnData
        The cells of the map, with their neighbor graph. The map may be scanpy's.
    basis : str, default "umap"
        Name of the map, as in ``scanpy.pl.embedding``.
    move : bool, default False
        If false, the map stays as it is, and the place of a new cell depends on that cell alone
        (:meth:`vicinal.UMAP.transform`, as in ``scanpy.tl.ingest``). If true, the cells of the reference move a little
        to make room for new ones (:meth:`vicinal.UMAP.update`), and the map of ``reference`` is replaced too.
    copy : bool, default False
        Whether to return a copy and leave ``adata`` as it is; not possible with ``move``.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for.

    See Also
    --------
    vicinal.ProgressiveUMAP : maps of rows that keep arriving.

    Examples
    --------
    >>> import numpy as np, vicinal
    >>> from anndata import AnnData
    >>> cells = AnnData(np.random.default_rng(0).normal(size=(120, 20)).astype("float32"))
    >>> reference, new = cells[:100].copy(), cells[100:].copy()
    >>> vicinal.tl.umap(reference)
    >>> vicinal.tl.update(new, reference)
    >>> new.obsm["X_umap"].shape
    (20, 2)
    """
    check_cells(reference, "reference")
    if copy and move:
        raise ValueError("copy=True is not possible with move=True, which changes the reference too")
    cells = writable(adata, copy)
    in_obsm, in_uns = map_keys(reference, basis)
    model = _model_of(reference, basis)
    rows = _new_rows(cells, reference, _row_params(reference, in_uns))
    if move:
        model.update(rows)
        places = model.embedding_
        reference.obsm[in_obsm], cells.obsm[in_obsm] = places[: reference.n_obs], places[reference.n_obs :]
    else:
        cells.obsm[in_obsm] = model.transform(rows)
    cells.uns[in_uns] = reference.uns[in_uns]
    return cells if copy else None


def _new_rows(cells: Any, reference: Any, params: dict[str, Any]) -> Any:
    """Return the rows of new cells in the columns of the reference's."""
    if params.get("use_rep") in reference.obsm:
        return computed(rows_of_graph(cells, params))
    by_components = params.get("layer") is None and params.get("use_rep") is None and params.get("n_pcs") != 0
    width = computed(rows_of_graph(reference, params)).shape[1]
    if by_components and width != reference.n_vars:
        known = computed(cells.obsm["X_pca"]) if "X_pca" in cells.obsm else project(cells, reference)
        return known[:, :width]
    return computed(rows_of_graph(same_genes(cells, reference), params))


def _row_params(cells: Any, in_uns: str) -> dict[str, Any]:
    """Return how the rows of a map were chosen: t-SNE's own parameters, or those of its graph."""
    params = plain(cells.uns.get(in_uns, {}).get("params", {}))
    if "perplexity" in params:
        return params
    key = params.get("neighbors_key", NEIGHBORS_KEY)
    return params | graph_of(cells, key)[0]


def _model_of(cells: Any, basis: str) -> Any:
    """Return the model of a map that ``cells`` hold."""
    in_obsm, in_uns = map_keys(cells, basis)
    params = _row_params(cells, in_uns)
    rows, places = computed(rows_of_graph(cells, params)), np.asarray(computed(cells.obsm[in_obsm]), dtype=np.float32)
    shared = {
        "n_components": places.shape[1],
        "metric": params.get("metric", "euclidean"),
        "metric_kwds": params.get("metric_kwds"),
        "random_state": params.get("random_state", 0),
    }
    model: Any
    if "perplexity" in params:
        model = TSNE(perplexity=float(params["perplexity"]), **shared)
    else:
        _, distances, _ = graph_of(cells, params.get("neighbors_key", NEIGHBORS_KEY))
        kernel = fit_ab(1.0, 0.5)
        a, b = float(params.get("a", kernel.a)), float(params.get("b", kernel.b))
        model = UMAP(n_neighbors=int(params["n_neighbors"]), a=a, b=b, precomputed_knn=distances, **shared)
    prepared = model.executor(rows)
    fitted = fit(GivenPlaces(prepared.data, prepared.recipe, first_places=places, seed=prepared.seed))
    # The layout of these places can be run again, so that their stability can be measured.
    epochs = fitted.recipe.plan.epoch_stops(EdgeTotals.of(fitted.graph))[-1]
    return model.adopt_map(replace(fitted, report=replace(fitted.report, init_used="array", n_epochs=epochs)))
