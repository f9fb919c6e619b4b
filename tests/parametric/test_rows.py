"""Delivery of rows to the training device, and their statistics: sparse rows give the bits of dense rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

torch = pytest.importorskip("torch")

from vicinal.parametric import networks as statistics  # noqa: E402
from vicinal.parametric.device_rows import DeviceRows, apply_rows, count_bytes, threads  # noqa: E402

CPU = torch.device("cpu")


def draw(n: int, d: int, density: float = 0.1) -> NDArray[np.float32]:
    """Return rows of which most entries are 0; every tenth row is all 0."""
    rng = np.random.default_rng(n + d)
    X = 100.0 * rng.random((n, d)) * (rng.random((n, d)) < density)
    X[::10] = 0.0
    return X.astype(np.float32)


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sparse_rows_are_delivered_dense(container: type, index_type: type, dtype: torch.dtype) -> None:
    X = draw(200, 30)
    S = container(X)
    S.indptr, S.indices = S.indptr.astype(index_type), S.indices.astype(index_type)
    stored, dense = DeviceRows(S, CPU, CPU, dtype), DeviceRows(X, CPU, CPU, dtype)
    assert len(stored) == len(dense) == 200
    for index in (torch.randint(200, (64,)), torch.tensor([199, 0, 10, 10]), torch.arange(0), torch.arange(200)):
        found = stored.take(index)
        assert found.dtype == dtype
        assert torch.equal(found, dense.take(index))
    assert count_bytes(X) == 200 * 30 * 4
    assert count_bytes(S) == S.data.nbytes + S.indices.nbytes + S.indptr.nbytes


@pytest.mark.parametrize("n", [0, 1, 511, 512, 1300])
def test_networks_give_sparse_rows_the_bits_of_dense_rows(n: int) -> None:
    X = draw(1300, 20)[:n]
    module = torch.nn.Linear(20, 2)
    expected = apply_rows(module, X, CPU, torch.float32)
    assert expected.shape == (n, 2)
    np.testing.assert_array_equal(apply_rows(module, sparse.csr_matrix(X), CPU, torch.float32), expected)
    reference = torch.nn.functional.linear(torch.from_numpy(X), module.weight, module.bias).detach().numpy()
    np.testing.assert_allclose(expected, reference, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (300, 64), (20_000, 40), (600, 2000)])
def test_statistics_of_sparse_rows_have_the_bits_of_dense_rows(shape: tuple[int, int]) -> None:
    X = draw(*shape)
    S = sparse.csr_matrix(X)
    mean = statistics.column_means(X)
    np.testing.assert_array_equal(statistics.column_means(S), mean)
    np.testing.assert_allclose(mean, X.astype(np.float64).mean(axis=0), rtol=1e-12)
    assert statistics.total_spread(S, mean) == statistics.total_spread(X, mean)
    np.testing.assert_array_equal(statistics.sample_rows(S), statistics.sample_rows(X))


def test_spread_is_the_root_mean_variance_and_one_for_equal_rows() -> None:
    X = draw(20_000, 5, 0.9)
    mean = statistics.column_means(X)
    assert statistics.total_spread(X, mean) == pytest.approx(np.sqrt(X.astype(np.float64).var(axis=0).mean()))
    assert statistics.total_spread(np.ones((5, 3), np.float32), np.ones(3)) == 1.0


@pytest.mark.nightly
def test_statistics_of_wide_sparse_rows_stay_within_their_memory_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole matrix would need 800 MB as dense float32."""
    S = sparse.random(20_000, 10_000, 1e-4, format="csr", dtype=np.float32, random_state=0)
    monkeypatch.setattr(statistics, "STEP_SIZE", 1 << 20)
    monkeypatch.setattr(statistics, "SAMPLE_SIZE", 1 << 22)
    tracemalloc.start()
    try:
        mean = statistics.column_means(S)
        spread = statistics.total_spread(S, mean)
        sample = statistics.sample_rows(S)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64e6
    assert len(sample) == statistics.LEAST_SAMPLE - 12  # every 40th of 20,000 rows
    variance = S.power(2).astype(np.float64).sum() / S.shape[0] - np.square(mean).sum()
    assert spread == pytest.approx(np.sqrt(variance / S.shape[1]), rel=1e-6)


@pytest.mark.nightly
def test_encoding_wide_sparse_rows_needs_the_memory_of_one_chunk() -> None:
    S = sparse.random(20_000, 2_000, 1e-3, format="csr", dtype=np.float32, random_state=0)

    class Narrow(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:, :2]

    tracemalloc.start()
    try:
        apply_rows(Narrow(), S, CPU, torch.float32)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20e6  # the dense matrix has 160 MB, one chunk 4 MB


def test_thread_limit_is_restored() -> None:
    before = torch.get_num_threads()
    with threads(1):
        assert torch.get_num_threads() == 1
        with threads(2):
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
