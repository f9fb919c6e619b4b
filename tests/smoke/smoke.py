"""Check an installed vicinal with a bare interpreter that has only the package and its dependencies.

Needs no test framework, source tree or compiler, and hides all of them by an empty PATH. ``python smoke.py [SOURCE
TREE]`` prints one line per check.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import vicinal
from vicinal.backends import cpu

os.environ["PATH"] = "/nonexistent"
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "cmake", "ninja")
# Run in processes that must not write anywhere: read-only file system, no home directory.
FIT = """
import numpy as np, vicinal
X = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)
for model in (vicinal.UMAP(n_epochs=10), vicinal.TSNE(max_iter=10), vicinal.LargeVis(n_epochs=5)):
    assert np.isfinite(model.fit(X).transform(X[:5] + 1)).all()
print("fitted")
"""

rows = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)


def is_installed_and_needs_no_compiler() -> str:
    where = Path(vicinal.__file__).resolve()
    assert "site-packages" in where.parts, where
    assert not any(shutil.which(name) for name in COMPILERS), os.environ["PATH"]
    if len(sys.argv) > 1:
        assert Path(sys.argv[1]).resolve() not in where.parents or "site-packages" in where.parts
    return f"{vicinal.__version__} in {where.parent}"


def starts_quickly() -> str:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import vicinal"], check=True)
    return f"{time.perf_counter() - start:.2f} s to start an interpreter and import vicinal"


def every_estimator_fits_and_places_new_rows() -> str:
    common = {"random_state": 0, "n_jobs": 2}
    models = [
        vicinal.UMAP(n_epochs=20, **common),
        vicinal.DensMAP(n_epochs=20, **common),
        vicinal.TSNE(max_iter=20, **common),
        vicinal.LargeVis(n_epochs=20, **common),
    ]
    for model in models:
        assert np.isfinite(model.fit(rows).transform(rows[:5] + 1)).all(), model
    aligned = vicinal.AlignedUMAP(n_epochs=10, **common)
    assert len(aligned.fit_transform([rows, rows + 1], relations=[{i: i for i in range(300)}])) == 2
    assert vicinal.KNeighborsTransformer(n_neighbors=5).fit_transform(rows).nnz == 300 * 6
    return ", ".join(type(model).__name__ for model in models)


def sparse_and_labeled_rows_are_fitted() -> str:
    from scipy.sparse import csr_matrix

    sparse = csr_matrix(np.maximum(rows, 0))
    assert np.isfinite(vicinal.UMAP(n_epochs=10, metric="cosine").fit_transform(sparse)).all()
    model = vicinal.UMAP(n_epochs=10).fit(rows, np.arange(300) % 3)
    assert np.isfinite(model.update(rows[:20] + 1).embedding_).all()
    return "fitted, grown"


def lowest_instruction_level_works() -> str:
    lowest = {"x86_64": "v2", "AMD64": "v2"}.get(platform.machine(), "native")
    subprocess.run(
        [sys.executable, "-c", FIT], stdout=subprocess.DEVNULL, env=os.environ | {"VICINAL_LEVEL": lowest}, check=True
    )
    return f"{lowest}; this machine's level is {cpu.active_level()}"


def models_are_saved_and_loaded() -> str:
    model = vicinal.UMAP(n_epochs=10, random_state=0).fit(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.vicinal"
        model.save(path)
        same = vicinal.load(path)
        size = path.stat().st_size
    assert np.array_equal(same.transform(rows + 1), model.transform(rows + 1))
    return f"{size} bytes"


def missing_packages_are_reported() -> str:
    said = []
    if not has("torch"):
        try:
            vicinal.ParametricUMAP().fit(rows)
        except ImportError as error:
            said.append(str(error))
        else:
            raise AssertionError("ParametricUMAP without torch")
    done = subprocess.run([sys.executable, "-m", "vicinal", "methods"], capture_output=True, text=True, check=False)
    if has("typer"):
        assert done.returncode == 0, done.stderr
    else:
        assert "vicinal[app]" in done.stderr, done.stderr
        said.append(done.stderr.strip())
    return " / ".join(said)


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def works_on_a_read_only_file_system() -> str:
    """Fit without HOME and TMPDIR on a read-only file system, by a mount or as a user without permissions."""
    # Windows cannot start Python without SYSTEMROOT.
    bare = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    fit = [sys.executable, "-c", FIT]
    mount = ["unshare", "--mount", "sh", "-c", 'mount -o remount,ro,bind / && exec "$@"', "sh"]
    for way, command in {
        "read-only mount": [*mount, *fit],
        "user nobody": ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *fit],
        "no home": fit,
    }.items():
        tool = shutil.which(command[0], path="/usr/bin:/bin") or command[0]
        if not Path(tool).exists():
            continue
        environment = bare if way != "read-only mount" else bare | {"PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [tool, *command[1:]], env=environment, cwd="/", capture_output=True, text=True, check=False
        )
        if done.returncode == 0 and "fitted" in done.stdout:
            return way
        if way == "no home":
            raise AssertionError(done.stderr)
    raise AssertionError("no method to test this is available")


CHECKS: tuple[Callable[[], str], ...] = (
    is_installed_and_needs_no_compiler,
    starts_quickly,
    every_estimator_fits_and_places_new_rows,
    sparse_and_labeled_rows_are_fitted,
    lowest_instruction_level_works,
    models_are_saved_and_loaded,
    missing_packages_are_reported,
    works_on_a_read_only_file_system,
)

if __name__ == "__main__":
    for check in CHECKS:
        print(f"{check.__name__.replace('_', ' ')}: {check()}", flush=True)
