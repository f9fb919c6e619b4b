"""Data that is small, but has many cells, parts and blocks; a cluster of two processes for a module."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("dask.array", reason="the extra 'cluster' is not installed: no Dask")

Rows = NDArray[np.float32]


@pytest.fixture
def many_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of 1,000 rows, and a start from groups for more than 1,000 rows."""
    from vicinal.cluster import start
    from vicinal.neighbors import cells

    monkeypatch.setattr(cells, "WHOLE_ROWS", 1000)
    monkeypatch.setattr(cells, "CELL_ROWS", 1000)
    monkeypatch.setattr(start, "WHOLE_ROWS", 1000)


@pytest.fixture(scope="session")
def clustered(grouped: Any) -> Rows:
    rows = grouped(9000, 8)
    rows[17] = rows[4500] = rows[5]  # equal rows, in different chunks and parts
    return rows


@contextmanager
def cluster_of(workers: int) -> Iterator[Any]:
    """Start worker processes of one thread, and connect a client."""
    distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed: no distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster) as connected,
        ):
            yield connected


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of two worker processes."""
    with cluster_of(2) as connected:
        yield connected
