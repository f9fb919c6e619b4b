"""Draw batches of edges by weight from a graph in compressed sparse rows.

In Algorithm 2 an edge fires if u <= p_ij with u ~ U(0, 1). Here candidates are drawn uniformly from the stored edges
and kept by the same test, relative to the largest weight. The distribution is exact, and no table grows with the graph.

A row is thus the tail of a drawn edge in proportion to its degree, the sum of the weights of its edges. The negatives
of a batch are its tails; weighted by the inverse of their degrees, their mean is that of rows drawn uniformly.
"""

from __future__ import annotations

import torch
from torch import Tensor

CANDIDATES = 1 << 18  # tested together: a few MiB, and enough for many batches


class EdgeSampler:
    """An endless stream of edges (head, tail). The three tensors of the graph must be on one device."""

    def __init__(self, indptr: Tensor, indices: Tensor, weights: Tensor, generator: torch.Generator) -> None:
        self._indptr, self._indices, self._weights = indptr, indices, weights
        self._generator = generator
        self._largest = float(weights.max()) if len(weights) else 0.0
        self._uniform = _inverse_degrees(len(indptr) - 1, indices, weights)
        self._heads = self._tails = indices.new_empty(0, dtype=torch.int64)

    def draw(self, size: int) -> tuple[Tensor, Tensor]:
        """Return heads and tails of the next ``size`` edges."""
        if self._largest <= 0.0:
            raise ValueError("the graph has no edge with a positive weight")
        while len(self._heads) < size:
            self._refill()
        heads, self._heads = self._heads[:size], self._heads[size:]
        tails, self._tails = self._tails[:size], self._tails[size:]
        return heads, tails

    def uniform_weights(self, tails: Tensor) -> Tensor:
        """Return weights of tails that make them count as rows drawn uniformly; their expectation is 1."""
        return self._uniform[tails]

    def _refill(self) -> None:
        device = self._weights.device
        edges = torch.randint(len(self._weights), (CANDIDATES,), generator=self._generator, device=device)
        u = torch.rand(CANDIDATES, generator=self._generator, device=device) * self._largest
        edges = edges[u < self._weights[edges]]
        heads = torch.searchsorted(self._indptr, edges, right=True) - 1
        self._heads = torch.cat([self._heads, heads])
        self._tails = torch.cat([self._tails, self._indices[edges].long()])


def _inverse_degrees(n: int, indices: Tensor, weights: Tensor) -> Tensor:
    """Return the mean degree of the rows that have edges, divided by each row's own; 0 for rows without edges."""
    # On the host: the order of the sums on a GPU is not fixed.
    degree = torch.bincount(indices.cpu().long(), weights.cpu().double(), minlength=n)
    has_edges = degree > 0
    inverse = torch.where(has_edges, degree.sum() / has_edges.sum().clamp_min(1) / degree, 0.0)
    return inverse.float().to(weights.device)
