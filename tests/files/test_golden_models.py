"""Model files of every release load and transform rows to the same bits (docs/guides/model_files.md)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from data.make_models import MODELS, placed
from numpy.typing import NDArray
from safetensors import safe_open

import vicinal
from vicinal.files import container, models

FILES = sorted(MODELS.glob("*/*.vicinal"))
RELEASES = sorted({file.parent for file in FILES})
ESTIMATORS = {name for name, home in models.CLASSES.items() if home.startswith("estimators.")}


def test_every_release_has_a_file_of_every_estimator() -> None:
    """Files of a version that is in development are not kept: they may still change."""
    assert "dev" in vicinal.__version__ or vicinal.__version__ in {folder.name for folder in RELEASES}
    for release in RELEASES:
        assert {container.read_file(file)[1]["model"]["object"] for file in release.glob("*.vicinal")} == ESTIMATORS


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_file_of_any_release_loads_and_transforms_identically(file: Path) -> None:
    if file.stem == "parametric":
        pytest.importorskip("torch")
    with np.load(file.parent / "expected.npz") as expected:
        found, wanted = placed(file.stem, vicinal.load(file), expected["new"]), expected[file.stem]
    if file.stem == "parametric":  # torch's sums of products differ between processors
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(found, wanted)


def test_safetensors_package_reads_the_arrays(iris: NDArray[np.float32], tmp_path: Path) -> None:
    """The package safetensors was not used to write the file."""
    file = tmp_path / "iris.vicinal"
    vicinal.UMAP(n_epochs=2).fit(iris).save(file)
    arrays, _ = container.read_file(file)
    with safe_open(file, framework="numpy") as theirs:
        assert set(theirs.keys()) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(theirs.get_tensor(name), array)
