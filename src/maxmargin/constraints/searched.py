"""Open problems: constraints that an oracle searches for, and the sums that certify them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ..kernels.vectors import bounded_dot
from ..problem import Planes, Rivals, TotalLoss, Totals
from ..protocols import Oracle
from ..rounding import gamma, rounded_up
from . import small
from .answers import Joined
from .base import check_entries
from .oracle import is_relaxed, refining
from .sums import DualSums

_CHUNK = 512


class Searched:
    """An *open* problem: constraints too many to list, found by an oracle that searches for the worst offenders.

    Dual variables are ``Planes``. Nothing is kept here: rows are formed anew from the answers whenever bounds are
    to be certified, a chunk at a time, and only their sums are kept.

    Parameters
    ----------
    oracle : Oracle
    budget : float array (n_examples,) or (1,)
        C_i.
    """

    closed = False
    held_in = "oracle"

    def __init__(self, oracle: Oracle, budget: np.ndarray) -> None:
        self.oracle = oracle
        self.in_views = hasattr(oracle, "visits")
        """Whether examples come by in views, those of one chunk of a source after another."""
        self.elsewhere: Any = oracle if hasattr(oracle, "submit") else None
        """The oracle, if its searches are made elsewhere, several at the same time."""
        self.budget = np.atleast_1d(np.asarray(budget, dtype=np.float64))
        self.n_examples = oracle.n_examples
        self.n_weights = oracle.n_weights
        if self.n_weights >= 2**31:
            raise ValueError(f"At most {2**31 - 1} weights can be addressed, the model has {self.n_weights}.")
        check_entries(self, self.n_examples, budget=self.budget)

    @property
    def relaxed(self) -> bool:
        """Whether some rivals are no answers: the optimum is then one of a relaxed problem, and perhaps higher."""
        return is_relaxed(self.oracle)

    @property
    def live(self) -> np.ndarray:
        """The examples that can be searched: all, unless this is a window on a stream."""
        return getattr(self.oracle, "live", np.arange(self.n_examples))

    @property
    def searchable(self) -> np.ndarray:
        """The examples that can be searched and weigh something."""
        live = self.live
        return live if self.budget.size == 1 else live[self.budget[live] > 0.0]

    def budget_of(self, ids: np.ndarray) -> np.ndarray:
        """C_i of some examples."""
        return self.budget[ids] if self.budget.size > 1 else np.broadcast_to(self.budget, ids.size)

    def views(self, rng: np.random.Generator, n: int) -> Iterator[np.ndarray]:
        """Examples to be searched, in random order: in n views, or as their source has them."""
        if not self.in_views:
            yield from np.array_split(rng.permutation(self.searchable), n)
            return
        for view in self.oracle.visits(rng):  # type: ignore[attr-defined]
            yield view if self.budget.size == 1 else view[self.budget[view] > 0.0]

    def chunks(self, ids: np.ndarray, size: int) -> list[np.ndarray]:
        """Examples in chunks of about this size that are searched one after another."""
        if self.elsewhere is not None:
            return self.elsewhere.chunked(ids, size)
        return [ids[start : start + size] for start in range(0, ids.size, size)]

    def at_once(self, ids: np.ndarray, chunks: list[np.ndarray]) -> list[np.ndarray]:
        """These chunks, or what whoever searches elsewhere makes of them, for searches at the same weights."""
        return chunks if self.elsewhere is None else self.elsewhere.at_once(ids)

    def feasible(self, alpha: Planes) -> Planes:
        """The nearest feasible shares, in the order of their examples. No row is formed."""
        if alpha.alpha.size and not 0 <= alpha.example.min() <= alpha.example.max() < self.n_examples:
            raise ValueError(
                f"The dual variables name examples up to {alpha.example.max()}, the data has {self.n_examples}."
            )
        order = np.argsort(alpha.example, kind="stable")
        example, shares = alpha.example[order], alpha.alpha[order].astype(np.float64)
        first = np.searchsorted(example, np.arange(self.n_examples + 1))
        small.project(shares, first, self.budget)
        return Planes(example, Joined([alpha.labels], order), shares)

    def totals(self, alpha: Planes) -> Totals:
        return self.sums(self.feasible(alpha))

    def sums(self, alpha: Planes) -> Totals:
        """What shares come to that stand in the order of their examples; never more than a few rows are at hand."""
        if self.elsewhere is not None:
            return self.elsewhere.sums(alpha)
        sums = DualSums(self.n_weights)
        for part in self._parts(alpha.example):
            labels = [alpha.labels[i] for i in range(part.start, part.stop)]
            sums.add_planes(self.oracle.planes(alpha.example[part], labels), alpha.alpha[part])
        return sums.totals()

    def active(self, alpha: Planes, w: np.ndarray) -> dict[str, Any]:
        """The constraints that have a share, as columns of a table.

        ``example`` and ``answer``; its ``loss``; its ``share``, the dual variable, of all shares of an example no more
        than C_i in sum; and its ``slack`` at ``w``, by how much it misses its margin, below zero if it does not.
        """
        planes = active_planes(alpha)
        loss, slack = np.empty((2, len(planes)))
        for part in self._parts(planes.example):
            rivals = self.oracle.planes(planes.example[part], planes.labels[part])
            loss[part], slack[part] = rivals.losses, violations(rivals, w)
        return active_table(planes, loss, slack)

    def _parts(self, example: np.ndarray) -> Iterator[slice]:
        """Examples, in ascending order, a few hundred at a time and never from two chunks of a source."""
        offsets = getattr(self.oracle, "offsets", np.array([0, self.n_examples]))
        for start, stop in pairwise(np.searchsorted(example, offsets).tolist()):
            for at in range(start, stop, _CHUNK):
                yield slice(at, min(at + _CHUNK, stop))

    def evaluate(self, w: np.ndarray, exact_seconds: float = 0.0) -> TotalLoss:
        """``exact_seconds`` may be spent on exact searches where the others have left a gap."""
        if self.elsewhere is not None:
            return self.elsewhere.evaluate(w, self.budget)
        everybody = np.arange(self.n_examples)
        losses = []
        end = time.monotonic() + exact_seconds
        for part in self._parts(everybody):
            ids = everybody[part]
            if exact_seconds:
                left = (end - time.monotonic()) * ids.size / (self.n_examples - part.start)
                rivals = refining(self.oracle).refined(ids, w, left)
            else:
                rivals = self.oracle.rivals(ids, w)
            losses.append(self.weighted(ids, violations(rivals, w), *uncertainty(rivals, w)))
        return TotalLoss.sum(losses)

    def weighted(
        self, ids: np.ndarray, missing: np.ndarray, rounding: np.ndarray, excess: np.ndarray | None = None
    ) -> TotalLoss:
        """C_i·max(0, what is missing of the margin), summed over some examples.

        ``excess`` counts from ``missing``: where that is below zero, a part of it only makes up for it.
        """
        budget = self.budget_of(ids)
        total, off = bounded_dot(budget, np.maximum(missing, 0.0))
        most = missing + rounding if excess is None else missing + rounding + np.maximum(excess, 0.0)
        off += gamma(4) * total + 1.01 * bounded_dot(budget, np.where(most > 0.0, rounding, 0.0))[0]
        if excess is None:
            return TotalLoss(total, rounding=off)
        # An example of weight zero cannot be underrated, however poorly it is searched.
        above = (1.0 + gamma(4)) * np.maximum(excess + np.minimum(missing, 0.0), 0.0)
        missed = np.multiply(budget, above, where=budget > 0.0, out=np.zeros(ids.size))
        return TotalLoss(total, rounded_up(*missed.tolist()), off)


def active_planes(alpha: Planes) -> Planes:
    """Those that have a share, by example."""
    order = np.argsort(alpha.example, kind="stable")
    return alpha.chosen(order[alpha.alpha[order] > 0.0])


def active_table(planes: Planes, loss: np.ndarray, slack: np.ndarray) -> dict[str, Any]:
    """Active constraints as columns."""
    return {"example": planes.example, "answer": planes.labels, "loss": loss, "share": planes.alpha, "slack": slack}


def violations(rivals: Rivals, w: np.ndarray) -> np.ndarray:
    """l − w·row for each rival: how much of its margin is missing."""
    return rivals.losses - small.scores(rivals.rows, w)


def uncertainty(rivals: Rivals, w: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """How much more margin may be missing for each example: what rounding and approximate inference may have hidden."""
    scores, error = small.bounded_scores(rivals.rows, w)
    error += gamma(4) * np.where(scores == 0.0, 0.0, rivals.losses + np.abs(scores))
    search = rivals.search_rounding()
    return error if search is None else error + search, rivals.excess
