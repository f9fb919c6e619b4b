"""A few hundred forged model files and sparse matrices; `make fuzz` runs more (tests/fuzz/forged.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "fuzz" / "forged.py"
FILES, MATRICES = 200, 300


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of the memory is read from /proc")
def test_forged_files_and_matrices_do_not_crash_hang_or_take_much_memory(child_environment: dict[str, str]) -> None:
    pytest.importorskip("torch")  # one of the files is a parametric model
    command = [sys.executable, str(SCRIPT), "--files", str(FILES), "--matrices", str(MATRICES), "--seed", "7"]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr + done.stdout
    files, matrices = (json.loads(line) for line in done.stdout.splitlines())
    assert files["refused"] > FILES / 5
    assert files["usable"] > FILES / 50
    assert matrices["refused"] > MATRICES / 3
