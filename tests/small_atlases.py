"""Small atlases, and the changes that the program of the interruption tests makes.

As a program: ``small_atlases.py FOLDER MOMENT`` makes all ``CHANGES`` to the atlas in FOLDER and kills itself before
the file operation with the number MOMENT, counted from 1. If there are fewer operations it prints their number.
Operations are opening, writing, flushing, renaming and deleting a file of the folder.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal import UMAP, Atlas

Rows = NDArray[np.float32]
WHEN = datetime(2026, 3, 2, tzinfo=UTC)


def groups(n: int, seed: int = 0, *, centers: int = 4, columns: int = 6) -> tuple[Rows, NDArray[np.int64]]:
    """Return rows of a few well separated groups, and their groups."""
    rng = np.random.default_rng(seed)
    middle = 12 * np.random.default_rng(99).normal(size=(8, columns))
    of = np.arange(n) % centers
    return (middle[of] + rng.normal(size=(n, columns))).astype(np.float32), of


def small_atlas(path: Path, n: int = 240, **options: Any) -> Atlas:
    """Return an atlas of some groups."""
    estimator = UMAP(n_neighbors=8, n_epochs=30, random_state=3, n_jobs=2)
    return Atlas.create(path, groups(n)[0], estimator=estimator, at=WHEN, **options)


def append(atlas: Atlas) -> None:
    atlas.append(groups(24, seed=atlas.version)[0], deleted=atlas.ids[3:5], at=WHEN)


def refit(atlas: Atlas) -> None:
    atlas.refit(at=WHEN)


def forget(atlas: Atlas) -> None:
    atlas.forget(ids=[*atlas.ids[[6, 7]].tolist(), 242], at=WHEN)


CHANGES: dict[str, Callable[[Atlas], None]] = {"append": append, "refit": refit, "forget": forget}


class Moments:
    """Counts the operations on files of a folder, and kills the process before one of them."""

    def __init__(self, folder: Path, fatal: int) -> None:
        self.folder, self.fatal, self.passed = str(folder.resolve()), fatal, 0

    def count(self, *_: Any) -> None:
        self.passed += 1
        if self.passed == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        writes = event in ("os.rename", "os.remove") or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR))
        if writes and str(arguments[0]).startswith(self.folder):
            self.count()

    def watch(self) -> None:
        from vicinal.files import atomic

        sys.addaudithook(self.audit)
        flush, fdopen = os.fsync, os.fdopen
        os.fsync = lambda number: (self.count(), flush(number))[1]  # type: ignore[assignment]
        counted = self.count

        class Watched:
            """A file whose content may be cut in two by the end of the process."""

            def __init__(self, file: Any) -> None:
                self.file = file

            def write(self, content: Any) -> None:
                half = memoryview(content).cast("B")
                self.file.write(half[: len(half) // 2])
                self.file.flush()
                counted()
                self.file.write(half[len(half) // 2 :])

            def __getattr__(self, name: str) -> Any:
                return getattr(self.file, name)

            def __enter__(self) -> Watched:
                return self

            def __exit__(self, *error: Any) -> None:
                self.file.close()

        class WatchedSystem:
            """The functions of ``os``, whose files are watched."""

            def __getattr__(self, name: str) -> Any:
                return getattr(os, name)

            def fdopen(self, *arguments: Any) -> Any:
                return Watched(fdopen(*arguments))

        atomic.os = WatchedSystem()  # type: ignore[attr-defined]


def main() -> None:
    folder = Path(sys.argv[1])
    moments = Moments(folder, int(sys.argv[2]))
    moments.watch()
    for change in CHANGES.values():
        change(Atlas.open(folder))
    print(moments.passed)


if __name__ == "__main__":
    main()
