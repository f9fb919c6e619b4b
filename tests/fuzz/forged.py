"""Forge values inside model files (checksums recomputed), tables and messages, and the structure of sparse matrices.

    python tests/fuzz/forged.py [--files 20000] [--matrices 5000] [--tables 5000] [--messages 20000] [--seed 0]

A forged file must raise ModelFileError or load; what loads is used, and may raise any exception then. It may ask for a
long computation (a trillion epochs), which must be interruptible: it is interrupted after PATIENCE seconds. A forged
matrix must raise ValueError or TypeError, or be valid. A forged table must raise ReadError, with one line of text, or
be a valid table. A forged message of the live page must be carried out or raise ValueError, and leaves one thread.

Each piece runs in a process of its own, so that a crash ends it alone; a call that takes more than SLOWEST seconds ends
it as well. Loading may take ``MOST_EXPANSION`` times the size of the file, plus SPARE bytes; using a model or a matrix
is limited by MOST_USED. Prints one line of JSON per kind: the counts, the slowest call and the largest memory. The exit
status is not 0 after a failure, and the input is kept.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import faulthandler
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from data.make_models import MODELS, iris, models, placed
from fuzz.forgeries import (
    forged_arrays,
    forged_document,
    forged_matrix,
    forged_message,
    forged_table,
    random_matrix,
)

import vicinal
from vicinal.files.container import MOST_EXPANSION, read_file, write_file
from vicinal.runtime.inputs import ROW_TYPES

SLOWEST = 120.0
LONGEST_MESSAGE = 2_000  # characters of an error about a table
PATIENCE = 1.0
# Bytes that loading may take beyond the multiple of the file's size: blocks that libraries reserve.
SPARE = 64e6
# Bytes of address space that using a forged model or matrix may take.
MOST_USED = 2 << 30


def memory(field: str) -> int:
    """Return a line of /proc/self/status in bytes: VmRSS, VmHWM (its peak) or VmSize."""
    return int(Path("/proc/self/status").read_text().partition(f"{field}:")[2].split()[0]) * 1024


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


class Impatient(BaseException):
    """Raised by a signal, as KeyboardInterrupt is."""


def interrupt(*_: object) -> None:
    raise Impatient


class Piece:
    """The trials of one process."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.found: Counter[str] = Counter()
        self.slowest = self.most = 0.0

    def trial(self) -> str:
        """Try one forgery and return how it ended."""
        raise NotImplementedError

    def run(self, n_trials: int, trial: Callable[[], str]) -> None:
        """Run trials. A trial that takes too long prints its stack and ends the process."""
        limit = memory("VmSize") + MOST_USED
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for _ in range(n_trials):
            faulthandler.dump_traceback_later(SLOWEST, exit=True)
            begin = time.perf_counter()
            self.found[trial()] += 1
            self.slowest = max(self.slowest, time.perf_counter() - begin)
            faulthandler.cancel_dump_traceback_later()


class Files(Piece):
    """Forged model files: those of all releases and of this version."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        files = list(MODELS.glob("*/*.vicinal"))
        for name, model in models(iris()[0]).items():
            model.save(folder / f"{name}.vicinal")
            files.append(folder / f"{name}.vicinal")
        self.contents = [(file.stem, *read_file(file)) for file in sorted(files)]
        self.new = iris()[1]
        for name, arrays, document in self.contents:  # imports what the models need
            write_file(folder / "forged", arrays, document)
            placed(name, vicinal.load(folder / "forged"), self.new)

    def trial(self) -> str:
        name, arrays, document = self.rng.choice(self.contents)
        arrays, document = dict(arrays), copy.deepcopy(document)
        for _ in range(self.rng.choice((1, 1, 2))):
            if self.rng.random() < 0.5:
                document = forged_document(self.rng, document)
            else:
                arrays = forged_arrays(self.rng, arrays)
        path = self.folder / "forged"
        try:
            write_file(path, arrays, document)
        except (ValueError, TypeError):
            return "not writable"
        reset_peak()
        before = memory("VmRSS")
        try:
            model = vicinal.load(path)
        except vicinal.ModelFileError:
            model = None
        used = memory("VmHWM") - before
        self.most = max(self.most, used)
        assert used <= MOST_EXPANSION * path.stat().st_size + SPARE, f"loading took {used / 1e6:.0f} MB"
        return "refused" if model is None else self._used(name, model)

    def _used(self, name: str, model: Any) -> str:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            placed(name, model, self.new)
            method = self.rng.choice(("update", "partial_fit", "transform"))
            if method != "transform" and hasattr(model, method):
                getattr(model, method)(self.new)
        except Impatient:
            return "long"
        except Exception:
            return "unusable"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return "usable"


class Matrices(Piece):
    """Forged sparse matrices, at every entry point that takes one."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        rows = random_matrix(random.Random(0)).tocsr()
        fitted = vicinal.UMAP(n_epochs=1, n_neighbors=4, random_state=0).fit(rows)
        distances = vicinal.UMAP(n_epochs=1, n_neighbors=4, random_state=0, metric="precomputed").fit(abs(rows))
        dense = np.arange(2.0 * rows.shape[0]).reshape(-1, 2)
        self.entries: list[Callable[[Any], object]] = [
            lambda X: vicinal.find_neighbors(X, 3),
            lambda X: vicinal.find_neighbors(X, 3, metric="manhattan", method="approximate"),
            lambda X: vicinal.UMAP(n_epochs=1, n_neighbors=4, random_state=0).fit(X),
            lambda X: vicinal.UMAP(n_epochs=1, n_neighbors=4, metric="precomputed", random_state=0).fit(X),
            lambda X: vicinal.UMAP(n_epochs=1, n_neighbors=4, precomputed_knn=X, random_state=0).fit(dense),
            fitted.transform,
            lambda X: copy.copy(fitted).update(X),
            distances.transform,
            vicinal.Graph.from_scipy,
        ]

    def trial(self) -> str:
        X = forged_matrix(self.rng, random_matrix(self.rng))
        entry = self.rng.choice(self.entries)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                entry(X)
        except (ValueError, TypeError):
            return "refused"
        return "valid"


