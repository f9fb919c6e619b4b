"""Where the rows of an append go: among the rows of the last fit, or into new territory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.areas.hierarchy import NOISE, majority, shares
from vicinal.atlas.tables import INSIDE, LONE, Placed
from vicinal.atlas.territory import Held, find_territory, place_territory
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.rows import hash_rows
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.place import place_among, query
from vicinal.pipeline.recipe import Places

# Squared distances in the map are at least this, as in the losses: points may coincide.
LEAST_SQUARE = 1e-12


def place_batch(
    fitted: FittedMap,
    rows: Rows,
    numbers: NDArray[np.int64],
    *,
    areas: NDArray[np.int32],
    held: Held,
    everyone: Places,
) -> Placed:
    """Place a batch of rows in the map of the last fit, which stays as it is.

    Parameters
    ----------
    fitted : FittedMap
        The map of the last fit.
    rows : array [m, columns]
    numbers : int64 array [m]
        The numbers of the rows in the atlas.
    areas : int32 array
        The area of each row of the fit.
    held : Held
        Rows of new territory that came since the fit.
    everyone : array
        The places of all rows of the atlas.
    """
    known, keys = query(fitted, rows), hash_rows(rows, fitted.data.n_jobs)
    places, graph = place_among(fitted, known, keys)
    edges = graph.to_scipy()
    area, _ = majority(shares(edges, areas, int(areas.max(initial=NOISE)) + 1))
    island, _ = find_territory(fitted, rows, known, held)
    island[graph.isolated() & (island == INSIDE)] = LONE
    same = fitted.data.duplicates.find(rows, keys)
    island[same >= 0] = INSIDE
    apart = island != INSIDE
    if apart.any():
        places[apart] = place_territory(
            fitted, rows[apart], island[apart], held, np.concatenate([everyone, places[~apart]])
        )
        area[apart] = NOISE
    equal = np.flatnonzero(same >= 0)
    places[equal] = fitted.embedding[same[equal]]  # type: ignore[index]
    cost = edge_costs(edges, places, fitted.reference_places, fitted)
    cost[apart] = 0.0
    return Placed(numbers, places, area.astype(np.int32), island, cost)


def placed_fit(model: Any, numbers: NDArray[np.int64], labels: NDArray[np.int32]) -> Placed:
    """Return where the rows of a fit are, with the mean attraction of their edges."""
    fitted: FittedMap = model.map_
    n, places = fitted.data.n, fitted.embedding
    assert places is not None
    own = edge_costs(fitted.graph.to_scipy(), fitted.reference_places, fitted.reference_places, fitted)
    cost = own[np.maximum(fitted.selection.position, 0)]
    return Placed(numbers, places, labels, np.zeros(n, dtype=np.int32), cost)


def edge_costs(edges: csr_matrix, heads: Places, tails: Places, fitted: FittedMap) -> NDArray[np.float32]:
    """Return the mean attraction of the edges of each head, -ln q by their weights; 0 for rows without edges."""
    kernel = fitted.recipe.plan.forces.kernel
    head = np.repeat(np.arange(edges.shape[0]), np.diff(edges.indptr))
    squared = np.square(heads[head].astype(np.float64) - tails[edges.indices]).sum(axis=1)
    pull = -np.log(kernel(np.maximum(squared, LEAST_SQUARE))) * edges.data
    weight = np.bincount(head, edges.data, edges.shape[0])
    total = np.bincount(head, pull, edges.shape[0])
    return np.asarray(total / np.where(weight > 0, weight, 1.0), dtype=np.float32)
