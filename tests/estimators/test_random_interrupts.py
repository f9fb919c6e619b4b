"""Real interrupts at random moments of every estimator's calls; `make soak` runs a thousand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "soak" / "random_interrupts.py"
INTERRUPTS = 60


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one child")
def test_interrupted_calls_leave_models_and_files_as_before_or_complete(child_environment: dict[str, str]) -> None:
    pytest.importorskip("torch")
    command = [sys.executable, "-W", "ignore", str(SCRIPT), "--interrupts", str(INTERRUPTS), "--seed", "1"]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["unchanged"] > INTERRUPTS / 3, found
