"""Check the contents and sizes of wheels and sdists: ``python contents.py DIST...`` prints sizes and what is wrong."""

from __future__ import annotations

import json
import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# In bytes, about 15 % more than the largest of version 0.2.0.
LARGEST = {".whl": 3_600_000, ".gz": 2_500_000}
LICENSES = ["LICENSE", *(f"licenses/{text.name}" for text in sorted((ROOT / "licenses").glob("*.txt")))]
PAGE = ("body.html", "page.css", "page.html", "page.js", "widget.js")
EXTENSIONS = ("diff.css", "diff.js", "interactive.css", "interactive.js")
CORE = ("core.js", "core-worker.js", "core.wasm")  # the core in browsers
BUNDLE = [f"vicinal/viewer/static/{name}" for name in (*PAGE, *EXTENSIONS, *CORE)]
IN_BOTH = ["vicinal/__init__.py", "vicinal/backends/_core.pyi", "vicinal/py.typed", *BUNDLE]
# Sources of the CUDA kernels, which are compiled at run time.
KERNELS = [f"vicinal/backends/cuda/cpp/{name}" for name in ("cuda/layout.cu", "layout/row_step.hpp", "nvrtc/cmath")]
IN_WHEEL = [*IN_BOTH, *KERNELS]
IN_SDIST = [
    *[f"src/{name}" for name in IN_BOTH],
    *["README.md", "CHANGELOG.md", "SECURITY.md", "CITATION.cff", "pyproject.toml", "CMakeLists.txt", "PKG-INFO"],
    *[*LICENSES, "licenses/components.toml", "packaging/sbom.py", "web/package-lock.json"],
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
            missing = lacks_papers(wheel)
        needed, unwanted = IN_WHEEL, NOT_IN_WHEEL
        core = [name for name in names if re.fullmatch(r"vicinal/backends/_core(\..*)?\.(so|pyd)", name)]
        missing += [] if len(core) == 1 else [f"exactly one compiled core (found {core})"]
    else:
        with tarfile.open(path) as sdist:
            names = [name.partition("/")[2] for name in sdist.getnames()]
        needed, unwanted, missing = IN_SDIST, NOT_IN_SDIST, []
    missing += [name for name in needed if name not in names]
    complaints = [f"{path.name} lacks {name}" for name in missing]
    if path.stat().st_size > LARGEST[path.suffix]:
        complaints.append(f"{path.name} has more than {LARGEST[path.suffix]:,} bytes")
    return complaints + [f"{path.name} should not contain {name}" for name in names if unwanted.search(name)]


def lacks_papers(wheel: zipfile.ZipFile) -> list[str]:
    """Return which licenses and which parts of the SBOM a wheel lacks."""
    folder = f"{PROJECT['name']}-{PROJECT['version']}.dist-info"
    papers = [f"{folder}/sboms/vicinal.cdx.json", *(f"{folder}/licenses/{name}" for name in LICENSES)]
    missing = [name for name in papers if name not in wheel.namelist()]
    if missing:
        return missing
    metadata = wheel.read(f"{folder}/METADATA").decode()
    if f"\nLicense-Expression: {PROJECT['license']}\n" not in metadata:
        missing.append("the license expression")
    missing += [f"an address for {link} in the README" for link in re.findall(r"\]\(((?!https://|#)[^)]*)\)", metadata)]
    bill = json.loads(wheel.read(papers[0]))
    if bill["metadata"]["component"]["version"] != PROJECT["version"]:
        missing.append("an SBOM of its version")
    return missing + [
        f"{part['name']}, which its SBOM lists, at {place['location']}"
        for part in bill["components"]
        for place in part["evidence"]["occurrences"]
        if not any(name.startswith(place["location"]) for name in wheel.namelist())
    ]


if __name__ == "__main__":
    found = [complaint for path in sys.argv[1:] for complaint in wrong_with(Path(path))]
    for path in map(Path, sys.argv[1:]):
        print(f"{path.stat().st_size:>12,} bytes  {path.name}")
    print("\n".join(found) or "contents and sizes are correct")
    sys.exit(1 if found else 0)
