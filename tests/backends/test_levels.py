"""Instruction-set levels: layouts have the same bits at every level, neighbors at levels with fused multiply-add."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vicinal
from vicinal.backends import _core

ROOT = Path(__file__).parents[2]
LEVELS = _core.available_levels()
FUSED = [level for level in LEVELS if level in ("v3", "v4")]

# The levels that are compared with the first one.
ONE_LEVEL = pytest.mark.skip(reason=f"this build has one level for this processor, {LEVELS[0]}: nothing to compare")
OTHER_LEVELS = LEVELS[1:] or [pytest.param(None, marks=ONE_LEVEL)]

PROGRAM = """
import sys
import numpy as np
from vicinal.backends import _core
from vicinal import UMAP, Layout, Neighbors, Schedule, find_neighbors, fit_ab, fuzzy_graph, losses
from vicinal.neighbors.metrics import VECTOR_METRICS

given = np.load(sys.argv[1])
neighbors = Neighbors(given["index"], given["distance"])
out = {"level": np.array(_core.active_level())}
for dim in (1, 2, 3, 6):
    for moving in (False, True):
        start = given["start"][:, :dim]
        schedule = Schedule(30, update_negatives=moving)
        layout = Layout(fuzzy_graph(neighbors), start, fit_ab(), schedule, seed=1)
        layout.step(30)
        out[f"layout {dim} {moving}"] = layout.embedding
        out[f"gradient {dim} {moving}"] = losses.expected_gradient(fuzzy_graph(neighbors), start, fit_ab(), schedule)
    for samples in (None, 32):
        loss = losses.cross_entropy(fuzzy_graph(neighbors), start, fit_ab(), samples=samples)
        out[f"loss {dim} {samples}"] = np.array([loss.value, loss.standard_error])
