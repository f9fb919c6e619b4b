"""The folder of an atlas: versions that share what did not change, replaced as a whole or not at all.

    HEAD               JSON: the number of the newest version, and the manifest of every version
    lock               held by the process that writes
    objects/NAME       manifests (JSON), rows and places (Parquet), estimators and neighbor tables (.vicinal)

An object is named after its content and never changes. A change writes its objects first and replaces HEAD last, by one
rename: a process that is killed at any moment leaves the version before. Objects that no version names are deleted by
the next change. The system releases the lock of a process that ends, however it ends.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from vicinal.files.atomic import atomic_write

FORMAT = 1
HEAD, LOCK, OBJECTS = "HEAD", "lock", "objects"
NAME_DIGITS = 40


class AtlasError(ValueError):
    """A folder is not a complete, valid atlas."""


@dataclass(frozen=True)
class Chunk:
    """Rows that were stored together: the name of their file, how many they are, and when they came."""

    file: str
    rows: int
    at: str


@dataclass(frozen=True)
class Manifest:
    """What a version consists of, by the names of objects.

    Attributes
    ----------
    number, parent : int
        The version, and the one that it was made from; 0 for none.
    made, at : str
        The change that made it, and when (UTC).
    estimator : str
        The unfitted estimator.
    dtype : str
        Type of the rows.
    next_row : int
        The number of the next new row: no row has the number of another, even if that is gone.
    chunks : tuple of Chunk
        Ids, content and columns of the rows, also of rows that are no longer in the map.
    pieces : tuple of str
        Places. The first piece has the rows of the last fit in their order; a row of a later piece replaces or removes
        earlier ones.
    table : str or None
        Neighbors of the rows of the fit. A version whose table was deleted to save room finds them again.
    areas : tuple of dict
        Name and place of each area.
    resolution : float or None
        That of the areas (:class:`vicinal.areas.layers.Layer`).
    zoom : float
        The scale of the layout in which new rows are placed, relative to the published map.
    record : dict
        What the change did, in numbers.
    """

    number: int
    parent: int
    made: str
    at: str
    estimator: str
    dtype: str
    next_row: int
    chunks: tuple[Chunk, ...]
    pieces: tuple[str, ...]
    table: str | None = None
    areas: tuple[dict[str, Any], ...] = ()
    resolution: float | None = None
    zoom: float = 1.0
    record: dict[str, Any] = field(default_factory=dict)

    def names(self) -> set[str]:
        """Return the names of all objects of the version but its table."""
        return {self.estimator, *self.pieces, *(chunk.file for chunk in self.chunks)}

    def encoded(self) -> bytes:
        """Return the manifest as JSON."""
        return json.dumps(asdict(self), indent=1, sort_keys=True, allow_nan=False).encode()

    @classmethod
    def decoded(cls, content: bytes, where: Path) -> Manifest:
        """Read a manifest; a file may hold anything."""
        try:
            read = json.loads(content)
            read["chunks"] = tuple(Chunk(**one) for one in read["chunks"])
            read["pieces"], read["areas"] = tuple(read["pieces"]), tuple(read["areas"])
            made = cls(**read)
            # A name leads to a file of the folder and nowhere else.
            if any(Path(name).name != name for name in made.names() | {made.table or "none"}):
                raise ValueError("a name is a path")
            return made
        except (KeyError, TypeError, ValueError) as error:
            raise AtlasError(f"{where} is not a manifest of an atlas: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class Head:
    """The newest version, and the names of the manifests of all versions."""

    version: int
    versions: dict[int, str]

    @property
    def next_version(self) -> int:
        return max(self.versions) + 1


class Folder:
    """The files of an atlas."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.objects = self.path / OBJECTS

    def is_atlas(self) -> bool:
        """Return whether the folder holds an atlas."""
        return (self.path / HEAD).is_file()

    def head(self) -> Head:
        """Read the newest version."""
        path = self.path / HEAD
        try:
            read = json.loads(path.read_bytes())
            if read["format"] > FORMAT:
                raise AtlasError(
                    f"{path} has format {read['format']}, this version reads up to {FORMAT}: update vicinal"
                )
            head = Head(int(read["version"]), {int(number): name for number, name in read["versions"].items()})
            if head.version not in head.versions or any(Path(name).name != name for name in head.versions.values()):
                raise ValueError("the newest version has no manifest")
            return head
        except FileNotFoundError:
            raise AtlasError(f"{self.path} is not an atlas: it has no {HEAD}") from None
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, AtlasError):
                raise
            raise AtlasError(f"{path} is damaged: {type(error).__name__}: {error}") from error

    def manifest(self, head: Head, number: int | None = None) -> Manifest:
        """Read the manifest of a version, by default the newest."""
        number = head.version if number is None else number
        if number not in head.versions:
            known = f"{min(head.versions)} to {max(head.versions)}"
            raise ValueError(f"version must be one of those of the atlas ({known}), got {number!r}")
        path = self.object(head.versions[number])
        return Manifest.decoded(path.read_bytes(), path)

    def object(self, name: str) -> Path:
        """Return the path of an object."""
        return self.objects / name

    def has(self, name: str | None) -> bool:
        """Return whether an object exists."""
        return name is not None and self.object(name).is_file()

    # Changes

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder against other writers; they are refused, not delayed."""
        self.objects.mkdir(parents=True, exist_ok=True)
        with (self.path / LOCK).open("ab") as file:
            if not _lock(file):
                message = "another process is changing this atlas"
                raise OSError(errno.EWOULDBLOCK, message, str(self.path))
            try:
                yield
            finally:
                _unlock(file)

    def put(self, parts: list[bytes | memoryview] | bytes, suffix: str) -> str:
        """Store content under a name made from it and return the name; content that is there is not written again."""
        parts = [parts] if isinstance(parts, bytes) else parts
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        name = digest.hexdigest()[:NAME_DIGITS] + suffix
        if not self.has(name):
            with atomic_write(self.object(name)) as file:
                for part in parts:
                    file.write(part)
        return name

    def add(self, head: Head | None, manifest: Manifest) -> Head:
        """Make a manifest the newest version: the one moment at which a change becomes visible."""
        versions = {} if head is None else head.versions
        name = self.put(manifest.encoded(), ".json")
        return self.replace_head(Head(manifest.number, {**versions, manifest.number: name}))

    def replace_head(self, head: Head) -> Head:
        """Write HEAD, then delete what no version names any more."""
        content = {"format": FORMAT, "version": head.version, "versions": head.versions}
        with atomic_write(self.path / HEAD) as file:
            file.write(json.dumps(content, indent=1, sort_keys=True).encode())
        self.collect(head)
        return head

    def collect(self, head: Head) -> None:
        """Delete objects that no version names, tables of older fits, and files of writers that were killed."""
        used = set(head.versions.values())
        for number in head.versions:
            manifest = self.manifest(head, number)
            used |= manifest.names()
            if number == head.version and manifest.table is not None:
                used.add(manifest.table)
        for path in self.objects.iterdir():
            if path.name not in used:
                path.unlink(missing_ok=True)
        for path in self.path.glob(f".{HEAD}.*"):
            path.unlink(missing_ok=True)

    def rewrite(self, head: Head, manifests: list[Manifest]) -> Head:
        """Replace the manifests of all versions at once; the last one is the newest version."""
        names = {one.number: self.put(one.encoded(), ".json") for one in manifests}
        return self.replace_head(Head(manifests[-1].number, names))

    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())


def child(manifest: Manifest, head: Head, made: str, at: str, **changes: Any) -> Manifest:
    """Return the manifest of the version that follows another."""
    return replace(manifest, number=head.next_version, parent=manifest.number, made=made, at=at, **changes)


def _lock(file: BinaryIO) -> bool:
    """Try to lock a file for this process."""
    try:
        import fcntl
    except ModuleNotFoundError:
        import msvcrt

        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unlock(file: BinaryIO) -> None:
    try:
        import fcntl
    except ModuleNotFoundError:
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(file, fcntl.LOCK_UN)
