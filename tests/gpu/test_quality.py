"""The quality report on a device: the measures of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import quality
from vicinal.backends import backend_of, cpu
from vicinal.quality.measures import Space

Rows = NDArray[np.float32]


@pytest.fixture(scope="module")
def places(rows: Rows) -> Rows:
    """Return a map of the rows, with some points at the same place."""
    flat = rows[:, :2] + np.random.default_rng(1).normal(scale=0.5, size=(len(rows), 2)).astype(np.float32)
    flat[30:40] = flat[30]
    return flat


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine", "correlation"])
def test_report_has_the_measures_of_the_cpu(
    place: Any, rows: Rows, places: Rows, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vicinal.backends.cuda.CudaBackend.table_values", lambda _: 5_000)  # several blocks
    labels = np.repeat(np.arange(4.0), 90)
    labels[::7] = np.nan
    here, there = (
        quality.report(rows, places, labels, metric=metric, device=device).as_dict() for device in ("cpu", "cuda")
    )
    assert here.keys() == there.keys()
    assert here["notes"] == there["notes"]
    for name, value in here.items():
        if isinstance(value, float):
            assert there[name] == pytest.approx(value, abs=1e-9), name


def test_distances_and_ranks_are_those_of_the_cpu(place: Any, rows: Rows, places: Rows) -> None:
    wide, some = np.concatenate([rows, rows[:, ::-1] ** 2], axis=1), np.array([0, 5, 6, 20, 21, 30, 31, 200])
    for points in (wide, places):
        here, there = Space(points, "euclidean"), Space(place.asarray(points), "euclidean", place)
        expected, found = here.distances(some), there.distances(some)
        np.testing.assert_allclose(there.on_host(found), expected, rtol=1e-12, atol=1e-15)
        columns = cpu.nearest_columns(expected, 15)
        np.testing.assert_array_equal(backend_of(place).nearest_columns(found, 15), columns)
        np.testing.assert_array_equal(backend_of(place).ranks_of(found, columns), cpu.ranks_of(expected, columns))


def test_metric_that_a_gpu_does_not_have_is_said_in_the_log(
    place: Any, rows: Rows, places: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="vicinal"):
        found = quality.report(rows, places, metric="manhattan", device="cuda")
    assert found == quality.report(rows, places, metric="manhattan")
    assert "the quality report: done on the CPU, because a GPU has none for metric='manhattan'" in caplog.text


def test_report_of_arrays_of_a_gpu(gpu: Any, rows: Rows, places: Rows) -> None:
    expected = quality.report(rows, places).as_dict()
    there = quality.report(gpu.xp.asarray(rows), gpu.xp.asarray(places)).as_dict()
    assert {k: v for k, v in there.items() if isinstance(v, float)} == pytest.approx(
        {k: v for k, v in expected.items() if isinstance(v, float)}, abs=1e-9
    )
    moved = quality.report(gpu.xp.asarray(rows), places, device="cpu").as_dict()
    assert moved == expected
    bad = rows.copy()
    bad[17, 3] = np.nan
    with pytest.raises(ValueError, match="X contains NaN, first in row 17"):
        quality.report(gpu.xp.asarray(bad), places)


def test_too_large_rows_are_reported_by_the_cpu(
    place: Any, rows: Rows, places: Rows, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("vicinal.backends.cuda.CudaBackend.holds_rows", lambda *_: False)
    with caplog.at_level("INFO", logger="vicinal"):
        found = quality.report(rows, places, device="cuda")
    assert found == quality.report(rows, places)
    assert f"360 rows of 12 columns do not fit into {place.name}" in caplog.text
