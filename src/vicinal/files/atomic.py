"""Write files atomically: a reader sees the old file or the complete new one, never a part."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from vicinal.runtime.interruption import deferred_interrupts

try:
    import fcntl
except ModuleNotFoundError:  # Windows refuses to delete an open file, which serves the same purpose as the lock
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from types import TracebackType

UNFINISHED = ".unfinished"


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file for writing and, on success, flush it to disk and rename it to ``path``.

    If anything fails, ``path`` keeps its old content; if a file is replaced, the new one has its permissions. What is
    not a regular file (a pipe, a device, a directory) is refused: renaming would replace it. A killed process leaves
    its unfinished file beside ``path``; the next write to the same path deletes it. Each writer locks its own file, so
    that no writer deletes another's.
    """
    final = replaceable(path)
    _remove_abandoned(final)
    temporary = None
    try:
        with deferred_interrupts():  # a signal between the creation of the file and its name would leave the file
            temporary, file = _open_locked(final)
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            _keep_mode(temporary, final)
            temporary.replace(final)
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        _name_file(error, final)
        raise
    with suppress(OSError):  # some systems cannot open a directory
        folder = os.open(final.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def replaceable(path: Path) -> Path:
    """Return the file that writing to ``path`` replaces or makes; raise OSError if it is not a regular file.

    That is the target of a symbolic link: renaming onto the link would replace the link itself.
    """
    final = path.resolve()
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return final
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "the path is a directory, not a file", str(path))
        kind = kinds.get(stat.S_IFMT(mode), "of another kind")
        raise OSError(errno.EINVAL, f"the path is {kind}, not a regular file, and would be replaced", str(path))
    return final


def _create(temporary: Path, final: Path) -> int:
    """Create a file that others may read only if they may read the file that it replaces; return its descriptor."""
    mode = stat.S_IMODE(final.stat().st_mode) if final.exists() else 0o666
    return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)


def _keep_mode(temporary: Path, final: Path) -> None:
    """Give the new file the permissions of the file that it replaces, if there is one."""
    with suppress(FileNotFoundError):
        temporary.chmod(stat.S_IMODE(final.stat().st_mode))


def _open_locked(final: Path) -> tuple[Path, BinaryIO]:
    """Create a temporary file beside ``final`` and lock it.

    Until the lock is held, another writer may consider the file abandoned and delete it; then create another one.
    """
    while True:
        temporary = final.with_name(f".{final.name}.{secrets.token_hex(6)}{UNFINISHED}")
        file = os.fdopen(_create(temporary, final), "wb")
        if fcntl is not None:
            with suppress(OSError):  # some network file systems do not support locks
                fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return temporary, file
        file.close()


def _name_file(error: BaseException | None, final: Path) -> None:
    """Let an error of the system name the file that was being written: a full disk does not say which."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        error.filename = str(final)


def _remove_abandoned(final: Path) -> None:
    """Delete unfinished files of ``final`` whose writers no longer exist."""
    prefix = f".{final.name}."
    for name in os.listdir(final.parent):
        if name.startswith(prefix) and name.endswith(UNFINISHED):
            with suppress(OSError), (final.parent / name).open("rb") as file:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                (final.parent / name).unlink()


class StagedFiles:
    """Several files written under temporary names: renamed together on success, deleted on failure."""

    def __init__(self) -> None:
        self.pending: dict[Path, Path] = {}

    def path_for(self, path: Path) -> Path:
        """Return the path to write to instead: in the same directory, as a rename cannot cross file systems."""
        final = replaceable(path)
        temporary = final.with_name(f".{secrets.token_hex(6)}{final.suffix}")
        if final.exists():
            os.close(_create(temporary, final))
        self.pending[temporary] = final
        return temporary

    def __enter__(self) -> StagedFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for temporary, final in self.pending.items():
            if kind is None:
                _keep_mode(temporary, final)
                temporary.replace(final)
            else:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
            if isinstance(error, OSError) and str(error.filename) == str(temporary):
                error.filename = str(final)  # the name that the caller knows
        if self.pending:
            _name_file(error, list(self.pending.values())[-1])
