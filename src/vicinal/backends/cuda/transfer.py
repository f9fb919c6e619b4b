"""Large arrays from the host's memory to a GPU, in pieces that several threads copy into pinned memory.

A GPU reads ordinary memory slowly, and pinning the caller's memory takes a second per gigabyte. A copy into buffers
that stay pinned is as fast as the host's memory, and the GPU reads one buffer while others are filled.
"""

from __future__ import annotations

import functools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIECE_BYTES = 8 * 2**20
MOST_THREADS = 8
# Smaller arrays are copied by the driver.
LEAST_BYTES = 2 * PIECE_BYTES


class Uploader:
    """Threads, each with a pinned buffer and a stream of its own."""

    def __init__(self, xp: Any, number: int) -> None:
        self._xp, self._number = xp, number
        self._threads = max(1, min(MOST_THREADS, os.cpu_count() or 1))
        self._lock = threading.Lock()  # the buffers serve one call at a time
        with xp.cuda.Device(number):
            memory = [xp.cuda.alloc_pinned_memory(PIECE_BYTES) for _ in range(self._threads)]
            self._streams = [xp.cuda.Stream(non_blocking=True) for _ in range(self._threads)]
        self._buffers = [np.frombuffer(one, np.uint8, PIECE_BYTES) for one in memory]

    def upload(self, host: NDArray[Any], address: int) -> None:
        """Copy a C-contiguous array to the memory of the device at ``address``, and wait until it is there.

        The device must have finished with that memory.
        """
        content = host.reshape(-1).view(np.uint8)

        def copy(worker: int) -> None:
            buffer, stream = self._buffers[worker], self._streams[worker]
            with self._xp.cuda.Device(self._number):
                for first in range(worker * PIECE_BYTES, content.size, self._threads * PIECE_BYTES):
                    piece = content[first : first + PIECE_BYTES]
                    stream.synchronize()  # the buffer is free
                    np.copyto(buffer[: piece.size], piece)
                    runtime = self._xp.cuda.runtime
                    runtime.memcpyAsync(
                        address + first, buffer.ctypes.data, piece.size, runtime.memcpyHostToDevice, stream.ptr
                    )
                stream.synchronize()

        with self._lock, ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(copy, range(self._threads)))


@functools.cache
def uploader(xp: Any, number: int) -> Uploader:
    """Return the buffers and streams of a device, which are kept."""
    return Uploader(xp, number)
