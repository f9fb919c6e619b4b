"""Threads, forks and nested workers: all finish, and all agree."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import joblib
import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import UMAP

THREADS = 8
HANG_LIMIT = 600.0 if "VICINAL_SANITIZED" in os.environ else 60.0


def embed(X: NDArray[np.float32], n_jobs: int = 2) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    model = UMAP(random_state=0, n_epochs=30, n_jobs=n_jobs).fit(X)
    return model.embedding_, model.transform(X[:40] + 0.5)


def test_fits_in_eight_threads_agree(digits: NDArray[np.float32]) -> None:
    X = digits[:600]
    expected = embed(X)
    barrier = threading.Barrier(THREADS)

    def work(_: int) -> Any:
        barrier.wait()
        return embed(X)

    with ThreadPoolExecutor(THREADS) as pool:
        for result in pool.map(work, range(THREADS)):
            np.testing.assert_array_equal(result[0], expected[0])
            np.testing.assert_array_equal(result[1], expected[1])


def test_one_model_transforms_in_eight_threads(grouped: Any) -> None:
    """Past 6,000 rows the first transform grows the forest: threads must not do so at once."""
    rows = grouped(6400, 20)
    X, new = rows[:6200], rows[6200:]
    fitted = UMAP(random_state=0, n_epochs=5, init="pca").fit(X)
    expected = fitted.transform(new)
    model = joblib.load(dump_to_memory(fitted))
    barrier = threading.Barrier(THREADS)

    def work(_: int) -> Any:
        barrier.wait()
        return model.transform(new)

    with ThreadPoolExecutor(THREADS) as pool:
        for placed in pool.map(work, range(THREADS)):
            np.testing.assert_array_equal(placed, expected)


def dump_to_memory(model: UMAP) -> Any:
    file = BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return file


def test_other_threads_run_during_a_fit(digits: NDArray[np.float32]) -> None:
    """The GIL is released: a second thread counts while the layout runs in one call."""
    counted, done = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        UMAP(random_state=0, n_epochs=600).fit(digits[:1000])
    finally:
        done.set()
        thread.join()
    assert counted >= 10


FORK = """
import os, sys, time
import numpy as np
from vicinal import UMAP

X = np.random.default_rng(0).normal(size=(3000, 10)).astype(np.float32)
embed = lambda: UMAP(random_state=0, n_epochs=20, n_jobs=4).fit_transform(X)
expected = embed()
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(embed(), expected) else 7)
    children.append(child)
assert np.array_equal(embed(), expected)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
@pytest.mark.parametrize("when", ["idle", "during"])
def test_fit_fork_fit(when: str, child_environment: dict[str, str]) -> None:
    """A child forks off an idle parent, or one whose other thread is in the middle of a fit."""
    program = FORK
    if when == "during":
        program = FORK.replace(
            "children = []", "import threading\nthreading.Thread(target=embed).start()\nchildren = []"
        )
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        env=child_environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=HANG_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        pytest.fail("fit hangs after fork")
    assert process.returncode == 0, errors


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_fits_nested_in_joblib_agree(iris: NDArray[np.float32], backend: str) -> None:
    expected = embed(iris)
    results = joblib.Parallel(n_jobs=2, backend=backend, timeout=HANG_LIMIT)(
        joblib.delayed(embed)(iris, n_jobs) for n_jobs in (1, 2, -1, 4)
    )
    for embedding, placed in results:
        np.testing.assert_array_equal(embedding, expected[0])
        np.testing.assert_array_equal(placed, expected[1])


def test_more_threads_than_work(iris: NDArray[np.float32]) -> None:
    expected = embed(iris)
    for n_jobs in (-1000, 64, 5000):
        np.testing.assert_array_equal(embed(iris, n_jobs)[0], expected[0])
