"""Whether placements are places of given images: those of other images, or of a damaged file, may lie anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...problem import Planes
from ..features.cell_pyramid import Frame
from .model import StarModel, by_view_and_level
from .training_images import TrainingImages


def inside(model: StarModel, frames: Sequence[Frame], placements: np.ndarray) -> np.ndarray:
    """Which placements lie within the grids of one image, root and parts, as a mask.

    >>> from maxmargin.vision.detection.model import Component
    >>> model = StarModel((Component(5, 6),))
    >>> inside(model, [Frame(8, 8, 0.0, 0.0, 8.0, 8.0)], np.array([[0, 0, 3, 2], [0, 0, 4, 2], [0, 1, 0, 0]]))
    array([ True, False, False])
    """
    found = np.zeros(len(placements), bool)
    for view, k, ids in by_view_and_level(placements):
        if not (0 <= view < 2 * len(model.components) and 0 <= k < len(frames)):
            continue
        some, rows, columns = placements[ids], frames[k].rows, frames[k].columns
        last = [rows - model.size_of(view)[0], columns - model.size_of(view)[1]]
        for part in model.parts_of(view):
            last += [2 * rows - part.rows, 2 * columns - part.columns]
        where = some[:, 2 : 2 + len(last)]
        found[ids] = ((where >= 0) & (where <= np.array(last))).all(axis=1)
    return found


def image_of(images: TrainingImages, example: np.ndarray) -> np.ndarray:
    """The images of examples, which are the positive ones and then all windows."""
    n = len(images.positives)
    image = np.empty(example.size, np.int64)
    image[example < n] = [images.positives[i].image for i in example[example < n].tolist()]
    image[example >= n] = images.image_of(example[example >= n] - n)
    return image


def own_shares(model: StarModel, images: TrainingImages, alpha: Planes) -> Planes:
    """The shares of examples that there are, at places where these can be: others prove nothing."""
    n = len(images.positives)
    example, labels = np.asarray(alpha.example, np.int64), np.asarray(alpha.labels, np.int32)
    if not example.size:
        labels = labels.reshape(0, model.placement_length)  # a file does not tell the shape of no placements
    if labels.shape != (example.size, model.placement_length):
        raise ValueError(f"Dual variables have placements of shape {labels.shape}: they are of another model.")
    keep = (example >= 0) & (example < n + images.n_windows)
    example, labels, share = example[keep], labels[keep], np.asarray(alpha.alpha)[keep]
    image, fits = image_of(images, example), np.zeros(example.size, bool)
    for i in np.unique(image).tolist():
        ids = np.flatnonzero(image == i)
        fits[ids] = inside(model, images.pyramids.frames(i), labels[ids])
        ids = ids[fits[ids] & (example[ids] >= n)]
        searched = np.isin(labels[ids, 0], model.views)  # a positive example may be seen in a mirror, others need not
        fits[ids] = searched & _are_background(images, i, example[ids] - n, labels[ids])
    kept: Any = labels[fits]
    return Planes(example[fits], kept, share[fits])


def _are_background(images: TrainingImages, i: int, windows: np.ndarray, placements: np.ndarray) -> np.ndarray:
    """Which placements are in the windows of these numbers, and background, as a mask."""
    found = np.zeros(len(placements), bool)
    for k in np.unique(placements[:, 1]).tolist():
        ids = np.flatnonzero(placements[:, 1] == k)
        view, row, column = placements[ids, 0], placements[ids, 2], placements[ids, 3]
        free = images.background(i, k)[view // 2, row, column]
        found[ids] = free & (images.window(i, k, row, column) == windows[ids])
    return found


def check_held(model: StarModel, images: TrainingImages, latent: Any) -> None:
    """What a bound holds must be placements of these images, at roots that fit the boxes, and weights if need be."""
    n = len(images.positives)
    if len(latent) != n + model.has_negative_parts:
        raise ValueError(f"{len(latent)} latent values were given for {n} positive examples: they are of other images.")
    for positive, placement in zip(images.positives, latent, strict=False):
        place = np.asarray(placement)
        fits = place.shape == (model.placement_length,) and (positive.roots == place[:4]).all(axis=1).any()
        if not fits or not inside(model, images.pyramids.frames(positive.image), place[None]).all():
            raise ValueError(f"The placement {place.tolist()} does not fit its box: it is of other images.")
    if model.has_negative_parts and np.shape(latent[n]) != (model.n_weights,):
        raise ValueError(f"Negative parts are held by {model.n_weights} weights, got shape {np.shape(latent[n])}.")
