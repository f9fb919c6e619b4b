"""Fits on a cluster of processes: the bits of the fit on threads, also if workers are killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from cluster.conftest import Rows, cluster_of

from vicinal import UMAP
from vicinal.cluster import engine as engine_module
from vicinal.cluster.layout import forget_edges

EPOCHS = 3


def fit(rows: Rows, chunk: int, **parameters: Any) -> UMAP:
    return UMAP(n_epochs=EPOCHS, random_state=1, **parameters).fit(da.from_array(rows, chunks=(chunk, -1)))


@pytest.fixture(scope="module")
def expected(grouped: Any) -> tuple[Rows, Any]:
    """The local fit of 9,000 rows, which parts divide in two or three."""
    rows = grouped(9000, 8)
    return rows, UMAP(n_epochs=EPOCHS, random_state=1).fit(rows)


def assert_same(model: UMAP, local: UMAP) -> None:
    assert (model.graph_.compute() != local.graph_).nnz == 0
    np.testing.assert_array_equal(model.embedding_.compute(), local.embedding_)


def test_a_cluster_has_the_local_map(client: Any, expected: tuple[Rows, Any]) -> None:
    assert_same(fit(expected[0], 2000), expected[1])


@pytest.mark.parametrize("common", [False, True], ids=["memory", "directory"])
def test_a_cluster_of_several_machines(
    client: Any, expected: tuple[Rows, Any], common: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(engine_module, "LOCAL_HOSTS", ())
    with dask.config.set({"vicinal.directory": str(tmp_path) if common else None}):
        assert_same(fit(expected[0], 3000), expected[1])
    assert os.listdir(tmp_path) == []


def test_a_failed_sweep_ends_the_others(client: Any, expected: tuple[Rows, Any], tmp_path: Path) -> None:
    def spoil(stage: str, done: int, steps: int, places: Any) -> None:
        if stage == "layout" and done == 1:
            for file in tmp_path.glob("*/prepared-0.tails.npy"):
                file.write_bytes(b"")
            client.run(forget_edges)

    with (
        dask.config.set({"temporary-directory": str(tmp_path)}),
        pytest.raises(OSError, match=r"prepared-0\.tails\.npy ends before entry"),
    ):
        fit(expected[0], 3000, callback=spoil)
    assert os.listdir(tmp_path) == []
    assert_same(fit(expected[0], 3000), expected[1])  # the workers are free again


def test_results_in_files_survive_the_loss_of_all_workers(client: Any, expected: tuple[Rows, Any]) -> None:
    model = fit(expected[0], 2000)
    client.restart()
    assert (model.graph_.compute() != expected[1].graph_).nnz == 0
    np.testing.assert_array_equal(model.map_.neighbors.index.compute(), expected[1].map_.neighbors.index)


@pytest.mark.parametrize("stage", ["neighbors", "graph", "layout"])
def test_a_killed_worker_changes_nothing(client: Any, expected: tuple[Rows, Any], stage: str) -> None:
    client.wait_for_workers(2)  # the one that the test before has killed comes back
    assert_same(fit_and_kill(client, expected[0], stage), expected[1])


def test_the_only_worker_is_killed(expected: tuple[Rows, Any]) -> None:
    with cluster_of(1) as alone:
        assert_same(fit_and_kill(alone, expected[0], "layout"), expected[1])


def fit_and_kill(client: Any, rows: Rows, stage: str) -> UMAP:
    """Fit, and kill a worker in a stage."""
    killed: list[int] = []
    deaths = []

    def kill(now: str, done: int, steps: int, places: Any) -> None:
        if now == stage and not killed and (stage != "layout" or done == 1):
            killed.append(next(iter(client.run(os.getpid).values())))
            # A task of a thread of the worker itself, so that the worker dies while it works.
            deaths.append(client.submit(_die_soon, killed[0], pure=False, retries=0))

    model = fit(rows, 2000, callback=kill)
    with pytest.raises(ProcessLookupError):
        os.kill(killed[0], 0)
    return model


def _die_soon(pid: int) -> None:
    if os.getpid() != pid:
        os.kill(pid, signal.SIGKILL)
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def test_transform_on_workers_equals_the_local_one(client: Any, expected: tuple[Rows, Any], grouped: Any) -> None:
    unseen = grouped(500, 8, seed=5)
    placed = expected[1].transform(da.from_array(unseen, chunks=(90, -1)))
    np.testing.assert_array_equal(placed.compute(), expected[1].transform(unseen))


def test_errors_of_workers_name_chunk_and_row(client: Any, grouped: Any) -> None:
    rows = grouped(900, 4)
    rows[450, 1] = np.nan
    with pytest.raises(ValueError, match=r"row 450 \(chunk 1, row 150 of it\)"):
        fit(rows, 300)
