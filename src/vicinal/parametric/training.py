"""The training loop of Algorithm 2: batches of edges, an optimiser step each, a rate that falls to 0."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vicinal.parametric.terms import Batch, Term
from vicinal.runtime.sharing import Guard

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}
WARM_UP = 0.02  # of the steps, while the optimiser's estimates of its moments are poor

History = dict[str, list[float]]
# Everything random outside our own generators is torch's global state: one training at a time may borrow it.
_GLOBAL_STATE = Guard()


@contextlib.contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Weights and dropout draw from torch's global generators: seeded inside, put back afterwards."""
    with _GLOBAL_STATE, torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@dataclass(frozen=True)
class Plan:
    """How long and how to train."""

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
        options: dict[str, Any] = {"lr": self.learning_rate, "weight_decay": self.weight_decay}
        if not isinstance(self.optimizer, str):
            return self.optimizer(parameters, **options)
        return OPTIMIZERS[self.optimizer](parameters, fused=True, **options)

    def rate(self, step: int) -> float:
        """The learning rate: a short rise, then a straight fall to 0."""
        steps = self.n_epochs * self.steps_per_epoch
        rise = max(1.0, WARM_UP * steps)
        return self.learning_rate * min((step + 1) / rise, 1.0 - step / steps)


def train(
    networks: nn.ModuleDict,
    phases: Sequence[Sequence[Term]],
    batches: Callable[[], Batch],
    plan: Plan,
    after_epoch: Callable[[int], bool] | None = None,
) -> History:
    """Trains the networks in place; returns the mean of every term by epoch.

    A step goes through the phases, each with an optimiser step of its own: one phase adds its terms up, two
    alternate. ``after_epoch(epochs done)`` may end the training by answering true.
    """
    optimizer = plan.make_optimizer([p for p in networks.parameters() if p.requires_grad])
    history: History = {name: [] for name in ("loss", *[term.name for phase in phases for term in phase])}
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
        # One look at the device an epoch: the steps before it run without waiting for Python.
        mean = torch.as_tensor(total / steps).tolist()
        means = dict(zip(history, (sum(mean), *mean), strict=True))
        for name, value in means.items():
            history[name].append(value)
        if not math.isfinite(means["loss"]):
            raise FloatingPointError(f"the loss became {means['loss']} in epoch {epoch + 1}; lower learning_rate")
        stop = after_epoch is not None and after_epoch(epoch + 1)
        networks.train()  # whoever looked at the map has switched to evaluation
        if stop or patience.is_over(means["loss"]):
            break
    networks.eval()
    return history


def _optimize(phase: Sequence[Term], batch: Batch, optimizer: torch.optim.Optimizer, plan: Plan) -> Tensor:
    """One step of the optimiser on the phase's terms; their weighted values."""
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
    """Early stopping: over when the loss has not fallen by a share of itself for some epochs."""

    def __init__(self, epochs: int | None, min_improvement: float) -> None:
        self._epochs, self._min_improvement = epochs, min_improvement
        self._best, self._waited = math.inf, 0

    def is_over(self, loss: float) -> bool:
        if loss < self._best - self._min_improvement * abs(loss):
            self._best, self._waited = loss, 0
        else:
            self._waited += 1
        return self._epochs is not None and self._waited >= self._epochs
