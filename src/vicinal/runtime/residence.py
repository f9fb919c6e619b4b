"""Values whose arrays may live on a device: the host's copies are made when they are first read."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from vicinal.runtime.cached import uncached_state

Self = TypeVar("Self", bound="Resident")

# A device of a backend (vicinal.backends), with `asarray` and `to_numpy`; None is the host.
Place = Any


def working_on(place: Place) -> AbstractContextManager[Any]:
    """Return the context in which arrays are made on a device; it does nothing for the host."""
    return nullcontext() if place is None else place.active()


class Resident:
    """Base of frozen dataclasses whose arrays, named by ``_resident``, may live on a device.

    Code that knows nothing of devices reads the fields, which are NumPy arrays everywhere. ``array(name)`` returns the
    array where it lives. A copy, a pickle and a model file hold the host's arrays only.
    """

    _resident: ClassVar[tuple[str, ...]] = ()

    @property
    def place(self) -> Place:
        """The device of the arrays, or None for the host."""
        return self.__dict__.get("_place")

    @classmethod
    def held(cls: type[Self], place: Place, arrays: Mapping[str, Any], **others: Any) -> Self:
        """Return a value whose arrays are on a device, without checking them."""
        value = object.__new__(cls)
        defaults = {one.name: one.default for one in fields(value) if one.name not in arrays}  # type: ignore[arg-type]
        value.__dict__.update(defaults | others, _place=place, _held=dict(arrays))
        return value

    def on(self: Self, place: Place) -> Self:
        """Return this value with its arrays on a device, or with None on the host; arrays are moved when needed."""
        if place is self.place:
            return self
        state = {name: value for name, value in uncached_state(self).items() if name not in ("_place", "_held")}
        state.update({name: getattr(self, name) for name in self._resident})
        value = object.__new__(type(self))
        value.__dict__.update(state)
        if place is not None:
            value.__dict__.update(_place=place, _held={})
        return value

    def array(self, name: str) -> Any:
        """Return an array where it lives: on the device, or on the host."""
        place = self.place
        if place is None:
            return getattr(self, name)
        held = self.__dict__["_held"]
        if name not in held:
            held[name] = place.asarray(self.__dict__[name])
        return held[name]

    def __getstate__(self) -> dict[str, Any]:
        for name in self._resident:
            getattr(self, name)
        return {name: value for name, value in uncached_state(self).items() if name not in ("_place", "_held")}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Called for what the instance does not have: a field that only the device holds.
            held = self.__dict__.get("_held", {})
            if name not in held:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return self.__dict__.setdefault(name, self.__dict__["_place"].to_numpy(held[name]))
