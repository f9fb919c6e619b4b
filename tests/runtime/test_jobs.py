"""The parameter n_jobs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from joblib import parallel_config

from vicinal.runtime.inputs import resolve_n_jobs


@pytest.mark.parametrize("n_jobs", [1, 8, -1, -2, np.int64(3)])
def test_numbers_pass_through(n_jobs: Any) -> None:
    assert resolve_n_jobs(n_jobs) == n_jobs
    assert type(resolve_n_jobs(n_jobs)) is int


def test_none_means_1_outside_and_the_configured_number_inside_a_joblib_context() -> None:
    assert resolve_n_jobs(None) == 1
    with parallel_config("threading", n_jobs=3):
        assert resolve_n_jobs(None) == 3


@pytest.mark.parametrize(
    ("n_jobs", "message"),
    [
        (0, "n_jobs must not be 0; -1 uses all processors"),
        (2**31, "n_jobs must be at most 2147483647, got 2147483648"),
        (-(2**40), "n_jobs must be at most"),
        (1.5, "n_jobs must be a whole number or None, got 1.5"),
        (True, "n_jobs must be a whole number or None, got True"),
    ],
)
def test_invalid_numbers_are_named(n_jobs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolve_n_jobs(n_jobs)
