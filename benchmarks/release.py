"""Which recorded results are shown: those of the released version.

    python benchmarks/release.py

lists the results, the version and the commit that each was measured at, and what has changed in the code since. The
exit code is 1 if a result that is shown is older than the code.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# The version whose results README.md, RESULTS.md and the manual show (RELEASING.md).
RELEASE = "0.2.0"
NOT_MEASURED = f"Not measured with version {RELEASE} yet."
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
# The code that computes maps: a change elsewhere does not change what is measured.
MEASURED = (
    "cpp",
    "src/vicinal",
    ":!src/vicinal/cli",
    ":!src/vicinal/files",
    ":!src/vicinal/plot",
    ":!src/vicinal/scverse",
    ":!src/vicinal/viewer",
)


def measured_code(installed: str | None = None) -> dict[str, str]:
    """Return what a result says about the code: the version that is installed, and the commit of this tree."""
    if installed is None:
        try:
            installed = version("vicinal")
        except PackageNotFoundError:
            installed = "not installed"
    changed = "-dirty" if git("status", "--porcelain", "--", *MEASURED) else ""
    return {"version": installed, "commit": (git("rev-parse", "--short=10", "HEAD") or "unknown") + changed}


def git(*words: str) -> str:
    """Return what git prints, or nothing where this is no clone."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def is_shown(document: Any) -> bool:
    return isinstance(document, dict) and document.get("code", {}).get("version") == RELEASE


def read_result(file: Path) -> dict[str, Any] | None:
    """Return a result, or None if there is none of this release."""
    document = json.loads(file.read_text()) if file.is_file() else None
    return document if is_shown(document) else None


def find_changes(commit: str) -> list[str]:
    """Return the commits since this one that change the code that computes maps."""
    return git("log", "--oneline", f"{commit}..HEAD", "--", *MEASURED).splitlines()


def describe_results() -> Iterator[tuple[str, bool]]:
    """Yield one line per result, and whether it is shown although the code has changed since."""
    for file in sorted(RESULTS.glob("*.json")):
        document = json.loads(file.read_text())
        if not is_shown(document):
            yield f"{file.stem}: of an earlier version, not shown", False
            continue
        commit = document["code"]["commit"]
        changes = find_changes(commit.removesuffix("-dirty"))
        later = f", {len(changes)} later changes of the code" if changes else ""
        yield f"{file.stem}: {RELEASE} at {commit}{later}", bool(changes) or commit.endswith(("-dirty", "unknown"))


if __name__ == "__main__":
    found = list(describe_results())
    print("\n".join(line for line, _ in found))
    sys.exit(any(old for _, old in found))
