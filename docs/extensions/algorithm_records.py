"""Recorded states of Algorithms 2 and 3, which the page with the algorithms shows line by line.

A state is a JSON object: the first and last line of the algorithm that led to it, the places of the rows (base64 of
float32), rows to mark, and a sentence. The browser runs Algorithm 1 itself; it has neither networks nor growing maps.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vicinal

ROWS, N_NEIGHBORS, SEED = 120, 10, 42
FIRST_BATCH, BATCH = 90, 15
State = dict[str, Any]
Places = NDArray[np.float32]


def state(lines: tuple[int, int], text: str, places: Places | None = None, marked: Any = ()) -> State:
    """Return one state as JSON holds it; without places the map is not there yet."""
    content = b"" if places is None else np.ascontiguousarray(places, "<f4").tobytes()
    return {
        "lines": lines,
        "text": text,
        "places": base64.b64encode(content).decode(),
        "marked": [int(i) for i in marked],
    }


def parametric_states(X: NDArray[Any]) -> list[State]:
    """Return the states of ParametricUMAP (Algorithm 2): the untrained network, every epoch, and the end."""
    given: dict[str, Any] = {"n_neighbors": N_NEIGHBORS, "random_state": SEED, "n_jobs": 1}
    untrained = vicinal.ParametricUMAP(n_epochs=0, **given).fit(X)
    epochs: list[Places] = []

    def record(stage: str, done: int, steps: int, embedding: Places | None) -> None:
        if stage == "layout" and embedding is not None:
            epochs.append(embedding.copy())

    trained = vicinal.ParametricUMAP(callback=record, **given).fit(X)
    edges = untrained.graph_.nnz // 2
    states = [
        state((1, 2), f"{len(X)} rows of {X.shape[1]} numbers, each with its {N_NEIGHBORS - 1} nearest others."),
        state((3, 4), "The network has random weights; it makes these points of the rows.", untrained.embedding_),
        state((5, 8), f"The graph has {edges} edges with a weight p.", untrained.embedding_),
    ]
    for done, (places, loss) in enumerate(zip(epochs, trained.loss_history_["umap"], strict=True), 1):
        text = f"Epoch {done} of {len(epochs)}: the loss per edge, on average over its batches, was {loss:.3f}."
        states.append(state((10, 24), text, places))
    return [*states, state((25, 25), "The network is trained; a new row needs one pass.", trained.embedding_)]


def progressive_states(X: NDArray[Any]) -> list[State]:
    """Return the states of ProgressiveUMAP (Algorithm 3) while batches of rows arrive."""
    reported: list[tuple[Places, NDArray[np.int32]]] = []

    def record(stage: str, done: int, steps: int, embedding: Places) -> None:
        reported.append((embedding.copy(), model.age_))

    model = vicinal.ProgressiveUMAP(n_neighbors=N_NEIGHBORS, random_state=SEED, n_jobs=1, callback=record)
    states: list[State] = []
    places: Places | None = None
    for begin in (0, *range(FIRST_BATCH, len(X), BATCH)):
        end = begin + BATCH if begin else FIRST_BATCH
        reported.clear()
        model.insert(X[begin:end])
        # the first rows move so many at a time that every turn is seen, later ones as partial_fit does it
        while model.step(n_ops=None if begin else end).pending:
            pass
        states.append(state((1, 2), f"{end - begin} rows arrive; {begin} are known.", places))
        (started, age), *turns = reported
        if begin:
            text = "Each new row (ringed) starts at the point of its nearest known neighbor, plus noise."
            states.append(state((5, 8), text, started, range(begin, end)))
        else:
            states.append(state((3, 4), "The first batch starts from the Laplacian eigenmap.", started))
        text = f"The graph now has {model.graph_.nnz // 2} edges."
        states.append(state((9, 11), text, started))
        for turn, (places, reached) in enumerate(turns, 1):
            ran, age = reached - age, reached
            rows = np.flatnonzero(ran)
            earlier = int((rows < begin).sum())
            who = f"{len(rows) - earlier} new rows and {earlier} earlier ones (ringed)" if begin else "all rows"
            text = f"Turn {turn} of {len(turns)}: {ran.max()} epochs of {who}."
            states.append(state((12, 20), text, places, rows if begin else ()))
        states.append(state((21, 21), f"The map has {end} points.", places))
    return states
