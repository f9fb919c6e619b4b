"""The live page: encoded frames, the session of a fit, and the access control of the server."""

from __future__ import annotations

import http.client
import json
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from viewer.waiting import LONG_S, PauseGate, until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import vicinal
from vicinal.files.data_table import ColumnChoice
from vicinal.files.preparation import Preparation
from vicinal.viewer import server as serving
from vicinal.viewer.packing import row_columns
from vicinal.viewer.server import LiveServer
from vicinal.viewer.session import DELTA, EXACT, HEADER, KEY, FrameEncoder, Session, Snapshot

X = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)


def build(parameters: dict[str, Any], callback: Any) -> Any:
    return vicinal.UMAP(**parameters, callback=callback)


def session(n_epochs: int = 60, **described: Any) -> Session:
    return Session(X, build, {"n_neighbors": 10, "n_epochs": n_epochs, "random_state": 1}, **described)


class Reader:
    """The decoder of web/src/frames.ts."""

    def __init__(self) -> None:
        self.steps: NDArray[np.uint16] | None = None

    def read(self, frame: bytes) -> tuple[int, NDArray[np.float64]]:
        kind, _, _, _, _, *box = HEADER.unpack_from(frame)
        content = zlib.decompress(frame[HEADER.size :])
        if kind == EXACT:
            return kind, np.frombuffer(content, "<f4").reshape(2, -1).T.astype(np.float64)
        steps = np.frombuffer(content, "<u2").reshape(2, -1)
        self.steps = steps if kind == KEY else self.steps + steps
        low, high = np.array(box[:2]), np.array(box[3:5])
        return kind, low + self.steps.T / 65535 * (high - low)  # type: ignore[union-attr]


def test_decoded_frames_are_exact_to_half_a_step() -> None:
    rng = np.random.default_rng(0)
    positions = rng.normal(size=(500, 2)).astype(np.float32)
    encoder, reader, kinds, sizes = FrameEncoder(), Reader(), [], []
    for epoch in range(1, 12):
        frame = encoder.encode(Snapshot(1, epoch, 12, positions))
        kind, found = reader.read(frame)
        kinds.append(kind)
        sizes.append(len(frame))
        assert np.abs(found - positions).max() < 1.01 * 1.5 * np.ptp(positions) / 65535
        positions = positions * np.float32(2.0 if epoch == 6 else 1.001)
    # one key frame at the start, one when the map outgrows its box; the other frames are changes, which are smaller
    assert [kind == KEY for kind in kinds] == [epoch in (1, 7) for epoch in range(1, 12)]
    assert max(sizes[1:6]) < 0.75 * sizes[0]
    kind, found = reader.read(encoder.encode(Snapshot(1, 12, 12, positions, final=True)))
    assert kind == EXACT
    assert np.array_equal(found, positions)
    assert encoder.encode(Snapshot(2, 1, 12, positions))[0] == KEY
    assert encoder.encode(Snapshot(2, 2, 12, positions))[0] == DELTA


def test_session_ends_with_the_positions_of_the_model() -> None:
    watched = session()
    watched.start()
    watched.wait(LONG_S)
    assert watched.status.state == "done"
    assert watched.snapshot.final
    plain = vicinal.UMAP(n_neighbors=10, n_epochs=60, random_state=1).fit_transform(X)
    assert np.array_equal(watched.snapshot.positions, plain)
    watched.start({"n_neighbors": 5})
    watched.wait(LONG_S)
    assert watched.parameters["n_neighbors"] == 5
    assert not np.array_equal(watched.snapshot.positions, plain)


def test_session_can_be_paused_resumed_and_stopped() -> None:
    watched = session(n_epochs=1_000_000)
    gate = PauseGate(watched)
    watched.start()
    until(lambda: watched.snapshot.epoch > 3)
    watched.pause()
    assert watched.status.state == "paused"
    gate.wait_until_blocked()
    stood = watched.snapshot.epoch
    gate.wait_until_blocked()
    assert watched.snapshot.epoch == stood
    watched.resume()
    until(lambda: watched.snapshot.epoch > stood)
    watched.stop()
    watched.wait(LONG_S)
    assert watched._thread is not None
    assert not watched._thread.is_alive()


