"""Progress of a fit: times of its stages, progress bars, and the callbacks that watch it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Callback = Callable[[str, int, int, "NDArray[np.float32] | None"], object]
LAYOUT = "layout"


@dataclass(frozen=True)
class _Listener:
    """A callback that watches the layout every ``every`` epochs, and if ``last`` is set at the last epoch too."""

    callback: Callback
    every: int
    last: bool

    def wants(self, epoch: int, n_epochs: int) -> bool:
        return epoch % self.every == 0 or (self.last and epoch == n_epochs)


class Progress:
    """Report the stages of a fit to the user.

    Parameters
    ----------
    callback : callable, optional
        ``callback(stage, done, steps, embedding)`` is called at the start and the end of every stage, and after every
        epoch of the layout with the embedding; for the other stages ``embedding`` is None. A true result asks to stop:
        the layout ends with the current places, and ``stopped`` is true from then on.
    verbose : bool, default False
        Show one progress bar per stage.
    tqdm_kwds : dict, optional
        Arguments of the bars.

    Attributes
    ----------
    times : dict
        Seconds per completed stage.
    stopped : bool
        Whether any callback has asked to stop.
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
        self._listeners: list[_Listener] = []
        self._verbose = verbose
        self._tqdm_kwds = dict(tqdm_kwds or {})
        self._bar: Any = None

    def listen(self, callback: Callback, every: int = 1, *, last: bool = False) -> None:
        """Call ``callback`` during the layout, at epochs that are multiples of ``every``.

        Parameters
        ----------
        callback : callable
            Called as ``callback(stage, epoch, n_epochs, embedding)``; a true result asks to stop.
        every : int, default 1
            Period in epochs.
        last : bool, default False
            Also call it at the last epoch if that is not a multiple of ``every``.
        """
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        self._listeners.append(_Listener(callback, every, last))

    def next_report(self, epoch: int, stop: int) -> int:
        """Return the first epoch after ``epoch`` that anyone watches, at most ``stop``."""
        periods = [one.every for one in self._listeners]
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
        """Report that ``done`` of ``steps`` steps of a stage are complete.

        Parameters
        ----------
        stage : str
            Name of the stage.
        done, steps : int
            Steps completed, and steps in all.
        embedding : callable, optional
            Returns the current places. It is called only if a callback is called.

        Returns
        -------
        stopped : bool
            Whether any callback has asked to stop.
        """
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
        watching = [] if self._callback is None else [self._callback]
        if stage == LAYOUT:
            watching += [one.callback for one in self._listeners if one.wants(done, steps)]
        if watching:
            places = None if embedding is None else embedding()
            answers = [bool(callback(stage, done, steps, places)) for callback in watching]
            self.stopped = any(answers) or self.stopped
        return self.stopped
