"""Labels that follow one another, and which of them must not."""

from __future__ import annotations

import numpy as np


def first_fault(
    first: np.ndarray,
    flat: np.ndarray,
    n_labels: int,
    pairs: np.ndarray | None,
    starts: np.ndarray | None = None,
    ends: np.ndarray | None = None,
) -> tuple[int, int, int | None, int | None] | None:
    """The first step of labels one after another that is forbidden: example, token, its label, the label that follows.

    A start has no label before it and an end none behind it. Labels of example i begin at ``first[i]``.

    >>> first_fault(np.array([0, 2, 3]), np.array([0, 1, 1]), 2, None, np.array([False, True]), None)
    (1, -1, None, 1)
    """
    if pairs is None and starts is None and ends is None:
        return None
    table = np.zeros((n_labels + 1, n_labels + 1), bool)  # with one more label, which stands between examples
    for place, forbidden in ((np.s_[:-1, :-1], pairs), (np.s_[-1, :-1], starts), (np.s_[:-1, -1], ends)):
        if forbidden is not None:
            table[place] = forbidden
    steps = np.insert(flat, first, n_labels)
    bad = np.flatnonzero(table[steps[:-1], steps[1:]])
    if not bad.size:
        return None
    between = first + np.arange(first.size)
    i = int(np.searchsorted(between, bad[0], side="right")) - 1
    label, follower = (None if k == n_labels else int(k) for k in steps[bad[0] : bad[0] + 2])
    return i, int(bad[0] - between[i]) - 1, label, follower
