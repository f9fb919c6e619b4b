"""Fixtures of several test folders: data sets, golden files, the environment of child processes."""

from __future__ import annotations

import gc
import importlib.util
import os
import random
import signal
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measured
import numpy as np
import pytest
from chromium import running_chromium
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_iris

import vicinal

# PyTorch, which is loaded later, lets its threads sleep while they wait: with two tests at a time on two cores, waiting
# in a loop takes ten times the processor time of the work itself.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Tests interrupt themselves, and a process started in the background may ignore SIGINT.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

GOLDEN = Path(__file__).parent / "golden"
# Tests of quality hold for every one of these seeds.
SEEDS = range(10)
# Marker -> whether what it requires is there, and the reason for skipping if it is not.
REQUIREMENTS = {
    "requires_fork": (hasattr(os, "fork"), "the platform cannot fork"),
    "requires_proc": (Path("/proc/self/clear_refs").exists(), "memory is read from /proc"),
    "requires_signals": (os.name != "nt", "Windows has no SIGINT for one process"),
    "requires_torch": (importlib.util.find_spec("torch") is not None, "PyTorch is not installed"),
}

Rows = NDArray[np.float32]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--equation-errors", metavar="FILE", help="write the errors against the survey's equations")


def pytest_configure(config: pytest.Config) -> None:
    """Draw the seed once: processes that run a part of the tests each take it over."""
    if os.environ.get("VICINAL_TEST_SEED") == "random":
        os.environ["VICINAL_TEST_SEED"] = str(random.choice(SEEDS))


def pytest_report_header() -> str:
    return f"VICINAL_TEST_SEED={os.environ.get('VICINAL_TEST_SEED', '0')}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "global_random_seed" in metafunc.fixturenames:
        asked = os.environ.get("VICINAL_TEST_SEED", "0")
        metafunc.parametrize("global_random_seed", SEEDS if asked == "all" else [int(asked)], scope="session")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name, (there, reason) in REQUIREMENTS.items():
        if not there and item.get_closest_marker(name):
            pytest.skip(reason)


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--equation-errors")
    if path:
        measured.write_errors(Path(path))


@pytest.fixture(autouse=True, scope="module")
def _close_servers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect sockets of clusters and servers after the module that made them, not in the middle of another test."""
    yield
    if request.path.parent.name in ("cluster", "conformance", "viewer", "browser", "cli"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()


@pytest.fixture(scope="session")
def iris() -> Rows:
    return load_iris().data.astype(np.float32)


@pytest.fixture(scope="session")
def digits() -> Rows:
    return load_digits().data.astype(np.float32)


@pytest.fixture(scope="session")
def digit_labels() -> NDArray[np.int64]:
    return load_digits().target


@pytest.fixture(scope="session")
def rolled() -> Any:
    """Return a function of (rows, seed) that makes a swiss roll, and the sheet of it: length and height."""

    def make(n: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        rng = np.random.default_rng(seed)
        angle, height = 1.5 * np.pi * (1 + 2 * rng.uniform(size=n)), 21 * rng.uniform(size=n)
        rows = np.stack([angle * np.cos(angle), height, angle * np.sin(angle)], axis=1)
        length = (angle * np.hypot(1, angle) + np.arcsinh(angle)) / 2
        return rows.astype(np.float32), np.stack([length, height], axis=1).astype(np.float32)

    return make


@pytest.fixture(scope="session")
def grouped() -> Any:
    """Return a function (n, d) -> rows around 20 centers, with noise in every direction."""

    def draw(n: int, d: int, seed: int = 0) -> Rows:
        rng = np.random.default_rng(seed)
        centers = rng.normal(scale=4.0, size=(20, d))
        return (centers[rng.integers(20, size=n)] + rng.normal(size=(n, d))).astype(np.float32)

    return draw


@pytest.fixture(scope="session")
def golden() -> Any:
    """Return a function name -> arrays of a golden file; tests/golden/make_golden.py describes them."""

    def load(name: str) -> dict[str, NDArray[Any]]:
        with np.load(GOLDEN / f"{name}.npz", allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}

    return load


@pytest.fixture(scope="session")
def child_environment() -> dict[str, str]:
    """Return the environment of child processes that import the same package as the tests."""
    path = [str(Path(vicinal.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))}


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Return a headless Chromium, or skip the test; a process can run one at a time."""
    with running_chromium() as started:
        yield started
