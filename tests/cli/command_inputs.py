"""Input files and helpers for the tests of the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)


Run = Callable[..., tuple[int, str, str]]


class Stub:
    """A minimal estimator, for tests of how the command line handles its behavior."""

    raised: BaseException | None = None
    reliability_ = None

    def __init__(self, n_components: int = 2, random_state: Any = None, n_jobs: int = -1) -> None:
        self.stage_times_ = {"neighbors": 0.5, "layout": 1.5}

    def fit(self, X: NDArray[np.float32]) -> None:
        if self.raised is not None:
            raise self.raised
        self.embedding_ = X[:, :2]


def write(path: str, text: str | bytes) -> None:
    Path(path).write_bytes(text.encode() if isinstance(text, str) else text)


def csv_of(rows: NDArray[Any], names: str = "a,b,c,d") -> str:
    return "\n".join([names, *(",".join(map(str, row)) for row in rows.tolist())]) + "\n"


def hidden_files() -> list[str]:
    return sorted(path.name for path in Path().iterdir() if path.name.startswith("."))
