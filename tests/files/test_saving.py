"""Saving is atomic: a file has the old or the new content at any time, even if the writing process is killed."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vicinal
from vicinal import UMAP
from vicinal.files import atomic
from vicinal.files.atomic import UNFINISHED, StagedFiles, atomic_write

NEEDS_FORK = pytest.mark.requires_fork


def models() -> list[UMAP]:
    """Return two unfitted models of 4 MB that differ in a parameter and in every number of an array."""
    return [UMAP(n_neighbors=k, init=np.full((1 << 19, 2), k, dtype=np.float32)) for k in (5, 9)]


class HaltingFile:
    """A file that calls ``halt`` after a number of bytes and passes everything else on."""

    def __init__(self, file: Any, n_bytes: int, halt: Callable[[], None]) -> None:
        self.file, self.left, self.halt = file, n_bytes, halt

    def write(self, content: Any) -> None:
        content = memoryview(content).cast("B")
        if len(content) < self.left:
            self.left -= len(content)
            self.file.write(content)
            return
        self.file.write(content[: self.left])
        self.file.flush()
        self.halt()


def kill_while_saving(
    model: UMAP, path: Path, arrange: Callable[[pytest.MonkeyPatch, Callable[[], None]], None]
) -> None:
    """Save the model in a child process and kill the child when it reaches the point chosen by ``arrange``.

    ``arrange(monkeypatch, halt)`` makes the child call ``halt`` there, which tells the parent by a pipe and waits.
    """
    reached_read, reached_write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            arrange(pytest.MonkeyPatch(), lambda: (os.write(reached_write, b"."), signal.pause()))  # type: ignore[arg-type, return-value]
            model.save(path)
        finally:
            os._exit(1)
    os.close(reached_write)
    try:
        assert os.read(reached_read, 1) == b".", "the child ended before it reached the point"
    finally:
        os.close(reached_read)
        os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == -signal.SIGKILL


def halt_after(n_bytes: int) -> Callable[[pytest.MonkeyPatch, Callable[[], None]], None]:
    def arrange(monkeypatch: pytest.MonkeyPatch, halt: Callable[[], None]) -> None:
        @contextmanager
        def halting_write(path: Path) -> Iterator[Any]:
            with atomic_write(path) as file:
                yield HaltingFile(file, n_bytes, halt)

        monkeypatch.setattr("vicinal.files.container.atomic_write", halting_write)

    return arrange


def halt_before_sync(monkeypatch: pytest.MonkeyPatch, halt: Callable[[], None]) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: halt())


def halt_before_rename(monkeypatch: pytest.MonkeyPatch, halt: Callable[[], None]) -> None:
    monkeypatch.setattr(Path, "replace", lambda *_: halt())


def halt_after_rename(monkeypatch: pytest.MonkeyPatch, halt: Callable[[], None]) -> None:
    replace = Path.replace

    def rename_and_halt(self: Path, target: Path) -> None:
        replace(self, target)
        halt()

    monkeypatch.setattr(Path, "replace", rename_and_halt)


# Points of a save, and whether the new file is in place there.
POINTS = {
    "before the first byte": (halt_after(0), False),
    "within the header": (halt_after(100), False),
    "within the array": (halt_after(1 << 21), False),
    "before the sync": (halt_before_sync, False),
    "before the rename": (halt_before_rename, False),
    "after the rename": (halt_after_rename, True),
}


@NEEDS_FORK
@pytest.mark.parametrize("point", POINTS)
def test_file_is_complete_if_the_writer_is_killed(point: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    old, new = models()
    old.save(path)
    arrange, renamed = POINTS[point]
    kill_while_saving(new, path, arrange)
    loaded = vicinal.load(path)
    assert loaded.n_neighbors == (new if renamed else old).n_neighbors
    assert (loaded.init == loaded.n_neighbors).all()
    # the killed process leaves its unfinished file, and the next save removes it
    assert len(list(tmp_path.glob(f".*{UNFINISHED}"))) == (0 if renamed else 1)
    old.save(path)
    assert list(tmp_path.iterdir()) == [path]


def test_concurrent_saves_do_not_disturb_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads hold an open unfinished file at the same time before any of them is renamed."""
    path, both = tmp_path / "model", models()
    all_open = threading.Barrier(2 * len(both), timeout=240)
    open_locked = atomic._open_locked

    def open_together(final: Path) -> Any:
        opened = open_locked(final)
        all_open.wait()
        return opened

    monkeypatch.setattr(atomic, "_open_locked", open_together)
    errors: list[BaseException] = []

    def save(model: UMAP) -> None:
        try:
            for _ in range(3):
                model.save(path)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(model,)) for model in both * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    loaded = vicinal.load(path)
    assert (loaded.init == loaded.n_neighbors).all()
    assert list(tmp_path.iterdir()) == [path]


