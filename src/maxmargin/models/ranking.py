"""Pairs of examples of different grade, from grades inside groups."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..constraints import Scalar, SortedPairs
from ..kernels import pairs
from ..problem import Rows
from ..protocols import Loss

_MOST_PAIRS = 500_000_000


class Groups(NamedTuple):
    """Rows by group, ascending in grade; where each group begins; and how many pairs there are."""

    order: np.ndarray
    start: np.ndarray
    n_pairs: int


def by_group(grade: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Examples sorted by group and grade, and where each group begins."""
    order = np.lexsort((grade, group)).astype(np.int64)
    changes = np.flatnonzero(np.diff(group[order])) + 1
    return order, np.concatenate([[0], changes, [group.size]]).astype(np.int64)


def ranking(
    rows: Rows, grade: np.ndarray, group: np.ndarray, budget: np.ndarray, *, loss: Loss | None = None
) -> Scalar:
    """w·x_a ≥ w·x_b + 1 − ξ_ab for all a, b of one group with grade_a > grade_b.

    Pairs are two row numbers each; their difference vectors are never formed.
    """
    order, start, n_pairs = _groups(rows, grade, group)
    if n_pairs > _MOST_PAIRS:
        raise ValueError(
            f"The groups make {n_pairs:,} pairs, more than {_MOST_PAIRS:,}. Give smaller groups, or keep a sample of "
            "the examples of each grade. In memory, with loss='hinge', solver='newton', l2 or a Gaussian prior and few "
            "features, pairs are not written down, and may be any number."
        )
    plus = np.empty(n_pairs, np.int32)
    minus = np.empty(n_pairs, np.int32)
    pairs.list_pairs(order, start, grade, plus, minus)
    one = np.ones(1, np.int8)
    return Scalar(replace(rows, plus=plus, minus=minus), one, one, budget, loss=loss)


def sorted_ranking(rows: Rows, grade: np.ndarray, group: np.ndarray, C: float) -> SortedPairs:
    """The same for the hinge, where groups are so large that pairs are better not written down."""
    order, start, _ = _groups(rows, grade, group)
    return SortedPairs(rows, order, start, _ranks(order, start, grade), C)


def _groups(rows: Rows, grade: np.ndarray, group: np.ndarray) -> Groups:
    if not np.shape(grade) == np.shape(group) == (len(rows),):
        raise ValueError(
            f"grade and group must have one entry for each of {len(rows)} rows, got shapes {np.shape(grade)} and "
            f"{np.shape(group)}."
        )
    order, start = by_group(grade, group)
    n_pairs = pairs.count_pairs(order, start, grade)
    if n_pairs == 0:
        raise ValueError(
            f"No group has two examples of different grade, so there is nothing to rank (n_samples = {grade.size}, "
            f"n_groups = {start.size - 1}). Check that y holds grades and that groups are not single rows."
        )
    return Groups(order, start, n_pairs)


def _ranks(order: np.ndarray, start: np.ndarray, grade: np.ndarray) -> np.ndarray:
    """The grade of every row, counted from 0 inside its group."""
    higher = np.append(0, np.cumsum(np.diff(grade[order]) != 0.0))  # one more where two groups meet, perhaps
    ranks = np.empty(order.size, np.int32)
    ranks[order] = higher - np.repeat(higher[start[:-1]], np.diff(start))
    return ranks
