"""Pages for the tests in a browser, and what the tests ask of them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import matplotlib.image
import numpy as np
from numpy.typing import NDArray

Open = Callable[..., Any]
CENTERS = np.array([[-6.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
N = 300
CODES = np.arange(N) % 3
NAMES = np.array(["ant", "bee", "cat"])
POSITIONS = CENTERS[CODES] + np.random.default_rng(0).normal(scale=0.7, size=(N, 2))
IDS = [f"row-{a}" for a in range(N)]
WAIT_MS = 10_000
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}


def pixels(page: Any, selector: str = "#map") -> NDArray[Any]:
    """Return a screenshot of the map without names, [height, width, 3] from 0 to 1."""
    page.evaluate("for (const one of document.querySelectorAll('.names, .lines')) one.style.opacity = 0")
    return picture(page.locator(selector).screenshot())


def picture(content: bytes) -> NDArray[Any]:
    return np.asarray(matplotlib.image.imread(io.BytesIO(content)))[..., :3]


def near(seen: NDArray[Any], color: tuple[float, float, float], tolerance: float = 0.12) -> int:
    """Count the pixels of approximately this color."""
    return int((np.abs(seen - color).max(axis=-1) < tolerance).sum())


def project(page: Any, row: int) -> tuple[float, float]:
    x, y = page.evaluate("row => vicinalPage.view.projectRow(row)", row)
    return x, y


def select(page: Any, rows: Any) -> None:
    page.evaluate("rows => vicinalPage.state.select(rows)", [int(row) for row in rows])
