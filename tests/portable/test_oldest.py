"""The oldest versions that `make oldest` installs are those of pyproject.toml."""

from __future__ import annotations

import tomllib

import pytest
from portable.oldest import PYPROJECT, minimums


def test_every_requirement_is_pinned_to_its_minimum() -> None:
    project = {
        "dependencies": ["numpy>=1.26", "scipy>=1.11"],
        "optional-dependencies": {"app": ["h5py>=3.10", "dask[array]>=2024.8"], "dev": ["vicinal[test]", "ruff==1.0"]},
    }
    assert minimums(project, ["app", "dev"]) == ["dask==2024.8", "h5py==3.10", "numpy==1.26", "scipy==1.11"]


def test_requirements_without_a_minimum_are_an_error() -> None:
    project = {"dependencies": ["numpy>=1.26", "scipy"], "optional-dependencies": {}}
    with pytest.raises(ValueError, match="'scipy' has no minimum"):
        minimums(project, [])


def test_pyproject_states_a_minimum_for_everything() -> None:
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    found = minimums(project, ["app", "notebook", "cluster", "torch", "test"])
    assert {line.partition("==")[0] for line in found} >= {"numpy", "scipy", "scikit-learn", "tqdm", "torch", "dask"}
