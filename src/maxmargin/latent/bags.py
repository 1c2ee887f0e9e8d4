"""The objective of multiple-instance learning with two classes, and its convex bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..constraints import Scalar, SharedSlack
from ..data.arrays import as_rows
from ..data.bags import Bags
from ..kernels import bags as kernels
from ..models.bags import checked_instances
from ..problem import Problem, Rows
from ..protocols import Evaluation, Regularizer
from ..solvers.threads import run
from ..validation import one_of

NEGATIVES = ("bag", "instances")

# Multiply-adds that make it worth waking a thread.
_WORTH_A_THREAD = 2_000_000


class BagObjective:
    """Two kinds of bags: a positive one has at least one positive instance, a negative one none.

        F(w) = Ω(w) + Σ_positive C_i·max(0, 1 − max_z w·x_iz) + Σ_negative C_i·max(0, 1 + max_z w·x_iz)

    (MI-SVM; Andrews, Tsochantaridis, Hofmann 2003. Paper 000 A.4 with l = +1 for negatives.) The latent value of a
    positive bag is the number of the instance that speaks for it; fixing it gives a convex upper bound. Negative bags
    have nothing to choose, and their one value is 0. With ``negatives="instances"`` every instance of a negative bag
    is an example of its own: C_i·Σ_z max(0, 1 + w·x_iz).

    All bounds have dual variables of one shape, feasible for all of them: those of one are a start for the next. Rows
    are named by their number, and never copied.

    Parameters
    ----------
    bags : Bags
    positive : bool array (n_bags,)
    budget : float array (n_bags,)
        C_i.
    regularizer : Regularizer
    negatives : {"bag", "instances"}
    bias : float
        If not zero, every instance has one more feature with this value.
    n_threads : int
        Threads that look at instances.

    Examples
    --------
    >>> from maxmargin.data.bags import as_bags
    >>> from maxmargin.regularizers import L2
    >>> bags = as_bags([np.array([[0.0], [2.0]]), np.array([[0.0], [-1.0]])])
    >>> objective = BagObjective(bags, np.array([True, False]), np.ones(2), L2())
    >>> objective.evaluate(np.array([1.0])).best
    array([1, 0])
    """

    def __init__(
        self,
        bags: Bags,
        positive: np.ndarray,
        budget: np.ndarray,
        regularizer: Regularizer,
        *,
        negatives: str = "bag",
        bias: float = 0.0,
        n_threads: int = 1,
    ) -> None:
        one_of("negatives", negatives, NEGATIVES)
        self.bags = bags
        self.positive = np.asarray(positive, bool)
        self.budget = np.ascontiguousarray(budget, np.float64)
        self.regularizer = regularizer
        self.negatives = negatives
        self.n_threads = n_threads
        self.rows = as_rows(bags.matrix, bias)
        self.n_examples = len(bags)
        self.n_weights = self.rows.n_weights
        for name, values in (("positive", self.positive), ("budget", self.budget)):
            if values.shape != (self.n_examples,):
                raise ValueError(f"BagObjective: {self.n_examples} bags, but {name} has shape {values.shape}.")
        self.ids = np.flatnonzero(self.positive)
        # Where the rows of each bag begin in a bound, and which instances these are: the first of positive bags.
        self._counts = np.where(self.positive, 1, bags.sizes)
        self._first = np.concatenate([[0], np.cumsum(self._counts)])
        within = np.arange(self._first[-1]) - np.repeat(self._first[:-1], self._counts)
        self._instance = np.repeat(bags.first[:-1], self._counts) + within

    @cached_property
    def _none(self) -> np.ndarray:
        return np.full(self._instance.size, -1, np.int8)

    def _picked(self, latent: np.ndarray) -> Rows:
        instance = self._instance.copy()
        instance[self._first[self.ids]] += latent[self.ids]
        return replace(self.rows, plus=instance, minus=self._none)

    def problem(self, latent: Sequence[Any], factors: np.ndarray | None = None) -> Problem:
        """The convex bound in which these instances speak for the positive bags."""
        rows = self._picked(self.checked(latent))
        budget = self.budget if factors is None else self.budget * factors
        side = np.where(self.positive, 1, -1).astype(np.int8)
        if self.negatives == "bag":
            constraints: Any = SharedSlack(rows, np.ones(len(rows)), self._first, budget, side)
        else:
            side = np.repeat(side, self._counts)
            constraints = Scalar(rows, side, side, np.repeat(budget, self._counts))
        return Problem(constraints, self.regularizer)

    def checked(self, latent: Sequence[Any]) -> np.ndarray:
        """Instances as whole numbers, one for each bag, in range; those of negative bags become 0."""
        values = np.asarray(latent)
        if values.shape == self.positive.shape:
            values = np.where(self.positive, values, 0)
        return checked_instances(self.bags, np.arange(self.n_examples), values)

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """What instances are worth at w. Only positive bags are looked at."""
        place, scores, best = look(self.rows, self.bags.first, self.ids, w, self.n_threads)
        everybody = np.zeros(self.n_examples, np.int64)
        everybody[self.ids] = best
        return BagEvaluation(self, everybody, place, scores)

    def initial(self, rng: np.random.Generator | None) -> np.ndarray:
        """Of each positive bag the instance most unlike negative bags, or the one that random weights like best.

        What means of positive bags have on average beyond those of negative ones is a first, rough weight vector.
        """
        w = np.zeros(self.n_weights)
        if rng is not None:
            return self.evaluate(rng.normal(size=w.size)).best
        means = self.bags.means().matrix
        for side in (True, False):
            if (self.positive == side).any():
                w[: self.rows.width] += (1 if side else -1) * np.ravel(means[self.positive == side].mean(axis=0))
        return self.evaluate(w).best

    def carriers(self, alpha: np.ndarray) -> np.ndarray:
        return np.add.reduceat(np.abs(alpha), self._first[:-1]) > 0.0


def look(
    rows: Rows, first: np.ndarray, ids: np.ndarray, w: np.ndarray, n_threads: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the scores of each of these bags begin, the scores, and the best instance of each."""
    w = np.ascontiguousarray(w, np.float64)
    if w.shape != (rows.n_weights,):
        raise ValueError(f"There are {rows.n_weights} weights, got an array of shape {w.shape}.")
    place = np.concatenate([[0], np.cumsum(first[ids + 1] - first[ids])])
    scores, best = np.empty(place[-1]), np.empty(ids.size, np.int64)
    one_class = np.zeros(first.size - 1, np.int64), w, np.ones(1, bool), 1
    work = rows.n_stored / max(rows.n_rows, 1) * place[-1]
    parts = np.array_split(np.arange(ids.size), max(1, min(n_threads, int(work / _WORTH_A_THREAD))))

    def one(part: np.ndarray) -> None:
        if part.size:
            a, b = part[0], part[-1] + 1
            kernels.look(rows.arrays, first, ids[a:b], *one_class, place[a:b], scores, best[a:b])

    run(one, parts)
    return place, scores, best


