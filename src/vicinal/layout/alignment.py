"""Alignment of the maps of related data (slices): links between related rows, and the pull along these links.

A relation maps rows of a slice to rows of the next slice. Relations are chained over up to ``window`` slices. All pairs
of related rows form one symmetric matrix over the rows of all slices,

    L_ij = e^{-(o - 1)} J_ij     o: number of slices apart; J: Jaccard index of the neighbors of i and of j

After every epoch each row moves towards the mean place of its partners, as if each of its n_i steps in that epoch had
been pulled there with strength λ η L_ij (λ: ``alignment_regularisation``, η: learning rate). The partners move too, so
the distance shrinks by the factor e^{-2 λ η n_i C_i}, C_i = Σ_j L_ij. (umap-learn adds the pull to every single step.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.layout.sampled import Layout

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

UNRELATED = -1


def check_relation(relation: Any, name: str, n_from: int, n_to: int) -> NDArray[np.int64]:
    """Return a dictionary {row: row of the next slice} as an array, with -1 for rows without a partner."""
    if not isinstance(relation, Mapping):
        raise TypeError(f"{name} must be a dict of row numbers, got {type(relation).__name__}")
    partner = np.full(n_from, UNRELATED, dtype=np.int64)
    for row, other in relation.items():
        for role, number, n in (("key", row, n_from), ("value", other, n_to)):
            if not isinstance(number, Integral) or isinstance(number, bool):
                raise TypeError(f"{name} must hold whole numbers, but has the {role} {number!r}")
            if not 0 <= int(number) < n:
                raise ValueError(f"{name} has the {role} {number}, but that slice has {n} rows")
        partner[int(row)] = int(other)
    return partner


def check_relations(relations: Any, sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """Return one checked relation between each slice and the next."""
    if relations is None:
        raise ValueError("relations must be given: one dict {row: row of the next slice} between consecutive slices")
    if not isinstance(relations, list | tuple):
        raise TypeError(f"relations must be a list of dicts, got {type(relations).__name__}")
    if len(relations) != len(sizes) - 1:
        raise ValueError(f"relations must have {len(sizes) - 1} entries for {len(sizes)} slices, got {len(relations)}")
    return [check_relation(one, f"relations[{i}]", sizes[i], sizes[i + 1]) for i, one in enumerate(relations)]


def link_slices(partners: Sequence[NDArray[np.int64]], graphs: Sequence[Graph], window: int) -> csr_matrix:
    """Return L over the rows of all slices, one slice after the other."""
    from scipy.sparse import coo_matrix

    begin = np.concatenate([[0], np.cumsum([graph.n for graph in graphs])])
    heads, tails, strength = [], [], []
    for first, graph in enumerate(graphs):
        reached = np.arange(graph.n)
        for apart in range(1, min(window, len(graphs) - 1 - first) + 1):
            onward = partners[first + apart - 1]
            reached = np.where(reached >= 0, onward[reached], UNRELATED)
            related = np.flatnonzero(reached >= 0)
            heads.append(begin[first] + related)
            tails.append(begin[first + apart] + reached[related])
            strength.append(np.exp(1.0 - apart) * _jaccard(graph, graphs[first + apart], reached))
    if not heads:
        return coo_matrix((begin[-1], begin[-1]), dtype=np.float64).tocsr()
    pairs = (np.concatenate(strength), (np.concatenate(heads), np.concatenate(tails)))
    one_way = coo_matrix(pairs, shape=(begin[-1], begin[-1])).tocsr()
    return (one_way + one_way.T).tocsr()


def _jaccard(graph: Graph, other: Graph, partner: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the Jaccard index of the neighbors of each related row and of its partner, over related rows only."""
    from scipy.sparse import csr_matrix

    related = np.flatnonzero(partner >= 0)
    carry = csr_matrix((np.ones(len(related)), (related, partner[related])), shape=(graph.n, other.n))
    mine = (_pattern(graph)[related] @ carry > 0).astype(np.float64)
    reachable = np.zeros(other.n)
    reachable[partner[related]] = 1.0
    theirs = _pattern(other)[partner[related]].multiply(reachable).tocsr()
    both = np.asarray(mine.multiply(theirs).sum(axis=1)).reshape(-1)
    either = np.asarray(mine.sum(axis=1) + theirs.sum(axis=1)).reshape(-1) - both
    return np.where(either > 0, both / np.where(either > 0, either, 1.0), 1.0)


