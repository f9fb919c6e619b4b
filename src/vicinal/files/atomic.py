"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

try:
    import fcntl
except ModuleNotFoundError:  # elsewhere a file that is open cannot be removed, which serves as well
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from types import TracebackType

UNFINISHED = ".unfinished"


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of ``path`` at the end, all of it safely on the disk.

    Whatever happens meanwhile, ``path`` is as it was. A process that is killed leaves its unfinished file beside it;
    the next to write the same path removes that. Writers hold a lock on theirs, so that none removes another's.
    """
    final = path.resolve()  # a rename onto a symbolic link would replace the link, not the file it leads to
    _remove_abandoned(final)
    temporary, file = _locked(final)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(final)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # not every system can open a folder
        folder = os.open(final.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _locked(final: Path) -> tuple[Path, BinaryIO]:
    """A new file beside ``final``. It may be taken for abandoned until its lock is held: then another is made."""
    while True:
        temporary = final.with_name(f".{final.name}.{secrets.token_hex(6)}{UNFINISHED}")
        file = temporary.open("xb")
        if fcntl is not None:
            with suppress(OSError):  # some network file systems know no locks
                fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return temporary, file
        file.close()


def _remove_abandoned(final: Path) -> None:
    """Removes unfinished files of ``final`` whose writers are gone."""
    prefix = f".{final.name}."
    for name in os.listdir(final.parent):
        if name.startswith(prefix) and name.endswith(UNFINISHED):
            with suppress(OSError), (final.parent / name).open("rb") as file:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                (final.parent / name).unlink()


class Outputs:
    """Files written under temporary names, renamed together if all went well and removed if not."""

    def __init__(self) -> None:
        self.pending: dict[Path, Path] = {}

    def staged(self, path: Path) -> Path:
        """The name to write to instead of `path`, beside it: a rename cannot cross file systems."""
        final = path.resolve()  # not the link, as above
        temporary = final.with_name(f".{secrets.token_hex(6)}{final.suffix}")
        self.pending[temporary] = final
        return temporary

    def __enter__(self) -> Outputs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for temporary, final in self.pending.items():
            if kind is None:
                temporary.replace(final)
            else:
                temporary.unlink(missing_ok=True)
