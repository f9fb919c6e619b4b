"""Endless batches of edges, drawn by weight from a graph that stays where it is.

Algorithm 2 lets an edge fire when u <= p_ij, u ~ U(0, 1). Here candidates are drawn uniformly from the stored
edges and kept by the same test, relative to the largest weight: the exact distribution, and no table that grows
with the graph.
"""

from __future__ import annotations

import torch
from torch import Tensor

CANDIDATES = 1 << 18  # looked at together: a few MiB, and many batches a draw


class EdgeSampler:
    """Draws (head, tail) from compressed sparse rows; the three tensors may lie on any one device."""

    def __init__(self, indptr: Tensor, indices: Tensor, weights: Tensor, generator: torch.Generator) -> None:
        self._indptr, self._indices, self._weights = indptr, indices, weights
        self._generator = generator
        self._largest = float(weights.max()) if len(weights) else 0.0
        self._head = self._tail = indices.new_empty(0, dtype=torch.int64)

    def draw(self, size: int) -> tuple[Tensor, Tensor]:
        """The next ``size`` edges."""
        if self._largest <= 0.0:
            raise ValueError("the graph has no edge to draw")
        while len(self._head) < size:
            self._refill()
        head, self._head = self._head[:size], self._head[size:]
        tail, self._tail = self._tail[:size], self._tail[size:]
        return head, tail

    def _refill(self) -> None:
        device = self._weights.device
        edges = torch.randint(len(self._weights), (CANDIDATES,), generator=self._generator, device=device)
        u = torch.rand(CANDIDATES, generator=self._generator, device=device) * self._largest
        edges = edges[u < self._weights[edges]]
        head = torch.searchsorted(self._indptr, edges, right=True) - 1
        self._head = torch.cat([self._head, head])
        self._tail = torch.cat([self._tail, self._indices[edges].long()])
