"""Show the newest version of an atlas on the live page, and follow its changes."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from vicinal.atlas.atlas import Atlas
from vicinal.atlas.snapshot import Snapshot as Version
from vicinal.atlas.versions import Folder
from vicinal.files.data_table import Column, Role
from vicinal.viewer.packing import PageColumns
from vicinal.viewer.session import Session, Snapshot, Status

if TYPE_CHECKING:
    import polars as pl

# How often the folder is looked at for a newer version, in seconds.
LOOK_S = 1.0
AREA, TERRITORY = "area", "new territory"
# What each change is called on the page.
CHANGES = {
    "create": "created, {added:,} rows",
    "append": "{added:,} added, {changed:,} changed, {deleted:,} deleted",
    "refit": "laid out again",
    "migrate": "laid out by other values",
    "forget": "{forgotten:,} forgotten",
    "rollback": "version {of} again",
}


class AtlasSession(Session):
    """The newest version of the atlas in a folder; other processes may change it at any time.

    ``look`` shows a newer version if there is one, ``follow`` does so until ``stop``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._folder = Folder(path)
        self._head = self._folder.head()
        newest = Atlas.open(path)
        width = newest.embedding.shape[1]
        super().__init__(newest.embedding, None, {"n_components": width}, title=self._folder.path.resolve().name)
        self._ended = threading.Event()
        self._follower: threading.Thread | None = None
        self._show(newest)

    @property
    def projects(self) -> bool:
        """Rows are placed by an append, which changes the atlas."""
        return False

    @property
    def saves(self) -> bool:
        return False

    @property
    def has_neighbors(self) -> bool:
        return False

    def look(self) -> bool:
        """Show the newest version if it is another one than before; return whether it is."""
        try:
            head = self._folder.head()
            if head == self._head:
                return False
            newest = Atlas.open(self._folder.path)
        except (OSError, ValueError) as error:
            # the folder may be moved away, or files forgotten while they are read: the page keeps what it has
            with self._lock:
                self._status = replace(self._status, message=" ".join(str(error).split()))
            return False
        self._head = head
        self._show(newest)
        return True

    def follow(self) -> None:
        """Look for newer versions in a thread of its own, until ``stop``."""
        self._follower = threading.Thread(target=self._watch, daemon=True)
        self._follower.start()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_S):
            self.look()

    def stop(self) -> None:
        """Stop following."""
        self._ended.set()
        super().stop()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until no thread looks at the folder."""
        if self._follower is not None:
            self._follower.join(timeout)
        super().wait(timeout)

    def _show(self, atlas: Atlas) -> None:
        newest = atlas.snapshot()
        columns = page_columns(newest, atlas.columns())
        told = CHANGES.get(newest.made, "").format_map(_Numbers(newest.record))
        with self._lock:
            self.X, self._page, self._sent_columns = newest.embedding, columns, columns
            self._status = Status("done", f"Version {newest.version}", message=told)
            self._snapshot = Snapshot(0, 0, 0, newest.embedding, final=True, columns=columns)


class _Numbers(dict[str, Any]):
    """The record of a version, with 0 for what it does not count."""

    def __missing__(self, name: str) -> int:
        return 0


def page_columns(shown: Version, further: pl.DataFrame) -> PageColumns:
    """Return the rows of a version as a page shows them: areas, new territory, further columns, ids."""
    names = np.array([*shown.names, None], dtype=object)
    columns = [Column(AREA, Role.LABEL, names[shown.labels])]
    if shown.new_territory.any():
        columns.append(Column(TERRITORY, Role.DISPLAY, np.where(shown.new_territory, "new", "known").astype(object)))
    given: list[tuple[str, Role, Any]] = [(name, Role.DISPLAY, further[name].to_list()) for name in further.columns]
    given.append(("id", Role.ID, shown.ids))
    for name, role, values in given:
        columns.append(Column(name, role, np.fromiter(values, dtype=object, count=len(shown))))
    return PageColumns.of(columns, len(shown))
