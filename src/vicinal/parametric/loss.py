"""UMAP's costs of pairs of embedded rows, with the gradients of the sampled layout (survey eq. 8, 9, 12, 13).

    attract   c = ln(1 + a d^{2b})         dc/dy_i =  2ab d^{2(b-1)} / (1 + a d^{2b})       (y_i - y_j)
    repel     c = ln(1 + 1/(a d^{2b}))     dc/dy_i = -2b / ((eps + d²)(1 + a d^{2b}))       (y_i - y_j)

c = -ln q and -ln(1 - q) for q = 1/(1 + a d^{2b}). eps and the bound on each component of a gradient are those of
the layout (`cpp/force.hpp`, Algorithm 1), so the gradients are written out instead of derived: automatic
differentiation would give eq. 13 with eps = 0, and NaN where two rows coincide.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vicinal.layout.kernel import Kernel

REPULSION_EPSILON = 1e-3  # eq. 13
SMALLEST_D2 = 1e-12  # d^{2(b-1)} stays finite; the difference it multiplies is 0 by then
CLIP = 4.0  # of each component of a pair's gradient, as in the sampled layout


class _PairCost(torch.autograd.Function):
    """Cost of every difference [..., components]; one power serves the cost and its gradient."""

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
    """c^a of every y_i - y_j."""
    return _PairCost.apply(difference, kernel, True)  # type: ignore[no-any-return, no-untyped-call]


def repel_cost(difference: Tensor, kernel: Kernel) -> Tensor:
    """c^r of every y_i - y_j."""
    return _PairCost.apply(difference, kernel, False)  # type: ignore[no-any-return, no-untyped-call]


def umap_loss(head: Tensor, tail: Tensor, kernel: Kernel, negatives: int, repulsion: float = 1.0) -> Tensor:
    """(c^a + c^r) of Algorithm 2 for a batch of edges, divided by their number.

    A head's negatives are the tails of the edges that follow it in the batch: edges are drawn independently, so
    their order is already random, and a shift costs neither random numbers nor a scattered gradient.
    """
    loss = attract_cost(head - tail, kernel).mean()
    shifts = range(1, min(negatives, len(tail) - 1) + 1)
    if shifts:
        others = torch.stack([tail.roll(shift, 0) for shift in shifts])
        loss = loss + repulsion * negatives * repel_cost(head - others, kernel).mean()
    return loss


def correlation_loss(rows: Tensor, embedding: Tensor) -> Tensor:
    """1 - Pearson's correlation of distances between rows of a batch and between their places."""
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
    """Mean of max(0, |anchor - positive| - |anchor - negative| + margin) over one random triplet a row.

    Positives share the anchor's label, negatives do not; both come from the batch. Rows without either are left out.
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
