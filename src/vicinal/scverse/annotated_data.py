"""What an AnnData holds for a map: the rows of its cells, their graph, and a map that was made before.

An AnnData is recognized by its attributes, so that nothing here imports anndata.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.runtime.inputs import is_dask

# scanpy compares cells by X itself up to this number of genes, and by obsm["X_pca"] beyond.
FEW_GENES = 50


def writable(adata: Any, copy: bool) -> Any:
    """Return the AnnData to write to: itself, or a copy in memory."""
    check_cells(adata)
    return (adata.to_memory() if adata.isbacked else adata.copy()) if copy else adata


def check_cells(adata: Any, name: str = "adata") -> None:
    """Raise TypeError if a value is not an AnnData."""
    if not all(hasattr(adata, part) for part in ("obs", "obsm", "obsp", "uns", "n_vars")):
        raise TypeError(f"{name} must be an AnnData, got {type(adata).__module__}.{type(adata).__name__}")


def rows_of(adata: Any, use_rep: str | None = None, n_pcs: int | None = None, layer: str | None = None) -> Any:
    """Return the rows that cells are compared by, chosen as scanpy does; a Dask array stays one.

    ``layer`` names a matrix in ``layers``; ``use_rep`` one in ``obsm``, or "X". Without both, ``X`` is taken if it has
    few genes, else the first ``n_pcs`` columns of ``obsm["X_pca"]``. ``n_pcs=0`` means ``X``.
    """
    if layer is not None:
        if use_rep is not None or n_pcs is not None:
            raise ValueError("layer cannot be given together with use_rep or n_pcs: each names the rows")
        return _loaded(_taken(adata.layers, layer, "layers"))
    if use_rep is None:
        small = n_pcs == 0 or adata.n_vars <= FEW_GENES
        if not small and "X_pca" not in adata.obsm:
            raise ValueError(
                f"adata has {adata.n_vars} genes and no obsm['X_pca']: call scanpy.pp.pca(adata) first, or give "
                "use_rep='X' to compare cells by all genes"
            )
        use_rep, n_pcs = ("X", None) if small else ("X_pca", n_pcs)
    if use_rep == "X":
        if adata.X is None:
            raise ValueError("adata.X is None: name the rows by use_rep (a key of obsm) or layer")
        return _loaded(adata.X)
    rows = _loaded(_taken(adata.obsm, use_rep, "obsm"))
    if n_pcs is not None and n_pcs > rows.shape[1]:
        raise ValueError(f"n_pcs is {n_pcs}, but obsm[{use_rep!r}] has {rows.shape[1]} columns")
    return rows if n_pcs is None else rows[:, :n_pcs]


def _taken(matrices: Any, key: str, part: str) -> Any:
    if key not in matrices:
        raise ValueError(f"adata has no {part}[{key!r}]; {part} has {', '.join(sorted(matrices)) or 'no matrices'}")
    return matrices[key]


def _loaded(rows: Any) -> Any:
    """Return the rows of a backed file in memory; others are returned as they are."""
    if is_dask(rows):
        return rows
    if hasattr(rows, "to_memory"):  # sparse, in a file
        return rows.to_memory()
    if hasattr(rows, "to_numpy"):  # a data frame in obsm
        return rows.to_numpy()
    return rows if isinstance(rows, np.ndarray) or hasattr(rows, "tocsr") else rows[...]


def computed(rows: Any) -> Any:
    """Return rows in memory, a Dask array computed."""
    return rows.compute() if is_dask(rows) else rows


def graph_of(adata: Any, neighbors_key: str) -> tuple[dict[str, Any], Any, Any]:
    """Return the parameters, distances and connectivities that ``pp.neighbors`` stored under a key."""
    if neighbors_key not in adata.uns:
        raise ValueError(
            f"adata has no uns[{neighbors_key!r}]: call vicinal.pp.neighbors(adata, key_added={neighbors_key!r}) first"
        )
    stored = adata.uns[neighbors_key]
    names = [stored.get(f"{part}_key", part) for part in ("distances", "connectivities")]
    distances, connectivities = (computed(_loaded(_taken(adata.obsp, name, "obsp"))) for name in names)
    return plain(stored.get("params", {})), distances, connectivities


def plain(params: Any) -> dict[str, Any]:
    """Return stored parameters as Python values: files hold numbers as arrays."""
    one = {name: np.size(value) == 1 and hasattr(value, "dtype") for name, value in params.items()}
    return {name: np.asarray(value).item() if one[name] else value for name, value in params.items()}


def rows_of_graph(adata: Any, params: dict[str, Any]) -> Any:
    """Return the rows that a stored graph was made from."""
    return rows_of(adata, *(params.get(name) for name in ("use_rep", "n_pcs", "layer")))


def map_keys(adata: Any, basis: str) -> tuple[str, str]:
    """Return the keys in ``obsm`` and ``uns`` of a map, which ``basis`` names as in scanpy's plots."""
    in_obsm = basis if basis in adata.obsm else f"X_{basis}"
    if in_obsm not in adata.obsm:
        raise ValueError(f"adata has no map obsm['X_{basis}']; obsm has {', '.join(sorted(adata.obsm)) or 'nothing'}")
    return in_obsm, basis if basis in adata.uns else basis.removeprefix("X_")


def project(adata: Any, reference: Any) -> NDArray[Any]:
    """Return the principal components of cells by the loadings of a reference, ``varm["PCs"]``."""
    if "PCs" not in reference.varm:
        raise ValueError("adata has no obsm['X_pca'], and reference has no varm['PCs'] to compute it from")
    loadings, known = np.asarray(reference.varm["PCs"]), computed(_loaded(reference.X))
    centered = reference.uns.get("pca", {}).get("params", {}).get("zero_center", True)
    mean = np.asarray(known.mean(axis=0)).reshape(1, -1) @ loadings if centered else 0.0
    if not np.allclose(known[:100] @ loadings - mean, reference.obsm["X_pca"][:100], rtol=1e-2, atol=1e-2):
        raise ValueError(
            "reference.obsm['X_pca'] is not the projection of reference.X by varm['PCs'], so new cells cannot be "
            "projected: give adata an obsm['X_pca'] of the same space"
        )
    return np.asarray(computed(_loaded(same_genes(adata, reference).X)) @ loadings - mean)


def same_genes(adata: Any, reference: Any) -> Any:
    """Return an AnnData with the genes of a reference, in their order."""
    if adata.var_names.equals(reference.var_names):
        return adata
    missing = reference.var_names.difference(adata.var_names)
    if len(missing):
        shown = ", ".join(map(str, missing[:3])) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        raise ValueError(f"adata does not have {len(missing)} of the genes of reference: {shown}")
    return adata[:, reference.var_names]
