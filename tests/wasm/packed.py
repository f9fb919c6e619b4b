"""Check what ``npm pack --dry-run --json`` lists: ``make npm``."""

from __future__ import annotations

import json
import sys

MODULES = ("client", "graph", "index", "layout", "map", "module", "neighbors", "options", "protocol", "schedule")
EXPECTED = {
    *("LICENSE", "README.md", "package.json"),
    *(f"dist/{name}" for name in ("core-worker.js", "core.js", "core.wasm", "index.d.ts", "index.js")),
    *(f"dist/types/{name}.d.ts" for name in MODULES),
    *(f"dist/licenses/{name}.txt" for name in ("emscripten", "llvm", "musl")),  # of what core.wasm contains
}


def main() -> int:
    """Compare the files with the expected ones, and return the exit status."""
    (package,) = json.load(sys.stdin)
    found = {file["path"] for file in package["files"]}
    print(f"missing: {sorted(EXPECTED - found) or 'nothing'}; unexpected: {sorted(found - EXPECTED) or 'nothing'}")
    return 0 if found == EXPECTED else 1


if __name__ == "__main__":
    sys.exit(main())
