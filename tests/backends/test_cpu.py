"""The level in use, the metrics compiled in, and how n_jobs is read."""

from __future__ import annotations

import os

import pytest

from vicinal.backends import _core


def test_the_level_in_use_is_the_forced_or_the_best_one() -> None:
    available = _core.available_levels()
    assert available
    assert _core.active_level() == (os.environ.get("VICINAL_LEVEL") or available[-1])


def test_levels_are_listed_from_the_lowest() -> None:
    known = ["v2", "v3", "v4"]
    available = _core.available_levels()
    assert available in (["native"], [level for level in known if level in available])


@pytest.mark.parametrize("n_jobs", [1, 2, 7])
def test_a_count_of_threads_is_that_count(n_jobs: int) -> None:
    assert _core.resolve_jobs(n_jobs) == n_jobs


def test_negative_counts_are_taken_from_all() -> None:
    everything = _core.resolve_jobs(-1)
    assert everything >= 1
    assert _core.resolve_jobs(-2) == max(1, everything - 1)
    assert _core.resolve_jobs(-10_000) == 1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the platform has no processor affinity")
def test_all_means_the_processors_the_process_may_use() -> None:
    assert _core.resolve_jobs(-1) == len(os.sched_getaffinity(0))
