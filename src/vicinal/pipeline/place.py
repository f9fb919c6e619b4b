"""Places of rows in a finished map, which stays as it is; starting places of rows that join it; and the way back.

**From places to rows** (:func:`inverse_rows`, not in the survey): a local linear fit to the nearest points of the map.
The k points y_j of the map nearest to a place y have weights w_j = q(|y - y_j|²) (eq. 5), scaled to sum 1, and the
weighted mean m. The ridge regression of the data on the map around y is a weighted mean of their rows x_j:

    v_j ∝ w_j max(0, 1 + (y_j - m)ᵀ g),   g = (S + λ tr(S)/c I)⁻¹ (y - m),   S = Σ_j w_j (y_j - m)(y_j - m)ᵀ

and the result is Σ_j v_j x_j. Without the max it would be the regression exactly. With it the result is a mixture of
existing rows, inside and outside the map's hull, so no value exceeds theirs and nothing grows without bound far away.
Each place is computed by itself, in time that does not depend on the others.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.graph.graph import Graph
from vicinal.layout.density import DensityTerm
from vicinal.layout.forces import Kernel
from vicinal.layout.surroundings import Surroundings
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.rows import hash_rows
from vicinal.neighbors.search import nearest_points
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingDistances, recognize
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.recipe import Places, Plan, Weights
from vicinal.runtime.inputs import as_array


def warn_of_isolated(isolated: NDArray[np.bool_], limit: float, kind: str = "rows") -> None:
    """Warn, once, of the rows without an edge; rows are neighbors if they are nearer than ``limit``."""
    count, n = int(np.count_nonzero(isolated)), len(isolated)
    if count:
        why = "" if limit == np.inf else f" (no row is nearer than the disconnection distance {limit:.4g})"
        what = f"{count} of {n} {kind} are disconnected: no edge joins them{why}"
        where = "they are drawn around the map, and their position carries no information"
        warnings.warn(f"{what}; {where}", UserWarning, stacklevel=2)


def settle(
    plan: Plan,
    graph: Graph,
    known: Places,
    isolated: NDArray[np.bool_],
    keys: NDArray[np.uint64],
    limit: float,
    *,
    weights: Weights | None = None,
    n_jobs: int = -1,
    density: DensityTerm | None = None,
) -> Places:
    """Place new rows in any map that stays as it is; a row without neighbors lies on a circle around it.

    Parameters
    ----------
    plan : Plan
        The plan of the map.
    graph : Graph
        Edges from the new rows to those of the map.
    known : array [rows, n_components]
        The places of the map.
    isolated : bool array [rows]
        Which rows of the map have no edge.
    keys : array [new rows]
        Content hashes of the new rows.
    limit : float
        The cut-off of neighbors, for the warning.
    weights, density
        The proportions in which the rows of the map are drawn as negatives, and densMAP's term.
    """
    places = plan.place(graph, known, keys, negative_weights=weights, n_jobs=n_jobs, density=density)
    outside = graph.isolated()
    if outside.any() and plan.has_outside:
        warn_of_isolated(outside, limit, "new rows")
        places = places.copy()
        places[outside] = Surroundings.of(known[~isolated]).new_rows(keys[outside])
    return places


def place(fitted: FittedMap, rows: Rows) -> NDArray[np.float32]:
    """Return the places of ``rows`` in a fitted map.

    A row of the training data has its place there; any other is placed among its neighbors. The result for a row
    depends on that row alone.
    """
    assert fitted.shown_places is not None
    known, keys = recognize(fitted.data, rows)
    places: NDArray[np.float32] = fitted.shown_places[np.maximum(known, 0)]
    new = np.flatnonzero(known < 0)
    if new.size:
        places[new] = place_new(fitted, rows if new.size == len(known) else rows[new], keys[new])
    return places


def place_new(fitted: FittedMap, rows: Rows, keys: NDArray[np.uint64] | None = None) -> Places:
    """Place rows that are not among the training rows; ``keys`` are their content hashes."""
    keys = hash_rows(rows, fitted.data.n_jobs) if keys is None else keys
    placed, graph = place_among(fitted, query(fitted, rows), keys)
    return fitted.recipe.shown(placed, graph.isolated())


def place_among(fitted: FittedMap, neighbors: Neighbors, keys: NDArray[np.uint64]) -> tuple[Places, Graph]:
    """Place new rows whose neighbors are known; return the edges that placed them too."""
    plan, affinity, n_jobs = fitted.recipe.plan, fitted.recipe.affinity, fitted.data.n_jobs
    graph = affinity.graph_to_known(neighbors, fitted.searched.n, n_jobs)
    placed = settle(
        plan,
        graph,
        fitted.reference_places,
        fitted.isolated,
        keys,
        affinity.limit(fitted.searched.unrelated_distance),
        weights=fitted.negative_weights,
        n_jobs=n_jobs,
        density=_density_term(fitted, graph, neighbors),
    )
    return placed, graph


def memberships(fitted: FittedMap, rows: Rows) -> Graph:
    """Return the edges of ``rows`` to their nearest training rows."""
    return fitted.recipe.affinity.graph_to_known(query(fitted, rows), fitted.searched.n, fitted.data.n_jobs)


def query(fitted: FittedMap, rows: Rows) -> Neighbors:
    """Find the nearest training rows of ``rows``, without those that are too far away to be neighbors."""
    known = fitted.searched
    if fitted.laid_out is not None and isinstance(known, TrainingDistances):
        rows = rows[:, fitted.laid_out]
    columns = fitted.recipe.affinity.query_columns(known.n)
    neighbors = known.query(rows, columns, fitted.search_graph, fitted.neighbors.share)
    return fitted.recipe.affinity.related(neighbors, known.unrelated_distance, known.n)


def _density_term(fitted: FittedMap, graph: Graph, neighbors: Neighbors) -> DensityTerm | None:
    """Return the term that makes each new row match its own radius."""
    plan, density = fitted.recipe.density, fitted.density
    if plan is None or density is None or density.summary is None:
        return None
    return density.radii.placing(plan.placing_weight, density.summary, graph, neighbors)


# Standard deviation of the noise around the nearest neighbor's place, in units of the map.
NOISE = 0.05
# Room for pieces is sought in the first components only: two are enough, and cells of more would be too many.
AXES = 2
# Cells are numbered up to this distance from the middle of a map; points beyond it count as there.
FARTHEST_CELL = 2**30


def places_near_neighbors(
    index: NDArray[np.int32], places: NDArray[np.float32], rng: np.random.Generator, gap: float
) -> NDArray[np.float32]:
    """Place rows at their nearest neighbor that has a place, plus Gaussian noise.

    Parameters
    ----------
    index : array [n_new, k]
        The neighbors of the rows, which are numbered from ``len(places)``, nearest first; -1 for none.
    places : array [n_placed, n_components]
        The places of all earlier rows.
    rng : numpy.random.Generator
    gap : float
        Distance from the rest of the map at which a row starts if none of its neighbors can be placed.

    Returns
    -------
    array [n_new, n_components]
        Rows without placed neighbors start in free room, as near to the middle of the map as there is any: the width of
        a map of many pieces grows with the square root of their number.
    """
    known = len(places)
    new = np.full((len(index), places.shape[1]), np.nan, np.float32)
    waiting = np.arange(len(index))
    free: Iterator[NDArray[np.float64]] | None = None
    while waiting.size:
        tails = index[waiting]
        is_placed = (tails >= 0) & ((tails < known) | np.isfinite(new[np.maximum(tails - known, 0), 0]))
        nearest = np.argmax(is_placed, axis=1)[:, None]
        found = np.take_along_axis(is_placed, nearest, axis=1)[:, 0]
        tail = np.take_along_axis(tails, nearest, axis=1)[found, 0]
        is_old = (tail < known)[:, None]
        new[waiting[found]] = np.where(is_old, places[np.minimum(tail, known - 1)], new[np.maximum(tail - known, 0)])
        waiting = waiting[~found]
        if waiting.size and not found.any():
            free = free or free_places(places, rng, gap)
            new[waiting[0]] = next(free)
            waiting = waiting[1:]
    new += rng.normal(scale=NOISE, size=new.shape)
    return new


def are_elsewhere(index: NDArray[np.int32], known: int) -> bool:
    """Return whether rows are mostly neighbors of each other, so that the map has no room for them yet.

    ``index`` are the neighbors of rows numbered from ``known``, each row itself first.
    """
    # Halfway between the share of new rows, which rows in a random order have, and all.
    share = len(index) / max(known + len(index), 1)
    return bool(2 * np.count_nonzero(index[:, 1:] >= known) > (1 + share) * index[:, 1:].size)


def free_places(places: NDArray[np.float32], rng: np.random.Generator, gap: float) -> Iterator[NDArray[np.float64]]:
    """Yield places that are about ``gap`` or more apart from all points of a map and from each other.

    They are centers of cells of a square grid whose own and adjacent cells are empty, those near the median of the map
    first, in a random order among cells that are about as near.
    """
    middle = np.median(places, axis=0).astype(np.float64)
    axes = min(AXES, places.shape[1])
    cells = np.clip(np.rint((places[:, :axes] - middle[:axes]) / gap), -FARTHEST_CELL, FARTHEST_CELL).astype(np.int64)
    _, one_each = np.unique(cells @ (2 * FARTHEST_CELL + 1) ** np.arange(axes), return_index=True)
    around = np.stack(np.meshgrid(*[[-1, 0, 1]] * axes, indexing="ij"), axis=-1).reshape(-1, axes)
    full = {tuple(cell) for cell in (cells[one_each][:, None, :] + around).reshape(-1, axes).tolist()}
    inner, outer = -1.0, 4.0
    while True:
        # The cells of a ring, twice as wide each time.
        side = np.arange(-int(outer), int(outer) + 1)
        cells = np.stack(np.meshgrid(*[side] * axes, indexing="ij"), axis=-1).reshape(-1, axes)
        distance = np.linalg.norm(cells, axis=1)
        cells = cells[(distance > inner) & (distance <= outer)]
        order = np.argsort(np.linalg.norm(cells, axis=1) + rng.random(len(cells)), kind="stable")
        for cell in cells[order]:
            if tuple(cell.tolist()) not in full:
                place = middle.copy()
                place[:axes] += gap * cell
                yield place
        inner, outer = outer, 2.0 * outer


# Root mean square error on held-out digits, k = 15, maps of 2, 5 and 20 dimensions: λ = 0.1 2.36 2.18 2.14,
# λ = 0.3 2.35 2.17 2.14, λ = 1 2.34 2.17 2.15, λ = 2 2.35 2.18 2.15; the nearest row 3.04 2.76 2.74.
RIDGE = 1.0

# Largest coordinate of a map in float32; its square does not overflow in float64.
LARGEST_PLACE = float(np.finfo(np.float32).max)

# Places computed at a time, which bounds the memory of their small matrices and the delay of a signal.
BLOCK = 4096


def inverse_rows(
    places: ArrayLike,
    embedding: NDArray[np.float32],
    X: Any,
    kernel: Kernel,
    *,
    n_neighbors: int = 15,
    n_jobs: int = -1,
) -> Any:
    """Return rows of data for places in the map ``embedding`` of the rows ``X``, dense or sparse as ``X`` is.

    A row of the result depends on its place alone, bit for bit.
    """
    from scipy.sparse import csr_matrix, issparse, vstack

    n, components = embedding.shape
    y = as_array(places).astype(np.float64, copy=False)
    if y.ndim != 2 or y.shape[1] != components:
        raise ValueError(f"places must have shape [any, {components}], got {y.shape}")
    if not np.isfinite(y).all():
        bad = int(np.argmin(np.isfinite(y).all(axis=1)))
        raise ValueError(f"places contain NaN or infinity, first in row {bad}")
    y = np.clip(y, -LARGEST_PLACE, LARGEST_PLACE)
    k = min(n_neighbors, n)
    index = nearest_points(embedding, y, k, n_jobs).index
    parts = []
    for begin in range(0, max(len(y), 1), BLOCK):
        near = index[begin : begin + BLOCK]
        weights = _weights(y[begin : begin + BLOCK], embedding[near].astype(np.float64), kernel)
        indptr = np.arange(0, near.size + 1, k)
        columns: NDArray[Any] = near.reshape(-1)
        rows = X
        if rows.dtype != np.float32:  # the product would convert all rows
            used, columns = np.unique(near, return_inverse=True)
            rows, columns = X[used].astype(np.float32), columns.reshape(-1)
        shape = len(near), rows.shape[0]
        mixture = csr_matrix((weights.astype(np.float32).reshape(-1), columns, indptr), shape=shape)
        parts.append(mixture @ rows)
    return vstack(parts, format="csr") if issparse(X) else np.concatenate(parts)


def _weights(y: NDArray[np.float64], rows: NDArray[np.float64], kernel: Kernel) -> NDArray[np.float64]:
    """Return v for the points [m, k, c] nearest to each of the places [m, c]."""
    components = y.shape[1]
    w = kernel(_sum(((rows - y[:, None]) ** 2).transpose(2, 0, 1)))
    w = w / _sum(w.T)[:, None]
    mean = _sum((w[..., None] * rows).transpose(1, 0, 2))
    away = rows - mean[:, None]
    scatter = _sum(w[:, j, None, None] * away[:, j, :, None] * away[:, j, None, :] for j in range(w.shape[1]))
    trace = _sum(scatter[:, c, c] for c in range(components))
    # If all points coincide there is no slope, and any regular matrix gives the mean.
    ridge = np.where(trace > 0, RIDGE * trace / components, 1.0)
    slope = np.linalg.solve(scatter + ridge[:, None, None] * np.eye(components), (y - mean)[..., None])
    # If the place is so far away that the numbers overflow, the result is the mean.
    tilt = _sum((away * slope[:, None, :, 0]).transpose(2, 0, 1))
    v = w * np.maximum(1.0 + tilt, 0.0)
    total = _sum(v.T)[:, None]
    return np.where(np.isfinite(total) & (total > 0), v / np.where(total > 0, total, 1.0), w)


def _sum(terms: Any) -> NDArray[np.float64]:
    """Add the terms one after the other; the order of a NumPy reduction may depend on the number of places."""
    first, *others = terms
    out = np.array(first, dtype=np.float64)
    for term in others:
        out += term
    return out
