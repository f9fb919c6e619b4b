"""Estimators and checks of scikit-learn that are exceptions, with the reason; docs/guides/guarantees.md lists them."""

from __future__ import annotations

from typing import Any

# The number of a row decides which negatives it meets, so removing or repeating rows gives another random map.
STOCHASTIC = "a map is random: weights are equivalent to repeated rows on average only"
WEIGHT_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data": STOCHASTIC,
    "check_sample_weight_equivalence_on_sparse_data": STOCHASTIC,
}
# Estimators to which check_estimator does not apply.
UNCHECKED = {
    "AlignedUMAP": "fit takes a list of data sets",
    "ComposedUMAP": "it is made from fitted models",
}


def expected_failures(estimator: Any) -> dict[str, str]:
    """Return the checks that an estimator with weights is expected to fail."""
    return WEIGHT_CHECKS
