"""Finding objects in one image with a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..features.cell_pyramid import Frame, Level
from .box_regression import BoxRegression
from .boxes import clipped, suppress
from .model import StarModel, by_view_and_level
from .star import Star

LOW = -2.0  # the score from which detections are judged, right or wrong
OVERLAP, MOST = 0.5, 100  # see ``find``
_CANDIDATES = 1000  # places of an image that are compared with each other


@dataclass(frozen=True)
class Detections:
    """What was found in an image, the best first.

    Attributes
    ----------
    boxes : float array (n, 4)
        x_min, y_min, x_max, y_max in pixels.
    scores : float array (n,)
    components : int array (n,)
    part_boxes : float array (n, n_parts, 4)
        Positive parts first; NaN where a component has fewer.
    part_signs : int array (n, n_parts)
        1 for parts that are evidence, −1 for counter-evidence, 0 where a component has fewer.
    mirrored : bool array (n,)
        Whether it was the mirror image of the component.
    root_boxes : float array (n, 4)
        Where the root is, before box regression.
    placements : int array (n, 4 + 2·n_parts)
        As ``StarModel`` has them: ``features`` of these, times the weights, are the scores.
    """

    boxes: np.ndarray
    scores: np.ndarray
    components: np.ndarray
    part_boxes: np.ndarray
    part_signs: np.ndarray
    mirrored: np.ndarray
    root_boxes: np.ndarray
    placements: np.ndarray

    def __len__(self) -> int:
        return len(self.scores)


def find(
    star: Star,
    levels: Sequence[Level],
    height: int,
    width: int,
    *,
    threshold: float,
    overlap: float = OVERLAP,
    most: int = MOST,
    regression: BoxRegression | None = None,
) -> Detections:
    """All places that score above a threshold, and of which no more than ``overlap`` lies within a better one.

    What lies beyond the image, where roots may reach, is nothing.
    """
    model = star.model
    placements, scores = candidates(star, levels, threshold)
    frames = [level.frame for level in levels]
    roots, parts = root_boxes(model, frames, placements), part_boxes(model, frames, placements)
    boxes = roots if regression is None else regression.boxes(model, placements, roots)
    boxes = clipped(boxes, height, width)
    keep = suppress(boxes, scores, overlap)
    keep = keep[(boxes[keep, :2] < boxes[keep, 2:]).all(axis=1)][:most]
    view = placements[keep, 0]
    return Detections(
        boxes[keep],
        scores[keep],
        view // 2,
        parts[keep],
        part_signs(model)[view // 2],
        view % 2 == 1,
        roots[keep],
        placements[keep],
    )


def candidates(star: Star, levels: Sequence[Level], threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """The best placements of all levels, and their scores: one for each place of the root."""
    placements, scores = [np.empty((0, star.model.placement_length), np.int32)], [np.empty(0, np.float32)]
    for k, level in enumerate(levels):
        found = star.scores(level)
        some, score = found.above(k, found.scores, threshold, _CANDIDATES)
        placements.append(some)
        scores.append(score)
    every = np.concatenate(scores)
    top = np.argsort(-every, kind="stable")[:_CANDIDATES]
    return np.concatenate(placements)[top], every[top].astype(np.float64)


def root_boxes(model: StarModel, frames: Sequence[Frame], placements: np.ndarray) -> np.ndarray:
    """Boxes of the roots of placements in one image, (n, 4)."""
    out = np.empty((len(placements), 4))
    for view, k, ids in by_view_and_level(placements):
        out[ids] = np.stack(frames[k].box(placements[ids, 2], placements[ids, 3], *model.size_of(view)), axis=1)
    return out


def part_boxes(model: StarModel, frames: Sequence[Frame], placements: np.ndarray) -> np.ndarray:
    """Boxes of the parts of placements in one image, (n, n_parts, 4); NaN where there is no such part."""
    out = np.full((len(placements), model.most_parts, 4), np.nan)
    for view, k, ids in by_view_and_level(placements):
        for p, part in enumerate(model.parts_of(view)):
            y, x = placements[ids, 4 + 2 * p] / 2, placements[ids, 5 + 2 * p] / 2
            out[ids, p] = np.stack(frames[k].box(y, x, part.rows / 2, part.columns / 2), axis=1)
    return out


def part_signs(model: StarModel) -> np.ndarray:
    """Signs of the parts of each component, int (n_components, n_parts); 0 where there is no such part."""
    out = np.zeros((len(model.components), model.most_parts), np.int64)
    for c, component in enumerate(model.components):
        out[c, : len(component.parts)] = [part.sign for part in component.parts]
    return out
