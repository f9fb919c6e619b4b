"""A stream of Arrow data whose batches are frames of polars, one after the other; polars itself joins small ones."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from vicinal.runtime.arrow import Schema, Stream

FAILED = 5


class Chained:
    """Offers the frames of an iterable, which is read only as far as batches are taken, once."""

    def __init__(self, frames: Iterable[Any]) -> None:
        self._frames = iter(frames)
        self._first, self._message = next(self._frames), b""
        self._waiting = self._first
        kinds = {name: kind for name, kind in Stream._fields_ if name != "private_data"}
        self._kept: list[Any] = []
        calls = {"get_schema": self._schema, "get_next": self._next, "get_last_error": self._error}
        calls["release"] = lambda _: None
        self._stream = Stream(*(kinds[name](call) for name, call in calls.items()))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self._stream), b"arrow_array_stream", None)

    def _open(self, frame: Any) -> Any:
        capsule = frame.__arrow_c_stream__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        self._kept = [frame, capsule]
        return Stream.from_address(pointer(capsule, b"arrow_array_stream"))

    def _schema(self, _: Any, target: Any) -> int:
        inner = self._open(self._first)
        return int(inner.get_schema(ctypes.byref(inner), ctypes.cast(target, ctypes.POINTER(Schema))))

    def _next(self, _: Any, target: Any) -> int:
        try:
            frame, self._waiting = self._waiting, None
            frame = next(self._frames) if frame is None else frame
        except StopIteration:
            ctypes.memset(target, 0, ctypes.sizeof(target.contents))
            return 0
        except OSError as error:
            self._message = str(error).encode()
            return FAILED
        inner = self._open(frame)
        return int(inner.get_next(ctypes.byref(inner), target))

    def _error(self, _: Any) -> Any:
        return ctypes.cast(ctypes.c_char_p(self._message), ctypes.c_void_p).value
