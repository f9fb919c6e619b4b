"""Uploads in pieces, with a stand-in for CuPy whose copies are those of the host, and on a GPU if there is one."""

from __future__ import annotations

import contextlib
import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vicinal.backends.cuda import device as devices
from vicinal.backends.cuda import device as transfer


class DelayedStream:
    """A stream that copies when somebody waits for it, as late as a GPU may do it."""

    def __init__(self, non_blocking: bool) -> None:
        self.pending: list[tuple[int, int, int]] = []

    @property
    def ptr(self) -> DelayedStream:
        return self

    def synchronize(self) -> None:
        for to, source, size in self.pending:
            ctypes.memmove(to, source, size)
        self.pending = []


def stand_in() -> Any:
    """Return the parts of CuPy that an upload uses."""
    runtime = SimpleNamespace(
        memcpyHostToDevice=1,
        memcpyAsync=lambda to, source, size, kind, stream: stream.pending.append((to, source, size)),
    )
    return SimpleNamespace(
        cuda=SimpleNamespace(
            Device=lambda number: contextlib.nullcontext(),
            alloc_pinned_memory=bytearray,
            Stream=DelayedStream,
            runtime=runtime,
        )
    )


@pytest.mark.parametrize("n", [1, 999, 1000, 12_345])
def test_upload_copies_all_pieces(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(transfer, "PIECE_BYTES", 1000)
    values = np.random.default_rng(n).integers(0, 256, n).astype(np.uint8)
    out = np.zeros_like(values)
    uploader = transfer.Uploader(stand_in(), 0)
    for _ in range(2):  # the buffers are used again
        out[:] = 0
        uploader.upload(values, out.ctypes.data)
        np.testing.assert_array_equal(out, values)


def test_large_array_arrives_on_a_gpu() -> None:
    try:
        device = devices.cuda_device(0)
    except devices.DeviceError as error:
        pytest.skip(f"no GPU: {error}")
    values = np.random.default_rng(0).normal(size=(5_000_001, 3)).astype(np.float32)
    np.testing.assert_array_equal(device.to_numpy(device.asarray(values)), values)
