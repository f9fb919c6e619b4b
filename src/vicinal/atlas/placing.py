"""Where the rows of an append go: among the rows of the last fit, or into new territory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.areas.hierarchy import NOISE, majority, shares
from vicinal.atlas.refit import zoomed
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
    fit: Placed,
    zoom: float,
    held: Held,
    everyone: Places,
    since: int,
) -> Placed:
    """Place a batch of rows in the map of the last fit, which stays as it is.

    Parameters
    ----------
    fitted : FittedMap
        The map of the last fit.
    rows : array [m, columns]
    numbers : int64 array [m]
        The numbers of the rows in the atlas.
    fit : Placed
        The rows of the fit.
    zoom : float
        Scale of the layout, relative to the published map.
    held : Held
        Rows of new territory that came since the fit.
    everyone : array
        The places of all rows of the atlas.
    since : int
        Rows that came since the fit, those of the batch included.
    """
    known, keys = query(fitted, rows), hash_rows(rows, fitted.data.n_jobs)
    places, graph = place_among(fitted, known, keys)
    edges = graph.to_scipy()
    area, _ = majority(shares(edges, fit.area, int(fit.area.max(initial=NOISE)) + 1))
    island = find_territory(fitted, rows, known, held, since)
    island[graph.isolated() & (island == INSIDE)] = LONE
    same = fitted.data.duplicates.find(rows, keys)
    island[same >= 0] = INSIDE
    apart = island != INSIDE
    if apart.any():
        taken = np.concatenate([zoomed(everyone, zoom), places[~apart]])
        earlier = replace(held, places=zoomed(held.places, zoom))
        places[apart] = place_territory(fitted, rows[apart], island[apart], earlier, taken)
        area[apart] = NOISE
    cost = edge_costs(edges, places, fitted.reference_places, fitted)
    cost[apart] = 0.0
    published = zoomed(places, 1.0 / zoom)
    published[same >= 0] = fit.places[same[same >= 0]]
    return Placed(numbers, published, area.astype(np.int32), island, cost)


def placed_fit(model: Any, places: Places, numbers: NDArray[np.int64], labels: NDArray[np.int32]) -> Placed:
    """Return where the rows of a fit are in the published map, with the mean attraction of their edges."""
    fitted: FittedMap = model.map_
    own = edge_costs(fitted.graph.to_scipy(), fitted.reference_places, fitted.reference_places, fitted)
    cost = own[np.maximum(fitted.selection.position, 0)]
    return Placed(numbers, places, labels, np.zeros(len(places), dtype=np.int32), cost)


def edge_costs(edges: csr_matrix, heads: Places, tails: Places, fitted: FittedMap) -> NDArray[np.float32]:
    """Return the mean attraction of the edges of each head, -ln q by their weights; 0 for rows without edges."""
    kernel = fitted.recipe.plan.forces.kernel
    head = np.repeat(np.arange(edges.shape[0]), np.diff(edges.indptr))
    squared = np.square(heads[head].astype(np.float64) - tails[edges.indices]).sum(axis=1)
    pull = -np.log(kernel(np.maximum(squared, LEAST_SQUARE))) * edges.data
    weight = np.bincount(head, edges.data, edges.shape[0])
    total = np.bincount(head, pull, edges.shape[0])
    return np.asarray(total / np.where(weight > 0, weight, 1.0), dtype=np.float32)
