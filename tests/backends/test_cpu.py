"""The instruction-set level in use, and how n_jobs is read."""

from __future__ import annotations

import os

import pytest

from vicinal.backends import _core


def test_active_level_is_the_forced_or_the_best_one() -> None:
    available = _core.available_levels()
    assert available
    assert _core.active_level() == (os.environ.get("VICINAL_LEVEL") or available[-1])


def test_levels_are_listed_in_ascending_order() -> None:
    available = _core.available_levels()
    assert available == ["native"] or (set(available) <= {"v2", "v3", "v4"} and available == sorted(available))


@pytest.mark.parametrize("n_jobs", [1, 2, 7])
def test_positive_n_jobs_is_the_number_of_threads(n_jobs: int) -> None:
    assert _core.resolve_jobs(n_jobs) == n_jobs


def test_negative_n_jobs_counts_down_from_all_processors() -> None:
    everything = _core.resolve_jobs(-1)
    assert everything >= 1
    assert _core.resolve_jobs(-2) == max(1, everything - 1)
    assert _core.resolve_jobs(-10_000) == 1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this platform has no processor affinity")
def test_n_jobs_of_minus_one_uses_the_processors_of_the_process() -> None:
    assert _core.resolve_jobs(-1) == len(os.sched_getaffinity(0))
