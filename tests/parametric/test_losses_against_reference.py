"""The losses of supervision and reconstruction (survey sections 2.5 and 7) against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from measured import assert_equation
from reference import supervision

torch = pytest.importorskip("torch")

from vicinal.parametric.device_rows import DeviceRows  # noqa: E402
from vicinal.parametric.loss import (  # noqa: E402
    EdgeBatch,
    EdgeSampler,
    class_loss,
    reconstruction_loss,
    relative_squared_error,
    triplet_loss,
)

CPU = torch.device("cpu")


def batch_of(rows: np.ndarray, encoder: torch.nn.Module) -> EdgeBatch:
    """Return the edges of a ring over the rows, encoded."""
    n = len(rows)
    tails = torch.tensor([(i + 1) % n for i in range(n)], dtype=torch.int32)
    sampler = EdgeSampler(torch.arange(n + 1), tails, torch.ones(n), torch.Generator().manual_seed(0))
    return EdgeBatch(encoder, DeviceRows(rows, CPU, CPU), sampler, n)


def test_class_loss_equals_the_reference() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(20, 3)).astype(np.float32), rng.integers(4, size=20)
    encoder, head = torch.nn.Linear(3, 2), torch.nn.Linear(2, 4)
    numbers, classes = torch.arange(20), torch.tensor(labels)
    with torch.no_grad():
        scores = head(encoder(torch.tensor(rows))).double().numpy()
        found = float(class_loss(encoder, head, DeviceRows(rows, CPU, CPU), numbers, classes, torch.Generator()))
    assert_equation("cross-entropy", found, supervision.class_cross_entropy(scores, labels), rtol=1e-5)


def test_triplet_loss_is_the_reference_on_average_over_its_draws() -> None:
    rng = np.random.default_rng(1)
    labels = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3])
    points = rng.normal(size=(10, 2))
    found = [
        float(triplet_loss(torch.tensor(points), torch.tensor(labels), torch.Generator().manual_seed(seed)))
        for seed in range(3000)
    ]
    wanted = supervision.mean_triplet_loss(points, labels)
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - wanted) < 4.5 * error
    assert error < 0.01 * wanted


def test_triplet_loss_of_single_triplets_equals_the_reference() -> None:
    """Two classes of two and one rows leave one positive and one negative for each anchor that has both."""
    rng = np.random.default_rng(2)
    labels = np.array([0, 0, 1])
    for scale in (0.1, 1.0, 3.0):
        points = scale * rng.normal(size=(3, 2))
        found = float(triplet_loss(torch.tensor(points), torch.tensor(labels), torch.Generator().manual_seed(0)))
        assert_equation("triplet", found, supervision.mean_triplet_loss(points, labels), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("joint", [True, False])
def test_reconstruction_loss_equals_the_reference(joint: bool) -> None:
    rows = np.random.default_rng(3).normal(size=(12, 4)).astype(np.float32)
    encoder, decoder = torch.nn.Linear(4, 2), torch.nn.Linear(2, 4)
    batch = batch_of(rows, encoder)
    loss = reconstruction_loss(batch, decoder, relative_squared_error, joint)
    decoded = decoder(batch.embedding).detach().double().numpy()
    wanted = supervision.relative_reconstruction_error(decoded, batch.rows.double().numpy())
    assert_equation("reconstruction", float(loss.detach()), wanted, rtol=1e-5)
    loss.backward()
    assert (encoder.weight.grad is not None) == joint
    assert decoder.weight.grad is not None
