"""Fits and transforms in many threads at once: all finish, with equal bits, and other threads go on running."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import sysconfig
import threading
import urllib.request
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import joblib
import numpy as np
import pytest
from interruptible import random_graph
from interrupting import interrupt_inside_a_call
from numpy.typing import NDArray
from small_fits import ESTIMATORS, embed

from vicinal import UMAP, Layout, Schedule, fit_ab

THREADS = 8
# Safety net against a deadlock; no assertion depends on it.
HANG_LIMIT = 600.0 if "VICINAL_SANITIZED" in os.environ else 120.0

Rows = NDArray[np.float32]


def fit_and_transform(X: Rows, n_jobs: int = 2) -> tuple[Rows, Rows]:
    model = UMAP(random_state=0, n_epochs=30, n_jobs=n_jobs).fit(X)
    return model.embedding_, model.transform(X[:40] + 0.5)


def in_threads(work: Callable[[], Any]) -> list[Any]:
    """Call a function in ``THREADS`` threads that start together, and return the results."""
    barrier = threading.Barrier(THREADS)

    def start(_: int) -> Any:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(start, range(THREADS)))


def test_fits_and_transforms_in_eight_threads_agree(digits: Rows) -> None:
    X = digits[:600]
    expected = fit_and_transform(X)
    for result in in_threads(lambda: fit_and_transform(X)):
        np.testing.assert_array_equal(result[0], expected[0])
        np.testing.assert_array_equal(result[1], expected[1])


@pytest.mark.parametrize("name", [*ESTIMATORS, "ParametricUMAP"])
def test_every_estimator_fits_in_eight_threads(name: str) -> None:
    if name == "ParametricUMAP":
        pytest.importorskip("torch")
    X = np.random.default_rng(0).normal(size=(300, 10)).astype(np.float32)
    expected = embed(name, X)
    for result in in_threads(lambda: embed(name, X)):
        np.testing.assert_array_equal(result, expected)


def without_gil() -> bool:
    """Return whether this is a free-threaded Python."""
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.mark.skipif(not without_gil(), reason="this Python has a GIL")
def test_import_leaves_a_free_threaded_python_without_a_gil(child_environment: dict[str, str]) -> None:
    """A module that does not declare its support turns the GIL on for the whole process, with a RuntimeWarning."""
    program = "import sys; from vicinal.backends import cpu; sys.exit(sys._is_gil_enabled())"
    environment = {name: value for name, value in child_environment.items() if name != "PYTHON_GIL"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_python_metrics_of_concurrent_fits_agree(iris: Rows) -> None:
    """The core calls a Python function from its own threads, which enter and leave the interpreter for each pair."""

    def largest_step(x: Rows, y: Rows) -> float:
        return float(np.abs(x - y).max())

    def fit() -> Rows:
        model = UMAP(random_state=0, n_epochs=10, n_jobs=2, metric=largest_step).fit(iris[:60])
        placed: Rows = model.transform(iris[60:70])
        return np.concatenate([model.embedding_, placed])

    expected = fit()
    for result in in_threads(fit):
        np.testing.assert_array_equal(result, expected)


def test_one_model_transforms_in_eight_threads(grouped: Any) -> None:
    """Beyond 6,000 rows the first transform of a loaded model builds the search trees, here in all threads at once."""
    rows = grouped(6400, 20)
    X, new = rows[:6200], rows[6200:]
    fitted = UMAP(random_state=0, n_epochs=5, init="pca").fit(X)
    expected = fitted.transform(new)
    file = BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    model = joblib.load(file)
    for placed in in_threads(lambda: model.transform(new)):
        np.testing.assert_array_equal(placed, expected)


def test_other_threads_run_while_the_core_works() -> None:
    """Another thread ends a single long call of the core, which it could not if the call kept the GIL."""
    start = np.random.default_rng(1).random((50, 2)).astype(np.float32)
    layout = Layout(random_graph(50, 5), start, fit_ab(), Schedule(10**9))
    with pytest.raises(KeyboardInterrupt), interrupt_inside_a_call():
        layout.step(10**6)
    assert layout.epoch < 10**6


def test_event_loop_turns_during_fits_in_its_executor(iris: Rows) -> None:
    expected = fit_and_transform(iris)

    async def main() -> list[Any]:
        loop = asyncio.get_running_loop()

        def answered_by_the_loop(stage: str, epoch: int, n_epochs: int, embedding: Any) -> None:
            if (stage, epoch) == ("layout", 1):
                turned = threading.Event()
                loop.call_soon_threadsafe(turned.set)
                assert turned.wait(HANG_LIMIT), "the loop stands still during a fit"

        def work() -> tuple[Rows, Rows]:
            model = UMAP(random_state=0, n_epochs=30, n_jobs=2, callback=answered_by_the_loop).fit(iris)
            return model.embedding_, model.transform(iris[:40] + 0.5)

        return await asyncio.gather(*[asyncio.to_thread(work) for _ in range(6)])

    # In another thread: the main one may be running a loop already.
    with ThreadPoolExecutor(1) as pool:
        results = pool.submit(lambda: asyncio.run(main())).result()
    for result in results:
        np.testing.assert_array_equal(result[0], expected[0])
        np.testing.assert_array_equal(result[1], expected[1])


def test_web_server_fits_and_transforms_for_many_clients(iris: Rows) -> None:
    """All requests share one fitted model, and some fit models of their own, over real sockets."""
    applications, responses = pytest.importorskip("starlette.applications"), pytest.importorskip("starlette.responses")
    routing, uvicorn = pytest.importorskip("starlette.routing"), pytest.importorskip("uvicorn")
    model = UMAP(random_state=0, n_epochs=30, n_jobs=2).fit(iris)

    def place(request: Any) -> Any:  # not async: the server runs it in one of its threads
        row = int(request.path_params["row"])
        return responses.Response(model.transform(iris[row : row + 1] + 0.5).tobytes())

    def fit(request: Any) -> Any:
        return responses.Response(fit_and_transform(iris)[0].tobytes())

    routes = [routing.Route("/place/{row}", place), routing.Route("/fit", fit)]
    started = threading.Event()

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        started.set()
        yield

    application = applications.Starlette(routes=routes, lifespan=lifespan)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application, log_level="error"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        assert started.wait(HANG_LIMIT), "the server did not start"
        port = listener.getsockname()[1]

        def ask(path: str) -> bytes:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=HANG_LIMIT) as answer:
                body: bytes = answer.read()
                return body

        paths = [f"place/{row}" for row in range(20)] + ["fit"] * 4
        with ThreadPoolExecutor(THREADS) as pool:
            answers = list(zip(paths, pool.map(ask, paths), strict=True))
    finally:
        server.should_exit = True
        thread.join()
    fitted = fit_and_transform(iris)[0].tobytes()
    for path, answer in answers:
        row = int(path.partition("/")[2] or 0)
        assert answer == (fitted if path == "fit" else model.transform(iris[row : row + 1] + 0.5).tobytes())


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_fits_nested_in_joblib_agree(iris: Rows, backend: str) -> None:
    expected = fit_and_transform(iris)
    results = joblib.Parallel(n_jobs=2, backend=backend, timeout=HANG_LIMIT)(
        joblib.delayed(fit_and_transform)(iris, n_jobs) for n_jobs in (1, 2, -1, 4)
    )
    for embedding, placed in results:
        np.testing.assert_array_equal(embedding, expected[0])
        np.testing.assert_array_equal(placed, expected[1])


@pytest.mark.parametrize("n_jobs", [-1000, 64, 5000])
def test_more_threads_than_work_agree(iris: Rows, n_jobs: int) -> None:
    np.testing.assert_array_equal(fit_and_transform(iris, n_jobs)[0], fit_and_transform(iris)[0])
