"""Rows by their content: names, faults, rows seen before; dense and sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from vicinal.neighbors.duplicates import SeenRows
from vicinal.neighbors.rows import as_rows, hash_rows, scan_rows

FORMS = [np.asarray, sparse.csr_matrix, sparse.csr_array]


def repeated_rows() -> Any:
    X = np.random.default_rng(0).integers(0, 3, size=(50, 6)).astype(np.float32)
    X[[10, 20, 30]] = X[4]
    X[40] = 0.0
    return X


@pytest.mark.parametrize("form", FORMS)
def test_equal_rows_are_found_whatever_they_lie_among(form: Any) -> None:
    X = repeated_rows()
    seen = SeenRows(form(X), n_jobs=2)
    _, first, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(seen.first, first[inverse.reshape(-1)])
    Q = np.concatenate([X[[4, 33, 40]], X[:2] + 0.5]).astype(np.float32)
    keys = hash_rows(form(Q))
    np.testing.assert_array_equal(seen.find(form(Q), keys), [*seen.first[[4, 33, 40]], -1, -1])
    for i in range(len(Q)):
        np.testing.assert_array_equal(hash_rows(form(Q[i : i + 1])), keys[i : i + 1])


def test_what_is_stored_does_not_matter_but_what_is_there() -> None:
    plain = sparse.csr_matrix(np.array([[0.0, 2.0, 0.0]], dtype=np.float32))
    stored = sparse.csr_matrix((np.array([-0.0, 2.0], np.float32), np.array([0, 1]), np.array([0, 2])), shape=(1, 3))
    np.testing.assert_array_equal(hash_rows(plain), hash_rows(stored))
    np.testing.assert_array_equal(SeenRows(plain).find(stored, hash_rows(stored)), [0])


def test_missing_values_are_content() -> None:
    X = np.array([[np.nan, 1.0], [2.0, 1.0], [np.nan, 1.0]], dtype=np.float32)
    np.testing.assert_array_equal(SeenRows(X).first, [0, 1, 0])


@pytest.mark.parametrize("form", FORMS)
def test_scan_finds_the_largest_and_the_first_fault(form: Any) -> None:
    X = repeated_rows()
    X[3, 2] = -7.5
    assert scan_rows(form(X)) == (7.5, -1)
    X[12, 1] = np.nan
    X[25, 0] = np.inf
    assert scan_rows(form(X))[1] == 12
    assert scan_rows(form(X), allow_nan=True)[1] == 25
    X[25, 0] = 0.0
    assert scan_rows(form(X), allow_nan=True) == (7.5, -1)


def test_rows_are_converted_without_touching_what_was_given() -> None:
    messy = sparse.csr_matrix(
        (np.array([1.0, 2.0, 3.0], np.float32), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3)
    )
    rows = as_rows(messy)
    np.testing.assert_array_equal(rows.toarray(), [[2.0, 0.0, 4.0]])
    np.testing.assert_array_equal(messy.indices, [2, 0, 2])
    tidy = sparse.csr_matrix(np.eye(3, dtype=np.float32))
    assert as_rows(tidy) is tidy
    assert as_rows(sparse.csc_array(np.eye(3))).dtype == np.float32
