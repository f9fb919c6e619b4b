"""Ctrl-C ends every stage before its end and leaves a model as it was."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interruptible import STAGES

# Safety net against a deadlock; no assertion depends on it.
HANG_LIMIT = 240.0

pytestmark = pytest.mark.requires_signals


class Worker:
    """A process that runs and interrupts one stage after the other; a new one is started if it had to be killed."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._process: subprocess.Popen[str] | None = None

    def interrupt(self, stage: str) -> dict[str, Any]:
        """Run a stage until its interrupt and return the report of tests/interruptible.py."""
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
            line = process.stdout.readline()
        finally:
            watchdog.cancel()
        assert line, f"{stage} hangs or fails"
        report: dict[str, Any] = json.loads(line)
        return report

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture(scope="module")
def worker(child_environment: dict[str, str]) -> Iterator[Worker]:
    one = Worker(child_environment)
    yield one
    one.close()


SLOW = ("neighbors_of_few_rows_with_a_million_columns",)


@pytest.mark.parametrize(
    "stage", [pytest.param(stage, marks=pytest.mark.nightly) if stage in SLOW else stage for stage in STAGES]
)
def test_interrupt_ends_the_stage_and_changes_nothing(stage: str, worker: Worker) -> None:
    if stage == "fit_parametric":
        pytest.importorskip("torch")
    assert worker.interrupt(stage) == {"interrupted": True, "changed": []}


COMMAND = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
from vicinal.cli import main
from vicinal.cli.fitting import ProgressBars

report = ProgressBars.__call__
wanted = [(sys.argv[1], int(sys.argv[2]))]

def tell(self, stage, done, *rest):
    if (stage, done) in wanted:
        wanted.clear()
        print("begun", flush=True)
        while not self.stopped:
            threading.Event().wait(0.1)
    return report(self, stage, done, *rest)

ProgressBars.__call__ = tell
sys.exit(main(["embed", "rows.npy", "-o", "map.npy", "--quiet", *sys.argv[3:]]))
"""


@pytest.mark.parametrize(
    ("stage", "epoch", "options", "kept"),
    [("neighbors", 0, [], False), ("layout", 2, ["--n-epochs", "50"], True)],
)
def test_interrupted_command_writes_a_whole_map_or_none(
    stage: str, epoch: int, options: list[str], kept: bool, tmp_path: Path, child_environment: dict[str, str]
) -> None:
    pytest.importorskip("typer")
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(500, 20)).astype(np.float32))
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, stage, str(epoch), *options],
        cwd=tmp_path,
        env=child_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        watchdog = threading.Timer(HANG_LIMIT, process.kill)
        watchdog.start()
        begun = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        watchdog.cancel()
    assert (begun, process.returncode, errors) == ("begun\n", 130, "interrupted\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["map.npy"] * kept + ["rows.npy"]
    if kept:
        assert np.isfinite(np.load(tmp_path / "map.npy")).all()


RESUME = """
import signal
import numpy as np
from interrupting import interrupt_inside_a_call
from interruptible import random_graph
from vicinal import Layout, Schedule, fit_ab

signal.signal(signal.SIGINT, signal.default_int_handler)
start, graph = np.random.default_rng(0).random((3_000, 2)), random_graph(3_000, 15)
def make(): return Layout(graph, start, fit_ab(), Schedule(10**6, update_negatives=True), seed=3)
layout = make()
try:
    with interrupt_inside_a_call():
        layout.step(10**6)
    raise SystemExit("the layout was not interrupted")
except KeyboardInterrupt:
    reached = layout.epoch
layout.step(5)
whole = make()
whole.step(reached + 5)
assert 0 < reached < 10**6, reached
assert np.array_equal(layout.embedding, whole.embedding)
print("finished")
"""


def test_interrupted_layout_resumes_with_the_bits_of_an_undisturbed_one(child_environment: dict[str, str]) -> None:
    assert run_program(RESUME, child_environment) == "finished\n"


def run_program(program: str, environment: dict[str, str], *arguments: str) -> str:
    """Run a program in the folder of the tests and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
