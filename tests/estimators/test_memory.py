"""Memory: estimated before a fit, limited by memory_limit, not used for copies; if there is none, MemoryError."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

import vicinal
from vicinal import (
    TSNE,
    UMAP,
    AlignedUMAP,
    DensMAP,
    KNeighborsTransformer,
    LargeVis,
    ProgressiveUMAP,
    estimate_memory,
)

Rows = NDArray[np.float32]
ALL = [UMAP, DensMAP, TSNE, LargeVis, KNeighborsTransformer]
MEASURE = Path(__file__).parents[2] / "benchmarks" / "memory_estimate.py"


@pytest.mark.nightly
@pytest.mark.requires_proc
@pytest.mark.parametrize(
    ("estimator", "sizes", "most"),
    [
        ("UMAP", [8_000, 16_000, 32_000], 1.25),
        ("DensMAP", [16_000], 1.25),
        ("TSNE", [12_000], 1.25),
        # 1.15 to 1.26: the peak depends on how the threads alternate
        ("ProgressiveUMAP", [12_000], 4 / 3),
    ],
)
def test_estimates_are_near_the_peak(
    estimator: str, sizes: list[int], most: float, child_environment: dict[str, str]
) -> None:
    """benchmarks/memory_estimate.py measures Fashion-MNIST with up to 70,000 rows in the same way."""
    for n in sizes:
        command = [sys.executable, str(MEASURE), "--estimator", estimator, "--rows", str(n), "--columns", "200"]
        peak, estimate = 0, 0
        # Once in some 25 runs a peak is measured a fifth too low; the largest one counts.
        for _ in range(3):
            done = subprocess.run(command, env=child_environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            found = json.loads(done.stdout)
            peak, estimate = max(peak, found["peak"]), found["estimate"]
            if estimate < most * peak:
                break
        assert 0.75 < estimate / peak < most, found


@pytest.mark.nightly
@pytest.mark.requires_proc
@pytest.mark.parametrize(
    ("n", "d", "unusual"),
    [
        (400, 50_000, {}),
        (5_000, 1 << 24, {"density": 1e-6}),
        (4_000, 4_000, {"metric": "precomputed"}),
        (10_000, 300, {"metric": "seuclidean", "dtype": "float64"}),
    ],
)
def test_estimates_of_unusual_shapes_are_near_the_peak(
    n: int, d: int, unusual: dict[str, Any], child_environment: dict[str, str]
) -> None:
    """benchmarks/memory_estimate.py --odd measures more of them."""
    command = [sys.executable, str(MEASURE), "--estimator", "UMAP", "--rows", str(n), "--columns", str(d)]
    command += ["--unusual", json.dumps(unusual)]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert 0.75 < found["estimate"] / found["peak"] < 1.35, found


class TestLimit:
    @pytest.mark.parametrize("cls", ALL)
    def test_fit_beyond_the_limit_is_refused_before_allocating(self, cls: Any) -> None:
        rows = np.zeros((20_000, 100), dtype=np.float64)
        model = cls(memory_limit="2MB", n_jobs=1)
        tracemalloc.start()
        try:
            with pytest.raises(MemoryError, match=r"20000 rows of 100 columns takes about .* memory_limit='2MB'"):
                model.fit(rows)
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()
        assert not hasattr(model, "embedding_")

    @pytest.mark.parametrize("cls", ALL)
    def test_fit_within_the_limit_gives_the_same_result(self, cls: Any, iris: Rows) -> None:
        few = {"max_iter": 10} if cls is TSNE else {} if cls is KNeighborsTransformer else {"n_epochs": 5}
        limited = cls(memory_limit=10**9, random_state=0, **few).fit(iris)
        expected = cls(random_state=0, **few).fit(iris)
        if cls is KNeighborsTransformer:
            assert (limited.transform(iris) != expected.transform(iris)).nnz == 0
        else:
            np.testing.assert_array_equal(limited.embedding_, expected.embedding_)

    def test_memory_of_slices_is_added(self, iris: Rows) -> None:
        one = estimate_memory(*iris.shape, init="spectral")  # as slices start
        AlignedUMAP(memory_limit=3 * one, n_epochs=2).fit([iris, iris], relations=[{}])
        with pytest.raises(MemoryError, match="300 rows"):
            AlignedUMAP(memory_limit=1.2 * one, n_epochs=2).fit([iris, iris], relations=[{}])

    def test_growing_map_refuses_a_batch_beyond_the_limit_and_stays_usable(self, digits: Rows) -> None:
        limit = 1.2 * estimate_memory(1_200, digits.shape[1], estimator="ProgressiveUMAP")  # a snapshot besides
        model = ProgressiveUMAP(memory_limit=limit, random_state=0).partial_fit(digits[:1_000])
        with pytest.raises(MemoryError, match=r"ProgressiveUMAP to 1500 rows of 64 columns .* memory_limit"):
            model.partial_fit(digits[1_000:1_500])
        assert model.n_rows_ == 1_000
        assert model.partial_fit(digits[1_000:1_200]).run().embedding_.shape == (1_200, 2)

    def test_limit_holds_for_lists(self) -> None:
        with pytest.raises(MemoryError, match="memory_limit=1000"):
            UMAP(memory_limit=1000).fit(np.zeros((50, 3)).tolist())

    def test_limit_is_cloned_and_saved(self, iris: Rows, tmp_path: Path) -> None:
        model = clone(UMAP(memory_limit="1.5 GiB", n_epochs=2, random_state=0)).fit(iris)
        model.save(tmp_path / "model")
        assert vicinal.load(tmp_path / "model").memory_limit == "1.5 GiB"

    @pytest.mark.parametrize("limit", [0, -1, "2 GX", "", "GB", float("nan"), float("inf"), True, [], "-1GB"])
    def test_invalid_size_is_refused(self, limit: Any, iris: Rows) -> None:
        with pytest.raises(ValueError, match="memory_limit"):
            UMAP(memory_limit=limit).fit(iris)


@pytest.mark.parametrize(
    ("text", "size"), [("500", 500), ("2kB", 2000), ("2 MB", 2e6), ("1.5GiB", 1.5 * 2**30), ("3t", 3e12), (7, 7)]
)
def test_sizes_can_be_written_with_units(text: Any, size: float) -> None:
    from vicinal.runtime.sizes import bytes_of

    assert bytes_of(text) == size


def test_estimate_grows_with_rows_columns_and_options() -> None:
    assert estimate_memory(10_000, 50) < estimate_memory(20_000, 50) < estimate_memory(20_000, 500)
    assert estimate_memory(10_000, 50, n_neighbors=30) > estimate_memory(10_000, 50)
    assert estimate_memory(10_000, 50, densmap=True) > estimate_memory(10_000, 50, init="spectral")
    assert estimate_memory(10_000, 50, dtype=np.float64) == estimate_memory(10_000, 50) + 4 * 10_000 * 50
    assert estimate_memory(10_000, 100_000, nnz=10**6) < estimate_memory(10_000, 100_000)
    with pytest.raises(ValueError, match="estimator"):
        estimate_memory(10, 10, estimator="PCA")
    with pytest.raises(ValueError, match="n must be"):
        estimate_memory(0, 10)
    with pytest.raises(TypeError, match="n_neighbours"):
        estimate_memory(10, 10, n_neighbours=3)


class TestCopies:
    @pytest.mark.parametrize("cls", ALL)
    def test_contiguous_float32_rows_are_not_copied(self, cls: Any, digits: Rows) -> None:
        few = {"max_iter": 10} if cls is TSNE else {} if cls is KNeighborsTransformer else {"n_epochs": 2}
        model = cls(random_state=0, **few).fit(digits)
        data = model.neighbors_.data if cls is KNeighborsTransformer else model.map_.data
        assert np.shares_memory(data.rows, digits)

    @pytest.mark.parametrize("init", ["spectral", "pca"])
    def test_memory_mapped_rows_are_not_copied(self, init: str, tmp_path: Path) -> None:
        """The rows are wide, so that a copy would be larger than everything else that a fit allocates."""
        rows = np.random.default_rng(0).normal(size=(3_000, 1_000)).astype(np.float32)
        np.save(tmp_path / "rows.npy", rows)
        mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
        UMAP(n_epochs=0, init=init).fit(rows[:100, :50])  # imports
        tracemalloc.start()
        try:
            model = UMAP(n_epochs=2, init=init, random_state=0).fit(mapped)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert np.shares_memory(model.map_.data.rows, mapped)
        # Principal components need a matrix of columns by columns and a block of rows, in float64.
        assert peak < rows.nbytes / 2 + (0 if init == "spectral" else 8 * 3 * (1_000 * 1_000 + 4096 * 1_000))


EXHAUSTED = """
import resource, sys
import numpy as np
import vicinal

