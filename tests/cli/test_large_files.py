"""`vicinal embed` of files that are not read into memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from cli.command_inputs import ROWS, Run

pytest.importorskip("dask.array", reason="the extra 'cluster' is not installed: no Dask")


@pytest.mark.parametrize("source", ["data.npy", "data[1].parquet"])  # a name, no pattern
def test_memory_limit_gives_the_same_map(run: Run, source: str) -> None:
    if source.endswith(".npy"):
        np.save(source, ROWS)
    else:
        pl.DataFrame(ROWS, schema=["a", "b", "c", "d"]).write_parquet(source)
    assert run("embed", source, "-o", "local.npy", "--n-epochs", "5")[0] == 0
    code, out, err = run("embed", source, "-o", "limited.npy", "--n-epochs", "5", "--memory-limit", "1GB")
    assert (code, err) == (0, "")
    assert "60 rows of 4 columns" in out
    np.testing.assert_array_equal(np.load("limited.npy"), np.load("local.npy"))


def test_columns_of_a_table(run: Run) -> None:
    pl.DataFrame(ROWS, schema=["a", "b", "*", "d"]).write_parquet("data.parquet")
    options = ("--n-epochs", "5", "--features", "a,*")
    assert run("embed", "data.parquet", "-o", "local.npy", *options)[0] == 0
    assert run("embed", "data.parquet", "-o", "limited.npy", *options, "--memory-limit", "1GB")[0] == 0
    np.testing.assert_array_equal(np.load("limited.npy"), np.load("local.npy"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--method", "tsne"], "--method must be one of umap, densmap, largevis"),
        (["--label", "a"], "--label cannot be used"),
        (["--log1p"], "preprocessing cannot be used"),
        (["--features", "zz"], "no named columns"),
        (["--param", "unique=True"], "unique"),
    ],
)
def test_what_needs_all_rows_is_refused(run: Run, options: list[str], words: str) -> None:
    np.save("data.npy", ROWS)
    code, _, err = run("embed", "data.npy", "-o", "map.npy", "--memory-limit", "1GB", *options)
    assert code != 0
    assert words in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("limit", ["a lot", "1MB"])
def test_bad_limits_are_one_clear_error(run: Run, limit: Any) -> None:
    np.save("data.npy", ROWS)
    code, _, err = run("embed", "data.npy", "-o", "map.npy", "--memory-limit", limit)
    assert code != 0
    assert "memory_limit" in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("address", ["nonsense", "tcp://nonsense:port"])
def test_missing_cluster_is_one_clear_error(run: Run, address: str) -> None:
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed: no distributed")
    from vicinal.cluster.engine import current_client

    np.save("data.npy", ROWS)
    code, _, err = run("embed", "data.npy", "-o", "map.npy", "--cluster", address)
    assert code != 0
    assert f"--cluster {address}" in err
    assert current_client() is None
