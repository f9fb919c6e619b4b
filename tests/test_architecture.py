"""The tree keeps its shape: imports go one way, one module imports the core, estimators keep to themselves."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "vicinal"
MOST_LINES = 800
# Modules of the package that `from vicinal import UMAP` loads.
MOST_LOADED = 55

# Data flows in this order; a package imports itself and earlier ones.
ORDER = [
    "runtime", "backends", "neighbors", "graph", "initialize", "layout", "areas", "quality", "pipeline", "cluster",
    "files", "estimators",
]  # fmt: skip
# Beside that order: what each of these packages may import besides itself.
BESIDE = {
    "backends": {"runtime"},
    "files": {"runtime"},
    "neighbors": {"runtime", "backends", "cluster"},  # find_neighbors passes Dask arrays to cluster
    "parametric": {"runtime", "graph", "layout"},
    "estimators": {*ORDER, "parametric"},
    "compat": set(ORDER),
    "scverse": set(ORDER),
    "plot": set(ORDER),
    "viewer": {*ORDER, "plot"},
    "atlas": {*ORDER, "plot", "viewer"},
    "cli": {*ORDER, "plot", "viewer", "atlas"},
    "umap_": {"compat", "estimators"},
    "__main__": {"cli"},
}


def allowed(package: str) -> set[str]:
    if package in BESIDE:
        return BESIDE[package] | {package}
    return set(ORDER[: ORDER.index(package) + 1]) - {"files"}


def imports(source: str) -> Iterator[str]:
    """Packages of vicinal that a module imports, at its top or inside functions, but not for type checkers alone."""
    tree = ast.parse(source)
    checking = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    tree.body = [node for node in tree.body if node not in checking]
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "vicinal":
                names = [f"vicinal.{alias.name}" for alias in node.names]
            else:
                names = [node.module]
        for name in names:
            parts = name.split(".")
            if parts[0] == "vicinal" and len(parts) > 1 and not parts[1].startswith("__"):
                yield parts[1]


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def backward_imports(path: Path, source: str) -> set[str]:
    return set(imports(source)) - allowed(package_of(path))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    assert not backward_imports(path, path.read_text())


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("neighbors/index.py", "from vicinal.graph.graph import Graph"),
        ("layout/sampled.py", "def f():\n    import vicinal.pipeline.fit"),
        ("estimators/umap.py", "from vicinal.viewer import notebook"),
        ("files/models.py", "from vicinal.estimators.umap import UMAP"),
        ("pipeline/fit.py", "from vicinal import files"),
    ],
)
def test_backward_import_is_found(module: str, line: str) -> None:
    path = PACKAGE / module
    assert backward_imports(path, f"{path.read_text()}\n{line}\n")


def test_only_the_cpu_backend_imports_the_core() -> None:
    users = [path for path in PACKAGE.rglob("*.py") if re.search(r"\b_core\b", path.read_text())]
    assert users == [PACKAGE / "backends" / "cpu.py"]


FOREIGN_PRIVATE = re.compile(r"\b(?!self\b|cls\b|super\b|np\b)([a-z]\w*|\w+\[[^\]]*\]|\w+\([^()]*\))\._[a-z]\w*")


def private_accesses(source: str) -> list[str]:
    """Accesses to underscore attributes of objects other than ``self`` and ``cls``."""
    code = re.sub(r'("""|\'\'\').*?\1|#[^\n]*', "", source, flags=re.S)
    return [match[0] for match in FOREIGN_PRIVATE.finditer(code)]


# `made_by` and `type(self)(...)` are instances of the estimator's own class, built to check the parameters of a file.
OWN = re.compile(r"^(made_by|made|adopt_map\(adopted\)|type\(self\)\(.*\))\._")


@pytest.mark.parametrize("path", sorted((PACKAGE / "estimators").glob("*.py")), ids=lambda path: path.name)
def test_estimators_do_not_read_private_attributes_of_others(path: Path) -> None:
    assert not [access for access in private_accesses(path.read_text()) if not OWN.match(access)]


def test_private_access_is_found() -> None:
    assert private_accesses("self.mappers_[0]._source\nmodel._jobs()\nself._jobs()\n") == [
        "mappers_[0]._source",
        "model._jobs",
    ]


def test_few_modules_lie_directly_in_the_package() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "umap_.py"}
    assert not [*(ROOT / "cpp").glob("*.cpp"), *(ROOT / "cpp").glob("*.hpp")]


def source_files() -> list[Path]:
    folders = (PACKAGE, ROOT / "tests", ROOT / "cpp", ROOT / "benchmarks", ROOT / "docs", ROOT / "web" / "src")
    suffixes = {".py", ".pyi", ".hpp", ".cpp", ".ts"}
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in suffixes)


def test_no_file_is_too_long() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in source_files()}
    assert not {path: n for path, n in lengths.items() if n > MOST_LINES}


def test_no_estimator_has_more_than_four_classes_of_ours() -> None:
    import vicinal

    for name in ("UMAP", "DensMAP", "TSNE", "LargeVis", "KNeighborsTransformer", "ProgressiveUMAP", "AlignedUMAP"):
        ours = [cls for cls in getattr(vicinal, name).__mro__ if cls.__module__.startswith("vicinal")]
        assert len(ours) <= 4, (name, ours)


# `backends/cuda` and `cluster` repeat the names of the stages that they carry out, `compat` those of umap-learn.
MIRRORS = ("backends/cuda", "cluster", "compat")


def test_two_modules_do_not_share_a_name() -> None:
    names = [
        path.name
        for path in modules()
        if not path.relative_to(PACKAGE).as_posix().startswith(MIRRORS) and not path.name.startswith("__")
    ]
    assert not {name for name in names if names.count(name) > 1}


def test_few_modules_are_loaded_for_umap(child_environment: dict[str, str]) -> None:
    program = "import sys; from vicinal import UMAP; print(*[name for name in sys.modules if 'vicinal' in name])"
    done = subprocess.run(
        [sys.executable, "-c", program], env=child_environment, capture_output=True, text=True, check=True
    )
    assert len(done.stdout.split()) <= MOST_LOADED, done.stdout


def test_the_page_about_the_architecture_is_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().split()) <= 1800
