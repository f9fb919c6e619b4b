"""Training of parametric UMAP: the edge sampler, the losses and their terms, the learning rate, early stopping."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from vicinal import ParametricUMAP  # noqa: E402
from vicinal.layout.forces import Kernel  # noqa: E402
from vicinal.parametric import loss, training  # noqa: E402
from vicinal.parametric.device_rows import DeviceRows  # noqa: E402
from vicinal.parametric.loss import EdgeBatch, EdgeSampler, class_loss, relative_squared_error  # noqa: E402

KERNEL = Kernel(1.577, 0.8951)


def graph(weights: list[float]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the edges 0->1, 0->2, 1->0, 2->0 and an empty last row 3, in compressed sparse rows."""
    return torch.tensor([0, 2, 3, 4, 4]), torch.tensor([1, 2, 0, 0], dtype=torch.int32), torch.tensor(weights)


def test_edges_are_drawn_in_proportion_to_their_weights() -> None:
    weights = [1.0, 0.25, 0.5, 0.05]
    sampler = EdgeSampler(*graph(weights), torch.Generator().manual_seed(0))
    heads, tails = sampler.draw(200_000)
    found = dict.fromkeys(((0, 1), (0, 2), (1, 0), (2, 0)), 0)
    pairs, counts = np.unique(np.stack([heads, tails], axis=1), axis=0, return_counts=True)
    found |= {(int(i), int(j)): int(count) for (i, j), count in zip(pairs, counts, strict=True)}
    assert len(found) == 4
    np.testing.assert_allclose(np.array(list(found.values())) / 200_000, np.array(weights) / 1.8, atol=5e-3)


def test_batch_sizes_do_not_change_the_stream_of_edges() -> None:
    weights = [1.0, 0.25, 0.5, 0.05]
    whole = EdgeSampler(*graph(weights), torch.Generator().manual_seed(3)).draw(1000)
    sampler = EdgeSampler(*graph(weights), torch.Generator().manual_seed(3))
    parts = [sampler.draw(size) for size in (1, 99, 900)]
    for side in (0, 1):
        assert torch.equal(torch.cat([part[side] for part in parts]), whole[side])


def test_drawing_from_a_graph_without_edges_raises() -> None:
    with pytest.raises(ValueError, match="no edge"):
        EdgeSampler(*graph([0.0] * 4), torch.Generator()).draw(1)


def test_tails_weighted_by_inverse_degrees_are_uniform_over_the_rows_with_edges() -> None:
    sampler = EdgeSampler(*graph([1.0, 0.25, 0.5, 0.05]), torch.Generator().manual_seed(0))
    _, tails = sampler.draw(200_000)
    weight = torch.bincount(tails, sampler.uniform_weights(tails), minlength=4) / 200_000
    np.testing.assert_allclose(weight, [1 / 3, 1 / 3, 1 / 3, 0.0], atol=5e-3)


def umap_loss(head: torch.Tensor, tail: torch.Tensor, number: int, edges: Any = None, weight: Any = None) -> Any:
    """Return the loss with repulsion 0.5, of edges between different rows and tails of weight 1 unless given."""
    n = len(head)
    edges = edges or (torch.arange(n), torch.arange(n, 2 * n))
    weight = torch.ones(n) if weight is None else weight
    batch: Any = SimpleNamespace(edges=edges, ends=lambda: (head, tail), tail_weights=weight)
    return loss.umap_loss(batch, KERNEL, number, 0.5)


def test_umap_loss_is_the_mean_over_the_edges_of_a_batch() -> None:
    head, tail = torch.randn(7, 2, dtype=torch.float64), torch.randn(7, 2, dtype=torch.float64)
    expected = loss.attract_cost(head - tail, KERNEL).sum()
    for e in range(7):
        for s in (1, 2, 3):
            expected = expected + 0.5 * loss.repel_cost(head[e] - tail[e - s], KERNEL)
    torch.testing.assert_close(umap_loss(head, tail, 3), expected / 7)
    assert umap_loss(head[:1], tail[:1], 5).isfinite()
    torch.testing.assert_close(umap_loss(head, tail, 0), loss.attract_cost(head - tail, KERNEL).mean())