class Tables(Piece):
    """Forged tables, as the command line reads them."""

    def trial(self) -> str:
        from vicinal.files.readers import ReadError, read_table

        suffix, content = forged_table(self.rng)
        path = self.folder / f"forged{suffix}"
        path.write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                table = read_table(path)
        except ReadError as error:
            message = str(error)
            if not message or "\n" in message or len(message) > LONGEST_MESSAGE:
                raise AssertionError(f"a message of {len(message)} characters: {message[:1000]}") from error
            return "refused"
        assert table.X.ndim == 2
        assert table.X.dtype in ROW_TYPES
        assert np.isfinite(table.X).all()
        return "usable"


class Received:
    """A websocket that has received one message."""

    def __init__(self, text: Any) -> None:
        self.text = text

    async def receive(self) -> dict[str, Any]:
        return {"type": "websocket.receive", "text": self.text, "bytes": b"" if self.text is None else None}


class Messages(Piece):
    """Forged messages to the server of a live page, of a fit and of a saved model."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        from vicinal.viewer.server import LiveServer
        from vicinal.viewer.session import Session

        rows = iris()[0][:30]
        parameters = {"n_neighbors": 5, "n_epochs": 5, "min_dist": 0.1, "random_state": 0, "metric": "euclidean"}
        fitted = vicinal.UMAP(n_epochs=5, random_state=0).fit(rows)
        sessions = (
            Session(rows, lambda given, callback: vicinal.UMAP(**given, callback=callback), parameters),
            Session.of(fitted),
        )
        self.servers = [LiveServer(session) for session in sessions]

    def trial(self) -> str:
        from vicinal.viewer.server import _message

        server = self.rng.choice(self.servers)
        try:
            message = asyncio.run(_message(Received(forged_message(self.rng))))  # type: ignore[arg-type]
            server._handle(message, asyncio.Event())
        except ValueError as error:
            json.dumps(str(error))
            return "refused"
        finally:
            server.session.resume()
            assert threading.active_count() <= 2, threading.enumerate()
        return "carried out"

    def run(self, n_trials: int, trial: Callable[[], str]) -> None:
        super().run(n_trials, trial)
        for server in self.servers:
            server.close()


PIECES: dict[str, type[Piece]] = {"files": Files, "matrices": Matrices, "tables": Tables, "messages": Messages}


def run_piece(kind: str, n_trials: int, seed: int) -> None:
    """Run trials in this process and print what was found; keep the last file if one fails."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, interrupt)
    with tempfile.TemporaryDirectory() as folder:
        piece = PIECES[kind](Path(folder), seed)
        # A crash leaves no time to copy the file, so the parent names the folder where it lies.
        kept = Path(os.environ.get("FORGED_FOLDER", folder))
        piece.folder = kept
        piece.run(n_trials, piece.trial)
    print(json.dumps({"found": piece.found, "slowest_s": piece.slowest, "most": piece.most}))


def run_pieces(kind: str, n_trials: int, seed: int, size: int) -> dict[str, Any]:
    """Run all trials of a kind, piece by piece; return the sums, or exit at the first failure."""
    found: Counter[str] = Counter()
    slowest = most = 0.0
    for piece, begin in enumerate(range(0, n_trials, size)):
        n = min(size, n_trials - begin)
        folder = tempfile.mkdtemp(prefix="forged-")
        command = [sys.executable, __file__, "--kind", kind, "--trials", str(n), "--seed", str(1000 * seed + piece)]
        done = subprocess.run(command, env=os.environ | {"FORGED_FOLDER": folder}, capture_output=True, text=True)
        if done.returncode:
            print(done.stderr[-6000:], file=sys.stderr)
            sys.exit(f"{kind}: piece {piece} of seed {seed} ended with {done.returncode}; its input is in {folder}")
        for file in Path(folder).iterdir():
            file.unlink()
        Path(folder).rmdir()
        report = json.loads(done.stdout)
        found.update(report["found"])
        slowest, most = max(slowest, report["slowest_s"]), max(most, report["most"])
    return {kind: n_trials, **found, "slowest_s": round(slowest, 2), "most_mb": round(most / 1e6)}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--files", type=int, default=20_000)
    asked.add_argument("--matrices", type=int, default=5_000)
    asked.add_argument("--tables", type=int, default=5_000)
    asked.add_argument("--messages", type=int, default=20_000)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--piece", type=int, default=500, help="trials per process")
    asked.add_argument("--kind", choices=list(PIECES), help="run one piece in this process")
    asked.add_argument("--trials", type=int, default=500)
    options = asked.parse_args()
    if options.kind is not None:
        run_piece(options.kind, options.trials, options.seed)
        return
    for kind in PIECES:
        n_trials = getattr(options, kind)
        if n_trials:
            print(json.dumps(run_pieces(kind, n_trials, options.seed, options.piece)), flush=True)


if __name__ == "__main__":
    main()
