"""The stages of training a detector: roots alone, then roots with parts. Each is a search over convex bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...latent.loop import Settings, minimise
from ...problem import LatentSolution
from ...protocols import BoundChooser, Checkpoint
from ..features.cell_pyramid import Grid
from .box_regression import BoxRegression
from .boxes import overlaps
from .evaluation import best_threshold
from .finding import LOW, MOST, OVERLAP, find, root_boxes
from .initial import OtherPart, finest_scale, first_placements, root_size, split_by_aspect, with_parts
from .mining import Mining
from .model import Component, Prior, StarModel
from .objective import DetectionObjective
from .photos import Photo
from .star import Star
from .training_images import PyramidStore, TrainingImages

_ROOT_BOUNDS = 3  # roots are only to be good enough to begin with
_FOR_PYRAMIDS = 2 / 3  # of the memory; the rest is for hard examples


@dataclass(frozen=True)
class Design:
    """What kind of detector is trained: see ``DeformablePartDetector`` for what the settings mean."""

    n_components: int
    n_parts: int
    n_negative_parts: int
    mirrored: bool
    root_area: float | None
    part_size: int
    prior: Prior
    cell: int
    octave_scales: int
    finest: float | None
    padding: int
    C: float
    positive_weight: float
    flips: bool
    overlap: float
    background_overlap: float

    def images(self, model: StarModel, pyramids: PyramidStore) -> TrainingImages:
        return TrainingImages(model, pyramids, self.flips, self.overlap, self.background_overlap)

    def objective(self, model: StarModel, images: TrainingImages, n_jobs: int) -> DetectionObjective:
        regularizer = model.regularizer(self.prior)
        return DetectionObjective(model, images, regularizer, self.C, self.positive_weight, n_jobs)


@dataclass(frozen=True)
class Stage:
    """A model, the images it was trained on, and what came out."""

    model: StarModel
    objective: DetectionObjective
    solution: LatentSolution

    def box_regression(self) -> BoxRegression:
        """How boxes follow from the placements of the positive examples."""
        images = self.objective.images
        placements = np.array(self.solution.latent[: self.objective.n_positives], np.int32)
        truth = np.concatenate([photo.boxes[~photo.ignored] for photo in images.pyramids.photos])
        roots = np.empty((len(placements), 4))
        for i, some in enumerate(self.objective.in_image):
            if some:
                roots[some] = root_boxes(self.model, images.pyramids.frames(i), placements[some])
        boxes = truth[[positive.box for positive in images.positives]]
        return BoxRegression.learned(self.model, placements, roots, boxes)

    def threshold(self, regression: BoxRegression | None) -> float:
        """The score that tells objects from background best in the training images.

        What is neither, because it overlaps an object a little or is found a second time, does not count.
        """
        star, images = Star(self.model, self.solution.weights), self.objective.images
        pyramids = images.pyramids

        def judged(i: int) -> tuple[np.ndarray, list[float]]:
            photo = pyramids.photos[i]
            one = find(
                star, pyramids[i], photo.height, photo.width, threshold=LOW, overlap=OVERLAP, most=MOST,
                regression=regression,
            )  # fmt: skip
            share = overlaps(one.boxes, photo.boxes)
            wrong = one.scores[share.max(axis=1, initial=0.0) < images.background_overlap]
            objects = np.flatnonzero(~photo.ignored)
            return wrong, [one.scores[share[:, b] >= 0.5].max(initial=-np.inf) for b in objects]

        found = list(self.objective.over_images(judged, range(len(pyramids))))
        return best_threshold(
            np.array([score for _, objects in found for score in objects]),
            np.concatenate([wrong for wrong, _ in found]),
        )


class DetectorTraining:
    """From photos with boxes to the weights of a model.

    Parameters
    ----------
    photos : sequence of Photo
    design : Design
    other_parts : sequence of OtherPart or None
        What negative parts begin with.
    chooser : BoundChooser
    settings : Settings
        Of the search over bounds.
    memory : int
        Bytes for pyramids and hard examples.
    n_jobs : int
    random_state : int, Generator or None
    """

    def __init__(
        self,
        photos: Sequence[Photo],
        design: Design,
        other_parts: Sequence[OtherPart] | None,
        chooser: BoundChooser,
        settings: Settings,
        memory: int,
        n_jobs: int,
        random_state: Any,
    ) -> None:
        self.design, self.other_parts = design, other_parts
        self.chooser, self.settings, self.n_jobs, self.random_state = chooser, settings, n_jobs, random_state
        boxes = np.concatenate([photo.boxes[~photo.ignored] for photo in photos])
        if len(boxes) < design.n_components:
            raise ValueError(
                f"n_components={design.n_components} is more than there are boxes: {len(boxes)}. Each needs some of "
                "them; ask for fewer components."
            )
        group = split_by_aspect(boxes, design.n_components)
        self.model = StarModel(
            tuple(
                Component(*root_size(boxes[group == c], design.cell, design.root_area))
                for c in range(design.n_components)
            ),
            design.mirrored,
        )
        self.grid = self._grid(boxes)
        self.pyramids = PyramidStore(photos, self.grid, self.with_parts, int(_FOR_PYRAMIDS * memory))
        self.images = design.images(self.model, self.pyramids)
        self.mining = Mining(memory - int(_FOR_PYRAMIDS * memory), n_jobs=n_jobs, random_state=random_state)
        # Parts come last and need most: that there is room for them is known before any time is spent.
        largest = self._with_parts(self.model, np.zeros(self.model.n_weights))[0]
        self.mining.room(largest.n_weights, len(self.images.positives))
        self.group = group[[positive.box for positive in self.images.positives]]

    @property
    def with_parts(self) -> bool:
        return self.design.n_parts + self.design.n_negative_parts > 0

    def _grid(self, boxes: np.ndarray) -> Grid:
        design, components = self.design, self.model.components
        rows, columns = min(c.rows for c in components), min(c.columns for c in components)
        finest = design.finest
        if finest is None:
            finest = finest_scale(boxes, rows * design.cell, columns * design.cell)
        least = (max(rows - design.padding, 1), max(columns - design.padding, 1))
        return Grid(design.cell, design.octave_scales, finest, least, (design.padding, design.padding))

    def roots(self, checkpoint: Checkpoint | None, callbacks: Callbacks) -> Stage:
        """Train roots without parts, from the places that overlap the boxes best."""
        settings = self.settings
        if self.with_parts:
            settings = replace(settings, max_bounds=min(_ROOT_BOUNDS, settings.max_bounds))
        start = {"latent": first_placements(self.images, self.group.tolist())}
        return self._stage(self.model, start, settings, checkpoint, callbacks)

    def parts(self, roots: Stage, checkpoint: Checkpoint | None, callbacks: Callbacks) -> Stage:
        """Add parts to trained roots, and train all together."""
        model, w = self._with_parts(roots.model, roots.solution.weights)
        return self._stage(model, {"weights": w}, self.settings, checkpoint, callbacks)

    def _with_parts(self, roots: StarModel, w: np.ndarray) -> tuple[StarModel, np.ndarray]:
        design = self.design
        n_parts, n_negative = design.n_parts, design.n_negative_parts
        return with_parts(roots, w, n_parts, n_negative, design.part_size, design.prior, self.other_parts)

    def _stage(
        self,
        model: StarModel,
        start: dict[str, Any],
        settings: Settings,
        checkpoint: Checkpoint | None,
        callbacks: Callbacks,
    ) -> Stage:
        objective = self.design.objective(model, self.images, self.n_jobs)
        with callbacks() as (inner, outer):
            solution = minimise(
                objective,
                self.chooser,
                lambda problem, weights: self.mining,
                **start,
                settings=settings,
                rng=np.random.default_rng(self.random_state),
                callbacks=outer,
                inner_callbacks=inner,
                checkpoint=checkpoint,
            )
        return Stage(model, objective, solution)


Callbacks = Callable[[], AbstractContextManager[tuple[Sequence[Any], Sequence[Any]]]]
"""For passes, and for bounds."""
