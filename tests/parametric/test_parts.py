"""Parts of parametric UMAP: edges drawn by weight, losses, early stopping, streaming."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from vicinal.layout.kernel import Kernel  # noqa: E402
from vicinal.parametric import loss, rows, sampler, training  # noqa: E402
from vicinal.parametric.encoders import Shape, Standardize, conv_encoder  # noqa: E402
from vicinal.parametric.model import Model  # noqa: E402
from vicinal.parametric.terms import Batch, Supervision, Umap, relative_squared_error  # noqa: E402

KERNEL = Kernel(1.577, 0.8951)


def graph(weights: list[float]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Edges 0->1, 0->2, 1->0, 2->0, with an empty row 3 at the end."""
    return torch.tensor([0, 2, 3, 4, 4]), torch.tensor([1, 2, 0, 0], dtype=torch.int32), torch.tensor(weights)


def test_edges_are_drawn_by_weight() -> None:
    weights = [1.0, 0.25, 0.5, 0.05]
    edges = sampler.EdgeSampler(*graph(weights), torch.Generator().manual_seed(0))
    head, tail = edges.draw(200_000)
    found = dict.fromkeys(((0, 1), (0, 2), (1, 0), (2, 0)), 0)
    pairs, counts = np.unique(np.stack([head, tail], axis=1), axis=0, return_counts=True)
    found |= {(int(i), int(j)): int(count) for (i, j), count in zip(pairs, counts, strict=True)}
    assert len(found) == 4
    np.testing.assert_allclose(np.array(list(found.values())) / 200_000, np.array(weights) / 1.8, atol=5e-3)


def test_batches_are_one_stream_however_it_is_cut() -> None:
    weights = [1.0, 0.25, 0.5, 0.05]
    whole = sampler.EdgeSampler(*graph(weights), torch.Generator().manual_seed(3)).draw(1000)
    cut = sampler.EdgeSampler(*graph(weights), torch.Generator().manual_seed(3))
    parts = [cut.draw(size) for size in (1, 99, 900)]
    for side in (0, 1):
        assert torch.equal(torch.cat([part[side] for part in parts]), whole[side])
    with pytest.raises(ValueError, match="no edge"):
        sampler.EdgeSampler(*graph([0.0] * 4), torch.Generator()).draw(1)


def test_the_loss_of_a_batch_is_the_mean_over_its_edges() -> None:
    head, tail = torch.randn(7, 2, dtype=torch.float64), torch.randn(7, 2, dtype=torch.float64)
    expected = loss.attract_cost(head - tail, KERNEL).sum()
    for e in range(7):
        for s in (1, 2, 3):
            expected = expected + 0.5 * loss.repel_cost(head[e] - tail[e - s], KERNEL)
    torch.testing.assert_close(loss.umap_loss(head, tail, KERNEL, 3, 0.5), expected / 7)
    assert loss.umap_loss(head[:1], tail[:1], KERNEL, 5).isfinite()
    torch.testing.assert_close(loss.umap_loss(head, tail, KERNEL, 0), loss.attract_cost(head - tail, KERNEL).mean())


def test_correlation_is_full_for_similar_maps_and_finite_for_points() -> None:
    X = torch.randn(50, 2)
    assert float(loss.correlation_loss(X, 3.0 * X + 1.0)) == pytest.approx(0.0, abs=1e-5)
    places = torch.zeros(50, 2, requires_grad=True)
    loss.correlation_loss(X, places).backward()
    assert places.grad is not None
    assert places.grad.isfinite().all()


def test_triplets_vanish_once_classes_are_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    apart = labels[:, None] * torch.tensor([[10.0, 0.0]])
    assert float(loss.triplet_loss(apart, labels, generator)) == 0.0
    assert float(loss.triplet_loss(torch.zeros(6, 2), labels, generator)) == pytest.approx(1.0)
    assert float(loss.triplet_loss(apart, torch.zeros(6, dtype=torch.int64), generator)) == 0.0


def test_patience_waits_for_a_share_of_the_loss() -> None:
    patience = training.Patience(2, 0.1)
    assert [patience.is_over(value) for value in (10.0, 8.0, 7.9, 7.0, 6.9, 6.9)] == [False] * 5 + [True]
    assert not any(training.Patience(None, 0.1).is_over(1.0) for _ in range(10))


def test_the_rate_rises_shortly_and_falls_to_nothing() -> None:
    plan = training.Plan(0.1, 8, n_epochs=10, steps_per_epoch=10)
    rates = [plan.rate(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.05)
    assert max(rates) < 0.1
    assert all(later < earlier for earlier, later in pairwise(rates[2:]))
    assert rates[-1] == pytest.approx(0.001)


def test_standardisation_keeps_proportions_and_wide_rows_become_components() -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 5)) @ rng.normal(size=(5, 100)) * 7.0 + 3.0).astype(np.float32)
    model = Model.build(Shape(100, 2, (100,)), "mlp", "mlp", torch.device("cpu"))
    model.measure(X)
    first = next(module for module in model.networks.modules() if isinstance(module, Standardize))
    Z = first(torch.from_numpy(X))
    assert Z.shape == (300, 64)
    expected = np.linalg.norm(X[:100] - X[100:200], axis=1) / X.std(axis=0).mean()
    ratio = torch.linalg.vector_norm(Z[:100] - Z[100:200], dim=1).numpy() / expected
    np.testing.assert_allclose(ratio / ratio.mean(), 1.0, rtol=1e-3)
    assert Z.square().sum(1).mean().sqrt() == pytest.approx(10.0, rel=1e-3)  # unit variance of 100 columns


def test_a_picture_of_odd_size_goes_through_the_convolutions() -> None:
    shape = Shape(7 * 9 * 3, 2, (7, 9, 3))
    assert conv_encoder(shape)(torch.zeros(4, 189)).shape == (4, 2)
    with pytest.raises(ValueError, match="dims"):
        conv_encoder(Shape(64, 2, (64,)))


def test_semi_supervised_phases_draw_labelled_rows_only() -> None:
    encoder = torch.nn.Linear(3, 2)
    X = torch.full((6, 3), torch.nan)
    X[[1, 4]] = 1.0
    generator = torch.Generator().manual_seed(0)
    data = rows.Rows(X.numpy(), torch.device("cpu"), torch.device("cpu"))
    term = Supervision(encoder, None, data, torch.tensor([1, 4]), torch.tensor([0, 1]), 1.0, 8, generator)
    edges = sampler.EdgeSampler(*graph([1.0] * 4), generator)
    assert term(Batch(encoder, data, edges, 4)).isfinite()
    assert Umap(KERNEL, 2, 1.0)(Batch(encoder, data, edges, 4)).isnan()


def test_reconstruction_is_relative_to_the_rows_variance() -> None:
    X = torch.randn(1000, 4) * 50.0 + 100.0
    assert float(relative_squared_error(X.mean(0).expand_as(X), X)) == pytest.approx(1.0, rel=1e-3)
    assert float(relative_squared_error(X, X)) == 0.0


def test_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    with rows.threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
