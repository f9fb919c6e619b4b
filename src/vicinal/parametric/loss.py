"""UMAP's loss of pairs of points, with the gradients of the sampled layout (survey eq. 8, 9, 12, 13).

    attract   c = ln(1 + a d^{2b})         dc/dy_i =  2ab d^{2(b-1)} / (1 + a d^{2b})       (y_i - y_j)
    repel     c = ln(1 + 1/(a d^{2b}))     dc/dy_i = -2b / ((eps + d²)(1 + a d^{2b}))       (y_i - y_j)

These are -ln q and -ln(1 - q) with q = 1/(1 + a d^{2b}). The gradients use the eps and the component bound of the
sampled layout (`cpp/layout/force.hpp`, Algorithm 1), so they are written out. Automatic differentiation would give
eq. 13 with eps = 0, and NaN if two points coincide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from vicinal.layout.kernel import Kernel

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


@dataclass(frozen=True)
class Negatives:
    """How many negatives each head has, and what the tails of a batch count as such.

    Parameters
    ----------
    number : int
        Negatives per head.
    strength : float
        Factor on the repulsion.
    heads, tails : Tensor of int64
        Row numbers of the edges of the batch.
    weight : Tensor
        Weight of each tail as a negative.
    """

    number: int
    strength: float
    heads: Tensor
    tails: Tensor
    weight: Tensor


def umap_loss(head: Tensor, tail: Tensor, kernel: Kernel, negatives: Negatives) -> Tensor:
    """Return c^a + c^r of Algorithm 2 for a batch of edges, divided by the number of edges.

    The negatives of a head are the tails of the edges before it in the batch, cyclically. Edges are drawn
    independently, so their order is random already, and a shift needs neither random numbers nor a scattered gradient.
    A row is not its own negative. The cost of a head's negatives is their number times the weighted mean.
    """
    loss = attract_cost(head - tail, kernel).mean()
    shifts = range(1, min(negatives.number, len(tail) - 1) + 1)
    if shifts:
        others = torch.stack([tail.roll(shift, 0) for shift in shifts])
        is_other = torch.stack([negatives.heads != negatives.tails.roll(shift, 0) for shift in shifts])
        weight = torch.stack([negatives.weight.roll(shift, 0) for shift in shifts]) * is_other
        cost = repel_cost(head - others, kernel)
        mean = (cost * weight.to(cost.dtype)).sum() / weight.sum().clamp_min(torch.finfo(torch.float32).tiny)
        loss = loss + negatives.strength * negatives.number * mean
    return loss


def correlation_loss(rows: Tensor, embedding: Tensor) -> Tensor:
    """Return 1 - Pearson's correlation between distances of consecutive rows and distances of their points."""
    with torch.no_grad():
        far = _consecutive_distances(rows.flatten(1))
        far = far - far.mean()
    near = _consecutive_distances(embedding)
    near = near - near.mean()
    scale = (far.square().sum() * near.square().sum()).clamp_min(SMALLEST_D2).sqrt()
    return 1.0 - (far * near).sum() / scale


def _consecutive_distances(rows: Tensor) -> Tensor:
    return (rows - rows.roll(1, 0)).square().sum(1).clamp_min(SMALLEST_D2).sqrt()


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
