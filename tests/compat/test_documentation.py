"""The guide for users of umap-learn and the list of exceptions say what the package does."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path

import pytest
from scikit_learn_checks import UNCHECKED, WEIGHT_CHECKS
from sklearn.base import BaseEstimator

import vicinal
from vicinal.compat import distances, utils
from vicinal.layout.forces import OUTPUT_METRICS
from vicinal.neighbors.metrics import ALIASES, METRICS

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/start/coming_from/umap_learn.md").read_text()
GUARANTEES = (ROOT / "docs/guides/guarantees.md").read_text()

# The names of umap-learn 0.5.12's tables of metrics.
UMAP_METRICS = (
    "euclidean l2 manhattan taxicab l1 chebyshev linfinity linfty linf minkowski poincare seuclidean "
    "standardised_euclidean wminkowski weighted_minkowski mahalanobis canberra cosine correlation hellinger "
    "softmax_hellinger haversine braycurtis ll_dirichlet symmetric_kl hamming jaccard dice matching kulsinski "
    "rogerstanimoto russellrao sokalsneath sokalmichener yule bit_hamming bit_jaccard"
)
UMAP_OUTPUT_METRICS = (
    "euclidean l2 manhattan taxicab l1 chebyshev linfinity linfty linf minkowski seuclidean wminkowski mahalanobis "
    "canberra cosine correlation hellinger softmax_hellinger haversine braycurtis symmetric_kl hyperboloid "
    "gaussian_energy"
)


def test_the_guide_names_every_metric_that_is_missing() -> None:
    for missing in {*UMAP_METRICS.split()} - {*METRICS, *ALIASES} | (
        {*UMAP_OUTPUT_METRICS.split()} - {*OUTPUT_METRICS}
    ):
        assert f'"{missing}"' in GUIDE


@pytest.mark.parametrize("module", [distances, utils])
def test_the_guide_names_what_a_module_has(module: object) -> None:
    for name in utils.__all__ if module is utils else ("named_distances",):
        assert f"`{name}" in GUIDE
        assert hasattr(module, name)


def test_every_estimator_is_checked_or_a_documented_exception() -> None:
    decorated = "@parametrize_with_" + r"checks\((.*?)\ndef "
    tests = "\n".join(path.read_text() for path in sorted((ROOT / "tests").rglob("test_*.py")))
    checked = {name for part in re.findall(decorated, tests, re.S) for name in re.findall(r"\b([A-Z]\w+)\(", part)}
    classes = [getattr(vicinal, name) for name in vicinal.__all__]
    estimators = {cls.__name__ for cls in classes if inspect.isclass(cls) and issubclass(cls, BaseEstimator)}
    assert {"UMAP", "TSNE", "ParametricUMAP", "AlignedUMAP"} <= estimators
    assert estimators - checked == set(UNCHECKED) & estimators
    assert "`AlignedUMAP`, whose `fit` takes a list of data sets" in GUARANTEES
    assert all(f"`{name}`" in GUARANTEES for name in WEIGHT_CHECKS)
    assert "check_estimator" in (vicinal.AlignedUMAP.__doc__ or "")


def test_the_guide_counts_the_tests_of_every_suite() -> None:
    script = runpy.run_path(str(ROOT / "examples/clients/own_tests.py"))
    lost = 0
    for suite in script["SUITES"]:
        row = re.search(rf"\| {re.escape(suite.name)} \| (\d+) of (\d+) \| (\d+) of (\d+) \|", GUIDE)
        assert row is not None, f"no counts of {suite.name}: run `make clients`"
        ours, n, theirs, same_n = map(int, row.groups())
        assert n == same_n
        lost += theirs - ours
    assert lost == len(script["EXPECTED"])
