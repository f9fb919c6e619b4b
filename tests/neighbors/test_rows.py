"""Rows, dense and sparse: conversion, checks, hashes, duplicates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from vicinal.neighbors.rows import DuplicateRows, as_rows, check_rows, hash_rows, scan_rows, stack_rows

FORMS = [np.asarray, sparse.csr_matrix, sparse.csr_array]


def repeated_rows() -> Any:
    X = np.random.default_rng(0).integers(0, 3, size=(50, 6)).astype(np.float32)
    X[[10, 20, 30]] = X[4]
    X[40] = 0.0
    return X


@pytest.mark.parametrize("form", FORMS)
def test_duplicates_are_found_and_hashes_depend_on_the_row_alone(form: Any) -> None:
    X = repeated_rows()
    duplicates = DuplicateRows(form(X), n_jobs=2)
    _, first, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(duplicates.first, first[inverse.reshape(-1)])
    Q = np.concatenate([X[[4, 33, 40]], X[:2] + 0.5]).astype(np.float32)
    keys = hash_rows(form(Q))
    np.testing.assert_array_equal(duplicates.find(form(Q), keys), [*duplicates.first[[4, 33, 40]], -1, -1])
    for i in range(len(Q)):
        np.testing.assert_array_equal(hash_rows(form(Q[i : i + 1])), keys[i : i + 1])


def test_stored_zeros_do_not_change_hashes() -> None:
    plain = sparse.csr_matrix(np.array([[0.0, 2.0, 0.0]], dtype=np.float32))
    stored = sparse.csr_matrix((np.array([-0.0, 2.0], np.float32), np.array([0, 1]), np.array([0, 2])), shape=(1, 3))
    np.testing.assert_array_equal(hash_rows(plain), hash_rows(stored))
    np.testing.assert_array_equal(DuplicateRows(plain).find(stored, hash_rows(stored)), [0])


def test_nan_equals_nan() -> None:
    X = np.array([[np.nan, 1.0], [2.0, 1.0], [np.nan, 1.0]], dtype=np.float32)
    np.testing.assert_array_equal(DuplicateRows(X).first, [0, 1, 0])


@pytest.mark.parametrize("form", FORMS)
def test_scan_finds_the_largest_magnitude_and_the_first_bad_row(form: Any) -> None:
    X = repeated_rows()
    X[3, 2] = -7.5
    assert scan_rows(form(X)) == (7.5, -1)
    X[12, 1] = np.nan
    X[25, 0] = np.inf
    assert scan_rows(form(X))[1] == 12
    assert scan_rows(form(X), allow_nan=True)[1] == 25
    X[25, 0] = 0.0
    assert scan_rows(form(X), allow_nan=True) == (7.5, -1)


def test_conversion_does_not_change_the_input() -> None:
    messy = sparse.csr_matrix(
        (np.array([1.0, 2.0, 3.0], np.float32), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3)
    )
    rows = as_rows(messy)
    np.testing.assert_array_equal(rows.toarray(), [[2.0, 0.0, 4.0]])
    np.testing.assert_array_equal(messy.indices, [2, 0, 2])
    tidy = sparse.csr_matrix(np.eye(3, dtype=np.float32))
    assert as_rows(tidy) is tidy
    assert as_rows(sparse.csc_array(np.eye(3))).dtype == np.float32


@pytest.mark.parametrize("form", FORMS)
def test_check_returns_the_largest_magnitude_or_names_the_first_bad_row(form: Any) -> None:
    X = repeated_rows()
    X[3, 2] = -7.5
    assert check_rows(form(X), 2) == 7.5
    X[25, 0] = np.inf
    with pytest.raises(
        ValueError, match=r"Input X contains infinity \(inf\), or a value too large .*, first in row 25\."
    ):
        check_rows(form(X), 2)
    X[12, 1] = np.nan
    with pytest.raises(ValueError, match=r"Input X contains NaN, first in row 12\."):
        check_rows(form(X), 2)
    with pytest.raises(ValueError, match=r"Input Q contains infinity .* row 25"):
        check_rows(form(X), 2, finite="allow-nan", name="Q")


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_stacked(form: Any) -> None:
    X = repeated_rows()
    stacked = stack_rows(form(X[:20]), form(X[20:]))
    assert hasattr(stacked, "tocsr") == (form is not np.asarray)
    np.testing.assert_array_equal(stacked.toarray() if hasattr(stacked, "tocsr") else stacked, X)
