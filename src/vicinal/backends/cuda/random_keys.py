"""Keys of the random generator that the host computes for the device (cpp/base/rng.hpp)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LAYOUT_STREAM, PHASE_STREAM, PAIRS_STREAM, SPECTRAL_STREAM = 0, 1, 6, 7  # enum class Stream
_MASK = 2**64 - 1


def mix64(x: int) -> int:
    """Return the 64-bit hash of the core."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def stream_key(seed: int, stream: int, part: int = 0) -> int:
    """Return the key of a stream of random numbers, or of a part of it such as a sweep."""
    return mix64(mix64(mix64(seed & _MASK) ^ stream) ^ part)


def stream_keys(seed: int, stream: int, first: int, count: int) -> NDArray[np.uint64]:
    """Return the keys of consecutive parts of a stream, from part ``first`` on."""
    x = np.arange(first, first + count).astype(np.uint64) ^ np.uint64(mix64(mix64(seed & _MASK) ^ stream))
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
