"""The compiled core (cpp/module.cpp). Arrays are C-contiguous; float32 unless said otherwise."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_F32 = NDArray[np.float32]
_I32 = NDArray[np.int32]
_I64 = NDArray[np.int64]
_U64 = NDArray[np.uint64]

class PairMetric:
    def rank(self, head: int, tail: int) -> float: ...

class DensePairs(PairMetric):
    def __init__(self, heads: _F32, tails: _F32, metric: str, power: float) -> None: ...

class ForeignPairs(PairMetric):
    def __init__(self, heads: _F32, tails: _F32, function: tuple[Any, ...]) -> None: ...
    @staticmethod
    def check(function: tuple[Any, ...]) -> None: ...

class PythonPairs(PairMetric):
    def __init__(self, heads: list[_F32], tails: list[_F32], function: Callable[[_F32, _F32], float]) -> None: ...

class SparseIndex:
    def __init__(
        self, indptr: _I64, indices: _I32, values: _F32, cols: int, metric: str, power: float, n_jobs: int
    ) -> None: ...
    @property
    def additive(self) -> bool: ...
    @property
    def additions(self) -> float: ...
    def search(self, k: int, n_jobs: int) -> tuple[_I32, _F32]: ...
    def query(
        self, indptr: _I64, indices: _I32, values: _F32, cols: int, k: int, n_jobs: int
    ) -> tuple[_I32, _F32]: ...
    def pairs(self, indptr: _I64, indices: _I32, values: _F32, cols: int) -> PairMetric: ...
    def sketch(self, indptr: _I64, indices: _I32, values: _F32, cols: int, seed: int, n_jobs: int) -> _F32: ...

class NeighborIndex:
    def __init__(
        self, rows: _F32, metric: str, seed: int, n_jobs: int, pairs: PairMetric | None = None
    ) -> None: ...
    def search_exact(self, k: int, n_jobs: int) -> tuple[_I32, _F32]: ...
    def search_approximate(
        self,
        k: int,
        trees: int,
        leaf_rows: int,
        candidates: int,
        spare: int,
        rounds: int,
        coarse: float,
        fine: float,
        final: float,
        n_jobs: int,
    ) -> tuple[_I32, _F32, float]: ...
    def grow_forest(self, trees: int, leaf_rows: int, n_jobs: int) -> None: ...
    def query(
        self,
        queries: _F32,
        indptr: _I64,
        indices: _I32,
        k: int,
        pool: int,
        trees: int,
        share: float,
        n_jobs: int,
        pairs: PairMetric | None = None,
    ) -> tuple[_I32, _F32]: ...

class SampledLayout:
    def __init__(
        self,
        indptr: _I64,
        indices: _I32,
        weights: _F32,
        embedding: _F32,
        reference: _F32 | None,
        row_key: _U64 | None,
        force: list[float],
        negatives: int,
        pulls: int,
        often: float,
        update_negatives: bool,
        seed: int,
    ) -> None: ...
    def step(self, learning_rates: _F32, n_jobs: int) -> None: ...
    @property
    def epoch(self) -> int: ...
    def embedding(self) -> _F32: ...

def hash_rows(rows: _F32, n_jobs: int) -> _U64: ...
def hash_sparse_rows(indptr: _I64, indices: _I32, values: _F32, cols: int, n_jobs: int) -> _U64: ...
def scan_rows(rows: _F32, n_jobs: int, allow_nan: bool = False) -> tuple[float, int]: ...
def smooth_knn(
    distance: _F32, k: float, local_connectivity: float, bandwidth: float, alone: bool, n_jobs: int
) -> tuple[_F32, _F32]: ...
def memberships(
    index: _I32, distance: _F32, rho: _F32, sigma: _F32, bipartite: bool, n_jobs: int
) -> _F32: ...
def perplexity_conditionals(
    index: _I32, distance: _F32, perplexity: float, bipartite: bool, n_jobs: int
) -> tuple[_F32, _F32]: ...
def symmetrize(index: _I32, membership: _F32, mix: float, n_jobs: int) -> tuple[_I64, _I32, _F32]: ...
def symmetrize_mean(index: _I32, membership: _F32, n_jobs: int) -> tuple[_I64, _I32, _F32]: ...
def chebyshev_filter(
    indptr: _I64, indices: _I32, weights: _F32, block: _F32, cut: float, degree: int, n_jobs: int
) -> _F32: ...
def force_table(d2: _F32, a: float, b: float, gamma: float) -> tuple[_F32, _F32]: ...
def metrics() -> list[tuple[str, bool]]: ...
def active_level() -> str: ...
def available_levels() -> list[str]: ...
def resolve_jobs(n_jobs: int) -> int: ...
