"""The numerical work of the stages, one module of functions per kind of processor (ARCHITECTURE.md, "Backends").

A value of a stage (a neighbor table, a graph, rows) lives on the host or on a device, and the work on it is done where
it lives: ``backend_of(place)`` returns the functions for that place. CuPy is imported when a GPU is first asked for.
"""

from __future__ import annotations

import logging
from typing import Any

from vicinal.runtime.constraints import DEVICE
from vicinal.runtime.residence import Place

CUDA_KIND = 2  # kDLCUDA of DLPack
log = logging.getLogger("vicinal")


def is_on_gpu(X: Any) -> bool:
    """Tell whether an array or tensor of any library lives on a CUDA device, by DLPack."""
    kind = getattr(X, "__dlpack_device__", None)
    if kind is None or isinstance(X, type):
        return False
    try:
        return int(kind()[0]) == CUDA_KIND
    except (AttributeError, BufferError, RuntimeError, TypeError):  # libraries differ for devices without DLPack
        return False


def check_device(device: Any) -> None:
    """Raise ValueError unless the value is None or the name of a device."""
    if device is not None and not DEVICE.allows(device):
        raise ValueError(f"device must be None, {DEVICE}, got {device!r}")


def resolve_place(device: str | None, X: Any = None) -> Place:
    """Return the device that works on X: the one that was asked for, or the one where X lives; None for the CPU."""
    check_device(device)
    if device is None:
        number = int(X.__dlpack_device__()[1]) if is_on_gpu(X) else None
    else:
        number = None if device == "cpu" else int(device.partition(":")[2] or 0)
    if number is None:
        return None
    from vicinal.backends.cuda import device as devices

    return devices.cuda_device(number)


def usable_place(device: str | None, what: str, X: Any = None) -> Place:
    """Return the device as `resolve_place` does; None, said in the log, if there is no such device."""
    try:
        return resolve_place(device, X)
    except RuntimeError as error:
        from vicinal.backends.cuda.device import DeviceError

        if not isinstance(error, DeviceError):
            raise
        say_fallback(what, str(error))
        return None


def backend_of(place: Place) -> Any:
    """Return the functions that work where a value lives."""
    if place is None:
        from vicinal.backends import cpu

        return cpu
    from vicinal.backends.cuda import CudaBackend

    return CudaBackend(place)


def say_fallback(what: str, reason: str) -> None:
    """Write to the log that a part of the work is done on the CPU although a GPU was asked for."""
    log.info("%s: done on the CPU, because %s", what, reason)
