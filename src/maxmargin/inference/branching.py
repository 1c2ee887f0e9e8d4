"""Graphs with cycles by branch and bound: where message passing leaves a gap, parts of all labellings are searched.

In a part some labels are barred at some nodes: their scores are lowered so far that no labelling with one of them is
worth it, and message passing bounds the others. The part with the highest bound is divided, at the node whose best two
labels are closest: it has the best of them, or it has not. What bounds the parts that are left bounds every labelling.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field

import numpy as np

from ..kernels import trws as kernels
from ..kernels.graphs import labelling_score
from ..rounding import rounded_down, rounded_up

_TIGHT = 1e-10
_BYTES = 2**28  # of all parts that are open


@dataclass(order=True)
class _Part:
    """Labellings without the barred labels, none of which exceeds the first labelling by more than −``below``."""

    below: float
    number: int
    barred: np.ndarray = field(compare=False)
    messages: np.ndarray = field(compare=False)


def improved(
    unary: np.ndarray,
    edges: np.ndarray,
    tables: np.ndarray,
    labels: np.ndarray,
    *,
    enough: float = 0.0,
    most: int = 10_000,
    seconds: float = math.inf,
) -> tuple[np.ndarray, float]:
    """A labelling as good as this one or better, and by how much any other could exceed it, rounding included.

    Parameters
    ----------
    unary : array (n_nodes, n_labels)
    edges : int array (n_edges, 2)
    tables : array (n_edges, n_labels, n_labels), or one table for all edges
    labels : int array (n_nodes,)
    enough : float
        The search ends when no labelling exceeds ``labels`` by more than this, as when the best one is found.
    most, seconds : int, float
        Or after so many parts, or so long.
    """
    search = _Search(unary, edges, tables, labels)
    end = time.monotonic() + seconds
    most = min(most, _BYTES // (search.nbytes + 1))
    while search.open() > max(search.gain, enough) + search.tight and search.n_parts < most and time.monotonic() < end:
        search.divide()
    return search.best, search.excess()


class _Search:
    """The parts that are open, and the best labelling so far."""

    def __init__(self, unary: np.ndarray, edges: np.ndarray, tables: np.ndarray, labels: np.ndarray) -> None:
        self.unary, self.edges, self.tables, self.first = unary, edges, tables, labels
        self.both_ways = np.ascontiguousarray(np.stack([tables, tables.transpose(0, 2, 1)]))
        n_nodes, self.n_labels = unary.shape
        degree = np.bincount(edges.ravel(), minlength=n_nodes).max(initial=0)
        size = float(np.abs(unary).max(initial=0.0) + degree * np.abs(tables).max(initial=0.0))
        self.bar = 4.0 * size + 1.0
        self.tight = _TIGHT * size * n_nodes
        self.best, self.gain, self.n_parts = labels, 0.0, 0
        self.parts: list[_Part] = []
        self.add(np.zeros(unary.shape, bool), np.zeros((len(edges), 2, self.n_labels), np.float32))
        self.nbytes = self.parts[0].messages.nbytes + self.parts[0].barred.nbytes

    def open(self) -> float:
        """By how much a labelling may exceed the first, as far as the parts know."""
        return -self.parts[0].below

    def excess(self) -> float:
        """By how much a labelling may exceed the best."""
        return max(rounded_up(self.open(), -rounded_down(*self._terms(self.best), *(-self._terms(self.first)))), 0.0)

    def _terms(self, labels: np.ndarray) -> np.ndarray:
        which = np.arange(len(self.edges)) if len(self.tables) > 1 else 0
        pairs = self.tables[which, labels[self.edges[:, 0]], labels[self.edges[:, 1]]]
        return np.concatenate([self.unary[np.arange(labels.size), labels], pairs])

    def divide(self) -> None:
        part = heapq.heappop(self.parts)
        total = np.where(part.barred, -np.inf, self.unary)
        np.add.at(total, self.edges[:, 0], part.messages[:, 0])
        np.add.at(total, self.edges[:, 1], part.messages[:, 1])
        two = np.partition(total, self.n_labels - 2, axis=1)[:, -2:]
        v = int(np.argmin(two[:, 1] - two[:, 0]))
        chosen = np.zeros(self.n_labels, bool)
        chosen[total[v].argmax()] = True
        for barred in (chosen, ~chosen):
            narrower = part.barred.copy()
            narrower[v] |= barred
            self.add(narrower, part.messages)

    def add(self, barred: np.ndarray, messages: np.ndarray) -> None:
        """Bound a part, and see whether the labelling that is found on the way is the best so far."""
        lowered = np.where(barred, self.unary - self.bar, self.unary)
        messages, found = messages.astype(np.float64), np.empty_like(self.first)
        kernels.search(lowered, self.edges, self.both_ways, messages, found)
        gain = labelling_score(self.unary, self.edges, self.tables, found) - labelling_score(
            self.unary, self.edges, self.tables, self.first
        )
        if gain > self.gain:
            self.best, self.gain = found, gain
        proof = kernels.spread(lowered, self.edges, messages)
        missed = kernels.missed(lowered, self.edges, self.both_ways, proof, self.first)
        # The first labelling may have barred labels: then it was scored too low.
        at = np.flatnonzero(barred[np.arange(self.first.size), self.first])
        own = self.first[at]
        excess = rounded_up(missed, *lowered[at, own], *(-self.unary[at, own]))
        heapq.heappush(self.parts, _Part(-excess, self.n_parts, barred, proof.astype(np.float32)))
        self.n_parts += 1
