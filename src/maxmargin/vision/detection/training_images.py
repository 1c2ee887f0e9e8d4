"""What a detector is trained on: pyramids of images, places that may be the object, and windows that are not.

A box is a positive example, in itself or as its mirror image: one placement whose root overlaps it well is the object.
Every root place that keeps away from all boxes is a negative example of its own (Felzenszwalb et al. 2010, §5).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..features.cell_pyramid import Frame, Grid, Level
from ..images import read_image
from .boxes import overlaps
from .model import StarModel
from .photos import Photo


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
        one is taken if it reaches ``least_overlap``.
    background_overlap : float
        Roots that overlap every box by less are background.
    """

    model: StarModel
    pyramids: PyramidStore
    flips: bool = True
    overlap: float = 0.7
    background_overlap: float = 0.3
    least_overlap: float = 0.5
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

    def image_of(self, window: np.ndarray) -> np.ndarray:
        """The images that windows are in."""
        begins = np.array([first[0] if first.size else np.inf for first in self._first])
        # An image without windows never matches: its place is that of the next one.
        begins = np.minimum.accumulate(begins[::-1])[::-1]
        return np.searchsorted(begins, window, side="right") - 1

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
            if best < self.least_overlap:
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
