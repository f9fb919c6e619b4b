"""The training loop of Algorithm 2: one optimizer step per batch of edges, with a learning rate that falls to 0."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vicinal.parametric.device_rows import DeviceRows, InputRows, as_tensor, count_bytes, storage_device
from vicinal.parametric.loss import (
    EdgeBatch,
    EdgeSampler,
    PairLoss,
    class_loss,
    correlation_loss,
    landmark_loss,
    mean_squared_distance,
    reconstruction_loss,
    relative_squared_error,
    umap_loss,
)
from vicinal.parametric.networks import Model

if TYPE_CHECKING:
    from vicinal.estimators.parametric import ParametricUMAP
    from vicinal.graph.graph import Graph
    from vicinal.layout.forces import Kernel


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}
# Edges per batch. Small batches leave a GPU idle: with 60,000 images on an H200, 512 edges take 23 s (trustworthiness
# 0.974, accuracy of new rows 0.748), 2,048 edges 7 s (0.972, 0.745); see benchmarks/results/parametric_gpu.json.
BATCH_SIZE = {"cpu": 512, "cuda": 2048}
# Fashion-MNIST (60,000 rows) needs about 4 million edges. Small data get more epochs, up to a limit.
EDGES, FEWEST_EPOCHS, MOST_EPOCHS = 4_000_000, 4, 40
START_STEPS = 150  # steps of the regression to the initial points
LANDMARK_ROWS = 256  # per batch
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


Phase = dict[str, Callable[[EdgeBatch], Tensor]]  # the terms of the loss that one optimizer step adds, by name


class Training:
    """Train the networks of a model on the edges of a graph, with the parameters of a ParametricUMAP.

    Graph and rows are copied to the training device if they fit there; otherwise each batch is copied from the host.
    """

    def __init__(
        self, parameters: ParametricUMAP, kernel: Kernel, model: Model, X: InputRows, graph: Graph, seed: int
    ) -> None:
        self.parameters, self.kernel, self.model = parameters, kernel, model
        arrays = (graph.indptr, graph.indices, graph.weights)
        storage = storage_device(count_bytes(X) + sum(array.nbytes for array in arrays), model.device)
        indptr, indices, weights = (as_tensor(array).to(storage) for array in arrays)
        self._generator = torch.Generator(storage).manual_seed(seed)
        self._rows = DeviceRows(X, storage, model.device, model.dtype)
        self._sampler = EdgeSampler(indptr, indices, weights, self._generator)
        given = parameters.batch_size
        self.batch_size = BATCH_SIZE.get(model.device.type, BATCH_SIZE["cpu"]) if given is None else int(given)
        edges = edges_per_epoch(graph.weights)
        epochs = default_epochs(edges) if parameters.n_epochs is None else int(parameters.n_epochs)
        self.n_epochs = int(parameters.n_training_epochs) * epochs
        self.steps_per_epoch = math.ceil(edges / self.batch_size)

    def approach(self, start: NDArray[np.float32]) -> None:
        """Fit the encoder to the centered initial points by a short regression."""
        if len(self._rows) < 2 or self.n_epochs == 0:
            return
        points = as_tensor(start - start.mean(axis=0)).to(self.model.device, self.model.dtype)
        regression = self._landmark_term(self._rows, points, mean_squared_distance, 2 * self.batch_size)
        self._train([{"landmarks": regression}], 1, START_STEPS)

    def run(
        self,
        classes: NDArray[np.int64] | None = None,
        landmarks: tuple[InputRows, NDArray[np.float32]] | None = None,
        after_epoch: Callable[[int], bool] | None = None,
    ) -> TrainingHistory:
        """Train the networks in place and return the mean of every term by epoch.

        A negative class means unlabeled; ``landmarks`` are rows and their positions. The training ends if
        ``after_epoch``, given the number of epochs done, returns True.
        """
        phases = self._phases(classes, landmarks)
        return self._train(phases, self.n_epochs, self.steps_per_epoch, after_epoch, self.parameters.patience)

    def _phases(
        self, classes: NDArray[np.int64] | None, landmarks: tuple[InputRows, NDArray[np.float32]] | None
    ) -> list[Phase]:
        """Return the terms of each optimizer step; a class head is added to the model if one is needed.

        If some rows are unlabeled, steps of UMAP and of classification alternate (survey section 2.5).
        """
        given, model = self.parameters, self.model
        n_negatives = int(given.negative_sample_rate)
        terms: Phase = {"umap": lambda batch: umap_loss(batch, self.kernel, n_negatives, given.repulsion_strength)}
        if given.global_correlation_loss_weight > 0.0:
            terms["correlation"] = lambda batch: (
                given.global_correlation_loss_weight * correlation_loss(batch.rows, batch.embedding)
            )
        if "decoder" in model.networks:
            decoder, error = model.networks["decoder"], given.parametric_reconstruction_loss_fcn
            terms["reconstruction"] = lambda batch: (
                given.parametric_reconstruction_loss_weight
                * reconstruction_loss(batch, decoder, error or relative_squared_error, given.autoencoder_loss)
            )
        if landmarks is not None and landmarks[0].shape[0]:
            rows = DeviceRows(landmarks[0], model.device, model.device, model.dtype)
            positions = as_tensor(landmarks[1]).to(model.device, model.dtype)
            pull = self._landmark_term(rows, positions, given.landmark_loss_fn or mean_squared_distance, LANDMARK_ROWS)
            terms["landmarks"] = lambda batch: given.landmark_loss_weight * pull(batch)
        if classes is None or not (classes >= 0).any():
            return [terms]
        supervision: Phase = {"supervision": self._class_term(classes)}
        return [terms, supervision] if (classes < 0).any() else [terms | supervision]

    def _landmark_term(
        self, rows: DeviceRows, positions: Tensor, loss: PairLoss, size: int
    ) -> Callable[[EdgeBatch], Tensor]:
        encoder, generator = self.model.networks["encoder"], self._generator
        return lambda batch: landmark_loss(encoder, rows, positions, loss, size, generator)

    def _class_term(self, classes: NDArray[np.int64]) -> Callable[[EdgeBatch], Tensor]:
        given, model, rows, generator = self.parameters, self.model, self._rows, self._generator
        known = np.flatnonzero(classes >= 0)
        head = None if given.supervision == "triplet" else model.add_head(int(classes.max()) + 1)
        labeled, labels = as_tensor(known).to(generator.device), as_tensor(classes[known]).to(model.device)
        encoder = model.networks["encoder"]
        return lambda batch: given.supervision_weight * class_loss(encoder, head, rows, labeled, labels, generator)

    def _train(
        self,
        phases: list[Phase],
        n_epochs: int,
        steps: int,
        after_epoch: Callable[[int], bool] | None = None,
        patience: int | None = None,
    ) -> TrainingHistory:
        """Train for ``n_epochs`` epochs of ``steps`` steps; each phase of a step has its own optimizer step."""
        networks = self.model.networks
        optimizer = self._optimizer()
        history: TrainingHistory = {name: [] for name in ("loss", *[name for phase in phases for name in phase])}
        waiting = Patience(patience, self.parameters.min_improvement)
        networks.train()
        for epoch in range(n_epochs if steps else 0):
            total: Tensor | float = 0.0
            for step in range(epoch * steps, (epoch + 1) * steps):
                for group in optimizer.param_groups:
                    group["lr"] = self.parameters.learning_rate * rate_share(step, n_epochs * steps)
                batch = EdgeBatch(networks["encoder"], self._rows, self._sampler, self.batch_size)
                total = total + torch.cat([self._optimize(phase, batch, optimizer) for phase in phases])
            # The device is read once per epoch, so that its steps do not wait for Python.
            mean = torch.as_tensor(total / steps).tolist()
            means = dict(zip(history, (sum(mean), *mean), strict=True))
            for name, value in means.items():
                history[name].append(value)
            if not math.isfinite(means["loss"]):
                raise FloatingPointError(f"the loss is {means['loss']} in epoch {epoch + 1}; lower learning_rate")
            stop = after_epoch is not None and after_epoch(epoch + 1)
            networks.train()  # encoding rows in after_epoch switches to evaluation mode
            if stop or waiting.is_over(means["loss"]):
                break
        networks.eval()
        return history

    def _optimizer(self) -> torch.optim.Optimizer:
        given = self.parameters
        trained = [one for one in self.model.networks.parameters() if one.requires_grad]
        options: dict[str, Any] = {"lr": given.learning_rate, "weight_decay": given.weight_decay}
        if isinstance(given.optimizer, str):
            return OPTIMIZERS[given.optimizer](trained, fused=True, **options)
        own: torch.optim.Optimizer = given.optimizer(trained, **options)
        return own

    def _optimize(self, phase: Phase, batch: EdgeBatch, optimizer: torch.optim.Optimizer) -> Tensor:
        """Run one optimizer step on the sum of the phase's terms and return their values."""
        mixed = self.parameters.dtype == "bfloat16"
        with torch.autocast(self.model.device.type, torch.bfloat16 if mixed else None, enabled=mixed):
            costs = torch.stack([term(batch) for term in phase.values()])
        optimizer.zero_grad(set_to_none=True)
        costs.sum().backward()  # type: ignore[no-untyped-call]
        if self.parameters.clip_norm is not None:
            for group in optimizer.param_groups:
                nn.utils.clip_grad_norm_(group["params"], self.parameters.clip_norm)
        optimizer.step()
        return costs.detach().float()


def rate_share(step: int, steps: int) -> float:
    """Return the share of the learning rate that a step has: a short linear rise, then a linear fall to 0."""
    rise = max(1.0, WARM_UP * steps)
    return min((step + 1) / rise, 1.0 - step / steps)


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


def default_epochs(edges: float) -> int:
    """Return the default number of epochs of this many edges each: about 4 million edges, within limits."""
    return int(np.clip(round(EDGES / max(edges, 1.0)), FEWEST_EPOCHS, MOST_EPOCHS))


def edges_per_epoch(weights: NDArray[np.float32]) -> float:
    """Return the expected number of edges that fire if each is tested once and the heaviest always fires."""
    return float(weights.sum(dtype=np.float64) / weights.max()) if len(weights) and weights.max() > 0.0 else 0.0
