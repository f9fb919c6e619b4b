"""Random small fits of all estimators and kinds of input: no crash, no NaN, no hang.

A case is a function of its seed. ``run_all(seeds)`` runs cases in worker processes, each with a time limit, so that a
case that crashes or hangs is reported and the others go on. As a program: ``python random_fits.py 1000 [first seed]``.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vicinal

HANG_LIMIT = 300.0  # seconds after which a fit is taken to hang
WORKERS = 2
Draw = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A model and its data; ``new`` are rows of the same kind, which are placed after the fit."""

    name: str
    model: Any
    X: Any
    new: Any
    words: list[str] = field(default_factory=list)
    y: Any = None

    def __str__(self) -> str:
        return f"{self.model!r} on {' '.join(self.words)}"


# Contents of the rows: functions that return float64 [n, d].
CONTENTS: dict[str, Callable[[Draw, int, int], NDArray[np.float64]]] = {
    "noise": lambda rng, n, d: rng.normal(size=(n, d)),
    "groups": lambda rng, n, d: rng.normal(size=(4, d))[rng.integers(4, size=n)] * 10 + rng.normal(size=(n, d)),
    "far groups": lambda rng, n, d: rng.integers(2, size=(n, 1)) * 1e6 + rng.normal(size=(n, d)),
    "duplicates": lambda rng, n, d: rng.normal(size=(3, d))[rng.integers(3, size=n)],
    "a constant": lambda rng, n, d: np.full((n, d), rng.normal()),
    "zeros": lambda rng, n, d: np.zeros((n, d)),
    "huge": lambda rng, n, d: rng.normal(size=(n, d)) * 1e30,
    "tiny": lambda rng, n, d: rng.normal(size=(n, d)) * 1e-30,
    "denormals": lambda rng, n, d: rng.normal(size=(n, d)) * 1e-42,
    "one outlier": lambda rng, n, d: rng.normal(size=(n, d)) + 1e12 * (np.arange(n) == 0)[:, None],
    "integers": lambda rng, n, d: rng.integers(-3, 4, size=(n, d)).astype(np.float64),
    "truth values": lambda rng, n, d: (rng.random((n, d)) < 0.3).astype(np.float64),
    "mixed scales": lambda rng, n, d: rng.normal(size=(n, d)) * 10.0 ** rng.integers(-8, 9, size=d),
    "few dimensions": lambda rng, n, d: rng.normal(size=(n, 1)) @ rng.normal(size=(1, d)),
}


def _frame(X: NDArray[np.float64]) -> Any:
    pandas = __import__("pandas")
    return pandas.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])


def _sparse(kind: str) -> Callable[[NDArray[np.float64]], Any]:
    from scipy import sparse

    return lambda X: sparse.coo_matrix(np.where(X > 0, X, 0)).asformat(kind).astype(np.float32)


# Types in which the rows are passed to the model.
KINDS: dict[str, Callable[[NDArray[np.float64]], Any]] = {
    "float32": lambda X: X.astype(np.float32),
    "float64": lambda X: X,
    "fortran order": lambda X: np.asfortranarray(X, dtype=np.float32),
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "integers": lambda X: np.clip(X, -(2**30), 2**30).astype(np.int64),
    "lists": lambda X: X.tolist(),
    "data frame": _frame,
    "csr": _sparse("csr"),
    "csc": _sparse("csc"),
}
METRICS = ("euclidean", "manhattan", "cosine", "correlation", "chebyshev", "canberra", "braycurtis", "hamming")


def _some(rng: Draw, options: Sequence[Any]) -> Any:
    return options[int(rng.integers(len(options)))]


