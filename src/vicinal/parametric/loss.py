"""UMAP's loss of pairs of points, with the gradients of the sampled layout (survey eq. 8, 9, 12, 13).

    attract   c = ln(1 + a d^{2b})         dc/dy_i =  2ab d^{2(b-1)} / (1 + a d^{2b})       (y_i - y_j)
    repel     c = ln(1 + 1/(a d^{2b}))     dc/dy_i = -2b / ((eps + d²)(1 + a d^{2b}))       (y_i - y_j)

These are -ln q and -ln(1 - q) with q = 1/(1 + a d^{2b}). The gradients use the eps and the component bound of the
sampled layout (`cpp/layout/force.hpp`, Algorithm 1), so they are written out. Automatic differentiation would give
eq. 13 with eps = 0, and NaN if two points coincide.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from vicinal.parametric.device_rows import DeviceRows

if TYPE_CHECKING:
    from vicinal.layout.forces import Kernel


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


REPULSION_EPSILON = 1e-3  # eq. 13
SMALLEST_D2 = 1e-12  # keeps d^{2(b-1)} finite; it multiplies a difference near 0
CLIP = 4.0  # bound of each component of a pair's gradient, as in the sampled layout


class _PairCost(torch.autograd.Function):
    """Cost of each difference [..., components]. The forward pass computes the gradient too: both need d^{2b}."""

    @staticmethod
    def forward(ctx: Any, difference: Tensor, kernel: Kernel, attractive: bool) -> Tensor:
        d2 = difference.square().sum(-1)
        floored = d2.clamp_min(SMALLEST_D2)
        ap = kernel.a * floored.pow(kernel.b)
        if attractive:
            cost = ap.log1p()
            coefficient = (2.0 * kernel.b) * ap / (floored * (1.0 + ap))
        else:
            cost = ap.reciprocal().log1p()
            coefficient = (-2.0 * kernel.b) / ((REPULSION_EPSILON + d2) * (1.0 + ap))
        ctx.save_for_backward((coefficient.unsqueeze(-1) * difference).clamp_(-CLIP, CLIP))
        return cost

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return outer[0].unsqueeze(-1) * gradient, None, None


def attract_cost(difference: Tensor, kernel: Kernel) -> Tensor:
    """Return the attraction cost c^a of each difference y_i - y_j."""
    return _PairCost.apply(difference, kernel, True)  # type: ignore[no-any-return, no-untyped-call]


def repel_cost(difference: Tensor, kernel: Kernel) -> Tensor:
    """Return the repulsion cost c^r of each difference y_i - y_j."""
    return _PairCost.apply(difference, kernel, False)  # type: ignore[no-any-return, no-untyped-call]


def umap_loss(batch: EdgeBatch, kernel: Kernel, n_negatives: int, repulsion: float) -> Tensor:
    """Return c^a + c^r of Algorithm 2 for a batch of edges, divided by the number of edges.

    The negatives of a head are the tails of the edges before it in the batch, cyclically. Edges are drawn
    independently, so their order is random already, and a shift needs neither random numbers nor a scattered gradient.
    A row is not its own negative. The cost of a head's negatives is their number times the weighted mean.
    """
    head, tail = batch.ends()
    loss = attract_cost(head - tail, kernel).mean()
    shifts = range(1, min(n_negatives, len(tail) - 1) + 1)
    if shifts:
        heads, tails = (rows.to(tail.device) for rows in batch.edges)
        counts = batch.tail_weights.to(tail.device)
        others = torch.stack([tail.roll(shift, 0) for shift in shifts])
        is_other = torch.stack([heads != tails.roll(shift, 0) for shift in shifts])
        weight = torch.stack([counts.roll(shift, 0) for shift in shifts]) * is_other
        cost = repel_cost(head - others, kernel)
        mean = (cost * weight.to(cost.dtype)).sum() / weight.sum().clamp_min(torch.finfo(torch.float32).tiny)
        loss = loss + repulsion * n_negatives * mean
    return loss


def correlation_loss(rows: Tensor, embedding: Tensor) -> Tensor:
    """Return 1 - Pearson's correlation between distances of consecutive rows and distances of their points."""
    with torch.no_grad():
        flat = rows.flatten(1)
        far = _distances(flat, flat.roll(1, 0))
        far = far - far.mean()
    near = _distances(embedding, embedding.roll(1, 0))
    near = near - near.mean()
    scale = (far.square().sum() * near.square().sum()).clamp_min(SMALLEST_D2).sqrt()
    return 1.0 - (far * near).sum() / scale


