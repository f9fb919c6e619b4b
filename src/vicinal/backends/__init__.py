"""The numerical work of the stages, one list of functions per kind of processor (ARCHITECTURE.md, "Backends").

A value of a stage (a neighbor table, a graph, rows) is on the host or on a device, and the work on it is done where it
is: ``backend_of(place)`` returns the functions for that place, which have the same names and parameters everywhere.
CuPy is imported when a GPU is first asked for.
"""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from vicinal.runtime.cached import uncached_state
from vicinal.runtime.constraints import DEVICE

# A device of a backend (backends/cuda/device.py), or None for the host.
Place = Any
# An array of NumPy or of a device.
Array = Any
Self = TypeVar("Self", bound="Movable")

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


@functools.cache
def _cpu() -> Any:
    from vicinal.backends import cpu

    return cpu


def backend_of(place: Place) -> Any:
    """Return the functions that work where a value lives."""
    if place is None:
        return _cpu()
    from vicinal.backends.cuda import CudaBackend

    return CudaBackend(place)


@dataclass(eq=False)
class Placed:
    """An array that belongs to a device: its copy there, its copy on the host, or both.

    The missing copy is made when it is first asked for, and kept.
    """

    place: Place
    there: Array = None
    here: Array = None

    def on_device(self) -> Array:
        """Return the copy on the device."""
        if self.there is None:
            self.there = self.place.asarray(self.here)
        return self.there

    def on_host(self) -> Array:
        """Return the copy on the host."""
        if self.here is None:
            self.here = self.place.to_numpy(self.there)
        return self.here


def placed(place: Place, array: Array) -> Array:
    """Return what a field of a `Movable` holds: an array of the host as it is, one of a device as a `Placed`."""
    return array if place is None else Placed(place, there=array)


class ArrayField:
    """A field of a `Movable`, which holds an array of the host or a `Placed`. Reading it returns the host's array."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Array:
        if instance is None:
            raise AttributeError(self._name)  # a dataclass takes it for a field without a default
        value = instance.__dict__[self._name]
        return value.on_host() if isinstance(value, Placed) else value

    def __set__(self, instance: Any, value: Array) -> None:
        instance.__dict__[self._name] = value


class Movable:
    """Base of frozen dataclasses whose ``arrays`` are all on the host, or all belong to one device.

    Code that knows nothing of devices reads the fields, which are NumPy arrays everywhere. ``array(name)`` returns an
    array where it is worked on. Copies, pickles and model files hold arrays of the host only.
    """

    arrays: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, arrays: tuple[str, ...] = (), **others: Any) -> None:
        super().__init_subclass__(**others)
        if arrays:
            cls.arrays = arrays
            for name in arrays:
                setattr(cls, name, ArrayField(name))

    @property
    def place(self) -> Place:
        """The device of the arrays, or None for the host."""
        value = self.held(self.arrays[0])
        return value.place if isinstance(value, Placed) else None

    def held(self, name: str) -> Array:
        """Return what the field holds: an array of the host or a `Placed`."""
        return self.__dict__[name]

    def array(self, name: str) -> Array:
        """Return an array where it is worked on: on the device, or on the host."""
        value = self.held(name)
        return value.on_device() if isinstance(value, Placed) else value

    def anywhere(self, name: str) -> Array:
        """Return an array of the host, or of the device if the host does not have it; nothing is moved."""
        value = self.held(name)
        if not isinstance(value, Placed):
            return value
        return value.there if value.here is None else value.here

    def on(self: Self, place: Place) -> Self:
        """Return this value with its arrays on a device, or with None on the host; arrays are moved when needed."""
        if place is self.place:
            return self
        moved = {name: getattr(self, name) for name in self.arrays}
        if place is not None:
            moved = {name: Placed(place, here=array) for name, array in moved.items()}
        value = object.__new__(type(self))
        value.__dict__.update(uncached_state(self) | moved)
        return value

    def __getstate__(self) -> dict[str, Any]:
        return uncached_state(self) | {name: getattr(self, name) for name in self.arrays}


def say_fallback(what: str, reason: str) -> None:
    """Write to the log that a part of the work is done on the CPU although a GPU was asked for."""
    log.info("%s: done on the CPU, because %s", what, reason)
