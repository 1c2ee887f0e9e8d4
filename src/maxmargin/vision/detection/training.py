"""The stages of training a detector: roots alone, then roots with parts. Each is a search over convex bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...estimators.inputs import check_threads
from ...latent.loop import Settings, minimise
from ...problem import LatentSolution
from ...protocols import BoundChooser
from ..features.cell_pyramid import Grid
from .box_regression import BoxRegression
from .boxes import overlaps
from .evaluation import best_threshold
from .finding import LOW, find, root_boxes
from .initial import OtherPart, finest_scale, first_placements, root_size, split_by_aspect, with_parts
from .mining import Mining
from .model import Component, Prior, StarModel
from .objective import DetectionObjective
from .photos import Photo
from .star import Star
from .training_images import PyramidStore, TrainingImages

if TYPE_CHECKING:
    from ..detector import DeformablePartDetector

_ROOT_BOUNDS = 3  # roots are only to be good enough to begin with
_FOR_PYRAMIDS = 2 / 3  # of the memory; the rest is for hard examples


def prior_of(design: DeformablePartDetector) -> Prior:
    negative = design.stiffness if design.negative_stiffness is None else design.negative_stiffness
    return Prior(float(design.stiffness), float(negative), float(design.firmness))


def images_for(design: DeformablePartDetector, model: StarModel, pyramids: PyramidStore) -> TrainingImages:
    """Images as the settings of a detector have them."""
    overlap, background = float(design.overlap), float(design.background_overlap)
    return TrainingImages(model, pyramids, bool(design.flips), overlap, background)


def objective_for(design: DeformablePartDetector, model: StarModel, images: TrainingImages) -> DetectionObjective:
    """The objective as the settings of a detector have it."""
    C, weight, regularizer = float(design.C), float(design.positive_weight), model.regularizer(prior_of(design))
    return DetectionObjective(model, images, regularizer, C, weight, check_threads(design.n_jobs))


@dataclass(frozen=True)
class Stage:
    """An objective, with its model and images, and what came out."""

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
                roots[some] = root_boxes(self.objective.model, images.pyramids.frames(i), placements[some])
        boxes = truth[[positive.box for positive in images.positives]]
        return BoxRegression.learned(self.objective.model, placements, roots, boxes)

    def threshold(self, regression: BoxRegression | None) -> float:
        """The score that tells objects from background best in the training images.

        What is neither, because it overlaps an object a little or is found a second time, does not count.
        """
        star, images = Star(self.objective.model, self.solution.weights), self.objective.images
        pyramids = images.pyramids

        def judged(i: int) -> tuple[np.ndarray, list[float]]:
            photo = pyramids.photos[i]
            one = find(star, pyramids[i], photo.height, photo.width, threshold=LOW, regression=regression)
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
    design : DeformablePartDetector
        Its settings, checked.
    photos : sequence of Photo
    other_parts : sequence of OtherPart or None
        What negative parts begin with.
    search : Settings
        Of the search over bounds.
    chooser : BoundChooser
    memory : int
        Bytes for pyramids and hard examples.
    """

    def __init__(
        self,
        design: DeformablePartDetector,
        photos: Sequence[Photo],
        other_parts: Sequence[OtherPart] | None,
        search: Settings,
        chooser: BoundChooser,
        memory: int,
    ) -> None:
        self.design, self.other_parts, self.search, self.chooser = design, other_parts, search, chooser
        boxes = np.concatenate([photo.boxes[~photo.ignored] for photo in photos])
        n_components = int(design.n_components)
        if len(boxes) < n_components:
            raise ValueError(
                f"n_components={n_components} is more than there are boxes: {len(boxes)}. Each needs some of "
                "them; ask for fewer components."
            )
        group = split_by_aspect(boxes, n_components)
        area = None if design.root_area is None else float(design.root_area)
        sizes = [root_size(boxes[group == c], design.cell, area) for c in range(n_components)]
        self.model = StarModel(tuple(Component(*size) for size in sizes), bool(design.mirrored))
        self.grid = self._grid(boxes)
        self.with_parts = design.n_parts + design.n_negative_parts > 0
        self.pyramids = PyramidStore(photos, self.grid, self.with_parts, int(_FOR_PYRAMIDS * memory))
        self.images = images_for(design, self.model, self.pyramids)
        n_jobs, rest = check_threads(design.n_jobs), memory - int(_FOR_PYRAMIDS * memory)
        self.mining = Mining(rest, n_jobs=n_jobs, random_state=design.random_state)
        # Parts come last and need most: that there is room for them is known before any time is spent.
        largest = self._with_parts(self.model, np.zeros(self.model.n_weights))[0]
        self.mining.room(largest.n_weights, len(self.images.positives))
        self.group = group[[positive.box for positive in self.images.positives]]

    def _grid(self, boxes: np.ndarray) -> Grid:
        design, components = self.design, self.model.components
        rows, columns = min(c.rows for c in components), min(c.columns for c in components)
        finest, padding = design.finest, int(design.padding)
        if finest is None:
            finest = finest_scale(boxes, rows * design.cell, columns * design.cell)
        least = (max(rows - padding, 1), max(columns - padding, 1))
        return Grid(design.cell, design.octave_scales, finest, least, (padding, padding))

    def roots(self, **run: Any) -> Stage:
        """Train roots without parts, from the places that overlap the boxes best; ``run`` is for ``minimise``."""
        search = self.search
        if self.with_parts:
            search = replace(search, max_bounds=min(_ROOT_BOUNDS, search.max_bounds))
        first = first_placements(self.images, self.group.tolist())
        return self._stage(self.model, search, latent=first, **run)

    def parts(self, roots: Stage, **run: Any) -> Stage:
        """Add parts to trained roots, and train all together."""
        model, w = self._with_parts(roots.objective.model, roots.solution.weights)
        return self._stage(model, self.search, weights=w, **run)

    def _with_parts(self, roots: StarModel, w: np.ndarray) -> tuple[StarModel, np.ndarray]:
        design = self.design
        n_parts, n_negative, size = int(design.n_parts), int(design.n_negative_parts), int(design.part_size)
        return with_parts(roots, w, n_parts, n_negative, size, prior_of(design), self.other_parts)

    def _stage(self, model: StarModel, search: Settings, **run: Any) -> Stage:
        objective = objective_for(self.design, model, self.images)
        rng = np.random.default_rng(self.design.random_state)
        solution = minimise(
            objective, self.chooser, lambda problem, weights: self.mining, settings=search, rng=rng, **run
        )
        return Stage(objective, solution)
