"""Checks of arguments that hold data, before NumPy, SciPy or compiled code converts them."""

from __future__ import annotations

from typing import Any

from vicinal.runtime.sparse_structure import check_structure


def check_input(X: Any, name: str = "X") -> None:
    """Raise for what cannot be converted to an array, with one sentence that names the argument.

    Parameters
    ----------
    X : object
        An argument of a user: rows, distances, labels or places.
    name : str
        Name of the argument in the error message.

    Raises
    ------
    TypeError
        If a tensor requires a gradient, which the result could not have.
    ValueError
        If the arrays of a sparse matrix contradict each other.
    """
    if getattr(X, "requires_grad", False) is True:
        raise TypeError(f"{name} is a tensor that requires a gradient; pass {name}.detach()")
    check_structure(X, name)


def is_dask(X: Any) -> bool:
    """Tell whether an argument is a collection of Dask, without importing Dask."""
    return hasattr(X, "__dask_graph__")


def is_missing(label: Any) -> bool:
    """Tell whether a value stands for no value: None, NaN, NaT, or the NA of pandas, whose comparisons are NA."""
    if label is None or type(label).__name__ == "NAType":
        return True
    try:
        return bool(label != label)
    except (TypeError, ValueError):  # an array of several values
        return False
