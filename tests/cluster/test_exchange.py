"""Places exchanged through files: complete, or a clear error."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from vicinal.cluster.layout import Exchange

ROWS = np.arange(10, dtype=np.float32).reshape(5, 2)


def test_each_worker_receives_the_places_of_the_others(tmp_path: Path) -> None:
    exchange = Exchange(str(tmp_path), (0, 2, 5))
    seen = np.zeros_like(ROWS)
    reader = threading.Thread(target=exchange.read, args=(0, "7", seen))
    reader.start()
    time.sleep(0.02)  # the reader waits
    exchange.write(1, 7, ROWS[2:])
    reader.join(timeout=10)
    assert not reader.is_alive()
    np.testing.assert_array_equal(seen[2:], ROWS[2:])
    assert not seen[:2].any()


def test_waiting_ends_when_the_layout_is_given_up(tmp_path: Path) -> None:
    directory = tmp_path / "exchange"
    directory.mkdir()
    threading.Timer(0.05, shutil.rmtree, [directory]).start()
    with pytest.raises(InterruptedError, match="given up"):
        Exchange(str(directory), (0, 2, 5)).read(0, 1, np.zeros_like(ROWS))


def test_bad_files_are_errors(tmp_path: Path) -> None:
    exchange = Exchange(str(tmp_path), (0, 2, 5))
    exchange.write(1, 3, ROWS[3:])
    with pytest.raises(OSError, match="3-1 does not hold the places of 3 rows"):
        exchange.read(0, 3, np.zeros_like(ROWS))
    with pytest.raises(OSError, match="could not be written: No such file"):
        Exchange(str(tmp_path / "none"), (0, 2, 5)).write(1, 3, ROWS[2:])
