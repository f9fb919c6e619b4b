"""The CUDA backend on two devices: one made of NumPy and kernels compiled for the host, and a GPU if there is one."""

from __future__ import annotations

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


@pytest.fixture(scope="session")
def rows() -> np.ndarray:
    """Return rows in four clusters, some of them equal and some zero."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(90, 12)) + 4 * j for j in range(4)]).astype(np.float32)
    X[5:9] = X[5]
    X[20:22] = 0
    return X
