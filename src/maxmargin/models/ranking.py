"""Pairs of examples of different grade, from grades inside groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..constraints import Scalar
from ..kernels import pairs
from ..problem import Rows
from ..protocols import Loss

_MOST_PAIRS = 500_000_000


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
    if n_pairs > _MOST_PAIRS:
        raise ValueError(
            f"The groups make {n_pairs:,} pairs, more than {_MOST_PAIRS:,}. Give smaller groups, "
            "or keep a sample of the examples of each grade."
        )
    plus = np.empty(n_pairs, np.int32)
    minus = np.empty(n_pairs, np.int32)
    pairs.list_pairs(order, start, grade, plus, minus)
    one = np.ones(1, np.int8)
    return Scalar(replace(rows, plus=plus, minus=minus), one, one, budget, loss=loss)
