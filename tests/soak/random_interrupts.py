"""Interrupt every estimator's calls before random lines by real signals; nothing may be inconsistent afterwards.

    python tests/soak/random_interrupts.py [--interrupts 1000] [--seed 0]

The calls are ``fit``, ``update``, ``partial_fit``, ``transform`` and ``save``. After each interrupt the model must be
bit for bit the one before the call or the one after it, a file must hold one of the two, and the call must work when it
is repeated. Prints one line of JSON: of each call how often it left its model in which state.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import signal
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))
from interrupting import count_lines, interrupted_at

import vicinal

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """A call of a model: ``prepare`` returns the model before it, ``call`` does it."""

    name: str
    prepare: Callable[[], Any]
    call: Callable[[Any], object]
    changes: bool = True


def content(model: Any) -> dict[str, Any]:
    """Return everything that a model holds, as bytes of arrays and plain values, without measured times."""
    arrays, document, times = *_encoded(model), ("stage_times", "stage_times_")

    def plain(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: plain(value) for key, value in tree.items() if key not in times}
        return [plain(item) for item in tree] if isinstance(tree, list) else tree

    return {"document": plain(document), "arrays": {name: array.tobytes() for name, array in arrays.items()}}


def _encoded(model: Any) -> tuple[dict[str, NDArray[Any]], Any]:
    from vicinal.files.container import read_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return read_file(path)


def cases(X: Rows, more: Rows) -> list[Case]:
    """Return the calls of every estimator, each on small data."""
    y = np.arange(len(X)) % 3
    same = {row: row for row in range(len(X))}
    fast: dict[str, Any] = {"random_state": 0, "n_jobs": 2}
    made: dict[str, Callable[[], Any]] = {
        "UMAP": lambda: vicinal.UMAP(n_epochs=30, **fast),
        "DensMAP": lambda: vicinal.DensMAP(n_epochs=30, **fast),
        "LargeVis": lambda: vicinal.LargeVis(n_epochs=30, **fast),
        "TSNE": lambda: vicinal.TSNE(max_iter=30, **fast),
        "AlignedUMAP": lambda: vicinal.AlignedUMAP(n_epochs=10, **fast),
        "KNeighborsTransformer": lambda: vicinal.KNeighborsTransformer(n_neighbors=5, n_jobs=2),
        "ProgressiveUMAP": lambda: vicinal.ProgressiveUMAP(**fast),
        "ParametricUMAP": lambda: vicinal.ParametricUMAP(n_epochs=1, init="random", **fast),
    }
    fits: dict[str, Callable[[Any], Any]] = {name: lambda model: model.fit(X) for name in made}
    fits["AlignedUMAP"] = lambda model: model.fit([X, X + 1], relations=[same])
    fits["UMAP"] = fits["DensMAP"] = lambda model: model.fit(X, y)
    found = []
    for name, make in made.items():
        fitted = fits[name](make())
        again = _copier(fitted)
        new: Any = [more, more] if name == "AlignedUMAP" else more
        found.append(Case(f"{name}.fit", make, fits[name]))
        found.append(Case(f"{name}.fit again", again, fits[name]))
        found.append(Case(f"{name}.transform", again, lambda model, new=new: model.transform(new), changes=False))
        if hasattr(fitted, "update") and name != "AlignedUMAP":
            found.append(Case(f"{name}.update", again, lambda model: model.update(more)))
        if hasattr(fitted, "partial_fit"):
            found.append(Case(f"{name}.partial_fit", again, lambda model: model.partial_fit(more)))
    return found


def _copier(model: Any) -> Callable[[], Any]:
    return lambda: copy.deepcopy(model)


class Trial:
    """One case, with the contents of its model before and after the undisturbed call, and its count of lines."""

    def __init__(self, case: Case) -> None:
        self.case = case
        case.call(case.prepare())  # imports, and caches of the first call
        model = case.prepare()
        self.before = content(model)
        self.lines = count_lines(lambda: case.call(model))
        self.after = content(model)

    def interrupt(self, rng: random.Random) -> str:
        """Interrupt the call once and return how it left the model; raise AssertionError if that is inconsistent."""
        model = self.case.prepare()
        interrupted = interrupted_at(lambda: self.case.call(model), rng.randint(1, self.lines))
        found = content(model)
        if found == self.after and (not interrupted or self.case.changes):
            return "complete" if interrupted else "not interrupted"
        assert found == self.before, f"{self.case.name}: the model is neither as before nor complete"
        assert interrupted, f"{self.case.name}: the call did nothing"
        self.case.call(model)
        assert content(model) == self.after, f"{self.case.name}: the repeated call gives another model"
        return "unchanged"


def interrupt_save(models: list[Any], path: Path, rng: random.Random) -> str:
    """Interrupt a save over the file of another model: the file holds one of the two, and nothing lies beside it."""
    old, new = rng.sample(models, 2)
    old.save(path)
    lines = count_lines(lambda: new.save(path))
    old.save(path)
    interrupted = interrupted_at(lambda: new.save(path), rng.randint(1, lines))
    loaded = content(vicinal.load(path))
    complete = loaded == content(new)
    assert complete or loaded == content(old), "the file holds neither model"
    assert complete or interrupted, "the save did nothing"
    assert list(path.parent.iterdir()) == [path], "an interrupted save left a file"
    return "not interrupted" if not interrupted else "complete" if complete else "unchanged"


def run(n_interrupts: int, seed: int) -> dict[str, Any]:
    """Interrupt calls in turn, ``n_interrupts`` in all; return how often they left their model in which state."""
    rng, draw = random.Random(seed), np.random.default_rng(seed)
    X, more = draw.normal(size=(150, 6)).astype(np.float32), draw.normal(size=(20, 6)).astype(np.float32)
    trials = [Trial(case) for case in cases(X, more)]
    models = [fit for trial in trials if trial.case.name.endswith("fit again") for fit in [trial.case.prepare()]]
    found: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(n_interrupts):
            which = turn % (len(trials) + 1)
            if which == len(trials):
                found["save"][interrupt_save(models, Path(folder) / "model", rng)] += 1
            else:
                found[trials[which].case.name][trials[which].interrupt(rng)] += 1
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--interrupts", type=int, default=1000)
    asked.add_argument("--seed", type=int, default=0)
    options = asked.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a process started in the background may ignore it
    warnings.simplefilter("ignore")
    print(json.dumps(run(options.interrupts, options.seed)))


if __name__ == "__main__":
    main()
