"""The examples in docstrings run and print what they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import vicinal

PACKAGE = Path(vicinal.__file__).parent
MODULES = sorted(
    ".".join(("vicinal", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>>" in path.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_run(name: str) -> None:
    if name.startswith("vicinal.parametric") or name == "vicinal.estimators.parametric":
        pytest.importorskip("torch")
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    )
    assert result.attempted > 0
    assert result.failed == 0