def test_failed_fit_reports_the_reason() -> None:
    watched = Session(np.full((20, 2), np.nan), build, {"n_neighbors": 5})
    watched.start()
    watched.wait(LONG_S)
    assert watched.status.state == "failed"
    assert "NaN" in watched.status.message


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"metric": "cosine"}, "'metric' cannot be changed here"),
        ({"n_neighbors": 1}, "between 2 and 200"),
        ({"n_neighbors": 7.5}, "whole number"),
        ({"n_neighbors": "__import__"}, "whole number"),
        ({"n_neighbors": True}, "whole number"),
        ({"n_neighbors": 10**400}, "between 2 and 200, got 1000"),
        ({"n_neighbors": 5, "n_epochs": float("nan")}, "between 0 and 5000, got nan"),
    ],
)
def test_page_can_set_only_numbers_within_limits(parameters: dict[str, Any], message: str) -> None:
    watched = session()
    with pytest.raises(ValueError, match=message):
        watched.start(parameters)
    assert watched.status.state == "waiting"
    assert watched.parameters == session().parameters


def test_only_the_newest_of_many_reruns_is_computed_by_one_thread() -> None:
    begun: list[int] = []
    entered, released = threading.Event(), threading.Event()

    def gated(parameters: dict[str, Any], callback: Any) -> Any:
        begun.append(parameters["n_neighbors"])
        entered.set()
        assert released.wait(LONG_S)
        return build(parameters, callback)

    watched = Session(X, gated, {"n_neighbors": 10, "n_epochs": 5000, "random_state": 1})
    watched.start()
    assert entered.wait(LONG_S)
    before = threading.active_count()
    for k in range(2, 102):
        watched.start({"n_neighbors": k, "n_epochs": 20})
    assert threading.active_count() <= before
    released.set()
    watched.wait(LONG_S)
    assert begun == [10, 101]
    assert watched.model.n_neighbors == 101
    assert watched.status.state == "done"


def test_saved_model_is_not_fitted_again(tmp_path: Path) -> None:
    model = build({"n_neighbors": 10, "n_epochs": 20, "random_state": 1}, None).fit(X)
    shown = Session.of(model)
    before = model.embedding_.copy()
    assert shown.adjustable() == []  # the page then hides its button
    with pytest.raises(ValueError, match="must be fitted again from its data"):
        shown.start({})
    shown.wait(LONG_S)
    assert shown.finished_model() is model
    assert np.array_equal(model.embedding_, before)
    assert model.n_features_in_ == X.shape[1]


@pytest.fixture(scope="module")
def live() -> Iterator[LiveServer]:
    ids = [f"id{a}" for a in range(len(X))]
    watched = session(columns=row_columns(labels=np.arange(len(X)) % 3, ids=ids, hover={"t": ids}))
    watched.start()
    watched.wait(LONG_S)
    running = LiveServer(watched).start()
    until(lambda: running._server.started)
    yield running
    running.close()


