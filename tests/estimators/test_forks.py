"""A child that is forked while no thread is inside a fit can fit, with equal bits.

Forking while another thread is inside a fit is not supported. tests/runtime/test_cached.py tests that the package
registers no hooks for forks.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from small_fits import ESTIMATORS

# Safety net against a deadlock; no assertion depends on it.
HANG_LIMIT = 600.0 if "VICINAL_SANITIZED" in os.environ else 240.0

OTHERS = [name for name in ESTIMATORS if name != "UMAP"]

pytestmark = pytest.mark.requires_fork


def run_program(program: str, environment: dict[str, str], *arguments: str) -> None:
    """Run a program that forks; stop it and all its children if it hangs."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, *arguments],
        env=environment,
        cwd=Path(__file__).parents[1],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=HANG_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        pytest.fail("the program hangs")
    assert process.returncode == 0, errors


FORK = """
import os, sys, threading
import numpy as np
from small_fits import embed

name, before, verbose, folder, n = sys.argv[1], sys.argv[2], sys.argv[3] == "verbose", sys.argv[4], int(sys.argv[5])
X = np.random.default_rng(0).normal(size=(n, 10)).astype(np.float32)

def fit():
    return embed(name, X, verbose=verbose)

if before == "after a fit":
    fit()
elif before == "after a fit in another thread":
    other = threading.Thread(target=fit)
    other.start()
    other.join()
    waiting = threading.Thread(target=threading.Event().wait, daemon=True)
    waiting.start()
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        np.save(f"{folder}/{os.getpid()}.npy", fit())
        os._exit(0)
    children.append(child)
expected = fit()
for child in children:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.array_equal(np.load(f"{folder}/{child}.npy"), expected)
"""


@pytest.mark.parametrize(
    ("name", "before", "verbose", "n"),
    [
        *[pytest.param(name, "after a fit", "", 700, marks=pytest.mark.nightly) for name in OTHERS],
        pytest.param("UMAP", "after a fit", "", 700, marks=pytest.mark.nightly),
        ("UMAP", "before any fit", "", 700),
        ("UMAP", "after a fit in another thread", "", 700),
        pytest.param("TSNE", "after a fit", "verbose", 700, marks=pytest.mark.nightly),
        ("UMAP", "after a fit", "", 180),  # few rows start from a dense decomposition by LAPACK
    ],
)
def test_children_of_a_process_without_a_running_fit_can_fit(
    name: str, before: str, verbose: str, n: int, child_environment: dict[str, str], tmp_path: Path
) -> None:
    run_program(FORK, child_environment, name, before, verbose, str(tmp_path), str(n))


MANY = """
import os
import numpy as np
from small_fits import embed

X = np.random.default_rng(0).normal(size=(150, 5)).astype(np.float32)
expected = embed("UMAP", X)
for round in range(20):
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(embed("UMAP", X), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    if round % 10 == 0:
        assert np.array_equal(embed("UMAP", X), expected)
"""


def test_many_forks_in_turn_with_fits(child_environment: dict[str, str]) -> None:
    run_program(MANY, child_environment)
