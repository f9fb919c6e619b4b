"""`vicinal embed` of files larger than memory: rows stay in the file, and are fitted as a Dask array."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vicinal.cli.fitting import FitResult, stop_on_interrupt
from vicinal.cli.methods import EstimatorSpec, Method
from vicinal.cli.progress_bars import one_line_warnings, stage_bars
from vicinal.cli.rows import ColumnOptions, names_of


def check_large(spec: EstimatorSpec, needs_table: Mapping[str, Any]) -> None:
    """Refuse options that need all rows in memory; ``needs_table`` maps their names to the given values."""
    if spec.method is not Method.UMAP:
        raise ValueError(f"--method must be umap with --cluster or --memory-limit, got {spec.method}")
    for option, value in needs_table.items():
        if value:
            raise ValueError(f"{option} cannot be used with --cluster or --memory-limit: it needs all rows in memory")


def fit_large(
    file: Path, chosen: ColumnOptions, spec: EstimatorSpec, cluster: str | None, limit: str | None, quiet: bool
) -> tuple[FitResult, tuple[int, int]]:
    """Fit the rows of a file on a cluster or within a limit of memory; return the map and the shape of the rows."""
    try:
        from vicinal.cluster.files import open_array
    except ImportError as error:
        raise ValueError("--cluster and --memory-limit need Dask: pip install 'vicinal[cluster]'") from error
    import numpy as np

    rows = open_array(file, None if chosen.columns is None else names_of(chosen.columns))
    spec = EstimatorSpec(spec.method, spec.parameters | ({} if limit is None else {"memory_limit": limit}))
    with connected(cluster), stage_bars(quiet) as bars, one_line_warnings(quiet):
        model = spec.build(bars)
        with stop_on_interrupt(bars, lambda: bars.stage == "layout"):
            model.fit(rows)
        places = np.asarray(model.embedding_)
        seconds = {stage: float(spent) for stage, spent in model.stage_times_.items()}
    n, width = rows.shape
    return FitResult(places, seconds, None, bars.stopped, model), (int(n), int(width))


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Be the client of the cluster at an address, if one is given."""
    if address is None:
        yield
        return
    from distributed import Client
    from distributed.comm import get_address_host_port, parse_address

    try:
        # a client of a malformed address raises an error, and remains the current client
        if parse_address(address)[0] in ("tcp", "tls"):
            get_address_host_port(address)
        client = Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise ValueError(f"--cluster {address} cannot be reached: {error}") from error
    with client:
        yield
