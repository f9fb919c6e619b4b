"""Neighbors of cells, stored as ``scanpy.pp.neighbors`` stores them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vicinal.estimators.umap import UMAP
from vicinal.runtime.inputs import is_dask
from vicinal.scverse.annotated_data import computed, rows_of, writable

__all__ = ["neighbors"]


def neighbors(
    adata: Any,
    n_neighbors: int = 15,
    n_pcs: int | None = None,
    *,
    use_rep: str | None = None,
    layer: str | None = None,
    metric: Any = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    random_state: Any = 0,
    key_added: str | None = None,
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Find the nearest cells of every cell, and build UMAP's graph of them.

    Parameters
    ----------
    adata : AnnData
        The cells, in memory, backed by a file, or with Dask arrays.
    n_neighbors : int, default 15
        Size of the neighborhoods, the cell itself included.
    n_pcs : int, optional
        Number of columns of the rows that are used; 0 means ``X``.
    use_rep : str, optional
        Key of the rows in ``obsm``, or "X". By default ``X`` if it has at most 50 genes, else ``obsm["X_pca"]``.
    layer : str, optional
        Key of the rows in ``layers``, instead of ``use_rep``.
    metric, metric_kwds
        Distance of the cells, as in :class:`vicinal.UMAP`.
    random_state : int, default 0
        Seed of the search.
    key_added : str, optional
        Where the result is stored: ``uns[key_added]``, ``obsp[key_added + "_distances"]`` and ``"_connectivities"``.
        By default ``uns["neighbors"]``, ``obsp["distances"]`` and ``obsp["connectivities"]``.
    copy : bool, default False
        Whether to return a copy and leave ``adata`` as it is.
    **parameters
        Other parameters of :class:`vicinal.UMAP` that shape the graph: ``n_jobs``, ``device``, ``set_op_mix_ratio``,
        ``local_connectivity``, ``disconnection_distance``, ...

    Returns
    -------
    AnnData or None
        The copy, if one was asked for.

    See Also
    --------
    vicinal.tl.umap : the map of this graph.

    Examples
    --------
    >>> import numpy as np, vicinal
    >>> from anndata import AnnData
    >>> adata = AnnData(np.random.default_rng(0).normal(size=(100, 20)).astype("float32"))
    >>> vicinal.pp.neighbors(adata, n_neighbors=10)
    >>> adata.obsp["distances"].nnz
    900
    """
    from scipy.sparse import csr_matrix

    cells = writable(adata, copy)
    rows = rows_of(cells, use_rep, n_pcs, layer)
    keywords = dict(metric_kwds or {})
    model = UMAP(
        n_neighbors=n_neighbors,
        metric=metric,
        metric_kwds=keywords or None,
        random_state=random_state,
        transform_mode="graph",
        **parameters,
    ).fit(rows)
    found, graph = model.map_.neighbors, model.graph_
    index, distance = np.asarray(found.index)[:, 1:], np.asarray(found.distance)[:, 1:]
    present = index >= 0
    starts = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    distances = csr_matrix((distance[present], index[present], starts), shape=(cells.n_obs, cells.n_obs))
    distances.sort_indices()
    key, prefix = ("neighbors", "") if key_added is None else (key_added, f"{key_added}_")
    params = {"n_neighbors": index.shape[1] + 1, "method": "umap", "random_state": random_state, "metric": metric}
    others = {"metric_kwds": keywords or None, "use_rep": use_rep, "n_pcs": n_pcs, "layer": layer}
    cells.uns[key] = {
        "connectivities_key": f"{prefix}connectivities",
        "distances_key": f"{prefix}distances",
        "params": params | {name: value for name, value in others.items() if value is not None},
    }
    cells.obsp[f"{prefix}distances"] = distances
    cells.obsp[f"{prefix}connectivities"] = computed(graph) if is_dask(graph) else graph
    return cells if copy else None
