"""Arrays exchanged through files: complete, or a clear error."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vicinal.cluster import layout
from vicinal.cluster.layout import Exchange

ROWS = np.arange(10, dtype=np.float32).reshape(5, 2)


@pytest.fixture
def at_third_look(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Do something when a reader has looked for a file three times in vain."""

    def arrange(act: Callable[[], None]) -> None:
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                act()
            assert len(pauses) <= 3

        monkeypatch.setattr(layout.time, "sleep", pause)

    return arrange


def test_a_worker_waits_for_the_lines_of_the_others(
    tmp_path: Path, at_third_look: Callable[[Callable[[], None]], None]
) -> None:
    exchange = Exchange(str(tmp_path), (0, 2, 5))
    at_third_look(lambda: exchange.write(1, "7", ROWS[2:]))
    seen = np.zeros_like(ROWS)
    exchange.complete(0, "7", ROWS[:2], seen)
    np.testing.assert_array_equal(seen, ROWS)


def test_waiting_ends_when_the_layout_is_given_up(
    tmp_path: Path, at_third_look: Callable[[Callable[[], None]], None]
) -> None:
    directory = tmp_path / "exchange"
    directory.mkdir()
    at_third_look(lambda: shutil.rmtree(directory))
    with pytest.raises(InterruptedError, match="given up"):
        Exchange(str(directory), (0, 2, 5)).read(0, "1", np.zeros_like(ROWS))


def test_bad_files_are_errors(tmp_path: Path) -> None:
    exchange = Exchange(str(tmp_path), (0, 2, 5))
    exchange.write(1, "3", ROWS[3:])
    with pytest.raises(OSError, match="3-1 does not hold 3 rows"):
        exchange.read(0, "3", np.zeros_like(ROWS))
    with pytest.raises(OSError, match="could not be written: No such file"):
        Exchange(str(tmp_path / "none"), (0, 2, 5)).write(1, "3", ROWS[2:])