attract, repel = _core.force_table(np.geomspace(1e-30, 1e30, 500).astype(np.float32), "umap", 1.577, 0.8951, 1.0)
out["attract"], out["repel"] = attract, repel
for padded in ([1, 1, 90], [54, 1, 96], [24, 30, 32]):
    nodes, waves = [max(1, length // 2 - 1) for length in padded], [length // 2 + 1 for length in padded]
    convolve = _core.GridConvolution(padded, np.resize(given["start"], int(np.prod(waves))))
    out[f"convolution {padded}"] = convolve(np.resize(given["rows"], int(np.prod(nodes))), nodes, 1)
for width in (40, 160):
    for metric in VECTOR_METRICS:
        for method in ("exact", "approximate"):
            table = find_neighbors(given["rows"][:, :width], 10, metric=metric, method=method)
            out[f"index {width} {metric} {method}"] = table.index
            out[f"distance {width} {metric} {method}"] = table.distance
model = UMAP(n_epochs=20, random_state=0).fit(given["rows"])
out["umap"], out["transform"] = model.embedding_, model.transform(given["rows"][:20] + 0.5)
np.savez(sys.argv[2], **out)
"""


@pytest.fixture(scope="session")
def run_at(child_environment: dict[str, str]) -> Any:
    """Return a function (level, *arguments) that runs Python with the level forced."""

    def run(level: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = child_environment | {"VICINAL_LEVEL": level}
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, grouped: Any, run_at: Any) -> Any:
    folder = tmp_path_factory.mktemp("levels")
    rows = grouped(700, 160)
    neighbors = vicinal.find_neighbors(rows, 10)
    start = np.random.default_rng(0).uniform(0, 10, size=(700, 6)).astype(np.float32)
    np.savez(folder / "given.npz", rows=rows, index=neighbors.index, distance=neighbors.distance, start=start)

    @functools.cache
    def at(level: str) -> dict[str, NDArray[Any]]:
        done = run_at(level, "-c", PROGRAM, str(folder / "given.npz"), str(folder / f"{level}.npz"))
        assert done.returncode == 0, done.stderr
        with np.load(folder / f"{level}.npz") as arrays:
            return {key: arrays[key] for key in arrays.files}

    return at


@pytest.mark.parametrize("level", LEVELS)
def test_forced_level_is_used(results: Any, level: str) -> None:
    assert str(results(level)["level"]) == level


@pytest.mark.parametrize("level", OTHER_LEVELS)
def test_layouts_forces_and_losses_have_the_same_bits_at_every_level(results: Any, level: str) -> None:
    first, other = results(LEVELS[0]), results(level)
    names = [name for name in first if name.startswith(("layout", "attract", "repel", "gradient", "loss"))]
    assert len(names) == 26
    for name in names:
        np.testing.assert_array_equal(other[name], first[name], err_msg=name)


@pytest.mark.skipif(len(FUSED) < 2, reason=f"fewer than two levels with fused multiply-add: {FUSED}")
def test_everything_has_the_same_bits_at_levels_with_fused_multiply_add(results: Any) -> None:
    first, other = results(FUSED[0]), results(FUSED[1])
    differing = [name for name in first if name != "level" and not np.array_equal(first[name], other[name])]
    assert differing == []


@pytest.mark.parametrize("level", OTHER_LEVELS)
def test_exact_neighbors_of_all_levels_have_the_same_distances(results: Any, level: str) -> None:
    first, other = results(LEVELS[0]), results(level)
    names = [name for name in first if name.startswith("distance") and name.endswith(" exact")]
    assert names
    for name in names:
        np.testing.assert_allclose(other[name], first[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_a_level_that_does_not_exist_is_named_in_the_error(run_at: Any) -> None:
    done = run_at("v9", "-c", "import numpy, vicinal; vicinal.UMAP().fit(numpy.eye(20))")
    assert done.returncode == 1
    assert "VICINAL_LEVEL=v9: no such level in this build" in done.stderr


def test_an_empty_variable_chooses_the_best_level(run_at: Any) -> None:
    done = run_at("", "-c", "from vicinal.backends import _core; print(_core.active_level())")
    assert done.stdout.strip() == LEVELS[-1]


def sanitized(build: Path) -> bool:
    """Return whether a build uses sanitizers, which add shared symbols of their own."""
    return re.search(r"^VICINAL_SANITIZE:\w+=.+$", (build / "CMakeCache.txt").read_text(), re.M) is not None


KERNEL_SOURCES = sorted(path.relative_to(ROOT) for path in ROOT.glob("cpp/*/*_kernels.cpp"))
# CMake compiles all kernel sources of a level into the folder vicinal_kernels_<level>.dir.
LEVEL_FOLDERS = [
    folder
    for cache in sorted(ROOT.glob("build/**/CMakeCache.txt"))
    if not sanitized(cache.parent)
    for folder in sorted(cache.parent.glob("CMakeFiles/vicinal_kernels_*.dir"))
]


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
@pytest.mark.skipif(not LEVEL_FOLDERS, reason="no folder of object files under build/")
@pytest.mark.parametrize("source", KERNEL_SOURCES, ids=str)
@pytest.mark.parametrize("folder", LEVEL_FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT / "build")))
def test_objects_of_a_level_share_no_code_with_other_levels(folder: Path, source: Path) -> None:
    """The linker may replace a weak symbol outside the level's namespace by another level's code."""
    own = f"vicinal::{folder.name.removeprefix('vicinal_kernels_').removesuffix('.dir')}::"
    symbols = subprocess.check_output(["nm", "-C", folder / f"{source}.o"], text=True)
    # DW.ref.* are addresses for the unwinder, not code.
    weak = re.findall(r"^[0-9a-f]+ [WVuwv] (?!DW\.ref\.)(.*)$", symbols, re.M)
    assert [symbol for symbol in weak if own not in symbol] == []
    strong = re.findall(r"^[0-9a-f]+ [TDBR] (.*)$", symbols, re.M)
    assert strong
    assert [symbol for symbol in strong if own not in symbol] == []
