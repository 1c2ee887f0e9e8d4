"""The best labellings of one sequence under restrictions: without a label at a token, with it, or in their order.

A search is given a table (n_tokens, n_labels) that says which labels every token may have, and returns the best such
labelling and its score, −∞ if there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count

import numpy as np

Labelling = tuple[np.ndarray, float]
Search = Callable[[np.ndarray], Labelling]


def runners_up(search: Search, y: np.ndarray, n_labels: int) -> list[Labelling]:
    """For each token the best labelling with another label there than in y."""
    return [search(_table(y.size, n_labels, t, [label])) for t, label in enumerate(y.tolist())]


def margins(search: Search, y: np.ndarray, n_labels: int) -> np.ndarray:
    """By how much the best labelling with a token's label in y beats the best one with another label there."""
    best, score = search(np.ones((y.size, n_labels), bool))  # one of the two
    out = np.empty(y.size)
    for t, label in enumerate(y.tolist()):
        others = _table(y.size, n_labels, t, [label])
        if best[t] != label:
            others[t] = ~others[t]
        lead = score - search(others)[1]
        out[t] = lead if best[t] == label else -lead
    return out


def in_order(search: Search, n_tokens: int, n_labels: int) -> Iterator[Labelling]:
    """All labellings, best first.

    As Lawler (1972) ranks solutions: those that are left are split by the first token at which they part from the best
    of them, and the best of every part is searched for.
    """
    parts: list[tuple[float, int, np.ndarray, int, list[int]]] = []
    number = count()

    def add(first: int, banned: list[int], allowed: np.ndarray) -> None:
        path, score = search(allowed)
        if score > -np.inf:
            heappush(parts, (-score, next(number), path, first, banned))

    add(0, [], np.ones((n_tokens, n_labels), bool))
    while parts:
        minus_score, _, path, first, banned = heappop(parts)
        yield path, -minus_score
        for t in range(first, n_tokens):
            without = [*banned, int(path[t])] if t == first else [int(path[t])]
            allowed = _table(n_tokens, n_labels, t, without)
            allowed[:t] = np.arange(n_labels) == path[:t, None]
            add(t, without, allowed)


def _table(n_tokens: int, n_labels: int, t: int, banned: list[int]) -> np.ndarray:
    """All labels, but for those that are banned at one token."""
    allowed = np.ones((n_tokens, n_labels), bool)
    allowed[t, banned] = False
    return allowed
