"""A model whose score is a maximum over one set of parts and a minimum over another."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..constraints import SharedSlack
from ..data.arrays import as_rows
from ..inference import max_min as games
from ..kernels import rows as row_kernels
from ..problem import Problem
from ..protocols import Regularizer
from ..validation import shown, whole
from . import labelling

_MOST_LEVELS = 15  # arrays of NumPy 1 have 32 axes at most
_LISTED = 1024  # policies of one example; beyond that they are not listed
_AT_A_TIME = 1_000_000  # scores that are gathered to evaluate all policies


class MaxMin:
    """Two classes told apart by a game: one side shows what speaks for class 1, the other what speaks against it.

        f(x) = max_{a1} min_{b1} … max_{aK} min_{bK} w·φ(x, a1, b1, …, aK, bK),    class 1 where f(x) > 0

    (Naderi Parizi, chapter 4). x is an array of shape (A1, B1, …, AK, BK, n_features): the features of every course
    that the game can take; the numbers of moves may differ from example to example. y is 0 or 1. The game itself is
    latent. With a single move b it is the latent SVM of Felzenszwalb et al. (2010). Train it by
    ``LatentStructuralSVM``.

    Parameters
    ----------
    levels : int
        K, how often both sides move.
    n_features : int or None
        Taken from the data by default.
    bias : float
        Value of one more feature that is the same for all courses; 0 for none.

    Examples
    --------
    >>> x = np.array([[[3.0], [1.0]], [[2.0], [4.0]]])  # two moves each, one feature
    >>> MaxMin(n_features=1).predict(x, np.array([1.0, -1.5]))  # max_a min_b is 2, at a = 1 and b = 0
    (1, (1, 0))
    """

    exact = True

    def __init__(self, levels: int = 1, n_features: int | None = None, bias: float = 1.0) -> None:
        labelling.check_sizes(n_features=n_features)
        self.levels = whole("levels", levels, most=_MOST_LEVELS)
        self.n_features = n_features
        self.bias = labelling.check_bias(bias)

    def __repr__(self) -> str:
        return f"MaxMin(levels={self.levels}, n_features={self.n_features}, bias={self.bias})"

    def sized(self, X: Any, Y: object) -> MaxMin:
        """A copy that knows its number of features from the data."""
        sized = copy.copy(self)
        if self.n_features is None:
            sized.n_features = self._table(X[0], "X[0]").shape[-1]
        return sized

    def joined(self, others: Sequence[MaxMin]) -> MaxMin:
        """The model that knows the sizes of this one and others, each sized on a part of the data."""
        return labelling.joined([self, *others], ["n_features"], [])

    @property
    def n_weights(self) -> int:
        if self.n_features is None:
            raise ValueError("This model does not know its sizes: give n_features, or use sized(X, Y).")
        return self.n_features + (self.bias != 0.0)

    def features(self, x: Any, answer: Any) -> np.ndarray:
        """φ(x, a1, b1, …) of the moves of an answer (y, moves), with the bias: the same for both labels."""
        course = self._table(x)[tuple(answer[1])]
        return np.append(course, self.bias) if self.bias else course

    def loss(self, y: Any, answer: Any) -> float:
        """1 where the label is wrong, whatever the moves."""
        return float(int(y) != int(answer[0]))

    def score(self, x: Any, w: np.ndarray) -> float:
        """f(x)."""
        return float(games.value(self._scores(x, w), self.levels))

    def predict(self, x: object, w: np.ndarray) -> tuple[int, tuple[int, ...]]:
        """(label, moves): the class, and what both sides play where they play their best."""
        scores = self._scores(x, w)
        moves = games.moves(scores, self.levels)
        return int(scores[moves] > 0.0), moves

    def latent_objective(self, X: Any, Y: Any, budget: np.ndarray, regularizer: Regularizer) -> MaxMinObjective:
        """Ω(w) + Σ_i C_i max(0, 1 − y_i f(x_i)) on these data, y_i counted as −1 or 1, with its convex bounds."""
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} examples, Y has {len(Y)}.")
        tables = [self._table(x, f"X[{i}]") for i, x in enumerate(X)]
        positive = labelling.check_labels(Y, 2, "Y") == 1
        return MaxMinObjective(tables, positive, self.levels, self.bias, budget, regularizer)

    def _scores(self, x: object, w: np.ndarray) -> np.ndarray:
        w = labelling.as_weights(w, self.n_weights)
        scores = self._table(x) @ w[: self.n_features]
        return scores + self.bias * w[-1] if self.bias else scores

    def _table(self, x: object, what: str = "x") -> np.ndarray:
        """An example, checked; float32 and float64 stay as they are."""
        table = np.asarray(x)
        axes = ", ".join(f"A{k}, B{k}" for k in range(1, self.levels + 1))
        if table.dtype.kind not in "fiub" or table.ndim != 2 * self.levels + 1:
            raise ValueError(
                f"{what} must be an array of numbers of shape ({axes}, n_features), got {table.dtype} of shape "
                f"{table.shape}. With levels={self.levels} it has {2 * self.levels + 1} axes; where one side has no "
                "choice its axis has length 1."
            )
        if not table.size:
            raise ValueError(
                f"{what} has shape {table.shape}: every side must have a move, and there must be features."
            )
        if self.n_features is not None and table.shape[-1] != self.n_features:
            raise ValueError(f"{what} has {table.shape[-1]} features, {self.n_features} are needed.")
        table = table.astype(table.dtype if table.dtype in (np.float32, np.float64) else np.float64, copy=False)
        if not np.isfinite(table).all():
            raise ValueError(f"{what} has entries that are not finite. Fill in or drop missing values first.")
        return table


class _Alike:
    """Examples of one class whose games have the same size: all of them are played at once."""

    def __init__(self, side: int, sizes: tuple[int, ...], ids: np.ndarray) -> None:
        self.side, self.sizes, self.ids = side, sizes, ids
        """Whose policies bound the losses: the maximiser's those of positives, the minimiser's those of negatives."""
        self.sign = 1.0 if side == games.MAXIMISER else -1.0
        self.n_courses = prod(sizes)
        self.n_free = prod(sizes[1 - side :: 2])
        self.choices = games.choices(sizes, side)
        self.n_policies = prod(self.choices.tolist())
        self.open = np.flatnonzero(self.choices > 1)
        """The decisions that are any."""

    def numbered(self, policies: np.ndarray) -> np.ndarray:
        """The numbers of policies, the first decision counting most."""
        return policies @ self._worth

    def policies(self, numbers: np.ndarray) -> np.ndarray:
        return np.asarray(numbers, np.int64)[:, None] // self._worth % self.choices

    @property
    def _worth(self) -> np.ndarray:
        return np.append(np.cumprod(self.choices[:0:-1])[::-1], 1)


class MaxMinObjective:
    """Ω(w) + Σ_i C_i max(0, 1 − y_i f(x_i)), f the value of a game, and its convex bounds.

    A bound fixes a policy for each example (see ``inference.max_min``): the maximiser's for positives, the minimiser's
    for negatives. The other side is free, and each of its answers is a constraint ±w·φ ≥ 1 − ξ_i: all of them are
    listed, and the dual variable of an answer keeps its meaning from bound to bound. Where no example has more than a
    thousand policies or so, latent values are the numbers of policies; else they are the policies, arrays of decisions.

    Parameters
    ----------
    tables : list of arrays (A1, B1, …, AK, BK, n_features)
    positive : bool array (n_examples,)
    levels : int
    bias : float
        One more feature, if not zero.
    budget : float array (n_examples,) or (1,)
        C_i.
    regularizer : Regularizer
    """

    def __init__(
        self,
        tables: Sequence[np.ndarray],
        positive: np.ndarray,
        levels: int,
        bias: float,
        budget: np.ndarray,
        regularizer: Regularizer,
    ) -> None:
        self.levels, self.regularizer = levels, regularizer
        self.n_examples = len(tables)
        self.budget = np.broadcast_to(np.asarray(budget, dtype=np.float64), self.n_examples).copy()
        flat = np.concatenate([table.reshape(-1, table.shape[-1]) for table in tables])
        if bias:
            flat = np.column_stack([flat, np.full(len(flat), bias, flat.dtype)])
        self.features, self.n_weights = flat, flat.shape[1]
        self.first = np.concatenate([[0], np.cumsum([prod(table.shape[:-1]) for table in tables])])
        alike: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for i, table in enumerate(tables):
            side = games.MAXIMISER if positive[i] else games.MINIMISER
            alike.setdefault((side, table.shape[:-1]), []).append(i)
        self.groups = [_Alike(side, size, np.array(ids)) for (side, size), ids in alike.items()]
        self.group_of = np.empty(self.n_examples, np.int64)
        n_free = np.empty(self.n_examples, np.int64)
        for g, group in enumerate(self.groups):
            self.group_of[group.ids], n_free[group.ids] = g, group.n_free
        self.first_answer = np.concatenate([[0], np.cumsum(n_free)])
        self.listable = all(group.n_policies <= _LISTED for group in self.groups)

    def problem(self, latent: Any, factors: np.ndarray | None = None) -> Problem:
        """Rows are ±φ along all courses that the fixed policies leave open."""
        courses = np.empty(self.first_answer[-1], np.int64)
        signs = np.empty(courses.size, self.features.dtype)
        for group in self.groups:
            policies = self.policies(group, [latent[i] for i in group.ids.tolist()])
            every = np.arange(group.n_courses).reshape(group.sizes)
            course = games.under(every, policies, self.levels, group.side)
            at = self.first_answer[group.ids][:, None] + np.arange(group.n_free)
            courses[at] = self.first[group.ids][:, None] + course
            signs[at] = group.sign
        rows = as_rows(self.features[courses] * signs[:, None])
        budget = self.budget if factors is None else self.budget * factors
        return Problem(SharedSlack(rows, np.ones(courses.size), self.first_answer, budget), self.regularizer)

    def evaluate(self, w: np.ndarray) -> MaxMinEvaluation:
        return MaxMinEvaluation(self, w)

    def carriers(self, alpha: np.ndarray) -> np.ndarray:
        return np.add.reduceat(np.abs(alpha), self.first_answer[:-1]) > 0.0

    def initial(self, rng: np.random.Generator | None) -> Any:
        """Policies that are best at random weights; or at weights from the mean negative to the mean positive."""
        if rng is not None:
            return self.evaluate(rng.normal(size=(self.n_weights,))).best
        means = np.add.reduceat(self.features, self.first[:-1], axis=0) / np.diff(self.first)[:, None]
        sign = np.array([group.sign for group in self.groups])[self.group_of]
        share = sign / np.where(sign > 0, max(1, int((sign > 0).sum())), max(1, int((sign < 0).sum())))
        return self.evaluate(share @ means).best

    def sequence(self, policies: Sequence[np.ndarray]) -> Any:
        """Latent values of all examples, from the policies of each group."""
        values: list[Any] = [None] * self.n_examples
        for group, some in zip(self.groups, policies, strict=True):
            for i, z in zip(group.ids.tolist(), group.numbered(some) if self.listable else some, strict=True):
                values[i] = z
        return np.array(values, np.int64) if self.listable else values

    def policies(self, group: _Alike, values: Sequence[Any]) -> np.ndarray:
        """Policies that latent values of one group mean, one row for each."""
        wanted = "a whole number" if self.listable else "an array of decisions"
        try:
            rows = group.policies(np.asarray(values)) if self.listable else np.asarray(values, dtype=np.int64)
            right = rows.shape == (len(values), group.choices.size) and bool(
                ((rows >= 0) & (rows < group.choices)).all()
            )
            right = right and (not self.listable or bool((np.asarray(values) < group.n_policies).all()))
        except (TypeError, ValueError):
            right = False
        if not right:
            raise ValueError(
                f"A game of {group.sizes} moves needs {wanted} for each policy: {group.choices.size} decisions between "
                f"{group.choices.tolist()[:10]} moves, {group.n_policies if self.listable else 'many'} policies. Got "
                f"{shown(values[0])} …; take them from latent_ of another fit, or from complete(X, Y)."
            )
        return rows

    def scores_of(self, group: _Alike, ids: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Some examples of a group: scores of all courses, as tables."""
        return scores[self.first[ids][:, None] + np.arange(group.n_courses)].reshape(ids.size, *group.sizes)


