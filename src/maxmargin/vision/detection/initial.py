"""Where training begins: sizes of roots from boxes, first placements, and parts from the energy of a root filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from ..kernels.hog import OUTSIDE
from .model import Part, Prior, StarModel
from .training_images import TrainingImages

_ROOT_AREA = (3000.0, 5000.0)  # pixels that a root covers at least and at most, where the boxes do not say otherwise
_SMALL = 0.2  # of the boxes are smaller than the root
_TINY = 0.05  # of the boxes may be too small to be found
_ROUNDS = 10  # of two means, at most


def split_by_aspect(boxes: np.ndarray, n_components: int) -> np.ndarray:
    """The group of every box: equally many in each, by the ratio of width to height.

    >>> split_by_aspect(np.array([[0, 0, 9, 3], [0, 0, 3, 9], [5, 5, 9, 9]]), 3).tolist()
    [2, 0, 1]
    """
    aspect = (boxes[:, 2] - boxes[:, 0]) / (boxes[:, 3] - boxes[:, 1])
    group = np.empty(len(boxes), np.int64)
    group[np.argsort(aspect, kind="stable")] = np.arange(len(boxes)) * n_components // len(boxes)
    return group


def root_size(boxes: np.ndarray, cell: int, area: float | None = None) -> tuple[int, int]:
    """Rows and columns of a root filter: the median shape of the boxes, and smaller than most of them.

    >>> root_size(np.array([[0, 0, 120, 60.0], [0, 0, 100, 50]]), 8)
    (6, 12)
    """
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    if area is None:
        area = float(np.clip(np.quantile(width * height, _SMALL), *_ROOT_AREA)) / cell**2
    aspect = float(np.exp(np.median(np.log(height / width))))
    rows, columns = np.sqrt(area * aspect), np.sqrt(area / aspect)
    return max(round(rows), 3), max(round(columns), 3)


def finest_scale(boxes: np.ndarray, height: float, width: float) -> float:
    """How much images are enlarged, so that all but the smallest boxes are as large as a root of that many pixels.

    >>> finest_scale(np.array([[0, 0, 40, 40.0], [0, 0, 100, 50]]), 60, 60)
    1.5
    """
    sides = np.sqrt((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))
    small = float(np.quantile(sides, _TINY, method="inverted_cdf"))
    return float(np.clip(np.sqrt(height * width) / small, 1.0, 2.0))


def first_placements(images: TrainingImages, group: Sequence[int]) -> list[np.ndarray]:
    """For every positive example the root that overlaps its box best, of the component of its group if that fits."""
    model = images.model
    placements = []
    for positive, c in zip(images.positives, group, strict=True):
        overlap = positive.overlap.astype(np.float64)
        own = positive.roots[:, 0] // 2 == c
        overlap = np.where(own, overlap + 1.0, overlap)
        placement = np.zeros(model.placement_length, np.int32)
        placement[:4] = positive.roots[int(overlap.argmax())]
        placements.append(placement)
    return placements if not model.mirrored else _alike(images, placements)


def _alike(images: TrainingImages, placements: list[np.ndarray]) -> list[np.ndarray]:
    """Each placement as it is or mirrored, such that those of one component look alike: two means of which one is the
    mirror image of the other."""
    model = images.model
    both = []
    for positive, placement in zip(images.positives, placements, strict=True):
        forms = np.stack([placement, placement])
        forms[:, 0] = 2 * (placement[0] // 2) + np.arange(2)
        both.append(model.features(images.pyramids[positive.image], forms))
    features = np.stack(both)
    features -= features.mean(axis=(0, 1))
    component = np.array([placement[0] // 2 for placement in placements])
    for c in np.unique(component).tolist():
        ids = np.flatnonzero(component == c)
        for i, form in zip(ids, _orientations(features[ids]), strict=True):
            placements[i][0] = 2 * c + form
    return placements


def _orientations(features: np.ndarray) -> np.ndarray:
    """0 or 1 for each pair of forms, from the example outwards that is least like its mirror image."""
    ids = np.arange(len(features))
    apart = ((features[:, 0] - features[:, 1]) ** 2).sum(axis=1)
    mean = features[int(apart.argmax()), 0]
    form = np.zeros(len(features), np.int64)
    for _ in range(_ROUNDS):
        new = (features @ mean).argmax(axis=1)
        mean = features[ids, new].mean(axis=0)
        if np.array_equal(new, form):
            break
        form = new
    return form


class OtherPart(NamedTuple):
    """A part of another detector: its filter, and where it is expected, as a share of that detector's root."""

    filter: np.ndarray
    top: float
    left: float


