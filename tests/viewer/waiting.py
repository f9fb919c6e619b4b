"""Wait for conditions of a session without fixed delays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from vicinal.viewer.session import Session

LONG_S = 240.0


def until(condition: Callable[[], bool]) -> None:
    """Wait until the condition is true; fail after minutes."""
    end = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.01)


class PauseGate:
    """Observes the fit thread of a session while a pause blocks it."""

    def __init__(self, session: Session) -> None:
        self._blocked = threading.Event()
        wait = session._going.wait

        def observed_wait(timeout: float | None = None) -> bool:
            if not session._going.is_set():
                self._blocked.set()
            return wait(timeout)

        session._going.wait = observed_wait  # type: ignore[method-assign]

    def wait_until_blocked(self) -> None:
        """Wait until the fit thread checks, from now on, whether it may continue, and may not."""
        self._blocked.clear()
        assert self._blocked.wait(LONG_S), "the fit was not blocked"
