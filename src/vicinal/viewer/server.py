"""The live page: the offline page with frames of a running fit, for this machine only.

Security: the server listens on the loopback address. Every address contains a random token, compared in constant time.
Websockets and uploads are accepted only from this server's own page (Origin header), and every request must use a
loopback host name (Host header), which blocks other sites open in the same browser. An upload is limited in size and
stored in a temporary file with a generated name; no text from a client is used as a path.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import csv
import io
import json
import reprlib
import secrets
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from vicinal.files.data_table import Role, values_of
from vicinal.files.spreadsheets import inert
from vicinal.viewer.export import page
from vicinal.viewer.packing import Packed
from vicinal.viewer.session import FrameEncoder, Session

LOOPBACK = "127.0.0.1"
NAMES = (LOOPBACK, "localhost")
MOST_UPLOADED = 256 * 2**20
MOST_MESSAGE = 16 * 2**20
# Interval at which a feed checks for newer positions, in seconds: at most 25 frames per second.
LOOK_S = 0.04
# If a client does not confirm a frame within this time, the next frame is sent, in seconds.
UNANSWERED_S = 10.0
REFUSED = 1008

Endpoint = Callable[[Request], Awaitable[Response]]


class LiveServer:
    """Serve one session at ``address``; ``run`` blocks, ``start`` does not."""

    def __init__(self, session: Session, *, port: int = 0, token: str | None = None) -> None:
        self.session = session
        self.token = secrets.token_urlsafe(24) if token is None else token
        self._listening = socket.create_server((LOOPBACK, port))
        self.port = int(self._listening.getsockname()[1])
        config = uvicorn.Config(self.app(), log_level="error", ws_max_size=MOST_MESSAGE, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/{self.token}/"

    def run(self) -> None:
        """Serve until interrupted."""
        self._server.run(sockets=[self._listening])

    def start(self) -> LiveServer:
        """Serve in a background thread."""
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop the server and the fit; waits for the current stage, because no thread may outlive the interpreter."""
        self.session.stop()
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(5.0)
        self.session.wait()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/{token}/", self._guarded(self._page)),
                Route("/{token}/map", self._guarded(self._save_map, failure=409)),
                Route("/{token}/model", self._guarded(self._save_model, failure=409)),
                Route("/{token}/project", self._guarded(self._project, own_page=True), methods=["POST"]),
                WebSocketRoute("/{token}/feed", self._feed),
            ]
        )

    def _refusal(self, asked: Request | WebSocket, *, own_page: bool) -> str | None:
        """Return the reason to refuse a request, or None to accept it."""
        if not secrets.compare_digest(asked.path_params["token"].encode(), self.token.encode()):
            return "wrong token"
        hosts = {f"{name}:{self.port}" for name in NAMES}
        if asked.headers.get("host") not in hosts:
            return "wrong host"
        if own_page and asked.headers.get("origin") not in {f"http://{host}" for host in hosts}:
            return "foreign origin"
        return None

    def _guarded(self, answer: Endpoint, *, own_page: bool = False, failure: int = 400) -> Endpoint:
        """Return an endpoint that answers accepted requests; a ValueError becomes a message of status ``failure``."""

        async def endpoint(request: Request) -> Response:
            refusal = self._refusal(request, own_page=own_page)
            if refusal is not None:
                return PlainTextResponse(refusal, status_code=403)
            try:
                return await answer(request)
            except ValueError as error:
                return JSONResponse({"error": " ".join(str(error).split())}, status_code=failure)

        return endpoint

    async def _page(self, request: Request) -> Response:
        session = self.session
        live = {"feed": "feed", "parameters": session.adjustable(), "projects": session.projects}
        live |= {"saves": session.saves, "neighbors": session.has_neighbors}
        packed = session.packed
        text = page(Packed({**packed.meta, "live": live}, packed.sections))
        safe = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
        return HTMLResponse(text, headers=safe)

    async def _save_map(self, request: Request) -> Response:
        """Send the finished map as CSV: ids if there are any, and coordinates."""
        return Response(await asyncio.to_thread(self._map_text), media_type="text/csv")

    async def _save_model(self, request: Request) -> Response:
        """Send the finished model as a file for ``vicinal.load``."""
        return Response(await asyncio.to_thread(self._model_bytes), media_type="application/octet-stream")

    def _map_text(self) -> bytes:
        places = self.session.finished_model().embedding_
        ids = values_of(self.session.columns, Role.ID)
        with io.StringIO() as text:
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow([*([] if ids is None else ["id"]), *"xyz"[: places.shape[1]]])
            for row, place in enumerate(places.tolist()):
                writer.writerow([*([] if ids is None else [inert(ids[row])]), *place])
            return text.getvalue().encode()

    def _model_bytes(self) -> bytes:
        model = copy.copy(self.session.finished_model())
        # the callback belongs to this server
        model.set_params(callback=None)
        self.session.source.keep_in(model)
        with tempfile.TemporaryDirectory(prefix="vicinal-") as folder:
            path = Path(folder) / "map.vicinal"
            model.save(path)
            return path.read_bytes()

    async def _project(self, request: Request) -> Response:
        # only the last component of the client's file name is kept, for display
        name = PurePosixPath(request.query_params.get("name", "").replace("\\", "/")).name[:80]
        async with _uploaded(request, PurePosixPath(name).suffix.lower()) as path:
            placed = await asyncio.to_thread(self._place_file, path, name)
        return JSONResponse({"placed": placed})

    def _place_file(self, path: Path, name: str) -> int:
        try:
            rows = self.session.source.read_rows(path)
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), name)) from error
        return self.session.project(name, rows)

    async def _feed(self, websocket: WebSocket) -> None:
        refusal = self._refusal(websocket, own_page=True)
        if refusal is not None:
            await websocket.close(REFUSED, refusal)
            return
        await websocket.accept()
        drawn = asyncio.Event()
        drawn.set()
        listening = asyncio.create_task(self._listen(websocket, drawn))
        sending = asyncio.create_task(self._send(websocket, drawn))
        await asyncio.wait({listening, sending}, return_when=asyncio.FIRST_COMPLETED)
        for task in (listening, sending):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
                await task

    async def _send(self, websocket: WebSocket, drawn: asyncio.Event) -> None:
        """Send the newest positions whenever the client has drawn the last ones; skip those in between."""
        encoder, sent_status, sent = FrameEncoder(), None, None
        while True:
            status, snapshot = self.session.status, self.session.snapshot
            if status != sent_status:
                await websocket.send_text(json.dumps({"type": "status", **asdict(status)}))
                sent_status = status
            if snapshot is not sent and snapshot.drawable:
                drawn.clear()
                for frame in await asyncio.to_thread(encoder.frames, snapshot):
                    await websocket.send_bytes(frame)
                sent = snapshot
                with contextlib.suppress(TimeoutError):
                    # wait_for of Python 3.11 may lose a cancellation
                    async with asyncio.timeout(UNANSWERED_S):
                        await drawn.wait()
            await asyncio.sleep(LOOK_S)

    async def _listen(self, websocket: WebSocket, drawn: asyncio.Event) -> None:
        """Carry out the messages of the client; answer a malformed message with a status that describes the error."""
        while True:
            try:
                answer = self._handle(await _message(websocket), drawn)
                if answer is not None:
                    await websocket.send_text(json.dumps(answer))
            except ValueError as error:
                failed = replace(self.session.status, message=str(error))
                await websocket.send_text(json.dumps({"type": "status", **asdict(failed)}))

    def _handle(self, message: dict[str, Any], drawn: asyncio.Event) -> dict[str, Any] | None:
        kind = message.get("type")
        if kind == "drawn":
            drawn.set()
        elif kind == "pause":
            self.session.pause()
        elif kind == "resume":
            self.session.resume()
        elif kind == "rerun":
            if not isinstance(message.get("parameters"), dict):
                raise ValueError("parameters must be a mapping of names to numbers")
            self.session.start(message["parameters"])
        elif kind == "select":
            rows, n = message.get("rows", []), len(self.session.snapshot.positions)
            if not isinstance(rows, list) or not all(type(row) is int and 0 <= row < n for row in rows):
                raise ValueError(f"rows must be a list of row numbers below {n}")
            self.session.selection = rows
        elif kind == "neighbors":
            return {"type": "neighbors", "row": message.get("row"), "rows": self.session.neighbors(message.get("row"))}
        else:
            raise ValueError(f"a message must have a known type, got {reprlib.repr(kind)}")
        return None


async def _message(websocket: WebSocket) -> dict[str, Any]:
    """Return the next message of the client; raise ValueError if it is not an object of JSON."""
    received = await websocket.receive()
    if received["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(received.get("code", 1000))
    text = received.get("text")
    try:
        message = None if text is None else json.loads(text)
    except (RecursionError, ValueError) as error:
        raise ValueError(f"a message must be JSON: {type(error).__name__}") from error
    if not isinstance(message, dict):
        raise ValueError("a message must be a JSON object")
    return message


@contextlib.asynccontextmanager
async def _uploaded(request: Request, suffix: str) -> AsyncIterator[Path]:
    """Store the body in a temporary file with a generated name."""
    from vicinal.files.readers import SUFFIXES

    if suffix not in SUFFIXES:
        raise ValueError(f"the file name must end in one of {', '.join(SUFFIXES)}")
    with tempfile.TemporaryDirectory(prefix="vicinal-") as folder:
        path = Path(folder) / f"upload{suffix}"
        size = 0
        with path.open("wb") as file:
            async for part in request.stream():
                size += len(part)
                if size > MOST_UPLOADED:
                    raise ValueError(f"the file is larger than {MOST_UPLOADED // 2**20} MiB")
                file.write(part)
        yield path