@dataclass
class BagEvaluation:
    """The scores of all instances of positive bags at one w, and what follows from them.

    The regret of an instance is C_i·(max(0, 1 − its score) − max(0, 1 − the best score)).
    """

    objective: BagObjective
    best: np.ndarray
    place: np.ndarray
    scores: np.ndarray

    @cached_property
    def _number(self) -> np.ndarray:
        """Which positive bag it is, of every bag; −1 for negative ones."""
        number = np.full(self.objective.n_examples, -1, np.int64)
        number[self.objective.ids] = np.arange(self.objective.ids.size)
        return number

    @cached_property
    def _least(self) -> np.ndarray:
        """The loss of every positive bag at its best."""
        return np.maximum(0.0, 1.0 - self.scores[self.place[:-1] + self.best[self.objective.ids]])

    def regrets(self, ids: np.ndarray, latent: Sequence[object]) -> np.ndarray:
        number, regrets = self._number[ids], np.zeros(np.size(ids))
        chosen = np.flatnonzero(number >= 0)
        number = number[chosen]
        loss = np.maximum(0.0, 1.0 - self.scores[self.place[number] + np.asarray(latent)[chosen]])
        regrets[chosen] = self.objective.budget[ids][chosen] * (loss - self._least[number])
        return regrets

    def listed(self) -> tuple[np.ndarray, np.ndarray]:
        """Regrets of all instances of positive bags; a negative bag has the one value 0."""
        objective = self.objective
        counts = np.where(objective.positive, objective.bags.sizes, 1)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        sizes = np.diff(self.place)
        loss = np.maximum(0.0, 1.0 - self.scores) - np.repeat(self._least, sizes)
        regrets = np.zeros(offsets[-1])
        regrets[np.repeat(objective.positive, counts)] = loss * np.repeat(objective.budget[objective.ids], sizes)
        return regrets, offsets

    def propose(self, i: int, z: Any, rng: np.random.Generator) -> int:
        """Any other instance of the bag; itself where there is no other."""
        size = int(self.objective.bags.sizes[i])
        if not self.objective.positive[i] or size == 1:
            return int(z)
        other = int(rng.integers(size - 1))
        return other + (other >= z)
