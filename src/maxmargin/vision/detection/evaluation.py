"""How well objects are found: precision and recall, by the rules of the PASCAL VOC challenge.

The boxes found in all images are gone through by falling score. A box belongs to that object of its image with which it
overlaps most. It is right if they overlap enough and no better box has had that object; otherwise it is wrong, as is a
second box on an object. The average precision is the area under the curve of precision over recall, in which the
precision at a recall is the best one at that recall or a larger one (Everingham et al. 2015, as from 2010 on).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ..features.numbers import share
from .boxes import as_boxes, as_scores, falling, overlaps


@dataclass(frozen=True)
class PrecisionRecall:
    """A curve of precision over recall, with a point for each box that counts, by falling score.

    Attributes
    ----------
    precision : ndarray of float64, shape (n,)
        The share of right boxes among those up to this one.
    recall : ndarray of float64, shape (n,)
        The share of objects that they find.
    scores : ndarray of float64, shape (n,)
        The score of the box: the threshold that leads to this point.
    average_precision : float
        The area under the curve, from 0 to 1.
    n_truths : int
        How many objects there are to be found.
    """

    precision: np.ndarray = field(repr=False)
    recall: np.ndarray = field(repr=False)
    scores: np.ndarray = field(repr=False)
    average_precision: float
    n_truths: int


def precision_recall(
    found: Sequence[tuple[ArrayLike, ArrayLike]],
    truths: Sequence[ArrayLike],
    overlap: float = 0.5,
    *,
    ignored: Sequence[ArrayLike] | None = None,
) -> PrecisionRecall:
    """Hold the boxes that were found in images against those of the objects in them.

    Parameters
    ----------
    found : sequence of (boxes, scores), one for each image
        Arrays of shapes (n, 4) and (n,), in any order.
    truths : sequence of arrays of shape (m, 4), one for each image
        Boxes of the objects; an empty array where there are none.
    overlap : float, default 0.5
        Boxes that overlap by at least so much show the same object.
    ignored : sequence of arrays of bool of shape (m,), one for each image, optional
        Objects that need not be found, such as those marked as difficult: they do not count, and neither do boxes that
        show them.

    Returns
    -------
    PrecisionRecall

    Examples
    --------
    Two objects; the best box is on one of them, the next on none, the last on the other.

    >>> truths = [[[0, 0, 10, 10]], [[5, 5, 20, 20]]]
    >>> first = [[0, 0, 10, 9], [30, 0, 40, 10]], [0.9, 0.8]
    >>> second = [[5, 5, 20, 19]], [0.1]
    >>> curve = precision_recall([first, second], truths)
    >>> curve.precision.round(2), curve.recall, round(curve.average_precision, 3)
    (array([1.  , 0.5 , 0.67]), array([0.5, 0.5, 1. ]), 0.833)
    """
    share("overlap", overlap)
    if len(found) != len(truths):
        raise ValueError(f"found and truths must have one entry for each image: they have {len(found)}, {len(truths)}.")
    objects = [as_boxes(f"truths[{k}]", boxes) for k, boxes in enumerate(truths)]
    marks = [np.zeros(len(boxes), bool) for boxes in objects] if ignored is None else list(map(np.asarray, ignored))
    if [mark.shape for mark in marks] != [(len(boxes),) for boxes in objects]:
        raise ValueError("ignored must have one True or False for each box of truths, image by image.")
    spared = np.concatenate([np.zeros(0), *marks]).astype(bool)
    n_truths = int(np.count_nonzero(~spared))
    if n_truths == 0:
        raise ValueError(
            f"There is no object to be found in the {len(objects)} images ({spared.size} are ignored), so there is no "
            "recall. Give at least one box in truths that is not ignored."
        )
    scores, shown = matched(found, objects, overlap)
    order = falling(scores)
    scores, shown = scores[order], shown[order]
    counts = (shown < 0) | ~spared[shown]
    scores, shown = scores[counts], shown[counts]
    right = np.zeros(len(shown), bool)
    objects_shown, first = np.unique(shown, return_index=True)
    right[first[objects_shown >= 0]] = True
    n_right = np.cumsum(right)
    precision, recall = n_right / np.arange(1, len(shown) + 1), n_right / n_truths
    # Recall rises by 1 / n_truths at each right box, there times the best precision from it on.
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return PrecisionRecall(precision, recall, scores, float(best[right].sum() / n_truths), n_truths)


def shown_by(boxes: np.ndarray, objects: np.ndarray, overlap: float) -> np.ndarray:
    """Which object of their image each of some boxes shows: the one it overlaps most, −1 if that is too little."""
    if not (len(boxes) and len(objects)):
        return np.full(len(boxes), -1)
    shared = overlaps(boxes, objects)
    return np.where(shared.max(axis=1) >= overlap, shared.argmax(axis=1), -1)


def matched(
    found: Sequence[tuple[ArrayLike, ArrayLike]], objects: list[np.ndarray], overlap: float
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of all boxes found, and which object each shows, counted through all images; −1 if none."""
    scores, shown = [np.zeros(0)], [np.zeros(0, np.int64)]
    before = 0
    for k, ((boxes, values), there) in enumerate(zip(found, objects, strict=True)):
        places = as_boxes(f"found[{k}][0]", boxes)
        scores.append(as_scores(f"found[{k}][1]", values, places))
        mine = shown_by(places, there, overlap)
        shown.append(np.where(mine >= 0, before + mine, -1))
        before += len(there)
    return np.concatenate(scores), np.concatenate(shown)


def best_threshold(right: np.ndarray, wrong: np.ndarray) -> float:
    """The score from which on to believe in detections: the one with the largest F₁, in the middle of its gap.

    Parameters
    ----------
    right : float array (n_objects,)
        The score of every object, −∞ for those that were not found.
    wrong : float array
        Scores of mistakes.

    Returns
    -------
    float
        0 if nothing was found. Where all objects score above all mistakes it is as far from the worst object as from
        the best mistake, which counts as −1 if there is none above that: what training asks of the background.

    Examples
    --------
    >>> best_threshold(np.array([1.0, 0.5]), np.array([-0.9, -1.0]))
    -0.2
    """
    found = np.sort(right[np.isfinite(right)])[::-1]
    if not found.size:
        return 0.0
    above = (wrong[None, :] >= found[:, None]).sum(axis=1)
    n = np.arange(1, found.size + 1)
    best = int(np.flatnonzero((f1 := 2.0 * n / (n + above + right.size)) == f1.max())[-1])
    below = np.concatenate([found[best + 1 :], wrong[wrong < found[best]], [min(-1.0, found[best])]])
    return float(0.5 * (found[best] + below.max()))
