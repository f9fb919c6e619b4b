"""The stamp of the WebAssembly module: digests of the sources that it was built from, and of the module.

``python tests/wasm/stamp.py MODULE`` puts a new module and its stamp beside the viewer's bundle (``make wasm``). The
tests compare the stamp with the sources, so that they do not need a compiler.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "src" / "vicinal" / "viewer" / "static" / "core.wasm"
STAMP = MODULE.with_name("core.sha256")
FOLDERS = ("base", "neighbors", "graph", "initialize", "layout", "wasm")
OTHERS = ("CMakeLists.txt", *(f"tests/cpp/{name}" for name in ("golden_maps.cpp", "checks.hpp", "data.hpp")))


def stamp() -> str:
    """Return the stamp of the module for the sources as they are."""
    sources = sorted(path for folder in FOLDERS for path in (ROOT / "cpp" / folder).iterdir())
    files = [*sources, *(ROOT / name for name in OTHERS), MODULE]
    digests = ((hashlib.sha256(path.read_bytes()).hexdigest(), path.relative_to(ROOT).as_posix()) for path in files)
    return "".join(f"{digest}  {name}\n" for digest, name in digests)


def main(arguments: list[str]) -> None:
    """Replace the module and its stamp."""
    (built,) = arguments
    shutil.copyfile(built, MODULE)
    STAMP.write_text(stamp())


if __name__ == "__main__":
    main(sys.argv[1:])