def test_abandoned_files_of_the_same_path_are_removed(tmp_path: Path) -> None:
    abandoned = tmp_path / f".model.0123{UNFINISHED}"
    other = tmp_path / f".another.0123{UNFINISHED}"
    for path in (abandoned, other):
        path.write_bytes(b"half")
    with atomic_write(tmp_path / "model") as outer:
        outer.write(b"outer")
        with atomic_write(tmp_path / "model") as inner:
            inner.write(b"inner")
        assert (tmp_path / "model").read_bytes() == b"inner"
    assert (tmp_path / "model").read_bytes() == b"outer"
    assert not abandoned.exists()
    assert other.exists()


def test_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    first, second = models()
    first.save(path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        second.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_symbolic_links_are_followed_and_the_umask_is_applied(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link, target = tmp_path / "link", tmp_path / "elsewhere" / "model"
    link.symlink_to(target)
    mask = os.umask(0o027)
    try:
        UMAP().save(link)
    finally:
        os.umask(mask)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the platform has no pipes with names")
def test_pipes_devices_and_directories_are_refused(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path, message in ((pipe, "pipe"), (link, "pipe"), (Path(os.devnull), "device"), (tmp_path, "directory")):
        with pytest.raises(OSError, match=f"is a {message}, not"):
            UMAP().save(path)
        with StagedFiles() as staged, pytest.raises(OSError, match=f"is a {message}, not"):
            staged.path_for(path)
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == [link, pipe]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_replaced_file_keeps_its_permissions(mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, page = tmp_path / "model", tmp_path / "page.html"
    for one in (path, page):
        one.touch()
        one.chmod(mode)
    seen: list[int] = []
    write = atomic.os.fsync

    def fsync(descriptor: int) -> None:
        unfinished = [one for one in tmp_path.iterdir() if one.name.endswith(UNFINISHED)]
        seen.extend(stat.S_IMODE(one.stat().st_mode) for one in unfinished)
        write(descriptor)

    monkeypatch.setattr(atomic.os, "fsync", fsync)
    UMAP().save(path)
    with StagedFiles() as staged:
        temporary = staged.path_for(page)
        temporary.write_text("text")
        seen.append(stat.S_IMODE(temporary.stat().st_mode))
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, page)] == [mode, mode]
    assert len(seen) == 2
    assert all(other & ~mode == 0 for other in seen), "others could read the file before it was complete"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_file_that_is_made_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    UMAP().save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(atomic.fcntl is None, reason="the signal is sent while the file is locked")
def test_interrupt_while_the_file_is_created_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lock(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    (tmp_path / "map").write_bytes(b"old")
    monkeypatch.setattr(atomic.fcntl, "flock", lock)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "map") as file:
            file.write(b"new")
    finally:
        signal.signal(signal.SIGINT, before)
    assert [one.name for one in tmp_path.iterdir()] == ["map"]
    assert (tmp_path / "map").read_bytes() == b"old"


def write_everything() -> dict[str, Callable[[Path], object]]:
    """Return every function that writes a file for a user, by the name of the file; each file has over 10,000 bytes."""
    from matplotlib.figure import Figure

    from vicinal import plot, viewer
    from vicinal.cli.fitting import FitResult
    from vicinal.cli.writing import OutputFiles

    rows = np.random.default_rng(0).normal(size=(3000, 2)).astype(np.float32)
    axes = Figure().add_subplot()
    axes.scatter(*rows.T)
    written: dict[str, Callable[[Path], object]] = {
        "model.vicinal": models()[0].save,
        "page.html": lambda path: viewer.export(path, rows),
        "compared.html": lambda path: viewer.compare(path, {"a": rows, "b": rows}),
    }
    for name in ("picture.png", "picture.svg", "picture.pdf"):
        written[name] = lambda path: plot.save(path, axes)
    written["picture"] = lambda path: plot.save(path.with_suffix(""), axes)
    result = FitResult(rows, {}, None)
    for kind in ("output.npy", "output.csv", "output.parquet", "png.png", "html.html", "report.json"):
        option = {kind.partition(".")[0]: None}

        def write(path: Path, option: dict[str, None] = option) -> None:
            OutputFiles(**dict.fromkeys(option, path)).write(result, [], Path("rows.csv"), {"text": "x" * 20_000})

        written[kind] = write
    return written


@contextmanager
def full_disk(n_bytes: int) -> Iterator[None]:
    """Let no file grow beyond ``n_bytes``."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", write_everything())
def test_every_writer_that_fails_keeps_the_old_file_and_leaves_no_other(name: str, tmp_path: Path) -> None:
    path = tmp_path / (name if "." in name else f"{name}.png")
    write = write_everything()[name]
    path.write_bytes(b"old")
    with full_disk(5000), pytest.raises(OSError, match="File too large") as raised:
        write(path)
    assert raised.value.filename == str(path), "the error must name the file"
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"old"
    write(path)
    assert path.stat().st_size > 10_000
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
