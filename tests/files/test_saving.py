"""A file is the old one or the new one at any moment, whatever happens to the process that writes it."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import vicinal
from vicinal import UMAP
from vicinal.files.atomic import UNFINISHED, atomic_write

KILLS = 50


def models() -> list[UMAP]:
    """Two unfitted models of 4 MB each, told apart by a parameter and by every number of an array."""
    return [UMAP(n_neighbors=k, init=np.full((1 << 19, 2), k, dtype=np.float32)) for k in (5, 9)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
def test_killed_at_random_moments(tmp_path: Path) -> None:
    path, rng = tmp_path / "model", random.Random(0)
    first, second = models()
    start = time.perf_counter()
    first.save(path)
    a_save = max(0.02, time.perf_counter() - start)
    seen = set()
    for _ in range(KILLS):
        begun, begin = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(begin, b".")
                while True:
                    second.save(path)
                    first.save(path)
            finally:
                os._exit(1)
        os.read(begun, 1)
        time.sleep(rng.uniform(0, 4 * a_save))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        os.close(begun)
        os.close(begin)
        loaded = vicinal.load(path)
        assert (loaded.init == loaded.n_neighbors).all()
        seen.add(loaded.n_neighbors)
    assert seen == {5, 9}
    # At most the last child's unfinished file is left, and the next save removes it.
    assert len(list(tmp_path.glob(f".*{UNFINISHED}"))) <= 1
    first.save(path)
    assert list(tmp_path.iterdir()) == [path]


def test_savers_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "model"
    both = models()
    errors: list[BaseException] = []

    def save(model: UMAP) -> None:
        try:
            for _ in range(10):
                model.save(path)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(model,)) for model in both * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert vicinal.load(path).n_neighbors in (5, 9)
    assert list(tmp_path.iterdir()) == [path]


def test_abandoned_files_are_removed_and_others_are_not(tmp_path: Path) -> None:
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


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_links_are_followed_and_rights_are_the_users(tmp_path: Path) -> None:
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