def test_a_row_is_not_its_own_negative_and_negatives_are_weighted() -> None:
    points = torch.randn(6, 2, dtype=torch.float64)
    heads, tails = torch.tensor([0, 1, 2, 3, 0]), torch.tensor([1, 0, 0, 5, 2])
    weight = torch.tensor([1.0, 2.0, 0.5, 3.0, 1.0])
    cost, total = 0.0, 0.0
    for e in range(5):
        for s in (1, 2):
            if tails[e - s] != heads[e]:
                cost += float(weight[e - s] * loss.repel_cost(points[heads[e]] - points[tails[e - s]], KERNEL))
                total += float(weight[e - s])
    found = umap_loss(points[heads], points[tails], 2, (heads, tails), weight)
    attraction = loss.attract_cost(points[heads] - points[tails], KERNEL).mean()
    assert float(found) == pytest.approx(float(attraction) + 0.5 * 2 * cost / total)
    same = torch.zeros(3, dtype=torch.int64)
    assert float(umap_loss(points[same], points[same], 2, (same, same))) == pytest.approx(0.0, abs=1e-6)


def test_correlation_loss_is_zero_for_a_scaled_copy_and_finite_for_equal_points() -> None:
    X = torch.randn(50, 2)
    assert float(loss.correlation_loss(X, 3.0 * X + 1.0)) == pytest.approx(0.0, abs=1e-5)
    points = torch.zeros(50, 2, requires_grad=True)
    loss.correlation_loss(X, points).backward()
    assert points.grad is not None
    assert points.grad.isfinite().all()


def test_triplet_loss_is_zero_when_classes_are_separated() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    apart = labels[:, None] * torch.tensor([[10.0, 0.0]])
    assert float(loss.triplet_loss(apart, labels, generator)) == 0.0
    assert float(loss.triplet_loss(torch.zeros(6, 2), labels, generator)) == pytest.approx(1.0)
    assert float(loss.triplet_loss(apart, torch.zeros(6, dtype=torch.int64), generator)) == 0.0


def test_patience_counts_epochs_without_a_relative_improvement() -> None:
    patience = training.Patience(2, 0.1)
    assert [patience.is_over(value) for value in (10.0, 8.0, 7.9, 7.0, 6.9, 6.9)] == [False] * 5 + [True]
    assert not any(training.Patience(None, 0.1).is_over(1.0) for _ in range(10))


def test_learning_rate_rises_briefly_and_falls_to_zero() -> None:
    shares = [training.rate_share(step, 100) for step in range(100)]
    assert shares[0] == pytest.approx(0.5)
    assert max(shares) < 1.0
    assert all(later < earlier for earlier, later in pairwise(shares[2:]))
    assert shares[-1] == pytest.approx(0.01)


def test_class_loss_uses_labeled_rows_only() -> None:
    encoder = torch.nn.Linear(3, 2)
    X = torch.full((6, 3), torch.nan)
    X[[1, 4]] = 1.0
    generator = torch.Generator().manual_seed(0)
    rows = DeviceRows(X.numpy(), torch.device("cpu"), torch.device("cpu"))
    assert class_loss(encoder, None, rows, torch.tensor([1, 4]), torch.tensor([0, 1]), generator).isfinite()
    sampler = EdgeSampler(*graph([1.0] * 4), generator)
    assert loss.umap_loss(EdgeBatch(encoder, rows, sampler, 4), KERNEL, 2, 1.0).isnan()


def test_a_batch_is_drawn_and_encoded_once_for_all_terms() -> None:
    calls = []

    class Counting(torch.nn.Linear):  # type: ignore[name-defined, misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            calls.append(len(x))
            return super().forward(x)

    rows = DeviceRows(np.eye(4, 3, dtype=np.float32), torch.device("cpu"), torch.device("cpu"))
    sampler = EdgeSampler(*graph([1.0] * 4), torch.Generator().manual_seed(0))
    batch = EdgeBatch(Counting(3, 2), rows, sampler, 5)
    assert torch.equal(torch.cat(batch.ends()), batch.embedding)
    assert batch.rows.shape == (10, 3)
    assert calls == [10]


def test_reconstruction_error_is_relative_to_the_variance_of_the_rows() -> None:
    X = torch.randn(1000, 4) * 50.0 + 100.0
    assert float(relative_squared_error(X.mean(0).expand_as(X), X)) == pytest.approx(1.0, rel=1e-3)
    assert float(relative_squared_error(X, X)) == 0.0


def test_documented_defaults_are_those_of_the_training() -> None:
    document = " ".join((ParametricUMAP.__doc__ or "").split())
    assert f"By default {training.BATCH_SIZE['cpu']}, or {training.BATCH_SIZE['cuda']:,} on a GPU" in document
    edges, fewest, most = training.EDGES // 1_000_000, training.FEWEST_EPOCHS, training.MOST_EPOCHS
    assert f"about {edges} million edges, at least {fewest} and at most {most}" in document
