"""Boxes: how much two of them share, and which to keep of many that show the same thing.

A box is x_min, y_min, x_max, y_max, in pixels and at their edges: 0, 0, width, height is the whole image.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..kernels.suppression import kept_boxes


def overlaps(boxes: ArrayLike, others: ArrayLike) -> np.ndarray:
    """The area that two boxes share, as a part of the area that they cover together.

    Parameters
    ----------
    boxes : array of shape (n, 4)
    others : array of shape (m, 4)

    Returns
    -------
    ndarray of float64, shape (n, m)
        From 0 to 1. A box without area overlaps with nothing, itself included.

    Examples
    --------
    >>> overlaps([[0, 0, 10, 10]], [[0, 0, 10, 10], [5, 0, 15, 10], [10, 0, 20, 10]]).round(3)
    array([[1.   , 0.333, 0.   ]])
    """
    a, b = as_boxes("boxes", boxes), as_boxes("others", others)
    sides = np.minimum(a[:, None, 2:], b[None, :, 2:]) - np.maximum(a[:, None, :2], b[None, :, :2])
    common = np.maximum(sides, 0.0).prod(axis=2)
    together = _areas(a)[:, None] + _areas(b)[None, :] - common
    return np.divide(common, together, out=np.zeros_like(common), where=common > 0.0)


def suppress(boxes: ArrayLike, scores: ArrayLike, overlap: float = 0.5) -> np.ndarray:
    """Which boxes are kept when, of those that overlap, only the best remain: non-maximum suppression.

    The boxes are gone through by falling score. One is dropped if more than ``overlap`` of its area lies within one
    that was kept; boxes that were dropped drop no others.

    Parameters
    ----------
    boxes : array of shape (n, 4)
    scores : array of shape (n,)
        Of equal scores the first box is the better one.
    overlap : float, default 0.5
        From 0 to 1.

    Returns
    -------
    ndarray of int64
        Rows of ``boxes``, by falling score.

    Examples
    --------
    >>> suppress([[0, 0, 10, 10], [1, 0, 11, 10], [20, 0, 30, 10]], [0.5, 0.9, 0.1])
    array([1, 2])
    """
    found = as_boxes("boxes", boxes)
    order = falling(as_scores("scores", scores, found))
    if not 0.0 <= overlap <= 1.0:
        raise ValueError(f"overlap must be a share from 0 to 1, got {overlap!r}.")
    kept = kept_boxes(np.ascontiguousarray(found[order].T), _areas(found)[order], float(overlap))
    return order[kept]


def clipped(boxes: ArrayLike, height: float, width: float) -> np.ndarray:
    """The parts of boxes that lie in an image. Nothing is left of a box beyond it: its area is 0.

    >>> clipped([[-3, 2, 8, 30]], 20, 10)
    array([[ 0.,  2.,  8., 20.]])
    """
    limits = np.array([width, height, width, height], np.float64)
    return np.clip(as_boxes("boxes", boxes), 0.0, limits)


def as_boxes(name: str, boxes: ArrayLike) -> np.ndarray:
    """Boxes as float64 (n, 4), or an error that says what is wrong with them. An empty list is no boxes."""
    found = np.asarray(boxes, np.float64)
    if found.size == 0:
        return np.zeros((0, 4))
    if found.ndim != 2 or found.shape[1] != 4:
        raise ValueError(f"{name} must have the shape (n, 4): x_min, y_min, x_max, y_max. Got the shape {found.shape}.")
    wrong = np.flatnonzero(~(np.isfinite(found).all(axis=1) & (found[:, :2] <= found[:, 2:]).all(axis=1)))
    if wrong.size:
        raise ValueError(
            f"{name}[{wrong[0]}] is {found[wrong[0]].tolist()}: a box needs finite numbers with x_min <= x_max and "
            "y_min <= y_max, in the order x_min, y_min, x_max, y_max."
        )
    return found


def as_scores(name: str, scores: ArrayLike, boxes: np.ndarray) -> np.ndarray:
    """One float64 for each box, or an error."""
    found = np.asarray(scores, np.float64)
    if found.shape != (len(boxes),):
        raise ValueError(
            f"{name} must have one number for each box: there are {len(boxes)} boxes, got the shape {found.shape}."
        )
    if np.isnan(found).any():
        raise ValueError(f"{name}[{np.flatnonzero(np.isnan(found))[0]}] is NaN: boxes cannot be put in order by it.")
    return found


def falling(scores: np.ndarray) -> np.ndarray:
    """The order of falling scores; equal ones stay in theirs."""
    return np.argsort(-scores, kind="stable")


def _areas(boxes: np.ndarray) -> np.ndarray:
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
