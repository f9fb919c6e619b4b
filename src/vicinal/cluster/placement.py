"""Transforms of Dask arrays: a map over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from dask.delayed import delayed
from scipy.sparse import csr_matrix, issparse

from vicinal.cluster.engine import current_client, task
from vicinal.cluster.rows import DaskRows, read_block


def transform_blocks(model: Any, transform: Callable[[Any, Any], Any], X: Any, columns: int) -> Any:
    """Return ``transform(model, rows)`` for every block of rows of a Dask array, as a Dask array.

    Nothing is computed here. Blocks are transformed one by one, with the result that the rows would have in memory,
    because the result for a row does not depend on the other rows.

    Parameters
    ----------
    model : estimator
        A fitted model, which every worker receives once. What a model learned of a Dask array is joined by a task, and
        passes from worker to worker, not through this process.
    transform : callable
        A method of its class, which takes the model and rows in memory.
    X : Dask array or data frame
        The rows.
    columns : int
        Number of columns of the result.
    """
    rows = DaskRows.of(X)
    learned = vars(model).get(model._result)
    if isinstance(learned, Gatherable):
        bare = delayed(model._with(**{model._result: None}), pure=False, traverse=False)
        sent, sparse = task(_learned, "model")(bare, model._result, learned.gathering()), learned.is_sparse
    else:
        client = current_client()
        sent = delayed(model, pure=False, traverse=False) if client is None else client.scatter(model, broadcast=True)
        sparse = issparse(transform(model, _one_row(rows)))
    meta: Any = csr_matrix((0, columns), dtype=np.float32) if sparse else np.empty((0, columns), np.float32)
    return rows.array.map_blocks(
        _transformed, transform, sent, dtype=np.float32, chunks=(rows.array.chunks[0], (columns,)), meta=meta
    )


@runtime_checkable
class Gatherable(Protocol):
    """What was learned of a Dask array, and is joined where it is needed."""

    @property
    def is_sparse(self) -> bool: ...

    def gathering(self) -> Any: ...


def _learned(model: Any, name: str, learned: Any) -> Any:
    return model._with(**{name: learned})


def _one_row(rows: DaskRows) -> Any:
    """Return a row of zeros of the same kind, which tells what the result is like; all metrics accept it."""
    return csr_matrix((1, rows.d), dtype=np.float32) if rows.sparse else np.zeros((1, rows.d), np.float32)


def _transformed(block: Any, transform: Callable[[Any, Any], Any], model: Any) -> Any:
    return transform(model, read_block([block]))