def parts_of_others(detectors: Sequence[tuple[StarModel, np.ndarray]]) -> list[OtherPart]:
    """Positive parts of models at their weights, the strongest of each first, by turns."""
    ranked = []
    for star, w in detectors:
        found = [
            OtherPart(star.filter(w, c, p), part.top / (2 * component.rows), part.left / (2 * component.columns))
            for c, component in enumerate(star.components)
            for p, part in enumerate(component.parts)
            if part.sign > 0
        ]
        ranked.append(sorted(found, key=lambda part: -float((np.maximum(part.filter, 0.0) ** 2).sum())))
    return [some[k] for k in range(max(map(len, ranked), default=0)) for some in ranked if k < len(some)]


def with_parts(
    model: StarModel,
    w: np.ndarray,
    n_parts: int,
    n_negative: int,
    size: int,
    prior: Prior,
    others: Sequence[OtherPart] | None = None,
) -> tuple[StarModel, np.ndarray]:
    """The model with parts that cover what its roots have most energy in, and weights to begin with.

    The root is enlarged to fine cells. The window with the largest sum of squares of positive weights becomes a part,
    and is then left out; and likewise with negative weights for negative parts (Naderi Parizi, §4.3.3). These may also
    begin with ``others``, parts of what the object is mistaken for.
    """
    components, filters = [], []
    for c, component in enumerate(model.components):
        # A fine cell is a quarter of a coarse one, and has as large features.
        fine = ndimage.zoom(model.root(w, c), (2, 2, 1), order=1, grid_mode=True, mode="nearest") / 4.0
        fine[..., OUTSIDE] = 0.0
        parts, some = _cover(np.maximum(fine, 0.0), n_parts, size, 1)
        if others is None:
            negative, against = _cover(np.maximum(-fine, 0.0), n_negative, size, -1)
        else:
            negative, against = _transferred(others[:n_negative], *fine.shape[:2])
        components.append(replace(component, parts=(*parts, *negative)))
        filters.append([*some, *against])
    grown = replace(model, components=tuple(components))
    out = np.zeros(grown.n_weights)
    for c, component in enumerate(components):
        out[grown.root_at(c)] = w[model.root_at(c)]
        out[grown.bias_at(c)] = w[model.bias_at(c)]
        for p, (part, values) in enumerate(zip(component.parts, filters[c], strict=True)):
            out[grown.filter_at(c, p)] = values.ravel()
            out[grown.cost_at(c, p)] = prior.cost(part)
    return grown, out


def _cover(weights: np.ndarray, count: int, size: int, sign: int) -> tuple[list[Part], list[np.ndarray]]:
    """Windows that cover most of the energy of weights, one after the other, and the weights in them."""
    energy = (weights**2).sum(axis=2)
    rows, columns = min(size, energy.shape[0]), min(size, energy.shape[1])
    parts, filters = [], []
    for _ in range(count):
        sums = np.lib.stride_tricks.sliding_window_view(energy, (rows, columns)).sum(axis=(2, 3))
        top, left = map(int, np.unravel_index(int(sums.argmax()), sums.shape))
        inside = (slice(top, top + rows), slice(left, left + columns))
        parts.append(Part(rows, columns, top, left, sign))
        filters.append(weights[inside])
        energy[inside] = 0.0
    return parts, filters


def _transferred(others: Sequence[OtherPart], rows: int, columns: int) -> tuple[list[Part], list[np.ndarray]]:
    """Negative parts like parts of other detectors, at the same place of a root of so many fine cells."""
    parts, filters = [], []
    for other in others:
        values = other.filter[:rows, :columns]
        top = min(round(other.top * rows), rows - values.shape[0])
        left = min(round(other.left * columns), columns - values.shape[1])
        parts.append(Part(values.shape[0], values.shape[1], top, left, -1))
        filters.append(values)
    return parts, filters