def _pattern(graph: Graph) -> csr_matrix:
    matrix = graph.to_scipy().astype(np.float64)
    matrix.data = np.ones_like(matrix.data)
    return matrix


@dataclass(frozen=True)
class Alignment:
    """Pull of some rows along their links [rows, all rows].

    ``steps`` are those of each row per epoch. With ``mutual`` the partners are pulled as well, so that both meet
    halfway.
    """

    links: csr_matrix
    steps: NDArray[np.float64]
    regularisation: float
    mutual: bool = True

    def pulled(
        self, own: NDArray[np.float32], everyone: NDArray[np.float32], learning_rate: float
    ) -> NDArray[np.float32]:
        """Return the places of the rows after the pull of an epoch.

        ``own`` are the places of the pulled rows, ``everyone`` the places of the rows that the links lead to.
        """
        total = np.asarray(self.links.sum(axis=1)).reshape(-1)
        linked = total > 0
        goal = (self.links @ everyone.astype(np.float64))[linked] / total[linked, None]
        strength = self.regularisation * learning_rate * self.steps[linked] * total[linked]
        share = 0.5 * -np.expm1(-2.0 * strength) if self.mutual else -np.expm1(-strength)
        out = own.copy()
        out[linked] += (share[:, None] * (goal - own[linked])).astype(np.float32)
        return out


class AlignedLayouts:
    """Several layouts that run side by side, with the pull of their alignment after every epoch.

    There is one layout per slice, all with the same number of epochs; the pull uses the learning rates of the first.
    The alignment links the rows of all layouts, one slice after the other. ``others`` are fixed places of earlier
    slices; the columns of the links count these rows first.
    """

    def __init__(
        self, layouts: Sequence[Layout], alignment: Alignment, others: NDArray[np.float32] | None = None
    ) -> None:
        self.layouts = list(layouts)
        self.alignment = alignment
        self.others = others
        self.epoch = 0  # epochs completed, with their pulls

    @property
    def embeddings(self) -> list[NDArray[np.float32]]:
        """Copies of the places, one array per slice."""
        return [layout.embedding for layout in self.layouts]

    @property
    def embedding(self) -> NDArray[np.float32]:
        """Copy of the places of all slices, one slice after the other."""
        return np.concatenate(self.embeddings)

    def step(self, n: int = 1) -> None:
        """Run ``n`` more epochs of all layouts."""
        rates = self.layouts[0].schedule.learning_rates(np.arange(self.epoch, self.epoch + n))
        for rate in rates:
            for layout in self.layouts:
                # After an interrupt some layouts may have completed this epoch.
                if layout.epoch <= self.epoch:
                    layout.step(1)
            self._pull(float(rate))
            self.epoch += 1

    def _pull(self, learning_rate: float) -> None:
        parts = self.embeddings
        own = np.concatenate(parts)
        everyone = own if self.others is None else np.concatenate([self.others, own])
        moved = self.alignment.pulled(own, everyone, learning_rate)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        for layout, places in zip(self.layouts, np.split(moved, ends), strict=True):
            layout.embedding = places


def steps_per_epoch(graph: Graph, negatives: int) -> NDArray[np.float64]:
    """Return the mean number of moves of each row per epoch: two per firing edge, and one per negative."""
    largest = float(graph.weights.max(initial=0.0))
    return graph.degree() / largest * (2 + negatives) if largest > 0 else np.zeros(graph.n)
