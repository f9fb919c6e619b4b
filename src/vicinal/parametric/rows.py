"""Rows of the data, kept where they fit and delivered to the device that trains."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vicinal.runtime.sharing import Guard

# Rows encoded together. Every call is padded to it, so that a row's place never depends on its company: another
# number of rows would mean another kernel of the matrix product, and other bits.
CHUNK = 512
RESIDENT_SHARE = 0.5  # of a device's free memory that data and graph may take; beyond it they are streamed


def choose_device(name: str) -> torch.device:
    """'auto' is the first CUDA device if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device must be 'auto', 'cpu' or 'cuda[:number]', got {name!r}") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={name!r} was asked for, but torch sees no CUDA device")
    return device


def home_of(n_bytes: int, device: torch.device) -> torch.device:
    """Where arrays of this size stay during training: on the device if they fit well, else on the host."""
    if device.type == "cuda" and n_bytes <= RESIDENT_SHARE * torch.cuda.mem_get_info(device)[0]:
        return device
    return torch.device("cpu")


def share(array: NDArray[np.generic]) -> Tensor:
    """A tensor on the array's own memory; nothing here writes to it, so a read-only map is welcome."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(array)


class Rows:
    """``take(index)`` gives rows on the training device, in its floating-point type."""

    def __init__(
        self, X: NDArray[np.float32], home: torch.device, device: torch.device, dtype: torch.dtype = torch.float32
    ) -> None:
        self._X = share(X).to(home)
        self.device, self.dtype = device, dtype

    def __len__(self) -> int:
        return len(self._X)

    def take(self, index: Tensor) -> Tensor:
        return self._X[index.to(self._X.device)].to(self.device, self.dtype)


def apply_rows(
    module: nn.Module, X: NDArray[np.float32], device: torch.device, dtype: torch.dtype
) -> NDArray[np.float32]:
    """The module's float32 output for every row, in evaluation mode and chunks of one size."""
    module.eval()
    data = share(X)
    parts = []
    with torch.inference_mode():
        for chunk in torch.split(data, CHUNK):
            padded = nn.functional.pad(chunk, (0, 0, 0, CHUNK - len(chunk)))
            parts.append(module(padded.to(device, dtype))[: len(chunk)].to("cpu", torch.float32))
    return np.ascontiguousarray(torch.cat(parts).numpy())


_inside: list[int] = []  # numbers of threads asked for by callers that are in the middle of something
_own_threads = torch.get_num_threads()
_counting = Guard()


@contextlib.contextmanager
def threads(n_jobs: int) -> Iterator[None]:
    """At most ``n_jobs`` of torch's threads inside; a negative number leaves torch's own choice.

    The number is the whole process's: of callers in several threads the last to enter decides, and the last to leave
    puts torch's own number back.
    """
    global _own_threads
    if n_jobs <= 0:
        yield
        return
    with _counting:
        if not _inside:
            _own_threads = torch.get_num_threads()
        _inside.append(n_jobs)
        torch.set_num_threads(n_jobs)
    try:
        yield
    finally:
        with _counting:
            _inside.remove(n_jobs)
            torch.set_num_threads(_inside[-1] if _inside else _own_threads)
