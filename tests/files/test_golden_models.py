"""A file written by any release still loads, and places rows where that release did (docs/guides/model_files.md)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from data.make_models import MODELS, placed
from safetensors import safe_open

import vicinal

FILES = sorted(MODELS.glob("*/*.vicinal"))


def test_this_release_has_its_files() -> None:
    kinds = {vicinal.files.models.describe(file)["class"] for file in FILES if file.parent.name == vicinal.__version__}
    estimators = {name for name, home in vicinal.files.models.CLASSES.items() if home.startswith("estimators.")}
    assert kinds == estimators


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_file_of_any_release_loads_and_transforms_as_it_did(file: Path) -> None:
    if file.stem == "parametric":
        pytest.importorskip("torch")
    with np.load(file.parent / "expected.npz") as expected:
        found, wanted = placed(file.stem, vicinal.load(file), expected["new"]), expected[file.stem]
    if file.stem == "parametric":  # sums of products are torch's, and differ between processors
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_other_programs_read_the_arrays(file: Path) -> None:
    """The package safetensors, which had no part in writing them."""
    arrays, _ = vicinal.files.container.read_file(file)
    with safe_open(file, framework="numpy") as theirs:
        assert set(theirs.keys()) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(theirs.get_tensor(name), array)
