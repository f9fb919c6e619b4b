"""Real signals at chosen moments of a call."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable


def was_interrupted(call: Callable[[], object], delay: float) -> bool:
    """Send SIGINT ``delay`` seconds after the call has begun; return whether the call raised KeyboardInterrupt."""
    inside = True

    def send() -> None:
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    try:
        sender.start()
        call()
        inside = False
        sender.join()
        time.sleep(1)
    except KeyboardInterrupt:
        return inside
    finally:
        sender.join()
    raise AssertionError("the signal was lost")
