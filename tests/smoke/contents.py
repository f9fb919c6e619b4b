"""Check the contents of wheels and sdists: ``python contents.py DIST...`` prints what is wrong."""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from pathlib import Path

PAGE = ("body.html", "page.css", "page.html", "page.js", "widget.js", "interactive.css", "interactive.js")
CORE = ("core.js", "core-worker.js", "core.wasm")  # the core in browsers
BUNDLE = [f"vicinal/viewer/static/{name}" for name in (*PAGE, *CORE)]
IN_BOTH = ["vicinal/__init__.py", "vicinal/backends/_core.pyi", "vicinal/py.typed", *BUNDLE]
# Sources of the CUDA kernels, which are compiled at run time.
KERNELS = [f"vicinal/backends/cuda/cpp/{name}" for name in ("cuda/layout.cu", "layout/row_step.hpp", "nvrtc/cmath")]
IN_WHEEL = [*IN_BOTH, *KERNELS]
IN_SDIST = [
    *[f"src/{name}" for name in IN_BOTH],
    *["LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "pyproject.toml", "CMakeLists.txt", "PKG-INFO"],
    *["cpp/bindings/module.cpp", "cpp/layout/sampled_layout.cpp", "cpp/base/types.hpp"],
    *["web/package.json", "web/src/main.ts"],  # sources of the bundle
]
NOT_IN_WHEEL = re.compile(
    r"^(tests|cpp|web|benchmarks|docs|src)/|__pycache__|\.(cpp|a|o)$|^(?!vicinal/backends/cuda/cpp/).*\.hpp$"
)
NOT_IN_SDIST = re.compile(r"^(benchmarks|docs|\.ci|build|dist|out)/|__pycache__|\.(so|a|o|whl)$|(^|/)\.venv")


def wrong_with(path: Path) -> list[str]:
    """Return the problems of an archive."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
        needed, unwanted = IN_WHEEL, NOT_IN_WHEEL
        core = [name for name in names if re.fullmatch(r"vicinal/backends/_core(\..*)?\.(so|pyd)", name)]
        missing = [] if len(core) == 1 else [f"exactly one compiled core (found {core})"]
        missing += [] if any(name.endswith("/LICENSE") for name in names) else ["LICENSE"]
    else:
        with tarfile.open(path) as sdist:
            names = [name.partition("/")[2] for name in sdist.getnames()]
        needed, unwanted, missing = IN_SDIST, NOT_IN_SDIST, []
    missing += [name for name in needed if name not in names]
    complaints = [f"{path.name} lacks {name}" for name in missing]
    return complaints + [f"{path.name} should not contain {name}" for name in names if unwanted.search(name)]


if __name__ == "__main__":
    found = [complaint for path in sys.argv[1:] for complaint in wrong_with(Path(path))]
    print("\n".join(found) or f"contents are correct: {', '.join(Path(path).name for path in sys.argv[1:])}")
    sys.exit(1 if found else 0)