class MaxMinEvaluation:
    """A max–min objective at one w: C_i·(hinge under a policy − hinge of the game's value)."""

    def __init__(self, objective: MaxMinObjective, w: np.ndarray) -> None:
        self._objective = objective
        self._scores = np.empty(len(objective.features))
        row_kernels.scores(
            as_rows(objective.features).arrays, labelling.as_weights(w, objective.n_weights), self._scores
        )
        self._hinges = np.empty(objective.n_examples)
        best = []
        for group in objective.groups:
            scores = objective.scores_of(group, group.ids, self._scores)
            best.append(games.policy(scores, objective.levels, group.side))
            self._hinges[group.ids] = _hinge(group.sign * games.value(scores, objective.levels))
        self.best = objective.sequence(best)

    def regrets(self, ids: np.ndarray, latent: Any) -> np.ndarray:
        regrets = np.empty(ids.size)
        which = self._objective.group_of[ids]
        for g in np.unique(which).tolist():
            group, at = self._objective.groups[g], np.flatnonzero(which == g)
            policies = self._objective.policies(group, [latent[p] for p in at.tolist()])
            regrets[at] = self._regrets(group, ids[at], policies)
        return regrets

    def _regrets(self, group: _Alike, ids: np.ndarray, policies: np.ndarray) -> np.ndarray:
        scores = self._objective.scores_of(group, ids, self._scores)
        left = games.under(scores, policies, self._objective.levels, group.side)
        bound = left.min(axis=-1) if group.side == games.MAXIMISER else left.max(axis=-1)
        return self._objective.budget[ids] * (_hinge(group.sign * bound) - self._hinges[ids])

    def listed(self) -> tuple[np.ndarray, np.ndarray] | None:
        objective = self._objective
        if not objective.listable:
            return None
        n_policies = np.array([group.n_policies for group in objective.groups])[objective.group_of]
        first = np.concatenate([[0], np.cumsum(n_policies)])
        regrets = np.empty(first[-1])
        for group in objective.groups:
            every = group.policies(np.arange(group.n_policies))
            step = max(1, _AT_A_TIME // (group.n_policies * group.n_courses))
            for start in range(0, group.ids.size, step):
                ids = group.ids[start : start + step]
                found = self._regrets(group, np.repeat(ids, len(every)), np.tile(every, (ids.size, 1)))
                regrets[first[ids][:, None] + np.arange(len(every))] = found.reshape(ids.size, -1)
        return regrets, first

    def propose(self, i: int, z: object, rng: np.random.Generator) -> Any:
        """Another move in one decision; every such change is as likely as any other."""
        objective = self._objective
        group = objective.groups[objective.group_of[i]]
        if not group.open.size:
            return z
        policies = objective.policies(group, [z]).copy()
        k = group.open[rng.integers(group.open.size)]
        # One of the other moves: those from the present one on are counted one higher.
        move = rng.integers(group.choices[k] - 1)
        policies[0, k] = move + (move >= policies[0, k])
        return int(group.numbered(policies)[0]) if objective.listable else policies[0]


def _hinge(margin: np.ndarray) -> np.ndarray:
    return np.maximum(0.0, 1.0 - margin)
