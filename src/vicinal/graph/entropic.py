"""Entropic graphs of t-SNE and LargeVis: conditional probabilities of a given perplexity (survey eq. 18, 19)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, cpu, resolve_place
from vicinal.graph.graph import Graph
from vicinal.neighbors.table import Neighbors

# The weights of a row sum to 1 on average, so the sum of 2^27 rows fits into 63 bits.
UNIT_BITS = 36


def entropic_graph(
    neighbors: Neighbors,
    perplexity: float = 30.0,
    *,
    normalized: bool = True,
    n_jobs: int = -1,
    device: str | None = None,
) -> Graph:
    """Build the symmetric graph of t-SNE and LargeVis: the mean of both conditional probabilities of a pair.

    Parameters
    ----------
    neighbors : Neighbors
        Neighbor table of k columns including the row itself. It can express perplexities below k - 1;
        3 * perplexity + 1 columns hold nearly all of the Gaussian.
    perplexity : float, default 30
        Perplexity of the conditional probabilities of each row (eq. 18), at least 1.
    normalized : bool, default True
        Divide all weights by their sum (eq. 19). Otherwise the weights of a row sum to 1 on average.
    n_jobs : int, default -1
        Number of threads; -1 uses all. The result does not depend on it.
    device : {None, "cpu", "cuda", "cuda:N"}, default None
        Where the work is done; None means where the table lives. The result has the same bits everywhere.

    Returns
    -------
    graph : Graph

    See Also
    --------
    fuzzy_graph : the graph of UMAP.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import entropic_graph, find_neighbors
    >>> X = load_iris().data
    >>> graph = entropic_graph(find_neighbors(X, 61), perplexity=20.0)
    >>> round(float(graph.weights.sum()), 3)
    1.0
    """
    check_perplexity(perplexity)
    if device is not None:
        neighbors = neighbors.on(resolve_place(device))
    place, index = neighbors.place, neighbors.array("index")
    work = backend_of(place)
    conditional, sigma = work.perplexity_conditionals(
        index, neighbors.array("distance"), float(perplexity), False, n_jobs
    )
    indptr, indices, weights = work.symmetrize_mean(index, conditional, n_jobs)
    if normalized and weights.size:
        weights = work.divide_weights(weights, total_of_units(work.weight_units(weights, 2.0**UNIT_BITS)))
    with work.active():
        rho = work.xp.zeros(neighbors.n, dtype=np.float32)
    return Graph.at(place, (indptr, indices, weights), neighbors.n, rho, sigma)


def weight_units(weights: NDArray[np.float32]) -> int:
    """Return the sum of weights as a number of units."""
    return cpu.weight_units(weights, 2.0**UNIT_BITS)


def total_of_units(units: int) -> float:
    """Return the sum of weights, given in units of 2^-UNIT_BITS: integers have the same sum in any order."""
    return units / 2.0**UNIT_BITS


def entropic_bipartite_graph(
    neighbors: Neighbors, n_tails: int, perplexity: float = 30.0, *, n_jobs: int = -1
) -> Graph:
    """Build the graph from new rows to their nearest known rows (eq. 18); the weights of a row sum to 1."""
    check_perplexity(perplexity)
    place, table = neighbors.place, (neighbors.array("index"), neighbors.array("distance"))
    work = backend_of(place)
    weights, sigma = work.perplexity_conditionals(*table, float(perplexity), True, n_jobs)
    with work.active():
        rho = work.xp.zeros(neighbors.n, dtype=np.float32)
        return Graph.to_known_rows(neighbors, weights, n_tails, rho, sigma)


def check_perplexity(perplexity: float) -> None:
    """Raise ValueError if a perplexity is not possible."""
    if not (perplexity >= 1.0 and np.isfinite(perplexity)):
        raise ValueError(f"perplexity must be a number of at least 1, got {perplexity!r}")
