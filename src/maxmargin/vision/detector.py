"""The detector of objects by deformable parts: its settings, its training, and how it finds objects."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators import inputs
from ..estimators.certified import Run
from ..estimators.fit_callbacks import notified, users_line
from ..estimators.latent_search import LatentEstimator
from ..estimators.settings import with_parameters
from ..persistence import storable
from ..problem import BoundRecord, Certificate
from ..solvers.solve import first_interrupt
from ..solvers.threads import one_blas_thread
from ..validation import one_of, shown
from .detection.annotations import Annotated, annotated
from .detection.box_regression import BoxRegression
from .detection.evaluation import PrecisionRecall, precision_recall
from .detection.finding import LOW, MOST, OVERLAP, Detections, find
from .detection.initial import OtherPart, parts_of_others
from .detection.model import StarModel
from .detection.photos import fingerprint, photos_of, read_all
from .detection.star import Star
from .detection.training import DetectorTraining, Stage, images_for, objective_for
from .detection.training_images import PyramidStore, TrainingImages
from .features.cell_pyramid import Grid
from .features.numbers import share, whole
from .images import ImageError, ImageSource, list_images, read_image, some

if TYPE_CHECKING:
    from ..report.content import Data, ReportContent

_MEMORY = 3 * 2**29  # bytes, where nothing else is said


@storable(
    star_="StarModel", coef_="float[w]", grid_="Grid", box_regression_="BoxRegression|none", label_="text|none",
    left_out_="int", threshold_="float", objective_="float", latent_="list", n_root_bounds_="int", n_bounds_="int",
    _alpha="Planes", _fitted_C="float", record=BoundRecord,
)  # fmt: skip
@with_parameters
class DeformablePartDetector(LatentEstimator):
    """Finds objects in images: a mixture of deformable part models, with parts that speak for the object or against it.

    A root filter sees the whole object on coarse cells of gradients, parts see pieces of it on cells half as large and
    may move at a cost. Boxes are all that is given: where root and parts are, and which component it is, is latent.
    Every window of the background is a negative example, and the hard ones are found as training goes on. The result is
    certified over all of them.

    Parameters
    ----------
    n_components : int, default 1
        Kinds of views or shapes; boxes are split by their ratio of width to height, and choose anew while learning.
    n_parts, n_negative_parts : int, default 6 and 0
        Parts for each component that are evidence, and that are counter-evidence: their best match lowers the score.
    C : float, default 0.01
        The price of an example that is not on its side by a margin of 1.
    positive_weight : float, default 1.0
        How much more a positive example costs.
    mirrored : bool, default False
        Search for the mirror image of every component too: for objects that face left or right.
    flips : bool, default True
        Learn from mirror images of the objects; of no effect where ``mirrored`` is set, which does more.
    root_area : float or None
        Coarse cells of a root; by default such that most boxes are larger.
    part_size : int, default 6
        Sides of a part, in fine cells.
    negative_parts_from : DeformablePartDetector, sequence of them, or None
        Detectors of what the object is mistaken for: their strongest positive parts are what negative parts begin with.
        By default these begin where the root's negative weights have most energy. Of no effect without negative parts.
    overlap : float, default 0.7
        A root is the object if it overlaps its box by that (intersection over union).
    background_overlap : float, default 0.3
        A window is background if it overlaps all boxes by less.
    stiffness, firmness : float, default 0.002 and 10.0
        The cost of moving a part by a fine cell that learning begins with, and how strongly it is drawn back to that.
    negative_stiffness : float or None
        That of negative parts; by default the same. Of few objects one can learn what is typical of them, but hardly
        all that they might look like somewhere: stiff negative parts are safer then.
    cell : int, default 8
        Pixels of a coarse cell's side, in the resized image.
    octave_scales : int, default 5
        Sizes at which an image is searched, until it is halved.
    finest : float or None
        How much images are enlarged at first; by default such that all but the smallest boxes are found, at most twice.
    padding : int, default 3
        Coarse cells around the image that a root may reach into.
    bound : {"cccp", "gmm"} or BoundChooser
    eta : float, default 0.5
        See :class:`maxmargin.LatentStructuralSVM`.
    box_regression : bool, default True
        Predict boxes from root and parts, instead of taking the root's own.
    tol : float, default 0.02
        Relative duality gap to which convex bounds are solved, over all windows of all images.
    bound_tol : float, default 0.003
        Training ends once the gap between bound and objective is at most this share of the objective.
    max_bounds, max_passes : int, default 8 and 100
        Most bounds, and most passes over the images for each of them.
    memory : int, text or None
        Bytes for pyramids and hard examples, such as "2 GB"; pyramids that do not fit are made anew in every pass.
    n_jobs : int or None
    random_state : int, Generator or None
    verbose : int

    Attributes
    ----------
    star_ : StarModel
        Components and parts: which weights are what.
    coef_ : float array (n_weights,)
    certificate_ : Certificate
        Of the last convex bound, over every window.
    history_ : list of BoundRecord
        One per bound; the first ``n_root_bounds_`` of them are of roots alone.
    objective_ : float
    threshold_ : float
        The score from which ``detect`` reports what it finds: the one with the largest F₁ on the training images, where
        objects that are found a second time are no mistakes.
    label_ : str or None
        What the boxes are of, where the table names it.
    left_out_ : int
        Boxes that no root fits.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision import DeformablePartDetector
    >>> rng = np.random.default_rng(0)
    >>> images, boxes = [], []
    >>> for x, y in rng.integers(8, 48, (12, 2)):
    ...     image = rng.integers(0, 40, (96, 96), dtype=np.uint8)
    ...     image[y : y + 32, x : x + 32] = 200
    ...     images.append(image)
    ...     boxes.append([x, y, x + 32, y + 32])
    >>> detector = DeformablePartDetector(n_parts=0, random_state=0).fit(images[:8], boxes[:8])
    >>> found = detector.detect(images[8])
    >>> bool(np.abs(found.boxes[0] - boxes[8]).max() < 8)
    True
    """

    n_components: int = 1
    n_parts: int = 6
    n_negative_parts: int = 0
    _: KW_ONLY
    C: float = 0.01
    positive_weight: float = 1.0
    mirrored: bool = False
    flips: bool = True
    root_area: float | None = None
    part_size: int = 6
    negative_parts_from: DeformablePartDetector | Sequence[DeformablePartDetector] | None = None
    overlap: float = 0.7
    background_overlap: float = 0.3
    stiffness: float = 0.002
    firmness: float = 10.0
    negative_stiffness: float | None = None
    cell: int = 8
    octave_scales: int = 5
    finest: float | None = None
    padding: int = 3
    eta: float = 0.5
    box_regression: bool = True
    tol: float = 0.02
    bound_tol: float = 0.003
    max_bounds: int = 8
    max_passes: int = 100

    regularizer: Any = field(init=False)  # no parameters of detectors: these four
    solver: Any = field(init=False)
    warm_start: Any = field(init=False)
    n_init: Any = field(init=False)
    _compared_with_labels = False
    grid_: Grid = field(init=False)
    label_: str | None = field(init=False)
    threshold_: float = field(init=False)
    left_out_: int = field(init=False)
    n_root_bounds_: int = field(init=False)
    star_: StarModel = field(init=False)
    box_regression_: BoxRegression | None = field(init=False)

    def __sklearn_clone__(self) -> DeformablePartDetector:
        """Unfitted, as scikit-learn's clones are, but detectors that parts come from are data: they stay fitted."""
        other = super().__sklearn_clone__()
        other.negative_parts_from = self.negative_parts_from
        return other

    # Learning.

    @notified
    @one_blas_thread()
    def fit(
        self,
        images: object,
        boxes: object = None,
        *,
        label: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Callable[[BoundRecord], object]] = (),
    ) -> DeformablePartDetector:
        """Train from boxes.

        Parameters
        ----------
        images : list of images, arrays or paths; a folder or pattern
        boxes : list, table or path
            For every image its boxes, x_min, y_min, x_max, y_max in pixels; none for background images. Or a table with
            a row per box (CSV, DataFrame, list of dicts), a COCO file, or VOC files: ``images`` is then their folder.
        label : text or None
            Which class, where a table has several. Objects of other classes are background.
        checkpoint : path or None
            A folder in which training is saved, and goes on from if it was interrupted.
        checkpoint_every : float
            Seconds between two savings, at least.
        callbacks : sequence of functions
            Each is given a ``BoundRecord`` per bound; one that returns True ends the stage.
        """
        self._check_settings()
        others, chooser = self._other_parts(), self._chooser()
        given = annotated(images, boxes, label=label)
        photos = photos_of(given)
        training = DetectorTraining(self, photos, others, self._search_settings(), chooser, self._memory())
        self._say_what_is_missed(training.images)
        run = self._identified(Run(checkpoint, checkpoint_every, callbacks), lambda: fingerprint(photos))

        @contextlib.contextmanager
        def stage(name: str, part: str) -> Iterator[dict[str, Any]]:
            """What a search is told: where to save, and whom to call for passes and for bounds."""
            with self._saving(run, part) as folder, self._search_line(f", {name}") as (inner, outer):
                yield {"checkpoint": folder, "inner_callbacks": inner, "callbacks": (*outer, *run.callbacks)}

        with stage("roots", "roots" if training.with_parts else "") as told_of:
            last = training.roots(**told_of)
        before: list[BoundRecord] = []
        interrupted = last.solution.interrupted
        if training.with_parts and not interrupted:
            try:
                with stage("parts", "parts") as told_of:
                    roots, last = last, training.parts(last, **told_of)
                before, interrupted = roots.solution.history, last.solution.interrupted
            except KeyboardInterrupt as press:
                # Parts have not learned anything yet. What the roots have is worth keeping.
                if getattr(press, "solution", None) is not None or not first_interrupt():
                    raise
                interrupted = True
        self.grid_, self.label_ = training.grid, given.label
        self._keep_stage(last, before)
        self.threshold_ = 0.0  # halfway between what is asked of objects and of background
        try:
            self.threshold_ = last.threshold(self.box_regression_)
        except KeyboardInterrupt:
            interrupted = True
        self._warn_unended(last.solution, interrupted)
        return self

    def _check_settings(self) -> None:
        super()._check_settings()
        given = self.get_params(deep=False)
        least = {"n_components": 1, "n_parts": 0, "n_negative_parts": 0, "part_size": 1, "padding": 0}
        for name, number in least.items():
            whole(name, given[name], number)
        for name in ("C", "positive_weight", "stiffness", "firmness"):
            inputs.check_positive(name, given[name])
        for name in ("root_area", "negative_stiffness"):
            if given[name] is not None:
                inputs.check_positive(name, given[name])
        for name in ("overlap", "background_overlap"):
            share(name, given[name])
        if self.background_overlap > self.overlap:
            raise ValueError(
                f"background_overlap={self.background_overlap} is more than overlap={self.overlap}: the same window "
                "would be object and background."
            )
        Grid(self.cell, self.octave_scales, 1.0 if self.finest is None else self.finest)  # checks these
        if isinstance(self.bound, str):
            one_of("bound", self.bound, ("cccp", "gmm"))
        self._chooser()
        inputs.check_memory(self.memory)
        inputs.check_threads(self.n_jobs)

    def _other_parts(self) -> list[OtherPart] | None:
        """Parts of other detectors that negative parts begin with, the strongest of each first."""
        if self.negative_parts_from is None:
            return None
        given = self.negative_parts_from
        others = [*given] if isinstance(given, Sequence) else [given]
        if not all(
            isinstance(one, DeformablePartDetector) and hasattr(one, "star_") and one is not self for one in others
        ):
            kinds = ", ".join(type(one).__name__ for one in others)
            raise ValueError(f"negative_parts_from must be fitted detectors, other ones than this; got {kinds}.")
        if not self.n_negative_parts:
            return None
        found = parts_of_others([(other.star_, other.coef_) for other in others])
        if len(found) < self.n_negative_parts:
            raise ValueError(
                f"negative_parts_from has {len(found)} positive parts, n_negative_parts={self.n_negative_parts} are "
                "asked for. Give more detectors, or ask for fewer."
            )
        return found

    def _memory(self) -> int:
        return inputs.check_memory(self.memory) or _MEMORY

    def _say_what_is_missed(self, images: TrainingImages) -> None:
        self.left_out_ = len(images.missed)
        if not images.positives:
            raise ImageError(
                f"None of the {len(images.missed)} boxes can be learned from: no root overlaps one by half. Are images "
                "smaller than the root filter, or objects of very unlike shapes? Use a smaller root_area, a larger "
                "finest, or more components."
            )
        if images.missed:
            names = some([images.pyramids.photos[i].name for i, _ in images.missed])
            warnings.warn(
                f"{len(images.missed)} boxes that no root overlaps by half are left out (in {names}): too small, too "
                "large or of another shape than most. More components, a larger finest or more padding let more in.",
                stacklevel=users_line(),
            )

    def _keep_stage(self, stage: Stage, before: list[BoundRecord]) -> None:
        self.star_ = stage.objective.model
        self._store_search(stage.solution)
        self.history_, self.n_root_bounds_ = [*before, *stage.solution.history], len(before)
        self.n_bounds_ = len(self.history_)
        self.n_passes_ = sum(record.passes for record in self.history_)
        self.box_regression_ = stage.box_regression() if self.box_regression else None

    def _check_fitted_sizes(self) -> None:
        """Whether the pieces of a file fit together."""
        star, regression = self.star_, self.box_regression_
        star.check(self.coef_)
        table = (len(star.components), 1 + 2 * star.most_parts, 4)
        if regression is not None and regression.coefficients.shape != table:
            raise ValueError("roots, parts and box regression do not fit together")

    # Using what was learned.

    @one_blas_thread()
    def detect(
        self, image: ImageSource, *, threshold: float | None = None, overlap: float = OVERLAP, most: int = MOST
    ) -> Detections:
        """Objects in an image, the best first.

        Parameters
        ----------
        image : path, array or Pillow image
        threshold : float or None
            Least score; ``threshold_`` by default. Training asks for +1 of objects and −1 of background: with a lower
            one more is found, and more wrongly.
        overlap : float
            A detection of which more than this lies within a better one is dropped.
        most : int
        """
        check_is_fitted(self)
        whole("most", most, 0, "detections")
        if threshold is not None and (not isinstance(threshold, int | float | np.number) or np.isnan(threshold)):
            raise ValueError(
                f"threshold must be None or a number, the least score of a detection, got {shown(threshold)}."
            )
        pixels = read_image(image, color=True)
        levels = self.grid_.pyramid(pixels, self.star_.has_parts)
        return find(
            Star(self.star_, self.coef_), levels, *pixels.shape[:2], overlap=overlap, most=most,
            threshold=self.threshold_ if threshold is None else threshold, regression=self.box_regression_,
        )  # fmt: skip

    @one_blas_thread()
    def predict(
        self, images: Any, *, threshold: float | None = None, overlap: float = OVERLAP, most: int = MOST
    ) -> list[Detections]:
        """``detect`` for each of many images: a list of them, a folder or a pattern."""
        check_is_fitted(self)
        if isinstance(images, str | os.PathLike):
            images = list_images(images)
        elif getattr(images, "ndim", 3) < 3:
            raise ImageError("predict is for many images, in a list. Use detect for one.")
        return [self.detect(image, threshold=threshold, overlap=overlap, most=most) for image in images]

    @one_blas_thread()
    def precision_recall(self, images: Any, boxes: object = None, *, label: str | None = None) -> PrecisionRecall:
        """How precise detections are, for every share of the objects that is found (VOC criterion)."""
        check_is_fitted(self)
        found, photos = [], []
        for photo, pixels in read_all(self._annotated(images, boxes, label)):
            one = self.detect(pixels, threshold=LOW)
            found.append((one.boxes, one.scores))
            photos.append(photo)
        truths, ignored = [photo.boxes for photo in photos], [photo.ignored for photo in photos]
        return precision_recall(found, truths, ignored=ignored)

    def _annotated(self, images: object, boxes: object, label: str | None) -> Annotated:
        """Images with boxes of the class that was learned, if no other is named."""
        return annotated(images, boxes, label=self.label_ if label is None else label)

    def score(self, images: object, boxes: object = None, *, label: str | None = None) -> float:
        """Average precision: the area under the curve of precision and recall, boxes right from an overlap of ½ on."""
        return self.precision_recall(images, boxes, label=label).average_precision

    def report(
        self,
        path: str | os.PathLike[str],
        images: Any = None,
        boxes: object = None,
        *,
        label: str | None = None,
        title: str | None = None,
        name: str | None = None,
    ) -> Path:
        """Write a page about this detector: one HTML file that loads nothing, to look at and to pass on.

        It shows what is proved, how the bounds came down, the filters and, where images are given, what is found in
        them; where boxes are given as well, how precise that is.

        Parameters
        ----------
        path : path
            The file to write; what was there before is replaced once all is written.
        images, boxes, label
            As for ``fit``; boxes may be left out.
        title : str or None
            What to write on top.
        name : str or None
            What to call the images, such as "the test set".

        Returns
        -------
        Path
        """
        from ..report.page import check_path

        check_is_fitted(self)
        check_path(path)  # before all images are searched
        if boxes is not None or isinstance(images, Annotated):
            given = self._annotated(images, boxes, label)
            return self._write_report(path, given.images, self.precision_recall(given), None, title, name)
        return self._write_report(path, images, None, None, title, name)

    def _report_content(self, data: Data) -> ReportContent:
        from .pages.detector import content

        images = list_images(data.X) if isinstance(data.X, str | os.PathLike) else list(data.X) if data.given else []
        return content(self, images, data.y, data.name)

    @one_blas_thread()
    def certify(self, images: Any, boxes: object = None, *, label: str | None = None) -> Certificate:
        """Bounds on the minimum of the convex bound that ``coef_`` minimises, computed anew over all windows."""
        self._check_trained()
        self._check_settings()
        memory = int(0.9 * self._memory())
        photos = photos_of(self._annotated(images, boxes, label))
        pyramids = PyramidStore(photos, self.grid_, self.star_.has_parts, memory)
        objective = objective_for(self, self.star_, images_for(self, self.star_, pyramids))
        return self._compared(self._certify(objective, self.coef_))
