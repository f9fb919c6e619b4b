"""Calls of the JavaScript core in Node, with arrays as binary files."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from vicinal.graph.graph import Graph
from vicinal.neighbors.table import Neighbors

PROGRAM = Path(__file__).with_name("program.mjs")
LEAST_VERSION = 18
KINDS = {"f32": np.float32, "i32": np.int32}


def missing() -> str:
    """Return why the tests cannot be run, or an empty text."""
    node = shutil.which("node")
    if node is None:
        return "node (package nodejs) is not installed"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    older = int(version.removeprefix("v").partition(".")[0]) < LEAST_VERSION
    return f"node {version} is older than {LEAST_VERSION}" if older else ""


class Calls:
    """Calls that one process of Node makes one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[dict[str, Any]] = []

    def add(self, does: str, options: dict[str, Any] | None = None, **given: Any) -> int:
        """Add a call and return its number; arrays, graphs and tables are written to files."""
        number = len(self.calls)
        call = {"does": does, "options": options or {}, **given}
        self.calls.append({name: self._stored(value, f"{number}-{name}") for name, value in call.items()})
        return number

    def _stored(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {key: self._stored(one, f"{name}-{key}") for key, one in value.items()}
        if isinstance(value, Graph):
            arrays = {"indptr": value.indptr, "indices": value.indices, "weights": value.weights}
            return {"n": value.n, **self._stored(arrays, name)}
        if isinstance(value, Neighbors):
            return {"n": value.n, **self._stored({"index": value.index, "distance": value.distance}, name)}
        if not isinstance(value, np.ndarray):
            return value
        kind = "i32" if value.dtype.kind == "i" else "f32"
        path = f"{name}.{kind}"
        (self.folder / path).write_bytes(np.ascontiguousarray(value, dtype=KINDS[kind]).tobytes())
        named_rows = value.ndim == 2 and name.endswith(("rows", "fresh"))
        return {"data": path, "n": len(value), "columns": value.shape[1]} if named_rows else path

    def run(self) -> list[dict[str, Any]]:
        """Make the calls and return their results."""
        (self.folder / "calls.json").write_text(json.dumps(self.calls))
        done = subprocess.run(["node", str(PROGRAM), str(self.folder)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"node returned {done.returncode}:\n{done.stderr}")
        answers = json.loads((self.folder / "answers.json").read_text())
        return [{name: self._loaded(value) for name, value in answer.items()} for answer in answers]

    def _loaded(self, value: Any) -> Any:
        if not isinstance(value, str) or value[-3:] not in KINDS:
            return value
        return np.frombuffer((self.folder / value).read_bytes(), KINDS[value[-3:]])
