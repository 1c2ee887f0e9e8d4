"""Things in a row, cut into runs of about the same weight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def balanced(weights: Sequence[float], n: int) -> list[int]:
    """Where to cut things of these weights into n runs: n + 1 positions, from 0 to their number.

    Each cut is where the sum is nearest to its share of the total. No run is empty while another could be parted; so
    the heaviest is at most one thing heavier than the mean.

    >>> balanced([1, 1, 1, 1, 4], 2)
    [0, 4, 5]
    >>> balanced([9, 1], 3)
    [0, 1, 2, 2]
    """
    count = len(weights)
    if count <= n:
        return [min(k, count) for k in range(n + 1)]
    sums = np.concatenate([[0.0], np.cumsum(weights, dtype=np.float64)])
    cuts = [0]
    for k in range(1, n):
        share = sums[-1] * k / n
        at = int(np.searchsorted(sums, share))
        if at and share - sums[at - 1] <= sums[at] - share:
            at -= 1
        cuts.append(min(max(at, cuts[-1] + 1), count - (n - k)))
    return [*cuts, count]


def unparted(names: Iterable[set[Any]]) -> list[tuple[int, int]]:
    """Runs of things as short as can be, such that no name is in two of them; ``names`` are those of each thing.

    >>> unparted([{"a"}, {"a", "b"}, {"c"}])
    [(0, 2), (2, 3)]
    """
    first: dict[Any, int] = {}
    begins: list[int] = []
    count = 0
    for here in names:
        begin = min((first.setdefault(name, count) for name in here), default=count)
        begins = [b for b in begins if b <= begin]  # runs that began later are one with the run of that name
        if begin == count:
            begins.append(count)
        count += 1
    return list(zip(begins, [*begins[1:], count], strict=True))
