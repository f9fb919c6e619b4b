"""Threads, forks and nested workers: all finish, and all agree."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
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


# Every estimator as a function of rows that gives an array: short fits, but of all stages.
EMBED = """
import vicinal

def embed(name, X, verbose=False):
    common = dict(random_state=0, n_jobs=2, verbose=verbose)
    if name == "KNeighborsTransformer":
        return vicinal.KNeighborsTransformer(n_neighbors=5, n_jobs=2).fit_transform(X).toarray()
    if name == "AlignedUMAP":
        same = {row: row for row in range(len(X))}
        return vicinal.AlignedUMAP(n_epochs=5, **common).fit_transform([X, X + 1], relations=[same])[1]
    if name == "TSNE":
        return vicinal.TSNE(max_iter=15, method="fft", **common).fit_transform(X)
    if name == "ParametricUMAP":
        return vicinal.ParametricUMAP(n_epochs=1, init="random", **common).fit_transform(X[:60])
    if name == "sparse UMAP":
        from scipy.sparse import csr_matrix

        X = csr_matrix(X * (X > 0.5))
    if name == "ProgressiveUMAP":
        return vicinal.ProgressiveUMAP(polish_epochs=5, **common).fit_transform(X)
    return getattr(vicinal, name.split()[-1])(n_epochs=10, **common).fit_transform(X)
"""
ESTIMATORS = (
    "UMAP",
    "sparse UMAP",
    "DensMAP",
    "TSNE",
    "LargeVis",
    "AlignedUMAP",
    "KNeighborsTransformer",
    "ProgressiveUMAP",
)

FORK = (
    EMBED
    + """
import os, sys, threading, time
import numpy as np

name, when, verbose = sys.argv[1], sys.argv[2], sys.argv[3] == "verbose"
n = 180 if name == "UMAP of few rows" else 700  # few rows start from a decomposition by LAPACK
name = name.split(" of ")[0]
X = np.random.default_rng(0).normal(size=(n, 10)).astype(np.float32)
fit = lambda: embed(name, X, verbose)
if when != "first":
    fit()
if when != "idle":
    other = threading.Thread(target=fit)
    other.start()
children = []
for _ in range(3):
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        np.save(f"{sys.argv[4]}/{os.getpid()}.npy", fit())
        os._exit(0)
    children.append(child)
expected = fit()
for child in children:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.array_equal(np.load(f"{sys.argv[4]}/{child}.npy"), expected)
"""
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
@pytest.mark.parametrize(
    ("name", "when", "verbose"),
    [
        ("UMAP", "idle", ""),
        *[(name, "during", "") for name in ESTIMATORS],
        ("UMAP", "during", "verbose"),
        ("UMAP", "first", ""),
        ("TSNE", "first", "verbose"),
        ("UMAP of few rows", "during", ""),
    ],
)
def test_fit_fork_fit(name: str, when: str, verbose: str, child_environment: dict[str, str], tmp_path: Path) -> None:
    """Children fork off an idle parent, or one whose other thread is in the middle of a fit, or of its very first."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, name, when, verbose, str(tmp_path)],
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


@pytest.mark.parametrize("name", [*ESTIMATORS, "ParametricUMAP"])
def test_every_estimator_fits_in_eight_threads(name: str) -> None:
    if name == "ParametricUMAP":
        pytest.importorskip("torch")
    defined: dict[str, Any] = {}
    exec(EMBED, defined)
    X = np.random.default_rng(0).normal(size=(300, 10)).astype(np.float32)
    expected = defined["embed"](name, X)
    barrier = threading.Barrier(THREADS)

    def work(_: int) -> Any:
        barrier.wait()
        return defined["embed"](name, X)

    with ThreadPoolExecutor(THREADS) as pool:
        for result in pool.map(work, range(THREADS)):
            np.testing.assert_array_equal(result, expected)


def test_fits_under_asyncio_agree_and_leave_the_loop_alone(iris: NDArray[np.float32]) -> None:
    """Fits in the loop's executor; meanwhile the loop itself goes on turning."""
    expected = embed(iris)
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    async def main() -> list[Any]:
        turning = asyncio.create_task(turn())
        results = await asyncio.gather(*[asyncio.to_thread(embed, iris) for _ in range(6)])
        turning.cancel()
        return results

    # In a thread of its own: the main one may be running a loop already.
    with ThreadPoolExecutor(1) as pool:
        results = pool.submit(lambda: asyncio.run(main())).result()
    for result in results:
        np.testing.assert_array_equal(result[0], expected[0])
        np.testing.assert_array_equal(result[1], expected[1])
    assert turns >= 10


def test_a_web_server_fits_and_transforms_for_many_clients(iris: NDArray[np.float32]) -> None:
    """One fitted model shared by all requests, and requests that fit models of their own, over real sockets."""
    applications, responses = pytest.importorskip("starlette.applications"), pytest.importorskip("starlette.responses")
    routing, uvicorn = pytest.importorskip("starlette.routing"), pytest.importorskip("uvicorn")
    model = UMAP(random_state=0, n_epochs=30, n_jobs=2).fit(iris)

    def place(request: Any) -> Any:  # not async: the server runs it in one of its threads
        row = int(request.path_params["row"])
        return responses.Response(model.transform(iris[row : row + 1] + 0.5).tobytes())

    def fit(request: Any) -> Any:
        return responses.Response(embed(iris)[0].tobytes())

    routes = [routing.Route("/place/{row}", place), routing.Route("/fit", fit)]
    server = uvicorn.Server(uvicorn.Config(applications.Starlette(routes=routes), port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]

        def ask(path: str) -> bytes:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=HANG_LIMIT) as answer:
                body: bytes = answer.read()
                return body

        paths = [f"place/{row}" for row in range(20)] + ["fit"] * 4
        with ThreadPoolExecutor(THREADS) as pool:
            answers = dict(zip(paths, pool.map(ask, paths), strict=True))
    finally:
        server.should_exit = True
        thread.join()
    assert answers["fit"] == embed(iris)[0].tobytes()
    for row in range(20):
        assert answers[f"place/{row}"] == model.transform(iris[row : row + 1] + 0.5).tobytes()


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