def _parameters(rng: Draw, name: str) -> dict[str, Any]:
    common: dict[str, Any] = {"random_state": int(rng.integers(1000)), "n_jobs": int(_some(rng, (1, 2, -1)))}
    components = int(_some(rng, (1, 2, 2, 2, 3, 5)))
    if name == "KNeighborsTransformer":
        return {"n_neighbors": int(_some(rng, (1, 2, 5, 15))), "metric": _some(rng, METRICS)}
    if name == "TSNE":
        common |= {"perplexity": _some(rng, (1.0, None)), "max_iter": int(_some(rng, (0, 1, 30)))}
        return common | {"n_components": components, "metric": _some(rng, METRICS), "init": _init(rng)}
    if name == "LargeVis":
        common |= {"perplexity": float(_some(rng, (1, 5, 30))), "n_epochs": int(_some(rng, (0, 1, 20)))}
        return common | {"n_components": components, "metric": _some(rng, METRICS), "init": _init(rng)}
    common |= {"n_neighbors": int(_some(rng, (2, 3, 5, 15, 50)))}
    if name == "ProgressiveUMAP":
        return common | {
            "n_components": components,
            "metric": _some(rng, METRICS),
            "batch_size": int(_some(rng, (7, 64))),
        }
    common |= {"n_epochs": int(_some(rng, (0, 1, 20)))}
    if name == "ParametricUMAP":
        # One thread: torch's threads wait for each other, which takes minutes if many processes share few processors.
        return common | {"n_components": components, "batch_size": 64, "device": "cpu", "init": _init(rng), "n_jobs": 1}
    common |= {"min_dist": float(_some(rng, (0.0, 0.1, 0.9))), "metric": _some(rng, METRICS), "init": _init(rng)}
    if name == "AlignedUMAP":
        return common | {"n_components": components}
    common |= {"unique": bool(rng.random() < 0.2), "set_op_mix_ratio": float(_some(rng, (0.0, 0.5, 1.0)))}
    common |= {"force_approximation_algorithm": bool(rng.random() < 0.2), "update_negatives": bool(rng.random() < 0.2)}
    if name == "UMAP":
        common |= {"densmap": bool(rng.random() < 0.1), "compute_loss": bool(rng.random() < 0.1)}
    return common | {"n_components": components}


def _init(rng: Draw) -> str:
    return str(_some(rng, ("spectral", "pca", "random")))


# One case in SLOW_PERIOD: importing and training is slow. Without PyTorch there is none.
SLOW = "ParametricUMAP"
SLOW_PERIOD = 25
HAS_TORCH = find_spec("torch") is not None
# UMAP is drawn more often because it accepts the most kinds of input.
ESTIMATORS = (
    *("UMAP", "UMAP", "UMAP", "DensMAP", "TSNE", "LargeVis", "AlignedUMAP", "KNeighborsTransformer"),
    "ProgressiveUMAP",
)
DENSE_ONLY = (SLOW, "ProgressiveUMAP")


def draw(seed: int) -> Case:
    """Return the case of a seed."""
    rng = np.random.default_rng(seed)
    name = SLOW if HAS_TORCH and seed % SLOW_PERIOD == 0 else str(_some(rng, ESTIMATORS))
    n, d = int(_some(rng, (1, 2, 3, 5, 17, 60, 150, 400))), int(_some(rng, (1, 2, 3, 10, 70)))
    content, kind = str(_some(rng, list(CONTENTS))), str(_some(rng, list(KINDS)))
    if name in DENSE_ONLY and kind in ("csr", "csc"):
        kind = "float32"
    parameters = _parameters(rng, name)
    rows, new = CONTENTS[content](rng, n, d), CONTENTS[content](rng, 4, d)
    words = [f"{n} x {d} of {content} as {kind}"]
    y = None
    if name == "UMAP" and rng.random() < 0.15:
        parameters["metric"], kind = "precomputed", "float32"
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.abs(np.concatenate([rows, new])[:, None, :1] - rows[None, :, :1])[..., 0]
        rows, new = apart[:n], apart[n:]
        words = [f"distances of {words[0]}"]
    elif name in ("UMAP", "DensMAP", SLOW) and rng.random() < 0.3:
        y = rng.integers(-1, 3, size=n)
        words.append("with labels")
    model = getattr(vicinal, name)(**parameters)
    if name == "AlignedUMAP":
        same = {row: row for row in range(0, n, 2)}
        return Case(name, model, ([KINDS[kind](rows), KINDS[kind](rows)], [same]), KINDS[kind](new), words)
    return Case(name, model, KINDS[kind](rows), KINDS[kind](new), words, y)


