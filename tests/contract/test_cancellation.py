"""Ctrl-C is answered within a second from every stage."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

# A core with sanitisers is an order of magnitude slower.
SLOWER = 10.0 if "VICINAL_SANITIZED" in os.environ else 1.0
ANSWER_LIMIT = 1.0 * SLOWER
HANG_LIMIT = 60.0 * SLOWER

# Every program prepares, says "begun", and does one thing that would take far longer than the test.
PROGRAM = """
import sys, time
import numpy as np
from vicinal import UMAP, FullLayout, Layout, Neighbors, Phase, Schedule, find_neighbors, fit_ab, fuzzy_graph
from vicinal.spectral import eigenmap
from vicinal.neighbors import NeighborIndex

rng = np.random.default_rng(0)

def random_graph(n, k):
    index = rng.integers(n, size=(n, k)).astype(np.int32)
    index[:, 0] = np.arange(n)
    distance = np.sort(rng.random((n, k), dtype=np.float32), axis=1)
    distance[:, 0] = 0
    return fuzzy_graph(Neighbors(index, distance))

def begun(stage, *_):
    print("begun", stage, flush=True)

def tell(stage, epoch, n_epochs, embedding):
    if stage == "STAGE" and epoch <= 1:
        begun(stage)

try:
    BODY
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", time.monotonic(), flush=True)
"""

STAGES = {
    "full layout, every pair": """
    layout = FullLayout(random_graph(20_000, 15), rng.normal(size=(20_000, 2)), [Phase(1)], method="exact")
    begun("layout")
    layout.step(10**6)
""",
    "full layout, grid": """
    layout = FullLayout(random_graph(20_000, 15), rng.normal(size=(20_000, 2)), [Phase(1)], method="fft")
    begun("layout")
    layout.step(10**6)
""",
    "approximate neighbours": """
    X = rng.normal(size=(60_000, 200)).astype(np.float32)
    begun("neighbors")
    while True: find_neighbors(X, 15, method="approximate")
""",
    "approximate neighbours, one thread": """
    X = rng.normal(size=(60_000, 200)).astype(np.float32)
    begun("neighbors")
    while True: find_neighbors(X, 15, method="approximate", n_jobs=1)
""",
    "exact neighbours": """
    X = rng.normal(size=(30_000, 1000)).astype(np.float32)
    begun("neighbors")
    while True: find_neighbors(X, 15, method="exact")
""",
    "exact neighbours of wide rows": """
    X = rng.normal(size=(2_000, 20_000)).astype(np.float32)
    begun("neighbors")
    while True: find_neighbors(X, 15, metric="chebyshev", method="exact")
""",
    "query": """
    X = rng.normal(size=(5_000, 300)).astype(np.float32)
    index = NeighborIndex(X)
    graph = fuzzy_graph(index.search(15))
    Q = rng.normal(size=(20_000, 300)).astype(np.float32)
    begun("query")
    while True: index.query(Q, 15, graph)
""",
    "graph": """
    n, k = 300_000, 30
    index = rng.integers(n, size=(n, k)).astype(np.int32)
    table = Neighbors(index, np.sort(rng.random((n, k), dtype=np.float32), axis=1))
    begun("graph")
    while True: fuzzy_graph(table)
""",
    "spectral": """
    graph = random_graph(200_000, 15)
    begun("spectral")
    while True: eigenmap(graph, 2)
""",
    "layout": """
    n = 50_000
    layout = Layout(random_graph(n, 15), rng.random((n, 2)), fit_ab(), Schedule(100_000))
    begun("layout")
    layout.step(100_000)
""",
    "layout of few rows": """
    layout = Layout(random_graph(50, 5), rng.random((50, 2)), fit_ab(), Schedule(10**9))
    begun("layout")
    while True: layout.step(1_000_000)
""",
    "fit": """
    X = rng.normal(size=(20_000, 50)).astype(np.float32)
    UMAP(n_epochs=100_000, callback=tell, init="random").fit(X)
""",
}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one child")
@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupt_is_answered_within_a_second(stage: str, child_environment: dict[str, str]) -> None:
    program = PROGRAM.replace("    BODY", STAGES[stage]).replace("STAGE", "layout")
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=child_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        watchdog = threading.Timer(HANG_LIMIT, process.kill)
        watchdog.start()
        try:
            first = process.stdout.readline()
            assert first.startswith("begun"), first
            time.sleep(0.4)
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            last, errors = process.communicate()
        finally:
            watchdog.cancel()
    word, _, answered = last.splitlines()[-1].partition(" ")
    assert word == "interrupted", (last, errors)
    assert float(answered) - sent < ANSWER_LIMIT


def test_an_interrupted_layout_can_go_on(child_environment: dict[str, str]) -> None:
    """An epoch that did not finish leaves no trace: stepping on gives the bits of an undisturbed run."""
    program = PROGRAM.replace(
        "    BODY",
        """
    import os, signal, threading
    start, graph = rng.random((3_000, 2)), random_graph(3_000, 15)
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
""",
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=child_environment,
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "finished" in done.stdout