def triplet_loss(embedding: Tensor, labels: Tensor, generator: torch.Generator, margin: float = 1.0) -> Tensor:
    """Return the mean of max(0, |anchor - positive| - |anchor - negative| + margin) over one random triplet per row.

    A positive has the anchor's label, a negative another one; both are drawn from the batch. Rows that lack a positive
    or a negative are left out.
    """
    same = labels[:, None] == labels[None, :]
    other = ~same
    same.fill_diagonal_(False)
    chance = torch.rand(same.shape, generator=generator, device=generator.device).to(labels.device)
    positive = (chance * same).argmax(1)
    negative = (chance * other).argmax(1)
    usable = (same.any(1) & other.any(1)).to(embedding.dtype)
    gap = _distances(embedding, embedding[positive]) - _distances(embedding, embedding[negative]) + margin
    return (gap.clamp_min(0.0) * usable).sum() / usable.sum().clamp_min(1.0)


def _distances(one: Tensor, other: Tensor) -> Tensor:
    return (one - other).square().sum(1).clamp_min(SMALLEST_D2).sqrt()


PairLoss = Callable[[Tensor, Tensor], Tensor]
LABELED_ROWS = 256  # per batch


class EdgeBatch:
    """A batch of edges. It is drawn, fetched and encoded when a term first needs it, heads and tails in one pass."""

    def __init__(self, encoder: nn.Module, rows: DeviceRows, sampler: EdgeSampler, size: int) -> None:
        self._encoder, self._rows, self._sampler, self._size = encoder, rows, sampler, size

    @cached_property
    def edges(self) -> tuple[Tensor, Tensor]:
        """The row numbers of the heads and of the tails."""
        return self._sampler.draw(self._size)

    @cached_property
    def rows(self) -> Tensor:
        """The rows of the heads, then those of the tails."""
        return self._rows.take(torch.cat(self.edges))

    @cached_property
    def embedding(self) -> Tensor:
        """The points of ``rows``."""
        return encode(self._encoder, self.rows)

    def ends(self) -> tuple[Tensor, Tensor]:
        """Return the points of the heads and of the tails."""
        return self.embedding[: self._size], self.embedding[self._size :]

    @cached_property
    def tail_weights(self) -> Tensor:
        """The weights with which the tails count as negatives: as if they were drawn uniformly from all rows."""
        return self._sampler.uniform_weights(self.edges[1])


def encode(encoder: nn.Module, rows: Tensor) -> Tensor:
    """Return the points of rows in the rows' type: the losses of close pairs need more digits than bfloat16 has."""
    return encoder(rows).to(rows.dtype)  # type: ignore[no-any-return]


def reconstruction_loss(batch: EdgeBatch, decoder: nn.Module, loss: PairLoss, joint: bool) -> Tensor:
    """Return the loss between decoded points and their rows; unless ``joint``, it trains the decoder only."""
    points = batch.embedding if joint else batch.embedding.detach()
    return loss(decoder(points), batch.rows)


def landmark_loss(
    encoder: nn.Module, rows: DeviceRows, positions: Tensor, loss: PairLoss, size: int, generator: torch.Generator
) -> Tensor:
    """Return the loss between the points of ``size`` random rows and the positions where they should be."""
    index = draw_index(len(rows), size, generator)
    return loss(encode(encoder, rows.take(index)), positions[index.to(positions.device)])


def class_loss(
    encoder: nn.Module,
    head: nn.Module | None,
    rows: DeviceRows,
    labeled: Tensor,
    labels: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """Return the loss of classifying rows by their points: cross-entropy with a class head, triplets without.

    ``labeled`` holds the numbers of the rows that have a label, ``labels`` their classes.
    """
    chosen = draw_index(len(labeled), LABELED_ROWS, generator)
    points = encode(encoder, rows.take(labeled[chosen]))
    classes = labels[chosen.to(labels.device)]
    if head is None:
        return triplet_loss(points, classes, generator)
    return nn.functional.cross_entropy(head(points), classes)


def draw_index(n: int, size: int, generator: torch.Generator) -> Tensor:
    """Return ``size`` random numbers below ``n``, or all numbers below ``n`` if there are no more than ``size``."""
    if n <= size:
        return torch.arange(n, device=generator.device)
    return torch.randint(n, (size,), generator=generator, device=generator.device)


def relative_squared_error(decoded: Tensor, rows: Tensor) -> Tensor:
    """Return the squared error divided by the variance of the batch's rows, which does not depend on their scale."""
    variance = (rows - rows.mean(0)).square().mean().clamp_min(torch.finfo(rows.dtype).tiny)
    return (decoded - rows).square().mean() / variance


def mean_squared_distance(points: Tensor, positions: Tensor) -> Tensor:
    """Return the mean squared distance between points and their wanted positions."""
    return (points - positions).square().sum(1).mean()
