"""The objective of max–min models, and its convex bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..constraints import SharedSlack
from ..data.arrays import as_rows
from ..inference import max_min as games
from ..kernels import rows as row_kernels
from ..problem import Problem
from ..protocols import Regularizer
from ..validation import shown
from .labelling import as_weights

_LISTED = 1024  # policies of one example; beyond that they are not listed
_AT_A_TIME = 1_000_000  # scores that are gathered to evaluate all policies


@dataclass(frozen=True)
class _Side:
    """What bounds examples of one class: whose policy is fixed, and how the other side's best answer is found."""

    sign: float
    policy: Callable[[np.ndarray, int], np.ndarray]
    under: Callable[[np.ndarray, np.ndarray, int], np.ndarray]
    choices: Callable[[tuple[int, ...]], np.ndarray]
    answer: Callable[..., np.ndarray]


_POSITIVE = _Side(1.0, games.lower_policy, games.under_lower, games.lower_choices, np.min)
_NEGATIVE = _Side(-1.0, games.upper_policy, games.under_upper, games.upper_choices, np.max)


class _Alike:
    """Examples of one class whose games have the same size: all of them are played at once."""

    def __init__(self, side: _Side, sizes: tuple[int, ...], ids: np.ndarray) -> None:
        self.side, self.sizes, self.ids = side, sizes, ids
        self.n_courses = prod(sizes)
        self.n_free = prod(sizes[1::2] if side.sign > 0 else sizes[::2])
        self.choices = side.choices(sizes)
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
        alike: dict[tuple[bool, tuple[int, ...]], list[int]] = {}
        for i, table in enumerate(tables):
            alike.setdefault((bool(positive[i]), table.shape[:-1]), []).append(i)
        self.groups = [_Alike(_POSITIVE if y else _NEGATIVE, size, np.array(ids)) for (y, size), ids in alike.items()]
        self.group_of = np.empty(self.n_examples, np.int64)
        n_free = np.empty(self.n_examples, np.int64)
        for g, group in enumerate(self.groups):
            self.group_of[group.ids], n_free[group.ids] = g, group.n_free
        self.first_answer = np.concatenate([[0], np.cumsum(n_free)])
        self.listable = all(group.n_policies <= _LISTED for group in self.groups)

    def problem(self, latent: Any, weights: np.ndarray | None = None) -> Problem:
        """Rows are ±φ along all courses that the fixed policies leave open."""
        courses = np.empty(self.first_answer[-1], np.int64)
        signs = np.empty(courses.size, self.features.dtype)
        for group in self.groups:
            policies = self.policies(group, [latent[i] for i in group.ids.tolist()])
            course = group.side.under(np.arange(group.n_courses).reshape(group.sizes), policies, self.levels)
            at = self.first_answer[group.ids][:, None] + np.arange(group.n_free)
            courses[at] = self.first[group.ids][:, None] + course
            signs[at] = group.side.sign
        rows = as_rows(self.features[courses] * signs[:, None])
        budget = self.budget if weights is None else self.budget * weights
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
        sign = np.array([group.side.sign for group in self.groups])[self.group_of]
        share = sign / np.where(sign > 0, max(1, int((sign > 0).sum())), max(1, int((sign < 0).sum())))
        return self.evaluate(share @ means).best

    def sequence(self, policies: Sequence[np.ndarray]) -> Any:
        """Latent values of all examples, from the policies of each group."""
        if self.listable:
            numbers: Any = np.empty(self.n_examples, np.int64)
            for group, some in zip(self.groups, policies, strict=True):
                numbers[group.ids] = group.numbered(some)
            return numbers
        values: list[Any] = [None] * self.n_examples
        for group, some in zip(self.groups, policies, strict=True):
            for i, policy in zip(group.ids.tolist(), some, strict=True):
                values[i] = policy
        return values

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
        row_kernels.scores(as_rows(objective.features).arrays, as_weights(w, objective.n_weights), self._scores)
        self._hinges = np.empty(objective.n_examples)
        best = []
        for group in objective.groups:
            scores = objective.scores_of(group, group.ids, self._scores)
            best.append(group.side.policy(scores, objective.levels))
            self._hinges[group.ids] = _hinge(group.side.sign * games.value(scores, objective.levels))
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
        bound = group.side.answer(group.side.under(scores, policies, self._objective.levels), axis=-1)
        return self._objective.budget[ids] * (_hinge(group.side.sign * bound) - self._hinges[ids])

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

    def propose(self, i: int, z: Any, rng: np.random.Generator) -> Any:
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
