"""The live page of a growing map: its columns, its frames, and the session that reads the file."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from viewer.waiting import LONG_S, PauseGate
from websockets.sync.client import connect

import vicinal
from vicinal.files.data_table import Column, DataTable, Role
from vicinal.viewer.packing import PageColumns
from vicinal.viewer.server import LiveServer
from vicinal.viewer.session import DELTA, EXACT, HEADER, KEY, LENGTH, ROWS, FrameEncoder, Snapshot, StreamSession


class Reader:
    """The decoder of the page."""

    def __init__(self) -> None:
        self.kinds: list[int] = []
        self.steps = np.zeros((2, 0), np.uint16)
        self.meta: dict[str, Any] = {"n": 0}
        self.codes = np.zeros(0, np.uint8)
        self.ids: list[str] = []
        self.positions = np.zeros((0, 2))

    def read(self, frame: bytes) -> None:
        kind, _, _, _, _, *box = HEADER.unpack_from(frame)
        self.kinds.append(kind)
        if kind == ROWS:
            return self._take_rows(frame[HEADER.size :])
        content = zlib.decompress(frame[HEADER.size :])
        if kind == EXACT:
            self.positions = np.frombuffer(content, "<f4").reshape(2, -1).T
            return None
        steps = np.frombuffer(content, "<u2").reshape(2, -1).copy()
        if kind == DELTA:
            steps[:, : self.steps.shape[1]] += self.steps
        self.steps = steps
        low, high = np.array(box[:2]), np.array(box[3:5])
        self.positions = low + steps.T / 65535 * (high - low)
        assert len(self.positions) == self.meta["n"]
        return None

    def _take_rows(self, content: bytes) -> None:
        (length,) = LENGTH.unpack_from(content)
        told = json.loads(content[LENGTH.size : LENGTH.size + length])
        at, parts = LENGTH.size + length, {}
        for name, size in told["sections"].items():
            parts[name] = zlib.decompress(content[at : at + size])
            at += size
        assert at == len(content)
        assert told["begin"] <= self.meta["n"]
        self.meta = told["meta"]
        if "column0" in parts and self.meta["columns"][0]["kind"] == "classes":
            self.codes = np.concatenate([self.codes[: told["begin"]], np.frombuffer(parts["column0"], np.uint8)])
        if "ids" in parts:
            self.ids = [*self.ids[: told["begin"]], *parts["ids"].decode().split("\x1e")[:-1]]


def described(labels: Any, name: str = "class", **others: Any) -> list[Column]:
    """Columns of a batch: labels, ids and texts."""
    roles = {"id": Role.ID, "note": Role.DISPLAY}
    found = [] if labels is None else [Column(name, Role.LABEL, labels)]
    return found + [Column(one, roles[one], values) for one, values in others.items()]


def test_frames_of_a_growing_map_send_changes_and_each_row_once() -> None:
    rng = np.random.default_rng(0)
    everything = rng.uniform(-1, 1, size=(400, 2)).astype(np.float32)
    everything[:2] = [[-1, -1], [1, 1]]
    labels = np.where(np.arange(400) < 250, np.arange(400) % 3 + 7, 10)
    columns, encoder, reader = PageColumns(), FrameEncoder(), Reader()
    kinds = []
    for n in (100, 200, 300, 300, 400):
        if n > columns.n:
            new = slice(columns.n, n)
            note = np.full(n - columns.n, "x")
            columns.append(n - columns.n, described(labels[new], id=np.arange(400)[new], note=note))
        frames = encoder.frames(Snapshot(1, n, 400, everything[:n], columns=columns))
        for frame in frames:
            reader.read(frame)
        kinds.append([frame[0] for frame in frames])
        assert np.abs(reader.positions - everything[:n]).max() < 1.6 * 2 / 65535
        assert [reader.meta["columns"][0]["names"][code] for code in reader.codes] == [
            str(label) for label in labels[:n]
        ]
        assert reader.ids == [str(a) for a in range(n)]
        assert [one["name"] for one in reader.meta["columns"]] == ["class", "note"]
        everything = everything * np.float32(0.99)
    assert kinds == [[ROWS, KEY], [ROWS, DELTA], [ROWS, DELTA], [DELTA], [ROWS, DELTA]]
    # a new class changes the order of the others: 10 comes after 9
    assert reader.meta["columns"][0]["names"] == ["7", "8", "9", "10"]
    # another connection receives all rows
    later = Reader()
    for frame in FrameEncoder().frames(Snapshot(1, 400, 400, everything, final=True, columns=columns)):
        later.read(frame)
    assert np.array_equal(later.positions, everything)
    assert later.ids == reader.ids


def test_growing_columns_with_missing_values_and_projected_rows() -> None:
    columns = PageColumns()
    columns.append(2, described(np.array([1.5, 2.0])))
    before = columns.colors(2)
    columns.append(2, described(np.array(["x", None], dtype=object), note=np.array(["a", "b"])))
    first = columns.colors(4)
    assert first != before, "a page must receive all rows of a column that it does not know"
    columns.append(1, described(np.array([1.75])))
    assert columns.colors(5) == first
    columns.append(1, described(np.array([3.5])))
    assert columns.colors(6) != first
    packed = columns.packed(0, 6)
    meta = packed.meta["columns"][0]
    assert (meta["kind"], meta["low"], meta["high"], meta["missing"]) == ("values", 1.5, 3.5, 2)
    found = np.frombuffer(zlib.decompress(packed.sections["column0"]), "<f4")
    assert np.array_equal(found, [1.5, 2.0, np.nan, np.nan, 1.75, 3.5], equal_nan=True)
    assert zlib.decompress(packed.sections["column1"]).decode().split("\x1e") == ["", "", "a", "b", "", "", ""]

    plain = PageColumns()
    plain.append(3, described(None, id=np.arange(3)))
    assert set(plain.packed(0, 3).sections) == {"ids"}
    longer = plain.with_new_rows("new.csv", 2)
    assert (plain.n, longer.n) == (3, 5)
    packed = longer.packed(0, 5)
    meta = packed.meta["columns"][0]
    assert (meta["names"], meta["missing"]) == (["new: new.csv"], 3)
    assert list(zlib.decompress(packed.sections["column0"])) == [1, 1, 1, 0, 0]
    assert zlib.decompress(packed.sections["ids"]).decode().split("\x1e")[3:5] == ["new.csv:0", "new.csv:1"]


def build(parameters: dict[str, Any], callback: Any) -> Any:
    return vicinal.ProgressiveUMAP(**parameters, callback=callback)


def session(digits: Any, labels: Any, *, bad: int | None = None, **parameters: Any) -> StreamSession:
    def tables() -> Iterator[DataTable]:
        for begin in range(0, 600, 100):
            if begin == bad:
                raise ValueError("row 300 is bad")
            rows = slice(begin, begin + 100)
            yield DataTable(digits[rows], tuple(described(labels[rows], "digit", id=np.arange(600)[rows])))

    known = {"n_neighbors": 10, "random_state": 1, "batch_size": 100} | parameters
    return StreamSession(tables, build, known, total=600, title="digits")


def test_stream_ends_with_the_positions_and_columns_of_the_model(digits: Any, digit_labels: Any) -> None:
    watched = session(digits, digit_labels)
    assert watched.packed.meta["n"] == 0
    running = LiveServer(watched).start()
    address, own = running.address.replace("http", "ws") + "feed", f"http://127.0.0.1:{running.port}"
    try:
        with connect(address, origin=own, max_size=None) as opened:  # type: ignore[arg-type]
            watched.start()
            reader, sizes, growth = Reader(), set(), []
            while not reader.kinds or reader.kinds[-1] != EXACT:
                message = opened.recv(timeout=LONG_S)
                if isinstance(message, str):
                    growth.append(json.loads(message)["growth"])
                    continue
                reader.read(message)
                if message[0] != ROWS:
                    sizes.add(len(reader.positions))
                    opened.send(json.dumps({"type": "drawn"}))
    finally:
        running.close()
    plain = vicinal.ProgressiveUMAP(n_neighbors=10, random_state=1, batch_size=100).fit(digits[:600])
    assert np.array_equal(reader.positions, plain.embedding_)
    assert max(sizes) == 600
    assert [reader.meta["columns"][0]["names"][code] for code in reader.codes] == digit_labels[:600].astype(
        str
    ).tolist()
    assert reader.ids == [str(a) for a in range(600)]
    told = watched.status.growth
    assert told is not None
    assert (told.rows, told.total, told.placed, told.pending, told.coverage) == (600, 600, 600, 0, 1.0)
    assert told.trustworthiness is not None
    assert told.trustworthiness > 0.9
    assert watched.status.state == "done"


def test_stream_can_be_paused_resumed_rerun_and_projected_on(digits: Any, digit_labels: Any) -> None:
    watched = session(digits, digit_labels)
    gate = PauseGate(watched)
    watched.start()
    watched.pause()
    gate.wait_until_blocked()
    assert watched.status.state == "paused"
    assert watched.status.growth is not None
    stood = watched.snapshot
    gate.wait_until_blocked()
    assert watched.snapshot is stood
    watched.resume()
    watched.wait(LONG_S)
    first = watched.snapshot
    assert (watched.status.state, len(first.positions)) == ("done", 600)
    watched.start({"n_neighbors": 5})
    watched.wait(LONG_S)
    assert len(watched.snapshot.positions) == 600
    assert not np.array_equal(watched.snapshot.positions, first.positions)
    assert watched.project("new", digits[600:607]) == 7
    assert watched.snapshot.columns is not None
    assert (watched.snapshot.columns.n, len(watched.snapshot.positions)) == (607, 607)


def test_invalid_batch_keeps_the_map_so_far(digits: Any, digit_labels: Any) -> None:
    watched = session(digits, digit_labels, bad=300)
    watched.start()
    watched.wait(LONG_S)
    assert (watched.status.state, watched.status.message) == ("failed", "row 300 is bad")
    assert 0 < len(watched.snapshot.positions) <= 300
    watched.stop()


def test_stream_command_prints_the_address(
    digits: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from vicinal import cli

    seen: list[LiveServer] = []
    monkeypatch.setattr(LiveServer, "run", lambda self: seen.append(self))
    np.save(tmp_path / "data.npy", digits[:300])
    assert cli.main(["stream", str(tmp_path / "data.npy"), "--no-browser", "--n-neighbors", "7"]) == 0
    (running,) = seen
    assert running.address in capsys.readouterr().out
    values: dict[str, NDArray[Any]] = {one["name"]: one["value"] for one in running.session.adjustable()}
    assert values == {"n_neighbors": 7, "min_dist": 0.1, "random_state": 42, "metric": "euclidean"}