name, allowance, few = sys.argv[1], float(sys.argv[2]), eval(sys.argv[3])
X = np.random.default_rng(0).normal(size=(9000, 150)).astype(np.float32)
make = lambda: getattr(vicinal, name)(n_jobs=4, random_state=0, **few)
make().fit(X[:400]).transform(X[:3] + 1)  # libraries are loaded and have allocated their buffers
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + int(allowance * 1e6)
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
try:
    make().fit(X).transform(X[:200] + 1)
    print("fitted")
except MemoryError:
    print("MemoryError")
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
make().fit(X[:300])
print("usable")
"""


@pytest.mark.nightly
@pytest.mark.requires_proc
@pytest.mark.parametrize("name", ["UMAP", "TSNE"])
def test_exhausted_memory_raises_memory_error(name: str, child_environment: dict[str, str]) -> None:
    """With little memory threads cannot be started, or the core or NumPy cannot allocate."""
    few = "{'max_iter': 5, 'method': 'fft'}" if name == "TSNE" else "{'n_epochs': 3}"
    outcomes = set()
    # Large buffers come from the system, not from memory that the heaps of ended threads have reserved.
    environment = child_environment | {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    for allowance in (0, 3, 10, 400):
        command = [sys.executable, "-c", EXHAUSTED, name, str(allowance), few]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, (allowance, done.stderr)
        first, last = done.stdout.split("\n")[:2]
        outcomes.add(first)
        assert last == "usable"
    assert outcomes == {"MemoryError", "fitted"}
