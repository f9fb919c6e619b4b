"""The live page of an atlas: it shows the newest version and follows changes."""

from __future__ import annotations

import json
import shutil
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from viewer.waiting import LONG_S
from websockets.sync.client import connect

from vicinal import UMAP, Atlas
from vicinal.atlas import serving
from vicinal.atlas.serving import AtlasSession
from vicinal.cli import main
from vicinal.viewer.server import LiveServer
from vicinal.viewer.session import EXACT, HEADER, ROWS, FrameEncoder

N = 240
WHEN = datetime(2026, 3, 2, tzinfo=UTC)
MIDDLE = 12 * np.random.default_rng(99).normal(size=(4, 6))


def rows(n: int, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=(n, 6))
    return (MIDDLE[np.arange(n) % 4] + noise).astype(np.float32)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small atlas, which tests copy."""
    path = tmp_path_factory.mktemp("atlas") / "letters"
    estimator = UMAP(n_neighbors=8, n_epochs=30, random_state=3)
    kinds = {"kind": [f"kind {a % 4}" for a in range(N)]}
    Atlas.create(path, rows(N, 0), [f"row {a}" for a in range(N)], columns=kinds, estimator=estimator, at=WHEN)
    return path


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "letters"))


def append(folder: Path, n: int = 20) -> Atlas:
    atlas = Atlas.open(folder)
    kinds = {"kind": [f"kind {a % 4}" for a in range(n)]}
    first = len(atlas.ids)
    atlas.append(rows(n, first), [f"row {first + a}" for a in range(n)], columns=kinds, at=WHEN)
    return atlas


def shown(session: AtlasSession) -> tuple[list[int], dict[str, Any]]:
    """Return the kinds of frames that a new client gets, and the description of its rows."""
    frames = FrameEncoder().frames(session.snapshot)
    size = int.from_bytes(frames[0][HEADER.size : HEADER.size + 4], "little")
    return [frame[0] for frame in frames], json.loads(frames[0][HEADER.size + 4 :][:size])


def test_session_shows_the_newest_version_with_its_columns(folder: Path) -> None:
    session = AtlasSession(folder)
    atlas = Atlas.open(folder)
    kinds, told = shown(session)
    assert kinds == [ROWS, EXACT]
    assert told["begin"] == 0
    assert [one["name"] for one in told["meta"]["columns"]] == ["area", "kind"]
    assert told["meta"]["columns"][0]["names"] == sorted(one["name"] for one in atlas.areas)
    assert session.snapshot.positions.tobytes() == atlas.embedding.tobytes()
    assert (session.status.stage, session.status.message) == ("Version 1", f"created, {N} rows")
    assert session.title == "letters"
    assert session.packed.meta["n"] == N


def test_look_finds_what_another_process_has_changed(folder: Path) -> None:
    session = AtlasSession(folder)
    assert not session.look()
    before = session.snapshot
    atlas = append(folder)
    assert session.snapshot is before
    assert session.look()
    assert not session.look()
    assert session.snapshot.positions.tobytes() == atlas.embedding.tobytes()
    assert session.snapshot.positions[:N].tobytes() == before.positions.tobytes()
    assert session.status.message == "20 added, 0 changed, 0 deleted"
    atlas.forget(["row 3"], at=WHEN)
    assert session.look()
    assert len(session.snapshot.positions) == N + 19
    assert session.status == serving.Status("done", "Version 3", message="1 forgotten")
    assert shown(session)[1]["meta"]["n"] == N + 19


def test_page_keeps_what_it_has_while_the_folder_is_away(folder: Path) -> None:
    session = AtlasSession(folder)
    before = session.snapshot
    folder.rename(folder.with_name("away"))
    assert not session.look()
    assert session.snapshot is before
    assert session.status.message
    folder.with_name("away").rename(folder)
    # an object of the new version is missing: the next look tries again
    atlas = append(folder)
    objects = sorted((folder / "objects").iterdir(), key=lambda one: one.stat().st_mtime_ns)
    content = {one: one.read_bytes() for one in objects}
    for one in objects:
        one.unlink()
    assert not session.look()
    assert session.snapshot is before
    for one, held in content.items():
        one.write_bytes(held)
    assert session.look()
    assert session.snapshot.positions.tobytes() == atlas.embedding.tobytes()


def exact_rows(socket: Any) -> int:
    """Return the number of rows of the next frame with positions, and confirm it."""
    while True:
        message = socket.recv(LONG_S)
        if isinstance(message, bytes) and message[0] == EXACT:
            socket.send(json.dumps({"type": "drawn"}))
            return len(zlib.decompress(message[HEADER.size :])) // 8


def test_page_follows_the_atlas(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "LOOK_S", 0.01)
    session = AtlasSession(folder)
    server = LiveServer(session).start()
    session.follow()
    origin = server.address.removesuffix(f"/{server.token}/")
    try:
        with connect(f"{server.address.replace('http:', 'ws:')}feed", origin=origin) as socket:
            assert exact_rows(socket) == N
            append(folder)
            assert exact_rows(socket) == N + 20
            append(folder, 4)
            assert exact_rows(socket) == N + 24
    finally:
        server.close()
    assert not session.look()


def test_serve_shows_the_folder_of_an_atlas(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served: list[AtlasSession] = []
    monkeypatch.setattr(LiveServer, "run", lambda self: served.append(self.session))
    assert main(["serve", str(folder), "--no-browser"]) == 0
    assert "open http://127.0.0.1:" in capsys.readouterr().out
    assert len(served[0].snapshot.positions) == N
    (tmp_path / "other").mkdir()
    assert main(["serve", str(tmp_path / "other"), "--no-browser"]) == 2
    assert "is not an atlas" in capsys.readouterr().err
