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

from collections.abc import Callable
from itertools import accumulate
from math import prod
from operator import mul

import numpy as np


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


def lower_policy(scores: np.ndarray, levels: int) -> np.ndarray:
    """The maximiser's best policy: under it f is reached at these scores, and never exceeded at others.

    >>> lower_policy(np.array([[3, 1], [2, 4]]), levels=1)
    array([1])
    """
    return _policy(scores, levels, 0, lambda ahead: ahead.min(axis=-1).argmax(axis=-1))


def upper_policy(scores: np.ndarray, levels: int) -> np.ndarray:
    """The minimiser's best policy: under it f is reached at these scores, and at others nothing below f.

    >>> upper_policy(np.array([[3, 1], [2, 4]]), levels=1)
    array([1, 0])
    """
    return _policy(scores, levels, 1, lambda ahead: ahead.argmin(axis=-1))


def _policy(scores: np.ndarray, levels: int, side: int, choose: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The decisions of one side, 0 for the maximiser and 1 for the minimiser, level by level."""
    decisions = []
    games = scores.shape[: scores.ndim - 2 * levels]
    for left in range(levels, 0, -1):
        move = choose(value(scores, left - 1))
        decisions.append(move.reshape(*games, -1))
        scores = _taken(scores, move, 2 * left - side)
    return np.concatenate(decisions, axis=-1)


def under_lower(scores: np.ndarray, policy: np.ndarray, levels: int) -> np.ndarray:
    """What is left when the maximiser follows a policy: scores of all b1, …, bK, whose least is at most f.

    >>> under_lower(np.array([[3, 1], [2, 4]]), np.array([1]), levels=1)
    array([2, 4])
    """
    return _under(scores, policy, levels, 0)


def under_upper(scores: np.ndarray, policy: np.ndarray, levels: int) -> np.ndarray:
    """What is left when the minimiser follows a policy: scores of all a1, …, aK, whose largest is at least f.

    >>> under_upper(np.array([[3, 1], [2, 4]]), np.array([1, 0]), levels=1)
    array([1, 2])
    """
    return _under(scores, policy, levels, 1)


def _under(scores: np.ndarray, policy: np.ndarray, levels: int, side: int) -> np.ndarray:
    games, start = policy.shape[:-1], 0
    scores = np.broadcast_to(scores, (*games, *scores.shape[scores.ndim - 2 * levels :]))
    for left in range(levels, 0, -1):
        shape = scores.shape[: scores.ndim - 2 * left + side]
        stop = start + prod(shape[len(games) :])
        scores = _taken(scores, policy[..., start:stop].reshape(shape), 2 * left - side)
        start = stop
    return scores.reshape(*games, -1)


def lower_choices(sizes: tuple[int, ...]) -> np.ndarray:
    """Between how many moves each decision of the maximiser's policies chooses, in a game (A1, B1, …, AK, BK).

    >>> lower_choices((5, 2, 3, 4))
    array([5, 3, 3])
    """
    return np.repeat(sizes[::2], list(accumulate(sizes[1:-1:2], initial=1, func=mul)))


def upper_choices(sizes: tuple[int, ...]) -> np.ndarray:
    """The same for the minimiser's.

    >>> upper_choices((2, 4, 3, 5))
    array([4, 4, 5, 5, 5, 5, 5, 5])
    """
    return np.repeat(sizes[1::2], list(accumulate(sizes[::2], func=mul)))


def _taken(scores: np.ndarray, move: np.ndarray, back: int) -> np.ndarray:
    """``move`` played on the axis that is ``back`` from the end, wherever the axes before it lead."""
    rest = (1,) * (back - 1)
    return np.take_along_axis(scores, move.reshape(*move.shape, 1, *rest), axis=-back).squeeze(axis=-back)
