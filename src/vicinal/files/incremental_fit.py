"""Fit a progressive model batch by batch, so that a caller can report, save or stop between the pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from numpy.typing import NDArray

READ, REST, POLISH = "read", "rest", "polish"


def fit_in_pieces(model: Any, batches: Iterable[NDArray[Any]]) -> Iterator[str]:
    """Do the same as ``model.fit`` in pieces and yield the name of the stage after each piece.

    Yields READ after each batch, REST after each round of the remaining work, and POLISH once, before the final pass.
    A model that is saved at a yield and continued with the following batches ends with the same bits.
    """
    for batch in batches:
        model.partial_fit(batch)
        yield READ
    while model.pending_:
        model.step()
        yield REST
    yield POLISH
    model.polish()
