"""Use all estimators from several threads many times: resident memory is flat after the warm-up.

As a program: ``python mixed_use.py USES`` prints the curve and fails if memory grew.
"""

from __future__ import annotations

import gc
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vicinal

THREADS = 4
SAMPLES = 60  # points of the memory curve
WARM_UP = 0.4  # share of the uses for imports, arenas of malloc and one model of each kind
# Allowed growth between the first and the last third of the curve after the warm-up: pages that threads keep.
ALLOWED_MB = 8.0
ALLOWED_SHARE = 0.02


@dataclass(frozen=True)
class Curve:
    """Resident megabytes after numbers of uses, and errors."""

    uses: list[int]
    resident: list[float]
    errors: list[BaseException]

    def growth(self) -> float:
        """Return the difference in MB between the medians of the last and the first third after the warm-up."""
        after = [mb for at, mb in zip(self.uses, self.resident, strict=True) if at >= WARM_UP * self.uses[-1]]
        third = max(1, len(after) // 3)
        return float(np.median(after[-third:]) - np.median(after[:third]))

    def is_flat(self) -> bool:
        return self.growth() <= max(ALLOWED_MB, ALLOWED_SHARE * self.resident[-1])


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 2**20


def use(kind: int, rows: NDArray[np.float32], shared: Any, seed: int) -> None:
    """Do one of seven things that a service does, with varying sizes."""
    n = 150 + 40 * (seed % 5)
    X, new = rows[:n], rows[n : n + 30]
    common: dict[str, Any] = {"random_state": seed, "n_jobs": 2}
    if kind == 0:
        vicinal.UMAP(n_epochs=20, **common).fit(X).transform(new)
    elif kind == 1:
        vicinal.TSNE(max_iter=20, method="fft", **common).fit(X)
    elif kind == 2:
        shared.transform(new)
    elif kind == 3:
        growing = vicinal.UMAP(n_epochs=9, **common)
        for part in np.array_split(X, 3):
            growing.partial_fit(part)
    elif kind == 4:
        vicinal.DensMAP(n_epochs=10, **common).fit(X, None).transform(new)
    elif kind == 5:
        vicinal.LargeVis(n_epochs=10, **common).fit(X).transform(new)
    else:
        shared.inverse_transform(shared.embedding_[:20])


def soak(n_uses: int) -> Curve:
    rows = np.random.default_rng(0).normal(size=(500, 20)).astype(np.float32)
    shared = vicinal.UMAP(n_epochs=20, random_state=0).fit(rows)
    turns, lock = iter(range(n_uses)), threading.Lock()
    curve = Curve([], [], [])

    def work() -> None:
        try:
            while (turn := next(turns, None)) is not None:
                use(turn % 7, rows, shared, turn)
                if turn % max(1, n_uses // SAMPLES) == 0:
                    with lock:
                        gc.collect()
                        curve.uses.append(turn)
                        curve.resident.append(resident_mb())
        except BaseException as error:
            curve.errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return curve


def main(n_uses: int) -> int:
    curve = soak(n_uses)
    for at, mb in zip(curve.uses, curve.resident, strict=True):
        print(f"{at:8} uses {mb:8.1f} MB")
    for error in curve.errors:
        print(repr(error))
    print(f"{n_uses} uses from {THREADS} threads; growth after the warm-up {curve.growth():+.1f} MB")
    return 0 if curve.is_flat() and not curve.errors else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
