"""Files with a valid checksum that claim much more than they hold: loading takes a bounded multiple of their size."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data.make_models import FAST, iris

import vicinal
from vicinal.files.container import MOST_EXPANSION, read_file, write_file

Content = tuple[dict[str, Any], dict[str, Any]]

# Loads the whole file, limits the memory of the process, and loads the bomb: it is refused, or it is a model.
CHILD = """
import resource, sys
from pathlib import Path
import vicinal
whole, bomb, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
vicinal.load(whole)
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + most, held + most))
try:
    model = vicinal.load(bomb)
except vicinal.ModelFileError as error:
    print("refused", error)
else:
    print("loaded", model)
"""
# Libraries reserve address space in blocks of this size.
RESERVED = 80e6


def labels_of(document: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = document["model"]["state"]["map_"]["dict"]["options"]["params"]["y"]
    assert "coded" in facts
    return facts


def one_long_text(content: Content) -> Content:
    arrays, document = content
    labels_of(document)["coded"][0] = "x" * 1_000_000
    return arrays, document


def many_uses_of_one_array(content: Content) -> Content:
    arrays, document = content
    arrays["many"] = np.zeros(100_000, np.int32)
    texts = {"coded": ["x" * 16], "codes": {"array": "many"}, "text": True}
    document["model"]["params"]["metric_kwds"] = {"list": [texts] * 10_000}
    return arrays, document


def many_empty_rows(length: int) -> Callable[[Content], Content]:
    def change(content: Content) -> Content:
        arrays, document = content
        return {name: np.empty((length, 0), array.dtype) for name, array in arrays.items()}, document

    return change


def a_long_empty_array(content: Content) -> Content:
    arrays, document = content
    return arrays | {"UMAP.map_.graph.sigma": np.empty((40_000_000, 0), np.float32)}, document


def many_empty_lists(content: Content) -> Content:
    arrays, document = content
    document["model"]["params"]["metric_kwds"] = {"list": [{"list": []}] * 300_000}
    return arrays, document


BOMBS: dict[str, Callable[[Content], Content]] = {
    "one long text": one_long_text,
    "many uses of one array": many_uses_of_one_array,
    "arrays of shape (4e7, 0)": many_empty_rows(40_000_000),
    "arrays of shape (6e8, 0)": many_empty_rows(600_000_000),
    "one array of shape (4e7, 0)": a_long_empty_array,
    "many empty lists": many_empty_lists,
}


def saved(path: Path) -> Path:
    """Save a map with labels."""
    X = iris()[0]
    vicinal.UMAP(**FAST).fit(X, np.array(["a", "b", "c"])[np.arange(len(X)) % 3]).save(path)
    return path


def test_bombs_change_what_a_file_has(tmp_path: Path) -> None:
    arrays, document = read_file(saved(tmp_path / "whole"))
    assert labels_of(document)["coded"] == ["a", "b", "c"]
    assert a_long_empty_array((arrays, document))[0].keys() == arrays.keys()


@pytest.mark.nightly
@pytest.mark.requires_proc
@pytest.mark.parametrize("name", BOMBS)
def test_memory_of_loading_is_bounded_by_the_size_of_the_file(
    name: str, tmp_path: Path, child_environment: dict[str, str]
) -> None:
    whole, bomb = saved(tmp_path / "whole"), tmp_path / "bomb"
    write_file(bomb, *BOMBS[name](read_file(whole)))
    most = int(MOST_EXPANSION * bomb.stat().st_size + RESERVED)
    command = [sys.executable, "-c", CHILD, str(whole), str(bomb), str(most)]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(("refused", "loaded"))


def test_long_labels_survive_a_file(tmp_path: Path) -> None:
    X = iris()[0]
    y = np.arange(len(X)) % 3
    labels = np.array(["a", "b" * 500, "c"])[y]
    model = vicinal.UMAP(**FAST).fit(X, labels)
    model.save(tmp_path / "model")
    same = vicinal.load(tmp_path / "model")
    assert same.map_.options.y.tolist() == labels.tolist()
    np.testing.assert_array_equal(same.update(X[:5], labels[:5]).embedding_, model.update(X[:5], labels[:5]).embedding_)