def get(live: LiveServer, path: str, method: str = "GET", body: bytes = b"", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=LONG_S)
    connection.request(method, path, body or None, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def origin(live: LiveServer) -> str:
    return f"http://127.0.0.1:{live.port}"


def feed(live: LiveServer) -> str:
    return live.address.replace("http", "ws") + "feed"


def test_page_requires_the_token_and_a_loopback_host(live: LiveServer) -> None:
    status, text = get(live, f"/{live.token}/")
    assert status == 200
    assert '"feed": "feed"' in text
    for path, headers in {
        "/wrong/": {},
        f"/{live.token[:-1]}/": {},
        "/": {},
        f"/{live.token}/../etc/passwd": {},
    }.items():
        assert get(live, path, **headers)[0] in (403, 404)
    assert get(live, f"/{live.token}/", Host="evil.example")[0] == 403
    assert live._listening.getsockname()[0] == "127.0.0.1"


def test_feed_refuses_other_origins_and_tokens(live: LiveServer) -> None:
    for address, where in (
        (feed(live), "http://evil.example"),
        (feed(live), None),
        (feed(live).replace(live.token, "wrong"), origin(live)),
    ):
        with pytest.raises((InvalidStatus, ConnectionClosed)), connect(address, origin=where) as opened:  # type: ignore[arg-type]
            opened.recv(timeout=LONG_S)


def test_feed_sends_status_and_final_positions_to_every_client(live: LiveServer) -> None:
    for _ in range(2):
        with connect(feed(live), origin=origin(live)) as opened:  # type: ignore[arg-type]
            assert json.loads(opened.recv(timeout=LONG_S))["state"] == "done"
            kind, positions = Reader().read(opened.recv(timeout=LONG_S))  # type: ignore[arg-type]
            assert kind == EXACT
            assert np.array_equal(positions, live.session.model.embedding_)
            opened.send(json.dumps({"type": "select", "rows": [3, 5]}))
            until(lambda: live.session.selection == [3, 5])
            opened.send(json.dumps({"type": "rerun", "parameters": {"metric": "cosine"}}))
            assert "cannot be changed" in json.loads(opened.recv(timeout=LONG_S))["message"]


@pytest.mark.parametrize(
    "message",
    [
        "{", "", "[1]", '"drawn"', b"\x00\xff", "[" * 100_000, "{}", '{"type": "stop"}', '{"type": ["drawn"]}',
        '{"type": "select", "rows": "all"}', '{"type": "select", "rows": [1.5]}', '{"type": "select", "rows": 7}',
        '{"type": "select", "rows": [-1]}', f'{{"type": "select", "rows": [{10**400}]}}', '{"type": NaN}',
        '{"type": "rerun"}', '{"type": "rerun", "parameters": []}', f'{{"type": {10**400}}}',
        '{"type": ' + "1" * 5000 + "}",
        f'{{"type": "rerun", "parameters": {{"n_neighbors": {10**400}}}}}', '{"type": ' + "[" * 900 + "]" * 900 + "}",
        '{"type": "rerun", "parameters": {"n_epochs": 1e999}}', '{"type": "rerun", "parameters": {"n_epochs": NaN}}',
        '{"type": "rerun", "parameters": {"n_epochs": ' + "[" * 900 + "]" * 900 + "}}", '{"type": "\\ud800"}',
    ],
    ids=lambda message: message[:40] if isinstance(message, str) else "bytes",
)  # fmt: skip
def test_malformed_message_is_answered_and_the_feed_goes_on(
    message: str | bytes, live: LiveServer, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(feed(live), origin=origin(live)) as opened:  # type: ignore[arg-type]
        opened.recv(timeout=LONG_S)
        opened.recv(timeout=LONG_S)
        opened.send(message)
        answer = json.loads(opened.recv(timeout=LONG_S))
        assert answer["type"] == "status"
        assert "must" in answer["message"]
        opened.send(json.dumps({"type": "select", "rows": [1, 2]}))
        until(lambda: live.session.selection == [1, 2])
        live.session.selection = []
    assert not [record for record in caplog.records if record.exc_info]


def test_slow_client_gets_fewer_frames_but_the_newest() -> None:
    watched = session(n_epochs=1_000_000)
    running = LiveServer(watched).start()
    watched.start()
    try:
        with connect(feed(running), origin=origin(running), max_size=None) as opened:  # type: ignore[arg-type]

            def frame() -> int:
                while True:
                    message = opened.recv(timeout=LONG_S)
                    if isinstance(message, bytes):
                        return int(HEADER.unpack_from(message)[3])

            first = frame()
            until(lambda: watched.snapshot.epoch > first + 50)
            # the next frame is sent after the first has been drawn, with the newest positions
            opened.send(json.dumps({"type": "drawn"}))
            assert frame() > first + 40
    finally:
        running.close()


def test_uploaded_rows_are_placed_and_invalid_uploads_refused(
    live: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "a,b,c,d,e\n" + "\n".join(",".join(map(str, row)) for row in (X[:7] + 0.01).tolist())
    address = f"/{live.token}/project?name="
    own = {"Origin": origin(live)}
    assert get(live, address + "new.csv", "POST", rows.encode())[0] == 403
    assert get(live, address + "new.csv", "POST", rows.encode(), Origin="http://evil.example")[0] == 403
    for name, body, word in (
        ("new.exe", rows, "must end in"),
        ("../../etc/passwd", rows, "must end in"),
        ("new.csv", "a,b\nx,y\n", "no numeric column"),
        ("new.csv", "a,b\n1,2\n", "features"),
        ("new.parquet", rows, "not a valid parquet"),
    ):
        status, text = get(live, address + name, "POST", body.encode(), **own)
        assert status == 400
        assert word in json.loads(text)["error"]
        assert "/tmp" not in text
    status, text = get(live, address + "..%2F..%2Fnew.csv", "POST", rows.encode(), **own)
    assert (status, json.loads(text)) == (200, {"placed": 7})
    meta = live.session.packed.meta
    assert meta["n"] == 207
    assert meta["columns"][0]["names"][-1] == "new: new.csv"
    monkeypatch.setattr(serving, "MOST_UPLOADED", 50)
    status, text = get(live, address + "new.csv", "POST", rows.encode(), **own)
    assert status == 400
    assert "larger than" in text


def test_serve_prints_the_address_and_refuses_invalid_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from vicinal import cli

    seen: list[LiveServer] = []
    monkeypatch.setattr(LiveServer, "run", lambda self: seen.append(self))
    np.save(tmp_path / "data.npy", X)
    assert cli.main(["serve", str(tmp_path / "data.npy"), "--no-browser", "--n-epochs", "20"]) == 0
    (running,) = seen
    assert running.address in capsys.readouterr().out
    assert not running.session._thread.is_alive()  # type: ignore[union-attr]
    assert {one["name"] for one in running.session.adjustable()} >= {"n_neighbors", "min_dist", "n_epochs"}
    for arguments, word in (("none.csv", "does not exist"), (f"{tmp_path / 'data.npy'} --port 99999", "--port")):
        assert cli.main(["serve", *arguments.split(), "--no-browser"]) == 2
        assert word in capsys.readouterr().err


def test_finished_map_and_model_can_be_saved(tmp_path: Path) -> None:
    watched = Session(
        X, build, {"n_neighbors": 10, "n_epochs": 20, "metric": "euclidean"}, columns=row_columns(ids=range(200))
    )
    running = LiveServer(watched).start()
    try:
        for what in ("map", "model"):
            status, text = get(running, f"/{running.token}/{what}", "GET", b"")
            assert status == 409
            assert "wait until it is done" in text
            assert get(running, f"/wrong/{what}", "GET", b"")[0] == 403
        watched.start({"metric": "cosine"})
        watched.wait(LONG_S)
        assert watched.model.metric == "cosine"
        text = get(running, f"/{running.token}/map", "GET", b"")[1]
        assert text.startswith("id,x,y\n0,")
        assert np.loadtxt(text.splitlines(), delimiter=",", skiprows=1)[:, 1:] == pytest.approx(
            watched.model.embedding_
        )
        answer = http.client.HTTPConnection("127.0.0.1", running.port)
        answer.request("GET", f"/{running.token}/model")
        (tmp_path / "m.vicinal").write_bytes(answer.getresponse().read())
        assert np.array_equal(vicinal.load(tmp_path / "m.vicinal").embedding_, watched.model.embedding_)
    finally:
        running.close()


def test_metric_is_one_of_the_choices() -> None:
    watched = Session(X, build, {"metric": "yule"})
    (metric,) = watched.adjustable()
    assert metric["choices"][:2] == ["yule", "euclidean"]
    with pytest.raises(ValueError, match="metric must be one of"):
        watched.start({"metric": "nonsense"})


def test_map_in_space_is_watched() -> None:
    watched = Session(X, build, {"n_neighbors": 10, "n_epochs": 20, "n_components": 3})
    watched.start()
    watched.wait(LONG_S)
    assert watched.snapshot.positions.shape == (200, 3)
    assert len(watched.packed.meta["maps"][0]["box"]) == 6
    frames = FrameEncoder()
    assert HEADER.unpack_from(frames.encode(Snapshot(1, 3, 9, watched.snapshot.positions)))[:2] == (KEY, 3)
    with pytest.raises(ValueError, match="2 or 3 dimensions"):
        Session(X, build, {"n_components": 5})


def test_uploads_are_read_like_the_data() -> None:
    source = Preparation(ColumnChoice(["a", "b", "c", "d", "e"], label="kind"))
    watched = session(source=source)
    running = LiveServer(watched).start()
    try:
        watched.start()
        watched.wait(LONG_S)
        lines = ["kind,e,d,c,b,a", *(f"7,{','.join(map(str, row[::-1]))}" for row in X[:3].tolist())]
        answer = get(
            running, f"/{running.token}/project?name=new.csv", "POST", "\n".join(lines).encode(), Origin=origin(running)
        )
        assert json.loads(answer[1]) == {"placed": 3}
        assert np.array_equal(watched.snapshot.positions[200:], watched.model.embedding_[:3])
    finally:
        running.close()
