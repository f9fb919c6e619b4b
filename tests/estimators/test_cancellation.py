"""Ctrl-C is answered within a second from every stage, and leaves a model as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interruptible import STAGES
from numpy.typing import NDArray

import vicinal

# A core with sanitisers is an order of magnitude slower.
SLOWER = 10.0 if "VICINAL_SANITIZED" in os.environ else 1.0
HANG_LIMIT = 60.0 * SLOWER


def answer_limit() -> float:
    """A second, on a machine that is not overloaded; otherwise as many as there are processes for a processor."""
    crowd = os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 1.0
    return SLOWER * max(1.0, crowd)


needs_signals = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one child")


class Worker:
    """A process that does one stage after the other until it is interrupted; a new one if it had to be killed."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._process: subprocess.Popen[str] | None = None

    def interrupt(self, stage: str) -> tuple[float, list[str]]:
        """Seconds until the answer to an interruption, and what else was said."""
        if self._process is None or self._process.poll() is not None:
            program = Path(__file__).parents[1] / "interruptible.py"
            self._process = subprocess.Popen(
                [sys.executable, str(program)],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(HANG_LIMIT, process.kill)
        watchdog.start()
        try:
            process.stdin.write(f"{stage}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "begun\n"
            time.sleep(0.4)
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            word, _, answered = process.stdout.readline().partition(" ")
            assert word == "interrupted", word
            said = [line.strip() for line in iter(process.stdout.readline, "done\n") if line]
            return float(answered) - sent, said
        finally:
            watchdog.cancel()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture(scope="module")
def worker(child_environment: dict[str, str]) -> Iterator[Worker]:
    one = Worker(child_environment)
    yield one
    one.close()


@needs_signals
@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupt_is_answered_within_a_second(stage: str, worker: Worker) -> None:
    if stage == "fit_parametric":
        pytest.importorskip("torch")
    seconds, said = worker.interrupt(stage)
    assert seconds < answer_limit()
    assert said == [], "the model is not what it was before"


@pytest.mark.parametrize(
    "model",
    [
        vicinal.UMAP(n_epochs=5),
        vicinal.DensMAP(n_epochs=5),
        vicinal.TSNE(max_iter=5),
        vicinal.LargeVis(n_epochs=5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_whatever_stops_a_fit_the_model_is_as_before(model: Any, iris: NDArray[np.float32]) -> None:
    """An error from the callback, in every stage; of a model that was never fitted, and of one that was."""

    class Stop(BaseException):
        pass

    seen: list[str] = []
    model.set_params(callback=lambda stage, *_: seen.append(stage))
    model.fit(iris)
    fitted, places = dict(vars(model)), model.transform(iris[:5] + 0.5)
    for wanted in dict.fromkeys(seen):

        def stop(stage: str, *_: object, wanted: str = wanted) -> None:
            if stage == wanted:
                raise Stop

        fresh = type(model)(**model.get_params()).set_params(callback=stop)
        parameters = dict(vars(fresh))
        with pytest.raises(Stop):
            fresh.fit(iris)
        assert vars(fresh) == parameters
        model.set_params(callback=stop)
        with pytest.raises(Stop):
            model.fit(iris[:, :3])
        assert {**vars(model), "callback": None}.keys() == fitted.keys()
        np.testing.assert_array_equal(model.transform(iris[:5] + 0.5), places)


def test_a_refused_fit_leaves_the_model_as_it_was(iris: NDArray[np.float32]) -> None:
    model = vicinal.UMAP(n_epochs=5, random_state=0).fit(iris)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((20, 7), np.nan, dtype=np.float32))
    assert all(vars(model)[name] is value for name, value in before.items())
    model.transform(iris + 0.5)


COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from vicinal.cli import main
from vicinal.cli.bars import Bars

report = Bars.__call__

def tell(self, stage, *rest):
    if stage == sys.argv[1] and rest[0] <= 1:
        print("begun", flush=True)
    return report(self, stage, *rest)

Bars.__call__ = tell
sys.exit(main(["embed", "rows.npy", "-o", "map.npy", "--quiet", *sys.argv[2:]]))
"""


@needs_signals
@pytest.mark.parametrize(
    ("stage", "options", "kept"),
    [("neighbors", ["--metric", "canberra"], False), ("layout", ["--n-epochs", "100000"], True)],
)
def test_the_command_line_answers_and_leaves_a_whole_map_or_none(
    stage: str, options: list[str], kept: bool, tmp_path: Path, child_environment: dict[str, str]
) -> None:
    pytest.importorskip("typer")
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(5_000, 60)).astype(np.float32))
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, stage, *options],
        cwd=tmp_path,
        env=child_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        watchdog = threading.Timer(HANG_LIMIT, process.kill)
        watchdog.start()
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        watchdog.cancel()
    assert (process.returncode, said) == (130, "interrupted\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["map.npy"] * kept + ["rows.npy"]
    if kept:
        assert np.isfinite(np.load(tmp_path / "map.npy")).all()


def test_an_interrupted_layout_can_go_on(child_environment: dict[str, str]) -> None:
    """An epoch that did not finish leaves no trace: stepping on gives the bits of an undisturbed run."""
    program = """
import os, signal, sys, threading
import numpy as np
from interruptible import random_graph
from vicinal import Layout, Schedule, fit_ab

signal.signal(signal.SIGINT, signal.default_int_handler)
start, graph = np.random.default_rng(0).random((3_000, 2)), random_graph(3_000, 15)
def make(): return Layout(graph, start, fit_ab(), Schedule(4_000, update_negatives=True), seed=3)
layout = make()
threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    layout.step(4_000)
    sys.exit("finished too early")
except KeyboardInterrupt:
    reached = layout.epoch
layout.step(5)
whole = make()
whole.step(reached + 5)
assert 0 < reached < 4_000 and np.array_equal(layout.embedding, whole.embedding), reached
print("finished")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=child_environment,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "finished" in done.stdout


TORN = """
import os, signal, sys
import numpy as np, vicinal

signal.signal(signal.SIGINT, signal.default_int_handler)
X = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)

class Interrupting:
    "Sends Ctrl-C when a module deep in a library is looked for, in whichever thread that is."
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
work = {work}
try:
    work()
    sys.exit("not interrupted")
except KeyboardInterrupt:
    pass
work()
print("finished")
"""


@needs_signals
@pytest.mark.parametrize(
    ("deep", "work"),
    [
        ("scipy.sparse._csr", "lambda: vicinal.UMAP(n_epochs=2).fit(X)"),
        ("sklearn.utils.fixes", "lambda: vicinal.UMAP(n_epochs=2).fit(X.tolist())"),
        (
            "sklearn.metrics.pairwise",
            "lambda: vicinal.quality.measures.trustworthiness(X, X[:, :2], metric='manhattan')",
        ),
        ("matplotlib.figure", "lambda: vicinal.plot.points(X[:, :2])"),
        ("torch._tensor", "lambda: vicinal.ParametricUMAP(n_epochs=1, init='random').fit(X)"),
    ],
)
def test_an_interrupted_import_is_whole_all_the_same(deep: str, work: str, child_environment: dict[str, str]) -> None:
    pytest.importorskip(deep.partition(".")[0])
    done = subprocess.run(
        [sys.executable, "-c", TORN.replace("{work}", work), deep],
        env={**child_environment, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "finished\n"), done.stderr
