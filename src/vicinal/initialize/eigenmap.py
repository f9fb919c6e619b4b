"""Laplacian eigenmap by Chebyshev-filtered subspace iteration, with a budget of matrix products.

The leading eigenvectors of M = D^{-1/2} W D^{-1/2} are those of the normalized Laplacian I - M with the smallest
eigenvalues. A block of vectors is multiplied by a Chebyshev polynomial of M that is small on [-1, cut] and grows
fast beyond; ``cut`` follows the smallest Ritz value of the block (Zhou, Saad, Tiago, Chelikowsky 2006). An iteration
that uses up its budget still gives smooth vectors, which is all that an initial layout needs.

All sums have a fixed order (the core's block product, ``einsum`` without BLAS), so that the result has the same bits
for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.graph.graph import Graph

FIRST_CUT = 0.9
# The width of a block is a multiple of BLOCK, with at least GUARD vectors more than wanted, because the last vectors of
# a block converge slowly.
BLOCK, GUARD = 8, 4
DENSE_ROWS = 200  # up to this many rows all eigenvectors are computed
COARSE_ROWS = 5_000  # with more rows the iteration starts from the vectors of a coarser graph


@dataclass(frozen=True)
class Budget:
    """Largest number of filters, matrix products per filter, and the accepted residual relative to 1 - eigenvalue."""

    filters: int = 6
    degree: int = 24
    tolerance: float = 0.2


def eigenmap(graph: Graph, n_components: int, *, seed: int = 0, n_jobs: int = -1) -> NDArray[np.float64]:
    """Return the ``n_components`` smoothest nontrivial eigenvectors of a connected graph's normalized Laplacian."""
    degree = graph.degree()
    if graph.n <= max(DENSE_ROWS, 4 * (n_components + BLOCK)):
        return _dense(graph, degree, n_components)
    width = -(-(n_components + GUARD) // BLOCK) * BLOCK
    return _smooth(graph, degree, n_components, width, seed, n_jobs).vectors[:, :n_components]


@dataclass(frozen=True)
class _Smooth:
    """A block of orthonormal vectors, the smoothest first, and an upper bound of the eigenvalues beyond the block."""

    vectors: NDArray[np.float64]
    cut: float


def _smooth(graph: Graph, degree: NDArray[np.float64], wanted: int, width: int, seed: int, n_jobs: int) -> _Smooth:
    root = np.sqrt(degree)
    start = _from_coarser(graph, degree, wanted, width, seed, n_jobs)
    if start is None:
        start = _Smooth(np.random.default_rng(seed).normal(size=(graph.n, width)), FIRST_CUT)
    inverse = 1.0 / root
    weights = (graph.weights * inverse[graph.heads()] * inverse[graph.indices]).astype(np.float32)
    matrix = replace(graph, weights=weights)
    trivial = root / np.sqrt(np.einsum("n,n->", root, root))
    return _filtered(matrix, trivial, start, wanted, Budget(), n_jobs)


def _from_coarser(
    graph: Graph, degree: NDArray[np.float64], wanted: int, width: int, seed: int, n_jobs: int
) -> _Smooth | None:
    """Extend the smooth vectors of a coarser graph to the rows of this one.

    All rows of a group have the same f = D^{-1/2} v. Returns None if the graph is small or cannot be made much coarser.
    """
    if graph.n <= COARSE_ROWS:
        return None
    group, arrays = cpu.coarsen(graph.indptr, graph.indices, graph.weights, n_jobs)
    n = len(arrays[0]) - 1
    nothing = np.zeros(n, dtype=np.float32)
    coarse = Graph(*arrays, n, nothing, nothing)
    if not 8 * width <= coarse.n <= graph.n // 2:
        return None
    coarse_degree = coarse.degree()
    found = _smooth(coarse, coarse_degree, wanted, width, seed, n_jobs)
    values = found.vectors / np.sqrt(coarse_degree)[:, None]
    return _Smooth(values[group] * np.sqrt(degree)[:, None], found.cut)


def _dense(graph: Graph, degree: NDArray[np.float64], n_components: int) -> NDArray[np.float64]:
    root = 1.0 / np.sqrt(np.maximum(degree, np.finfo(np.float64).tiny))
    matrix = graph.to_scipy().toarray().astype(np.float64) * root[:, None] * root[None, :]
    _, vectors = _eigh(matrix)
    wanted = vectors[:, ::-1][:, 1 : n_components + 1]
    return np.pad(wanted, ((0, 0), (0, n_components - wanted.shape[1])))


def _filtered(
    matrix: Graph, trivial: NDArray[np.float64], start: _Smooth, wanted: int, budget: Budget, n_jobs: int
) -> _Smooth:
    cut = start.cut
    block = _orthonormal(start.vectors, trivial)
    for _ in range(budget.filters):
        block = _orthonormal(_filter(matrix, block, cut, budget.degree, n_jobs), trivial)
        image = _filter(matrix, block, 1.0, 1, n_jobs)  # a filter of degree 1 is the product M times the block
        values, rotation = _eigh(np.einsum("ni,nj->ij", block, image))
        values, rotation = values[::-1], rotation[:, ::-1]
        block, image = np.einsum("ni,ij->nj", block, rotation), np.einsum("ni,ij->nj", image, rotation)
        residual = np.sqrt(np.einsum("ni,ni->i", image - block * values, image - block * values))
        cut = float(np.clip(values[-1], 0.0, 1.0 - 1e-6))
        if np.all(residual[:wanted] <= budget.tolerance * np.maximum(1.0 - values[:wanted], 1e-4)):
            break
    return _Smooth(block, cut)


def _filter(matrix: Graph, block: NDArray[np.float64], cut: float, degree: int, n_jobs: int) -> NDArray[np.float64]:
    return cpu.chebyshev_filter(
        matrix.indptr,
        matrix.indices,
        matrix.weights,
        np.ascontiguousarray(block, dtype=np.float32),
        cut,
        degree,
        n_jobs,
    ).astype(np.float64)


def _orthonormal(block: NDArray[np.float64], trivial: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make the columns of a block orthonormal and orthogonal to the trivial eigenvector.

    The eigenvectors of their Gram matrix are used twice, because once leaves the rounding error of an ill-conditioned
    block.
    """
    block = block / np.maximum(np.abs(block).max(axis=0), np.finfo(np.float64).tiny)
    for _ in range(2):
        block = block - trivial[:, None] * np.einsum("n,ni->i", trivial, block)
        gram = np.einsum("ni,nj->ij", block, block)
        values, vectors = _eigh(gram)
        values = np.maximum(values, values[-1] * 1e-14 + np.finfo(np.float64).tiny)
        block = np.einsum("ni,ij->nj", block, vectors / np.sqrt(values))
    return block


def _eigh(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values, vectors = np.linalg.eigh(matrix)
    return values, vectors
