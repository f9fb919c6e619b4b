"""Load thousands of corrupted model files: each must be refused, or load as the model that was saved.

    python tests/fuzz/corrupted_models.py [--files 10000] [--seed 0]

Prints one line of JSON: the numbers of refused and loaded files, the slowest load, the peak of resident memory, open
files. Stops at the first file that behaves otherwise and prints where it is kept. The corrupted files are those of all
releases and files that this version writes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from data.make_models import MODELS, placed
from data.make_models import __file__ as MAKE_MODELS
from fuzz.mutations import MUTATIONS, changed, spliced, wrong_header, wrong_length

import vicinal
from vicinal.files.container import read_file, write_file

MOST_MEMORY = 500e6


class Corruptor:
    """Choose a model file at random, corrupt it, load it, and report the outcome."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.path = folder / "corrupted"
        present = folder / vicinal.__version__
        # in another process, because the memory of this one is measured
        subprocess.run([sys.executable, MAKE_MODELS, str(present)], check=True)
        self.files = sorted([*MODELS.glob("*/*.vicinal"), *present.glob("*.vicinal")])
        self.contents = {file: file.read_bytes() for file in self.files}
        self.expected = {file.parent: dict(np.load(file.parent / "expected.npz")) for file in self.files}
        self.places = {
            file: placed(file.stem, vicinal.load(file), self.expected[file.parent]["new"]) for file in self.files
        }

    def keep(self) -> Path:
        """Copy the last file to a place where it outlives the run."""
        kept = Path(tempfile.gettempdir()) / "corrupted.vicinal"
        kept.write_bytes(self.path.read_bytes())
        return kept

    def once(self) -> str:
        file = self.rng.choice(self.files)
        content = self.contents[file]
        kind = self.rng.randrange(len(MUTATIONS) + 5)
        if kind < len(MUTATIONS):
            self.path.write_bytes(MUTATIONS[kind](self.rng, content))
        elif kind == len(MUTATIONS):
            self.path.write_bytes(wrong_length(self.rng, content))
        elif kind == len(MUTATIONS) + 1:
            self.path.write_bytes(wrong_header(self.rng, content))
        elif kind == len(MUTATIONS) + 2:
            self.path.write_bytes(spliced(self.rng, content, self.contents[self.rng.choice(self.files)]))
        else:
            return self._forged(file, in_arrays=kind == len(MUTATIONS) + 3)
        try:
            model = vicinal.load(self.path)
        except vicinal.ModelFileError:
            return "refused"
        self._check_intact(file, model)
        return "intact"

    def _check_intact(self, file: Path, model: Any) -> None:
        new = self.expected[file.parent]["new"]
        np.testing.assert_array_equal(placed(file.stem, model, new), self.places[file])

    def _forged(self, file: Path, in_arrays: bool) -> str:
        """Load a changed file with a valid checksum: it is refused, or gives a model that does not crash."""
        arrays, document = read_file(file)
        if in_arrays:
            for name in self.rng.sample(sorted(arrays), min(2, len(arrays))):
                arrays[name] = self._other_array(arrays[name])
        else:
            document = changed(self.rng, document)
        try:
            write_file(self.path, arrays, document)
        except ValueError:
            return "not writable"
        try:
            model = vicinal.load(self.path)
            if in_arrays:
                placed(file.stem, model, self.expected[file.parent]["new"])
        except vicinal.ModelFileError:
            return "refused"
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError):
            if not in_arrays:
                raise
            return "unusable"
        return "forged"

    def _other_array(self, array: np.ndarray) -> np.ndarray:
        noise = np.frombuffer(self.rng.randbytes(array.nbytes), dtype=np.uint8)
        filler = self.rng.choice((-1, 0, 127, np.nan))
        with np.errstate(invalid="ignore", over="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            others = (
                array[: len(array) // 2] if array.ndim else array,
                array.astype(np.float64),
                array.astype(np.int8),
                array.reshape(-1),
                np.full_like(array, np.array(filler).astype(array.dtype)),
                noise.view(array.dtype).reshape(array.shape) if array.dtype.kind != "b" else ~array,
                array.T,
                np.zeros((0, 3), np.float32),
            )
        return self.rng.choice(others)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def peak_memory() -> int:
    """Return the peak of resident memory in bytes; getrusage would include the peak of the parent process."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--files", type=int, default=10_000)
    asked.add_argument("--seed", type=int, default=0)
    options = asked.parse_args()
    warnings.simplefilter("ignore")  # a forged model may compute nonsense
    with tempfile.TemporaryDirectory() as folder:
        corruptor = Corruptor(Path(folder), options.seed)
        before, slowest, found = open_files(), 0.0, Counter[str]()
        for i in range(options.files):
            start = time.perf_counter()
            try:
                found[corruptor.once()] += 1
            except BaseException:
                print(f"file {i} of seed {options.seed}, kept as {corruptor.keep()}", file=sys.stderr)
                raise
            slowest = max(slowest, time.perf_counter() - start)
        leaked = open_files() - before
    memory = peak_memory()
    print(json.dumps({"files": options.files, **found, "slowest_s": round(slowest, 3), "rss_mb": memory // 10**6}))
    assert leaked == 0, f"{leaked} files were left open"
    assert memory < MOST_MEMORY, f"{memory / 1e6:.0f} MB"


if __name__ == "__main__":
    main()
