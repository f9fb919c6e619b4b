"""A few hundred forged model files and sparse matrices; `make fuzz` runs more (tests/fuzz/forged.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

SCRIPT = Path(__file__).parents[1] / "fuzz" / "forged.py"
FILES, MATRICES, TABLES, MESSAGES = 200, 300, 300, 1000


@pytest.mark.requires_proc
@pytest.mark.requires_torch
def test_forged_files_and_matrices_do_not_crash_hang_or_take_much_memory(child_environment: dict[str, str]) -> None:
    command = [sys.executable, str(SCRIPT), "--files", str(FILES), "--matrices", str(MATRICES), "--seed", "7"]
    command += ["--tables", str(TABLES), "--messages", str(MESSAGES)]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    files, matrices, tables, messages = (json.loads(line) for line in done.stdout.splitlines())
    assert files["refused"] > 0
    assert files["usable"] > 0
    assert matrices["refused"] > 0
    assert tables["refused"] > 0
    assert tables["usable"] > 0
    assert messages["refused"] > 0
    assert messages["carried out"] > 0