def check(case: Case) -> str:
    """Fit, transform, update and invert as far as the estimator can; return "fitted" or the error."""
    try:
        if case.name == "AlignedUMAP":
            case.model.fit(case.X[0], relations=case.X[1])
            results = [*case.model.embeddings_, case.model.transform(case.new, at=0)]
        elif case.name == "KNeighborsTransformer":
            results = [case.model.fit_transform(case.X).data, case.model.transform(case.new).data]
        else:
            case.model.fit(case.X, case.y)
            results = [case.model.embedding_, case.model.transform(case.new)]
            if hasattr(case.model, "update") and case.model.metric != "precomputed":
                results.append(case.model.update(case.new).embedding_)
                results.append(case.model.inverse_transform(case.model.embedding_[:2]))
    except (ValueError, TypeError) as error:
        return f"refused: {type(error).__name__}: {error}"
    for result in results:
        values = np.asarray(result.data if hasattr(result, "tocsr") else result)
        assert np.isfinite(values).all(), "a result is not finite"
    return "fitted"


def work() -> None:
    """Read seeds from stdin and print the result of each case, one per line."""
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        try:
            answer = check(draw(int(line)))
        except BaseException:
            answer = "failed: " + traceback.format_exc().replace("\n", " | ")
        print(answer, flush=True)


class Workers:
    """Worker processes that check cases; one that dies or hangs is replaced."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self.answers: dict[int, str] = {}

    def run(self, seeds: Iterable[int]) -> dict[int, str]:
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for seed in seeds:
            waiting.put(seed)
        threads = [threading.Thread(target=self._serve, args=(waiting,)) for _ in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.answers

    def _serve(self, waiting: queue.SimpleQueue[int]) -> None:
        process = self._start()
        while True:
            try:
                seed = waiting.get_nowait()
            except queue.Empty:
                break
            assert process.stdin is not None
            assert process.stdout is not None
            watchdog = threading.Timer(self._limit, process.kill)
            watchdog.start()
            begun = time.monotonic()
            process.stdin.write(f"{seed}\n")
            process.stdin.flush()
            answer = process.stdout.readline().strip()
            watchdog.cancel()
            if not answer:
                hung = time.monotonic() - begun >= self._limit
                answer = f"failed: {'hangs' if hung else f'dies with status {process.wait()}'}"
                process = self._start()
            self.answers[seed] = answer
        process.kill()
        process.communicate()

    @staticmethod
    def _start() -> subprocess.Popen[str]:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, __file__, "work"]
        return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run_all(seeds: Iterable[int]) -> dict[int, str]:
    """Return the result of every seed."""
    return Workers(HANG_LIMIT).run(seeds)


def main(count: int, first: int = 0) -> int:
    begun = time.monotonic()
    answers = run_all(range(first, first + count))
    failed = {seed: answer for seed, answer in answers.items() if answer.startswith("failed")}
    refused = Counter(answer[:110] for answer in answers.values() if answer.startswith("refused"))
    for answer, times in refused.most_common():
        print(f"{times:5} {answer}")
    for seed, answer in sorted(failed.items()):
        print(f"seed {seed}: {draw(seed)}\n      {answer}")
    fitted = count - len(failed) - sum(refused.values())
    print(
        f"{count} cases in {time.monotonic() - begun:.0f} s: {fitted} fitted, {sum(refused.values())} refused by "
        f"an error that says why, {len(failed)} failed"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["work"]:
        work()
    else:
        sys.exit(main(*map(int, sys.argv[1:])))
