"""Games in which one side maximises a score and the other minimises it, move by move.

    f = max_{a1} min_{b1} … max_{aK} min_{bK} s[a1, b1, …, aK, bK]

(Naderi Parizi (4.4)). Fixing what one side does bounds f. Of the maximiser's moves a_k may depend on b_1 … b_{k−1},
which have been played by then, and a_1 on nothing: whatever is fixed so, f cannot be lower. Of the minimiser's b_k may
depend on a_1 … a_k, and f cannot be higher. Such a plan is a *policy*: an integer array of all its decisions, those of
the first level first, within a level in the order of the moves they depend on. Plans that look ahead are no bounds:
that is what (4.8) prints for every number of levels, and (4.7) for more than one.

Scores are arrays of which the last 2K axes are moves; the axes before count games of the same size, and policies have
the same axes before their last. None of the functions cares what the entries are, so that numbers of rows can be
followed like scores.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod
from operator import mul

import numpy as np

MAXIMISER, MINIMISER = 0, 1
"""Sides: the numbers of the first axes on which they move."""


def value(scores: np.ndarray, levels: int) -> np.ndarray:
    """f, of every game.

    >>> value(np.array([[3, 1], [2, 4]]), levels=1).item()
    2
    """
    for _ in range(levels):
        scores = scores.min(axis=-1).max(axis=-1)
    return scores


def moves(scores: np.ndarray, levels: int) -> tuple[int, ...]:
    """What both sides play in one game: (a1, b1, …, aK, bK), the first of equally good moves.

    >>> moves(np.array([[3, 1], [2, 4]]), levels=1)
    (1, 0)
    """
    played = []
    for left in range(levels, 0, -1):
        ahead = value(scores, left - 1)
        a = int(ahead.min(axis=-1).argmax())
        b = int(ahead[a].argmin())
        played += [a, b]
        scores = scores[a, b]
    return tuple(played)


def policy(scores: np.ndarray, levels: int, side: int) -> np.ndarray:
    """The best policy of one side: under it f is reached at these scores. At others the maximiser's leads to nothing
    above f, and the minimiser's to nothing below.

    >>> scores = np.array([[3, 1], [2, 4]])
    >>> policy(scores, 1, MAXIMISER), policy(scores, 1, MINIMISER)
    (array([1]), array([1, 0]))
    """
    decisions = []
    games = scores.shape[: scores.ndim - 2 * levels]
    for left in range(levels, 0, -1):
        ahead = value(scores, left - 1)
        move = ahead.argmin(axis=-1) if side == MINIMISER else ahead.min(axis=-1).argmax(axis=-1)
        decisions.append(move.reshape(*games, -1))
        scores = _taken(scores, move, 2 * left - side)
    return np.concatenate(decisions, axis=-1)


def under(scores: np.ndarray, policy: np.ndarray, levels: int, side: int) -> np.ndarray:
    """What is left when one side follows a policy: scores of all moves of the other.

    If it is the maximiser, the least of them is at most f; if the minimiser, the largest is at least f.

    >>> scores = np.array([[3, 1], [2, 4]])
    >>> under(scores, np.array([1]), 1, MAXIMISER), under(scores, np.array([1, 0]), 1, MINIMISER)
    (array([2, 4]), array([1, 2]))
    """
    games, start = policy.shape[:-1], 0
    scores = np.broadcast_to(scores, (*games, *scores.shape[scores.ndim - 2 * levels :]))
    for left in range(levels, 0, -1):
        shape = scores.shape[: scores.ndim - 2 * left + side]
        stop = start + prod(shape[len(games) :])
        scores = _taken(scores, policy[..., start:stop].reshape(shape), 2 * left - side)
        start = stop
    return scores.reshape(*games, -1)


def choices(sizes: tuple[int, ...], side: int) -> np.ndarray:
    """Between how many moves each decision of a policy chooses, in a game (A1, B1, …, AK, BK).

    >>> choices((5, 2, 3, 4), MAXIMISER), choices((2, 4, 3, 5), MINIMISER)
    (array([5, 3, 3]), array([4, 4, 5, 5, 5, 5, 5, 5]))
    """
    seen = sizes[::2] if side == MINIMISER else (1, *sizes[1:-1:2])
    return np.repeat(sizes[side::2], list(accumulate(seen, func=mul)))


def _taken(scores: np.ndarray, move: np.ndarray, back: int) -> np.ndarray:
    """``move`` played on the axis that is ``back`` from the end, wherever the axes before it lead."""
    rest = (1,) * (back - 1)
    return np.take_along_axis(scores, move.reshape(*move.shape, 1, *rest), axis=-back).squeeze(axis=-back)
