"""The training loop of Algorithm 2: one optimizer step per batch of edges, with a learning rate that falls to 0."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vicinal.parametric.loss import (
    ClassTerm,
    CorrelationTerm,
    EdgeBatch,
    EdgeSampler,
    LandmarkTerm,
    PairLoss,
    ReconstructionTerm,
    Term,
    UmapTerm,
    mean_squared_distance,
    relative_squared_error,
)
from vicinal.parametric.networks import Model
from vicinal.parametric.rows import DeviceRows, InputRows, as_tensor, count_bytes, storage_device

if TYPE_CHECKING:
    from vicinal.layout.forces import Kernel


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


# Fashion-MNIST (60,000 rows) needs about 4 million edges. Small data get more epochs, up to a limit.
EDGES, FEWEST_EPOCHS, MOST_EPOCHS = 4_000_000, 4, 40
START_STEPS = 150  # steps of the regression to the initial points
LANDMARK_ROWS = 256  # per batch
LABELED_ROWS = 256  # per batch


@dataclass(frozen=True)
class Data:
    """Rows, their graph in compressed sparse rows, and initial points (None: those of the untrained encoder)."""

    X: InputRows
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    start: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Objective:
    """The terms of the loss and their weights."""

    kernel: Kernel
    negatives: int = 5
    repulsion: float = 1.0
    correlation_weight: float = 0.0
    reconstruction_weight: float = 1.0
    reconstruction_loss: PairLoss | None = None
    joint: bool = False
    landmarks: tuple[InputRows, NDArray[np.float32]] | None = None  # rows and their positions
    landmark_weight: float = 1.0
    landmark_loss: PairLoss | None = None
    classes: NDArray[np.int64] | None = None  # one per row; negative = unlabeled
    triplets: bool = False
    class_weight: float = 1.0

    def phases(self, model: Model, rows: DeviceRows, generator: torch.Generator) -> list[list[Term]]:
        """Return the terms of each optimizer step; a class head is added to the model if one is needed.

        If some rows are unlabeled, steps of UMAP and of classification alternate (survey section 2.5).
        """
        terms: list[Term] = [UmapTerm(self.kernel, self.negatives, self.repulsion)]
        if self.correlation_weight > 0.0:
            terms.append(CorrelationTerm(self.correlation_weight))
        if "decoder" in model.networks:
            loss = self.reconstruction_loss or relative_squared_error
            terms.append(ReconstructionTerm(model.networks["decoder"], loss, self.reconstruction_weight, self.joint))
        if self.landmarks is not None and self.landmarks[0].shape[0]:
            terms.append(self._landmark_term(model, *self.landmarks, generator))
        if self.classes is None or not (self.classes >= 0).any():
            return [terms]
        class_term = self._class_term(model, rows, self.classes, generator)
        return [terms, [class_term]] if (self.classes < 0).any() else [[*terms, class_term]]

    def _landmark_term(
        self, model: Model, landmarks: InputRows, positions: NDArray[np.float32], generator: torch.Generator
    ) -> LandmarkTerm:
        return LandmarkTerm(
            model.networks["encoder"],
            DeviceRows(landmarks, model.device, model.device, model.dtype),
            as_tensor(positions).to(model.device, model.dtype),
            self.landmark_loss or mean_squared_distance,
            self.landmark_weight,
            LANDMARK_ROWS,
            generator,
        )

    def _class_term(
        self, model: Model, rows: DeviceRows, classes: NDArray[np.int64], generator: torch.Generator
    ) -> ClassTerm:
        labeled = np.flatnonzero(classes >= 0)
        return ClassTerm(
            model.networks["encoder"],
            None if self.triplets else model.add_head(int(classes.max()) + 1),
            rows,
            as_tensor(labeled).to(generator.device),
            as_tensor(classes[labeled]).to(model.device),
            self.class_weight,
            LABELED_ROWS,
            generator,
        )


def training_epochs(data: Data) -> int:
    """Return the default number of epochs: about 4 million edges, within limits."""
    return int(np.clip(round(EDGES / max(_edges_per_epoch(data), 1.0)), FEWEST_EPOCHS, MOST_EPOCHS))


def _edges_per_epoch(data: Data) -> float:
    """Return the expected number of edges that fire if each is tested once and the heaviest always fires."""
    weights = data.weights
    return float(weights.sum(dtype=np.float64) / weights.max()) if len(weights) and weights.max() > 0.0 else 0.0


def fit_model(
    model: Model,
    data: Data,
    objective: Objective,
    plan: Plan,
    *,
    seed: int,
    after_epoch: Callable[[int], bool] | None = None,
) -> TrainingHistory:
    """Train the model's networks in place and return the mean of every term by epoch.

    Graph and rows are copied to the training device if they fit there; otherwise each batch is copied from the host.
    """
    n_bytes = count_bytes(data.X) + sum(array.nbytes for array in (data.indptr, data.indices, data.weights))
    storage = storage_device(n_bytes, model.device)
    generator = torch.Generator(storage).manual_seed(seed)
    rows = DeviceRows(data.X, storage, model.device, model.dtype)
    indptr, indices, weights = (as_tensor(array).to(storage) for array in (data.indptr, data.indices, data.weights))
    sampler = EdgeSampler(indptr, indices, weights, generator)

    def batches() -> EdgeBatch:
        return EdgeBatch(model.networks["encoder"], rows, sampler, plan.batch_size)

    if data.start is not None and len(rows) > 1 and plan.n_epochs > 0:
        # A short regression of the encoder to the centered initial points.
        points = as_tensor(data.start - data.start.mean(axis=0)).to(model.device, model.dtype)
        encoder = model.networks["encoder"]
        term = LandmarkTerm(encoder, rows, points, mean_squared_distance, 1.0, 2 * plan.batch_size, generator)
        short = replace(plan, n_epochs=1, steps_per_epoch=START_STEPS, patience=None)
        train(model.networks, [[term]], batches, short)
    phases = objective.phases(model, rows, generator)
    plan = replace(plan, steps_per_epoch=math.ceil(_edges_per_epoch(data) / plan.batch_size))
    return train(model.networks, phases, batches, plan, after_epoch)
