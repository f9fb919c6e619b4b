"""Stages of a fit: their times, their progress bars, and the user's callback."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.runtime.interruption import imported
from vicinal.runtime.sharing import Guard

Callback = Callable[[str, int, int, "NDArray[np.float32] | None"], object]
LAYOUT = "layout"


class Progress:
    """Reports stages. A truthy answer of the callback asks to stop: the layout ends with what there is."""

    def __init__(
        self,
        *,
        callback: Callback | None = None,
        verbose: bool = False,
        tqdm_kwds: dict[str, Any] | None = None,
    ) -> None:
        self.times: dict[str, float] = {}
        self.stopped = False
        self._listeners = [] if callback is None else [callback]
        self._verbose = verbose
        self._tqdm_kwds = dict(tqdm_kwds or {})
        self._bar: Any = None

    @property
    def wants_epochs(self) -> bool:
        """Whether anyone looks at single epochs."""
        return bool(self._listeners) or self._verbose

    def listen(self, callback: Callback) -> None:
        """Tells one more callback of what follows."""
        self._listeners.append(callback)

    @contextmanager
    def stage(self, name: str, steps: int = 1) -> Iterator[None]:
        """Times a stage. One of a single step reports its own beginning and end."""
        if self._verbose:
            self._bar = _bar_class()(**{"desc": name, "total": steps, "leave": True, **self._tqdm_kwds})
        start = time.perf_counter()
        try:
            if name != LAYOUT:
                self.report(name, 0, steps)
            yield
            self.times[name] = time.perf_counter() - start
            if name != LAYOUT:
                self.report(name, steps, steps)
        finally:
            if self._bar is not None:
                self._bar.close()
                self._bar = None

    def report(
        self, stage: str, done: int, steps: int, embedding: Callable[[], NDArray[np.float32]] | None = None
    ) -> bool:
        """Tells how far a stage is; true once anyone has asked to stop."""
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
        if self._listeners:
            places = None if embedding is None else embedding()
            answers = [bool(listener(stage, done, steps, places)) for listener in self._listeners]
            self.stopped = any(answers) or self.stopped
        return self.stopped


@functools.lru_cache(maxsize=1)
def _bar_class() -> Any:
    """tqdm's bars with a lock of their own: a child forked while a thread of its parent draws would wait for tqdm's."""

    class Bar(imported("tqdm.auto").tqdm):  # type: ignore[misc]
        _lock = Guard()

    return Bar
