"""Deliver rows of the data, dense or sparse, to the device that trains, and apply a network to all of them."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

InputRows = Any  # a C-contiguous float32 array, or a SciPy CSR matrix of float32 without duplicate entries

# Rows per call of a network. Every call is padded to this number: matrix products of different sizes use different
# kernels, so without padding the bits of a row's output would depend on how many rows are in the call.
CHUNK = 512
RESIDENT_SHARE = 0.5  # of a device's free memory that data and graph may use; larger data stay on the host


def choose_device(name: str) -> torch.device:
    """Return the torch device called ``name``; "auto" is the first CUDA device, or the CPU if there is none."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device must be 'auto', 'cpu' or 'cuda[:number]', got {name!r}") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={name!r} needs CUDA, but torch finds no CUDA device")
    return device


def storage_device(n_bytes: int, device: torch.device) -> torch.device:
    """Choose where arrays of ``n_bytes`` stay during training: on ``device`` if they fit well, else on the host."""
    if device.type == "cuda" and n_bytes <= RESIDENT_SHARE * torch.cuda.mem_get_info(device)[0]:
        return device
    return torch.device("cpu")


def as_tensor(array: NDArray[np.generic]) -> Tensor:
    """Return a tensor that shares the array's memory. Nothing in this package writes to it, so it may be read-only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(array)


def is_csr(X: InputRows) -> bool:
    """Return whether ``X`` is a CSR matrix."""
    return hasattr(X, "indptr")


def dense_rows(X: InputRows, rows: slice) -> NDArray[np.float32]:
    """Return some rows as a dense array: a view of dense data, a new array for sparse data."""
    return np.asarray(X[rows].toarray() if is_csr(X) else X[rows])


def count_bytes(X: InputRows) -> int:
    """Return the memory that dense or sparse rows use."""
    return sum(part.nbytes for part in ((X.data, X.indices, X.indptr) if is_csr(X) else (X,)))


class DeviceRows:
    """Rows by number, on the training device and in its floating-point type.

    The data stay on the device ``storage``. Sparse rows are stored sparse; only the requested rows become dense.
    """

    def __init__(
        self, X: InputRows, storage: torch.device, device: torch.device, dtype: torch.dtype = torch.float32
    ) -> None:
        self.n_rows, self.n_features = (int(size) for size in X.shape)
        self.device, self.dtype = device, dtype
        self._sparse = is_csr(X)
        parts = (X.data, X.indices, X.indptr) if self._sparse else (X,)
        self._parts = [as_tensor(part).to(storage) for part in parts]

    def __len__(self) -> int:
        return self.n_rows

    def take(self, index: Tensor) -> Tensor:
        """Return the rows with these numbers, dense."""
        index = index.to(self._parts[0].device)
        rows = self._densify(index) if self._sparse else self._parts[0][index]
        return rows.to(self.device, self.dtype)

    def _densify(self, index: Tensor) -> Tensor:
        data, columns, indptr = self._parts
        first = indptr[index].long()
        counts = indptr[index + 1].long() - first
        ends = counts.cumsum(0)
        row = torch.repeat_interleave(counts)
        entry = torch.arange(len(row), device=row.device) + (first - ends + counts)[row]
        dense = data.new_zeros(len(index), self.n_features)
        dense[row, columns[entry].long()] = data[entry]
        return dense


def apply_rows(module: nn.Module, X: InputRows, device: torch.device, dtype: torch.dtype) -> NDArray[np.float32]:
    """Return the module's float32 output for every row, in evaluation mode and in chunks of one size."""
    module.eval()
    n_rows = X.shape[0]
    parts = []
    with torch.inference_mode():
        for first in range(0, max(n_rows, 1), CHUNK):
            chunk = as_tensor(dense_rows(X, slice(first, first + CHUNK)))
            padded = nn.functional.pad(chunk, (0, 0, 0, CHUNK - len(chunk)))
            parts.append(module(padded.to(device, dtype))[: len(chunk)].to("cpu", torch.float32))
    return np.ascontiguousarray(torch.cat(parts).numpy())


MOST_THREADS = max(64, os.cpu_count() or 1)
_requested: list[int] = []  # numbers of threads requested by callers that are inside `threads`
_default_threads = torch.get_num_threads()
_counting = threading.RLock()


@contextlib.contextmanager
def threads(n_jobs: int) -> Iterator[None]:
    """Limit torch to ``n_jobs`` threads inside the block; a number below 1 leaves torch's setting as it is.

    More threads than MOST_THREADS are not started: the library behind torch ends the process if it cannot.

    The setting belongs to the whole process. If several Python threads are inside, the last one to enter decides, and
    the last one to leave restores torch's setting.
    """
    global _default_threads
    if n_jobs <= 0:
        yield
        return
    n_jobs = min(n_jobs, MOST_THREADS)
    with _counting:
        if not _requested:
            _default_threads = torch.get_num_threads()
        _requested.append(n_jobs)
        torch.set_num_threads(n_jobs)
    try:
        yield
    finally:
        with _counting:
            _requested.remove(n_jobs)
            torch.set_num_threads(_requested[-1] if _requested else _default_threads)
