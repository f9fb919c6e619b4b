"""Progress of a fit: times of its stages, progress bars, and the callbacks that watch it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

Callback = Callable[[str, int, int, "NDArray[np.float32] | None"], object]
LAYOUT = "layout"


class Progress:
    """Report the stages of a fit to the user, with ``verbose`` by one progress bar per stage.

    ``callback(stage, done, steps, embedding)`` is called at the start and the end of every stage, and after every epoch
    of the layout with the embedding; for the other stages ``embedding`` is None. A true result asks to stop: the layout
    ends with the current places, and ``stopped`` is true from then on. ``times`` are the seconds per completed stage.
    """

    def __init__(
        self,
        *,
        callback: Callback | None = None,
        verbose: bool = False,
        tqdm_kwds: dict[str, Any] | None = None,
    ) -> None:
        self.times: dict[str, float] = {}
        self.stopped = False
        self._callback = callback
        # Callbacks of the layout, each with its period, and whether it is called at the last epoch too.
        self._listeners: list[tuple[Callback, int, bool]] = []
        self._verbose = verbose
        self._tqdm_kwds = dict(tqdm_kwds or {})
        self._bar: Any = None

    def listen(self, callback: Callback, every: int = 1, *, last: bool = False) -> None:
        """Call ``callback`` during the layout, at epochs that are multiples of ``every``, and with ``last`` at its end.

        It is called as ``callback(stage, epoch, n_epochs, embedding)``; a true result asks to stop.
        """
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        self._listeners.append((callback, every, last))

    def next_report(self, epoch: int, stop: int) -> int:
        """Return the first epoch after ``epoch`` that anyone watches, at most ``stop``."""
        periods = [every for _, every, _ in self._listeners]
        if self._verbose or self._callback is not None:
            periods.append(1)
        return min([stop, *(epoch + every - epoch % every for every in periods)])

    @contextmanager
    def stage(self, name: str, steps: int = 1) -> Iterator[None]:
        """Time a stage and show its bar. The layout reports its own epochs; other stages report start and end here."""
        if self._verbose:
            from tqdm.auto import tqdm

            self._bar = tqdm(**{"desc": name, "total": steps, "leave": True, **self._tqdm_kwds})
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
        """Report that ``done`` of ``steps`` steps of a stage are complete; tell whether any callback has asked to stop.

        ``embedding`` returns the current places. It is called only if a callback is called.
        """
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
        watching = [] if self._callback is None else [self._callback]
        if stage == LAYOUT:
            for callback, every, last in self._listeners:
                if done % every == 0 or (last and done == steps):
                    watching.append(callback)
        if watching:
            places = None if embedding is None else embedding()
            answers = [bool(callback(stage, done, steps, places)) for callback in watching]
            self.stopped = any(answers) or self.stopped
        return self.stopped
