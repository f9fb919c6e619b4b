"""Real interrupts before random lines of every estimator's calls; `make soak` runs a thousand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

SCRIPT = Path(__file__).parents[1] / "soak" / "random_interrupts.py"
# About one of every call.
INTERRUPTS = 34


@pytest.mark.requires_signals
@pytest.mark.requires_torch
def test_interrupted_calls_leave_models_and_files_as_before_or_complete(child_environment: dict[str, str]) -> None:
    command = [sys.executable, "-W", "ignore", str(SCRIPT), "--interrupts", str(INTERRUPTS), "--seed", "1"]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sum(sum(counts.values()) for counts in json.loads(done.stdout).values()) == INTERRUPTS
