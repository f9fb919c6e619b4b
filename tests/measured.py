"""Comparisons with the reference that record their error per equation of the survey.

`pytest --equation-errors FILE` writes what the tests of that run measured. The pages of the documentation about the
survey show these figures.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

# Equation or algorithm -> the largest error, and the tests that measured it.
_records: dict[str, dict[str, Any]] = {}


def assert_equation(name: str, found: Any, wanted: Any, *, rtol: float = 1e-7, atol: float = 0.0) -> None:
    """Assert that two results agree, and record their largest relative difference.

    A difference is divided by the value wanted, or by the median magnitude of those that are not zero if that is
    larger, so that values near zero do not count as errors of their own size.

    Parameters
    ----------
    name : str
        Numbers of the equations that are compared, separated by commas, or an algorithm ("Algorithm 1").
    found, wanted : array-like
        The result of the package and that of the reference in float64.
    rtol, atol : float
        As for ``numpy.testing.assert_allclose``.
    """
    found, wanted = np.asarray(found, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)
    finite = np.isfinite(wanted)
    size = np.abs(wanted[finite])
    scale = np.maximum(size, np.median(size[size > 0]) if size.any() else 1.0)
    error = float(np.max(np.abs(found[finite] - wanted[finite]) / np.where(scale > 0, scale, 1.0), initial=0.0))
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0].partition("[")[0]
    for one in name.split(","):
        record = _records.setdefault(one.strip(), {"error": 0.0, "values": 0, "tests": []})
        record["error"] = max(record["error"], error)
        record["values"] += int(np.count_nonzero(finite))
        if test not in record["tests"]:
            record["tests"].append(test)


def write_errors(path: Path) -> None:
    """Write the records of this process as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_records, indent=1, sort_keys=True) + "\n")
