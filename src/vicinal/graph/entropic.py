"""Entropic graphs of t-SNE and LargeVis: conditional probabilities of a given perplexity (survey eq. 18, 19)."""

from __future__ import annotations

import numpy as np

from vicinal.backends import cpu, say_fallback
from vicinal.graph.graph import Graph
from vicinal.neighbors.table import Neighbors


def entropic_graph(
    neighbors: Neighbors, perplexity: float = 30.0, *, normalised: bool = True, n_jobs: int = -1
) -> Graph:
    """Build the symmetric graph of t-SNE and LargeVis: the mean of both conditional probabilities of a pair.

    Parameters
    ----------
    neighbors : Neighbors
        Neighbor table of k columns including the row itself. It can express perplexities below k - 1;
        3 * perplexity + 1 columns hold nearly all of the Gaussian.
    perplexity : float, default 30
        Perplexity of the conditional probabilities of each row (eq. 18), at least 1.
    normalised : bool, default True
        Divide all weights by their sum (eq. 19). Otherwise the weights of a row sum to 1 on average.
    n_jobs : int, default -1
        Number of threads; -1 uses all. The result does not depend on it.

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
    _check_perplexity(perplexity)
    if neighbors.place is not None:
        say_fallback("the entropic graph and the layout on it", "a GPU has neither")
    conditional, sigma = cpu.perplexity_conditionals(
        neighbors.index, neighbors.distance, float(perplexity), False, n_jobs
    )
    indptr, indices, weights = cpu.symmetrize_mean(neighbors.index, conditional, n_jobs)
    if normalised and weights.size:
        weights = (weights / weights.sum(dtype=np.float64)).astype(np.float32)
    return Graph(indptr, indices, weights, neighbors.n, np.zeros(neighbors.n, dtype=np.float32), sigma)


def entropic_bipartite_graph(
    neighbors: Neighbors, n_tails: int, perplexity: float = 30.0, *, n_jobs: int = -1
) -> Graph:
    """Build the graph from new rows to their nearest known rows (eq. 18); the weights of a row sum to 1."""
    _check_perplexity(perplexity)
    weights, sigma = cpu.perplexity_conditionals(neighbors.index, neighbors.distance, float(perplexity), True, n_jobs)
    rho = np.zeros(neighbors.n, dtype=np.float32)
    return Graph.to_known_rows(neighbors.on(None), weights, n_tails, rho, sigma)


def _check_perplexity(perplexity: float) -> None:
    if not (perplexity >= 1.0 and np.isfinite(perplexity)):
        raise ValueError(f"perplexity must be a number of at least 1, got {perplexity!r}")
