"""The training loop of Algorithm 2: one optimizer step per batch of edges, with a learning rate that falls to 0."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vicinal.parametric.terms import EdgeBatch, Term

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}
WARM_UP = 0.02  # share of the steps in which the learning rate rises: the optimizer's first moment estimates are poor

TrainingHistory = dict[str, list[float]]
# Initial weights and dropout use torch's global random state. Only one training at a time may seed it.
_GLOBAL_STATE = threading.RLock()


@contextlib.contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's global generators inside the block and restore their state afterwards."""
    with _GLOBAL_STATE, torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@dataclass(frozen=True)
class Plan:
    """Length of the training, optimizer and stopping rule."""

    learning_rate: float
    batch_size: int
    n_epochs: int
    steps_per_epoch: int = 0
    optimizer: str | Callable[..., torch.optim.Optimizer] = "adam"
    weight_decay: float = 0.0
    clip_norm: float | None = None
    patience: int | None = None
    min_improvement: float = 1e-3
    autocast: torch.dtype | None = None

    def make_optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """Create the optimizer of these parameters."""
        options: dict[str, Any] = {"lr": self.learning_rate, "weight_decay": self.weight_decay}
        if not isinstance(self.optimizer, str):
            return self.optimizer(parameters, **options)
        return OPTIMIZERS[self.optimizer](parameters, fused=True, **options)

    def rate(self, step: int) -> float:
        """Return the learning rate of a step: a short linear rise, then a linear fall to 0."""
        steps = self.n_epochs * self.steps_per_epoch
        rise = max(1.0, WARM_UP * steps)
        return self.learning_rate * min((step + 1) / rise, 1.0 - step / steps)


def train(
    networks: nn.ModuleDict,
    phases: Sequence[Sequence[Term]],
    batches: Callable[[], EdgeBatch],
    plan: Plan,
    after_epoch: Callable[[int], bool] | None = None,
) -> TrainingHistory:
    """Train the networks in place and return the mean of every term by epoch.

    Each phase of a step has its own optimizer step: the terms of one phase are added, two phases alternate.
    ``after_epoch(epochs done)`` ends the training if it returns true.
    """
    optimizer = plan.make_optimizer([p for p in networks.parameters() if p.requires_grad])
    history: TrainingHistory = {name: [] for name in ("loss", *[term.name for phase in phases for term in phase])}
    patience = Patience(plan.patience, plan.min_improvement)
    steps = plan.steps_per_epoch
    networks.train()
    for epoch in range(plan.n_epochs if steps else 0):
        total: Tensor | float = 0.0
        for step in range(epoch * steps, (epoch + 1) * steps):
            for group in optimizer.param_groups:
                group["lr"] = plan.rate(step)
            batch = batches()
            total = total + torch.cat([_optimize(phase, batch, optimizer, plan) for phase in phases])
        # The device is read once per epoch, so that its steps do not wait for Python.
        mean = torch.as_tensor(total / steps).tolist()
        means = dict(zip(history, (sum(mean), *mean), strict=True))
        for name, value in means.items():
            history[name].append(value)
        if not math.isfinite(means["loss"]):
            raise FloatingPointError(f"the loss is {means['loss']} in epoch {epoch + 1}; lower learning_rate")
        stop = after_epoch is not None and after_epoch(epoch + 1)
        networks.train()  # encoding rows in after_epoch switches to evaluation mode
        if stop or patience.is_over(means["loss"]):
            break
    networks.eval()
    return history


def _optimize(phase: Sequence[Term], batch: EdgeBatch, optimizer: torch.optim.Optimizer, plan: Plan) -> Tensor:
    """Run one optimizer step on the sum of the phase's terms and return their weighted values."""
    device = optimizer.param_groups[0]["params"][0].device
    with torch.autocast(device.type, plan.autocast, enabled=plan.autocast is not None):
        costs = torch.stack([term.weight * term(batch) for term in phase])
    optimizer.zero_grad(set_to_none=True)
    costs.sum().backward()  # type: ignore[no-untyped-call]
    if plan.clip_norm is not None:
        for group in optimizer.param_groups:
            nn.utils.clip_grad_norm_(group["params"], plan.clip_norm)
    optimizer.step()
    return costs.detach().float()


class Patience:
    """Early stopping when the loss has not fallen by a share ``min_improvement`` of itself for some epochs."""

    def __init__(self, epochs: int | None, min_improvement: float) -> None:
        self._epochs, self._min_improvement = epochs, min_improvement
        self._best, self._waited = math.inf, 0

    def is_over(self, loss: float) -> bool:
        """Record the loss of an epoch and return whether to stop."""
        if loss < self._best - self._min_improvement * abs(loss):
            self._best, self._waited = loss, 0
        else:
            self._waited += 1
        return self._epochs is not None and self._waited >= self._epochs
