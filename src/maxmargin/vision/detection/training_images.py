"""What a detector is trained on: pyramids of images, places that may be the object, and windows that are not.

A box is a positive example, in itself or as its mirror image: one placement whose root overlaps it well is the object.
Every root place that keeps away from all boxes is a negative example of its own (Felzenszwalb et al. 2010, §5).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ...problem import Planes
from ..features.cell_pyramid import Frame, Grid, Level
from ..images import read_image
from .boxes import overlaps
from .model import StarModel, by_view_and_level
from .photos import Photo

_LEAST_OVERLAP = 0.5  # of a root with the box that it is to be the object of


@dataclass(frozen=True)
class Positive:
    """An object: in image number ``image``, ``box`` counts the objects of all images; its mirror image is another one.

    ``roots`` are the places that overlap the box well enough, (n, 4): view, level, row, column; ``overlap`` is how
    well they do.
    """

    image: int
    box: int
    roots: np.ndarray
    overlap: np.ndarray


class PyramidStore:
    """Pyramids of images, kept as long as there is room for them, and else made anew whenever they are asked for."""

    def __init__(self, photos: Sequence[Photo], grid: Grid, fine: bool, memory: int) -> None:
        self.photos, self.grid, self.fine, self.memory = photos, grid, fine, memory
        self.nbytes = 0
        self._kept: dict[int, list[Level]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.photos)

    def keeps(self, i: int) -> bool:
        """Whether the pyramid of an image is at hand."""
        return i in self._kept

    def frames(self, i: int) -> list[Frame]:
        """Where the levels of an image lie, without a look at its pixels."""
        return self.grid.frames(self.photos[i].height, self.photos[i].width)

    def __getitem__(self, i: int) -> list[Level]:
        kept = self._kept.get(i)
        if kept is not None:
            return kept
        levels = self.grid.pyramid(read_image(self.photos[i].source, color=True), self.fine)
        size = sum(level.nbytes for level in levels)
        with self._lock:
            if i not in self._kept and self.nbytes + size <= self.memory:
                self._kept[i] = levels
                self.nbytes += size
        return levels


@dataclass
class TrainingImages:
    """Pyramids, positive examples and background windows for the roots of one model.

    Parameters
    ----------
    model : StarModel
        Only the sizes of its roots matter here.
    pyramids : PyramidStore
    flips : bool
        Whether boxes are also learned from in the mirror; a model of which mirror images are searched for needs none.
    overlap : float
        What a root must overlap a box by (intersection over union) to be the object. Where no place does, the best
        one is taken if it overlaps by half.
    background_overlap : float
        Roots that overlap every box by less are background.
    """

    model: StarModel
    pyramids: PyramidStore
    flips: bool = True
    overlap: float = 0.7
    background_overlap: float = 0.3
    positives: list[Positive] = field(default_factory=list)
    missed: list[tuple[int, int]] = field(default_factory=list)
    """Boxes that no root fits: image and number of the box."""

    def __post_init__(self) -> None:
        self._background: list[list[np.ndarray]] = []
        self._first: list[np.ndarray] = []
        self._n_boxes = count = 0
        for i, photo in enumerate(self.pyramids.photos):
            frames = self.pyramids.frames(i)
            shares = [self._shares(photo, frame) for frame in frames]
            self._add_positives(i, photo, shares)
            self._background.append([self._free(share) for share in shares])
            ends = np.cumsum([0, *(frame.rows * frame.columns for frame in frames)])
            self._first.append(count + ends[:-1])
            count += int(ends[-1])
        self.n_windows = count

    def __len__(self) -> int:
        return len(self.pyramids)

    def background(self, i: int, k: int) -> np.ndarray:
        """Which roots of level k of an image are background, (n_components, rows, columns)."""
        return self._background[i][k]

    def window(self, i: int, k: int, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Numbers of windows among all windows."""
        columns = self._background[i][k].shape[2]
        return self._first[i][k] + row.astype(np.int64) * columns + column

    def image_of(self, example: np.ndarray) -> np.ndarray:
        """The images of examples, which are the positive ones and then all windows."""
        n = len(self.positives)
        begins = np.array([first[0] if first.size else np.inf for first in self._first])
        # An image without windows never matches: its place is that of the next one.
        begins = np.minimum.accumulate(begins[::-1])[::-1]
        image = np.searchsorted(begins, example - n, side="right") - 1
        image[example < n] = [self.positives[i].image for i in example[example < n].tolist()]
        return image

    def are_windows(self, i: int, examples: np.ndarray, placements: np.ndarray) -> np.ndarray:
        """Which placements in image i are those of these examples, and background, as a mask."""
        found = np.zeros(len(placements), bool)
        for k in np.unique(placements[:, 1]).tolist():
            ids = np.flatnonzero(placements[:, 1] == k)
            view, _, row, column = placements[ids, :4].T
            same = len(self.positives) + self.window(i, k, row, column) == examples[ids]
            found[ids] = same & self.background(i, k)[view // 2, row, column]
        return found

    def _shares(self, photo: Photo, frame: Frame) -> np.ndarray:
        """How the roots of all components overlap the boxes, (n_components, rows, columns, n_boxes + 1).

        The last is 0; all are −1 where the root would leave the grid.
        """
        share = np.full((len(self.model.components), frame.rows, frame.columns, len(photo.boxes) + 1), -1.0, np.float32)
        for c, component in enumerate(self.model.components):
            rows, columns = frame.rows - component.rows + 1, frame.columns - component.columns + 1
            if rows > 0 and columns > 0:
                row, column = np.indices((rows, columns))
                boxes = np.stack(frame.box(row, column, component.rows, component.columns), axis=-1).reshape(-1, 4)
                share[c, :rows, :columns, :-1] = overlaps(boxes, photo.boxes).reshape(rows, columns, -1)
                share[c, :rows, :columns, -1] = 0.0
        return share

    def _free(self, share: np.ndarray) -> np.ndarray:
        """Which roots are background."""
        return (share[..., -1] == 0.0) & (share.max(axis=3) < self.background_overlap)

    def _add_positives(self, i: int, photo: Photo, shares: list[np.ndarray]) -> None:
        for b in np.flatnonzero(~photo.ignored).tolist():
            number = self._n_boxes
            self._n_boxes += 1
            best = max((float(share[..., b].max()) for share in shares), default=-1.0)
            least = min(self.overlap, best)
            if best < _LEAST_OVERLAP:
                self.missed.append((i, b))
                continue
            places, overlap = [], []
            for k, share in enumerate(shares):
                c, row, column = np.nonzero(share[..., b] >= least)
                places.append(np.stack([2 * c, np.full(c.size, k), row, column], axis=1))
                overlap.append(share[c, row, column, b])
            self._add_positive(i, number, np.concatenate(places).astype(np.int32), np.concatenate(overlap))

    def _add_positive(self, i: int, number: int, roots: np.ndarray, overlap: np.ndarray) -> None:
        """Take in an object and, as another example or as other views of it, its mirror image."""
        mirrored = roots + np.array([1, 0, 0, 0], np.int32)
        if self.model.mirrored:
            roots, overlap = np.concatenate([roots, mirrored]), np.concatenate([overlap, overlap])
        self.positives.append(Positive(i, number, roots, overlap))
        if self.flips and not self.model.mirrored:
            self.positives.append(Positive(i, number, mirrored, overlap))


# Whether placements are places of given images: those of other images, or of a damaged file, may lie anywhere.


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


def by_image(image: np.ndarray) -> dict[int, np.ndarray]:
    """Which examples are in each image; ``image`` has theirs."""
    order = np.argsort(image, kind="stable")
    bounds = np.flatnonzero(np.diff(image[order], prepend=-1, append=-1))
    return {int(image[order[a]]): order[a:b] for a, b in pairwise(bounds)}


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
    fits = np.zeros(example.size, bool)
    for i, ids in by_image(images.image_of(example)).items():
        fits[ids] = inside(model, images.pyramids.frames(i), labels[ids])
        windows = ids[fits[ids] & (example[ids] >= n)]
        # A positive example may be seen in a mirror, others need not.
        searched = np.isin(labels[windows, 0], model.views)
        fits[windows] = searched & images.are_windows(i, example[windows], labels[windows])
    return placed(example[fits], labels[fits], share[fits])


def placed(example: np.ndarray, placements: np.ndarray, alpha: np.ndarray) -> Planes:
    """Dual variables whose labels are the rows of an array."""
    labels: Any = placements
    return Planes(example, labels, alpha)


def check_held(model: StarModel, images: TrainingImages, latent: Sequence[np.ndarray]) -> None:
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
