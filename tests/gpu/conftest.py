"""The CUDA backend on two devices: one made of NumPy and kernels compiled for the host, and a GPU if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from gpu.host_device import COMPILER, HostDevice

from vicinal.backends.cuda import device as devices


@pytest.fixture(params=["host", "gpu"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a device, which ``device="cuda"`` names as well."""
    if request.param == "gpu":
        try:
            return devices.cuda_device(0)
        except devices.DeviceError as error:
            pytest.skip(f"no GPU: {error}")
    if COMPILER is None:
        pytest.skip("no C++ compiler to compile the kernels for the host")
    host = HostDevice()
    monkeypatch.setattr(devices, "cuda_device", lambda number=0: host)
    return host


@pytest.fixture
def gpu() -> Any:
    """Return a GPU."""
    try:
        return devices.cuda_device(0)
    except devices.DeviceError as error:
        pytest.skip(f"no GPU: {error}")


@pytest.fixture
def limited_gpu(gpu: Any) -> Iterator[Callable[[int], tuple[Any, int]]]:
    """Return a function that limits the memory of a GPU during a test, and returns CuPy's pool and the limit."""
    pool = gpu.xp.get_default_memory_pool()
    before = pool.get_limit()

    def limit(size: int) -> tuple[Any, int]:
        pool.free_all_blocks()
        pool.set_limit(size=pool.total_bytes() + size)
        return pool, pool.get_limit()

    yield limit
    pool.set_limit(size=before)


@pytest.fixture(scope="session")
def rows() -> np.ndarray:
    """Return rows in four clusters, some of them equal and some zero."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(90, 12)) + 4 * j for j in range(4)]).astype(np.float32)
    X[5:9] = X[5]
    X[20:22] = 0
    return X
