"""Mixed use from four threads: nothing fails, and resident memory is flat after the warm-up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

USES = 1000


@pytest.mark.requires_proc
@pytest.mark.skipif("VICINAL_SANITIZED" in os.environ, reason="sanitizers keep freed memory")
@pytest.mark.timeout(0)
def test_memory_is_flat_under_mixed_use(child_environment: dict[str, str]) -> None:
    program = Path(__file__).parents[1] / "soak" / "mixed_use.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), str(USES)],
        env=child_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
