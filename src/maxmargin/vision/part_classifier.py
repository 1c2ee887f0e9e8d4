"""The classifier of images by parts that nobody labelled: its settings, its training, and what it has learned."""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..estimators import inputs
from ..estimators.certified import CertifiedEstimator, Run
from ..estimators.fit_callbacks import notified, users_line
from ..estimators.settings import with_parameters
from ..persistence import storable
from ..problem import Certificate
from ..solvers.progress import NestedLine
from ..validation import one_of, shown, whole
from . import image_inputs
from .features.cnn import CNNPatches
from .features.extraction import lacking
from .features.hog_patches import HOGPatches
from .features.numbers import share
from .features.reduction import ReducedPatches
from .image_classifier import ImageClassifier
from .image_inputs import ImageInputs
from .parts.detections import Detection, best_detections, strongest
from .parts.joint import JointRecord, JointSettings, JointTraining, Trained, memory_for_rivals
from .parts.patches import Patches, gather_patches
from .parts.pool import Whitening, largest_pool, random_parts
from .parts.responses import Pooling, Responder, check_device, responder_for, responses_of
from .parts.selection import Selected, select_parts
from .parts.weights import PartWeights, WeightProblem, squared_penalty

if TYPE_CHECKING:
    from ..report.content import Data, ReportContent

TRAININGS = ("random", "selected", "joint")
_FAR = 5.0  # lengths from zero, in units of their spread, at which patches are hard to learn from
_BLOCK = 256  # images whose patches are at hand together when something is predicted


@dataclass(frozen=True)
class PartComparison:
    """Parts that tell one class from another (Naderi Parizi, definition 3.2).

    ``difference`` (n_parts, n_regions) is u of the one class less u of the other; ``positive`` are parts that speak for
    the one, the strongest first, ``negative`` those that speak for the other, by the sum over regions.
    """

    difference: np.ndarray
    positive: np.ndarray
    negative: np.ndarray


@storable(
    classes_="labels[k]", filters_="float[p, d]", part_weights_="float[k, p, r]", bias_="float[k]",
    centre_="float[p, r]", filter_penalty_="float", extractor_="HOGPatches|CNNPatches|ReducedPatches|none",
    left_out_="int", _alpha="float[n, k]|none",
    record=JointRecord,
)  # fmt: skip
@with_parameters
class PartClassifier(ImageClassifier, CertifiedEstimator):
    """Classes of images by parts that nobody labelled: found because they help to tell the classes apart.

    A part is a filter; its response is its largest score anywhere in a region of an image, averaged over the image and
    its mirror image. All classes share the parts, and each weighs them in its own way: a part may speak for one class
    and against another. Parts begin as single random patches. Of a large pool of them a classifier that pays for each
    part selects the useful ones, and then filters and weights are trained together, by turns, for the same loss
    (Naderi Parizi, chapter 3).

    Parameters
    ----------
    n_parts : int
        Parts that all classes share.
    training : {"joint", "selected", "random"}
        Whether filters are trained; or only selected from a pool; or neither.
    C : float
        Regularization parameter: weight of the loss. Filters are scaled such that, to begin with, the
        responses of an image are of length 1 on average: so the same C suits any number of parts.
    features : {"hog", "cnn"} or object
        How patches are described: histograms of gradients of 6 × 6 cells at all scales, a network trained on ImageNet,
        or something of your own, such as ``HOGPatches(size=4, cell=6)``, ``ReducedPatches(CNNPatches(), 160)``: called
        with an image it gives an array with the fields ``window`` and ``value``, and has ``color`` and ``settings()``.
    n_components : int or None
        Leading directions of the features that are kept of "hog" and "cnn"; None keeps all.
    flips : bool
        Whether the mirror image counts as well, for "hog" and "cnn".
    regions : sequence of int
        Grids of regions in which responses are taken: (1, 2) are the whole image and its quarters.
    pool_size : int or None
        Random parts to select from; None makes it ten times ``n_parts``, but at least 200, or what small images have.
    keep : float
        Share of the patches of an image that parts may be made of: those that are least like all others.
    shrinkage : "auto" or float
        Of the covariance of patches, towards a multiple of the identity.
    balance : float
        Price of long filters relative to that of large part weights.
    tol : float
        Relative gap to which part weights are solved.
    bound_tol : float
        Joint training ends with a round that lowers the objective by no more than this share.
    max_rounds, max_passes : int
        Most rounds of joint training, and most passes for part weights.
    device : str or None
        Where responses are computed: None for this machine's processors, "cuda" for a GPU (``maxmargin[torch]``).
    cache : path or None
        A folder in which features are kept, by the content of each image. They are then read from files, and those that
        were reduced to ``n_components`` are in half precision.
    on_error : {"raise", "skip"}
        What to do with images that cannot be read in ``fit``.
    memory : int, str or None
        Bytes for all that joint training keeps besides the patches: responses, places and hard examples. Where it is
        short, the latter are averaged. A pool of parts is gone by then and does not count.
    n_jobs, random_state, verbose
        As for the other estimators; ``n_jobs`` are also images at a time.

    Attributes
    ----------
    classes_ : array
    filters_ : array (n_parts, n_features)
    part_weights_ : array (n_classes, n_parts, n_regions)
        They sum to zero over the classes.
    extractor_ : object or None
        What describes images; None where patches were given.
    certificate_ : Certificate
        Of the part weights: with these filters no others are better by more than the gap.
    objective_ : float
        O(u, w), what was minimised.
    history_ : list of JointRecord
        One for each step.
    selection_ : Selected or None
        Which parts of the pool were taken, and the path that led there; not kept in files, and then None.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 3
    >>> bags = [rng.normal(size=(20, 8)) for _ in y]
    >>> for patches, k in zip(bags, y):
    ...     patches[rng.integers(20), k] += 6.0  # one patch in twenty tells
    >>> model = PartClassifier(n_parts=6, regions=(1,), random_state=0).fit(bags[:40], y[:40])
    >>> model.score(bags[40:], y[40:]) > 0.8
    True
    """

    _certified = "of the part weights, filters fixed"
    _unit = "patches"
    _described = staticmethod(image_inputs.images_or_patches)

    n_parts: int = 64
    training: str = "joint"
    _: KW_ONLY
    C: float = 1.0
    features: Any = "hog"
    n_components: int | None = 128
    flips: bool = True
    regions: Sequence[int] = (1, 2)
    pool_size: int | None = None
    keep: float = 0.5
    shrinkage: str | float = "auto"
    balance: float = 1.0
    tol: float = 1e-2
    bound_tol: float = 1e-2
    max_rounds: int = 20
    max_passes: int = 1000

    regularizer: Any = field(init=False)  # no parameters of this estimator: these three
    solver: Any = field(init=False)
    warm_start: Any = field(init=False)
    selection_: Selected | None = field(default=None, init=False)
    filters_: np.ndarray = field(init=False)
    part_weights_: np.ndarray = field(init=False)
    bias_: np.ndarray = field(init=False)
    centre_: np.ndarray = field(init=False)
    filter_penalty_: float = field(init=False)
    history_: list[JointRecord] = field(init=False)  # type: ignore[assignment]
    device: str | None = None
    cache: str | os.PathLike[str] | None = None
    on_error: str = "raise"

    # Learning.

    @notified
    def fit(
        self,
        X: object,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Callable[[JointRecord], object]] = (),
    ) -> PartClassifier:
        """Train on a folder, on files or images, or on features of patches.

        Parameters
        ----------
        X : path, list or array
            A folder with one sub-folder of images per class; a list of files or of images; an array of images of
            unsigned bytes; or features: ``Patches``, a list of arrays (patches, features), one for each image, an array
            (n, patches, features), or one (n, rows, columns, features), whose cells are the patches. Lists and arrays
            of patches do not say where these are: use ``regions=(1,)``.
        y : labels, one for each image; None with a folder
        sample_weight : array or None
            Multiplies C. Pool and selection know nothing of it.
        checkpoint : path or None
            A folder in which training is saved, and goes on from if it was interrupted.
        checkpoint_every : float
            Seconds between two savings, at least.
        callbacks : sequence of functions
            Each is given a ``JointRecord`` per step; one that returns True ends the training.
        """
        self._check_settings()
        patches, label, weight, _ = self._learn_from(X, y, sample_weight)
        self.n_features_in_ = patches.n_features
        responder = self._responder(patches)
        settings = self._joint_settings(responder)
        run = self._identified(Run(checkpoint, checkpoint_every), lambda: _fingerprint(patches, label, weight))
        line = NestedLine.callbacks_for(type(self).__name__, self.tol, JointRecord.described, bool(self.verbose))
        with line as (inner, outer), self._saving(run) as folder:
            saved = None if folder is None else folder.load()
            self.selection_ = None
            filters = self._initial_filters(responder, label) if saved is None else np.array(saved["filters"])
            found = JointTraining(
                responder,
                label,
                self.classes_.size,
                self._budget(weight, label.size),
                filters,
                settings,
                callbacks=(*outer, *callbacks),
                inner_callbacks=inner,
                checkpoint=folder,
            ).run()
        self._keep_trained(found)
        return self

    def _check_settings(self) -> None:
        super()._check_settings()
        one_of("training", self.training, TRAININGS)
        one_of("on_error", self.on_error, ("raise", "skip"))
        inputs.check_positive("balance", self.balance)
        inputs.check_positive("bound_tol", self.bound_tol)
        whole("n_parts", self.n_parts)
        if self.n_components is not None:
            whole("n_components", self.n_components)
        if self.pool_size is not None and whole("pool_size", self.pool_size) < self.n_parts:
            raise ValueError(
                f"pool_size must be a whole number of at least n_parts={self.n_parts}, got {shown(self.pool_size)}."
            )
        share("keep", self.keep)
        given = self.shrinkage
        if given != "auto" and not (isinstance(given, int | float | np.number) and 0.0 <= given <= 1.0):
            raise ValueError(f"shrinkage must be 'auto' or a number from 0 to 1, got {given!r}.")
        Pooling(self.regions)
        self._named_extractor()
        check_device(self.device)

    def _named_extractor(self) -> Any:
        """What ``features`` means."""
        if not isinstance(self.features, str):
            missing = lacking(self.features)
            if missing:
                raise ValueError(
                    f"features must be 'hog', 'cnn' or have {', '.join(missing)}; got {self.features!r}. HOGPatches() "
                    "and CNNPatches() of maxmargin.vision are such objects."
                )
            return self.features
        kind = one_of("features", self.features, ("hog", "cnn"))
        plain: Any = HOGPatches(flips=bool(self.flips)) if kind == "hog" else CNNPatches(flips=bool(self.flips))
        if self.n_components is None:
            return plain
        precision = "float32" if self.cache is None else "float16"
        return ReducedPatches(plain, int(self.n_components), dtype=precision)

    def _extract(self, images: Sequence[object], on_error: str) -> tuple[Patches, np.ndarray]:
        return gather_patches(images, self.extractor_, **self._extraction(on_error))

    def _responder(self, patches: Patches) -> Responder:
        return responder_for(patches, Pooling(self.regions), self.device)

    def _initial_filters(self, responder: Responder, label: np.ndarray) -> np.ndarray:
        """Random parts, the useful ones of a pool of them, scaled such that images are of length 1 on average."""
        rng, n_jobs = inputs.generator(self.random_state), inputs.check_threads(self.n_jobs)
        patches = responder.patches
        whitening = Whitening.estimate(patches.values, rng=rng, shrinkage=self.shrinkage)
        if self.training == "joint" and whitening.offset > _FAR:
            warnings.warn(
                f"The mean of the patches is {whitening.offset:.0f} times as long as they are spread around it: joint "
                "training will be slow, or get nowhere. Subtract the mean from all patches, of images to predict too.",
                stacklevel=users_line(),
            )
        selecting = self.training != "random"
        size = self.n_parts if not selecting else self.pool_size or self._default_pool(patches)
        filters, _ = random_parts(patches, int(size), whitening, rng=rng, keep=self.keep)
        responses = responses_of(responder, filters, n_jobs)
        if selecting and size > self.n_parts:
            self.selection_ = select_parts(responses, label, int(self.n_parts))
            filters, responses = filters[self.selection_.parts], responses[:, self.selection_.parts]
        length = np.sqrt(((responses - responses.mean(axis=0)) ** 2).sum(axis=(1, 2)).mean())
        return filters / length if length > 0.0 else filters

    def _default_pool(self, patches: Patches) -> int:
        """As many random parts as are enough to select from, if a small set of images has so many patches."""
        return max(self.n_parts, min(max(10 * self.n_parts, 200), largest_pool(patches, self.keep)))

    def _budget(self, weight: np.ndarray | None, n: int) -> np.ndarray:
        return np.full(n, float(self.C)) if weight is None else float(self.C) * weight

    def _joint_settings(self, responder: Responder) -> JointSettings:
        joint = self.training == "joint"
        memory = inputs.check_memory(self.memory)
        if memory is not None:
            memory = memory_for_rivals(memory, responder, int(self.n_parts), n_rivals=int(joint))
        return JointSettings(
            balance=float(self.balance),
            tol=float(self.tol),
            bound_tol=float(self.bound_tol),
            max_rounds=int(self.max_rounds) if joint else 0,
            max_passes=int(self.max_passes),
            memory=memory,
            n_jobs=inputs.check_threads(self.n_jobs),
            random_state=self.random_state,
        )

    def _keep_trained(self, found: Trained) -> None:
        self.filters_, self.part_weights_ = found.filters, found.weights.table
        self.bias_, self.centre_ = found.weights.bias, found.weights.centre
        self.filter_penalty_, self._alpha = found.penalty, found.shares
        self.certificate_, self.history_ = found.certificate, found.history
        self.n_passes_ = sum(record.passes for record in found.history)
        told = self._missed(found)
        if told:
            warnings.warn(f"PartClassifier {told}", ConvergenceWarning, stacklevel=users_line())

    def _missed(self, found: Trained) -> str:
        """Which goal was missed, if one was."""
        reached = f"with an objective of {found.certificate.upper:.6g}. The parts are the best found"
        if found.interrupted:
            return f"was interrupted, {reached}."
        if self.training == "joint" and not found.converged:
            rounds = found.history[-1].round
            if rounds < self.max_rounds:
                return f"stopped after round {rounds}, which changed nothing, {reached}; raise bound_tol, the goal."
            return (
                f"stopped after max_rounds={self.max_rounds} rounds, {reached}; raise max_rounds, or bound_tol, which "
                "is the goal."
            )
        filters, error = squared_penalty(found.penalty, found.filters)
        gap = found.certificate.shifted(-filters, error).relative_gap
        if gap > self.tol * (1.0 + 1e-6):
            return (
                f"stopped after max_passes={self.max_passes} passes over part weights, at a relative gap of {gap:.1e} "
                f"(goal {self.tol:.1e}); raise max_passes."
            )
        return ""

    # Using what was learned.

    @property
    def _weights(self) -> PartWeights:
        check_is_fitted(self)
        return PartWeights(self.part_weights_, self.bias_, self.centre_)

    @property
    def objective_(self) -> float:
        check_is_fitted(self)
        return self.certificate_.upper

    def part_responses(self, X: object) -> np.ndarray:
        """What every part responds in every region, (n, n_parts, n_regions)."""
        check_is_fitted(self)
        n_jobs = inputs.check_threads(self.n_jobs)
        return np.concatenate(
            [responses_of(self._responder(patches), self.filters_, n_jobs) for patches in self._in_blocks(X)]
        )

    def _in_blocks(self, X: object) -> Iterator[Patches]:
        """Patches of some images at a time."""
        data = self._described(X)
        for start in range(0, len(data), _BLOCK) if data.features is None else [0]:
            some = data if data.images is None else ImageInputs(data.images[start : start + _BLOCK])
            patches, _ = self._features_of(some, "raise")
            self._check_known(patches)
            yield patches

    def _check_known(self, patches: Patches) -> None:
        if patches.n_features != self.n_features_in_:
            raise ValueError(
                f"The model was trained on patches of {self.n_features_in_} features, got {patches.n_features}."
            )

    def decision_function(self, X: object) -> np.ndarray:
        """The score of every class, (n, n_classes)."""
        return self._weights.scores(self.part_responses(X))

    def compare(self, one: object, other: object) -> PartComparison:
        """The parts that speak for one class rather than another, and those that speak against it."""
        check_is_fitted(self)
        a, b = (self._code(name) for name in (one, other))
        difference = self.part_weights_[a] - self.part_weights_[b]
        total = difference.sum(axis=1)
        order = np.argsort(-total, kind="stable")
        return PartComparison(difference, order[total[order] > 0.0], order[::-1][total[order[::-1]] < 0.0])

    def _code(self, name: object) -> int:
        found = np.flatnonzero(self.classes_ == name)
        if not found.size:
            told = name.item() if isinstance(name, np.generic) else name
            raise ValueError(f"{told!r} is none of the classes: {self.classes_.tolist()[:20]}.")
        return int(found[0])

    def top_detections(self, X: object, part: int, n: int = 10, *, per_image: int = 1) -> list[Detection]:
        """Where a part responds most: the best places in the images, the best first.

        Parameters
        ----------
        X : as for ``predict``
        part : int
        n : int
            Places, at most.
        per_image : int
            Places of one image, at most; they overlap by less than half.
        """
        return self.detections(X, [part], n, per_image=per_image)[0]

    def detections(self, X: object, parts: Sequence[int], n: int = 10, *, per_image: int = 1) -> list[list[Detection]]:
        """``top_detections`` of several parts, with one look at the images."""
        check_is_fitted(self)
        for part in parts:
            if isinstance(part, bool) or not isinstance(part, int | np.integer) or not 0 <= part < len(self.filters_):
                raise ValueError(f"part must be a whole number from 0 to {len(self.filters_) - 1}, got {part!r}.")
        found: list[list[Detection]] = [[] for _ in parts]
        seen = 0
        for patches in self._in_blocks(X):
            for k, part in enumerate(parts):
                found[k] = strongest([*found[k], *best_detections(patches, self.filters_[part], n, per_image, seen)], n)
            seen += len(patches)
        return found

    def filter_images(self) -> np.ndarray:
        """The filters over the features before they were reduced: (n_parts, size, size, 32) for "hog"."""
        check_is_fitted(self)
        if not hasattr(self.extractor_, "unreduced"):
            raise ValueError("Filters have a shape only where the model was trained on images.")
        return self.extractor_.unreduced(self.filters_)

    def certify(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Certificate:
        """Bounds on the least objective that any part weights have with these filters, computed anew.

        On the images of ``fit`` they are those of ``certificate_``; on others they are true as well, but wide.
        """
        self._check_trained()
        patches, label, weight = self._certified_data(X, y, sample_weight)
        responses = responses_of(self._responder(patches), self.filters_, inputs.check_threads(self.n_jobs))
        problem = WeightProblem(responses, label, self.classes_.size, self.centre_, self._budget(weight, label.size))
        alpha = self._alpha if np.shape(self._alpha) == (label.size, self.classes_.size) else None
        found = problem.certify(self._weights, alpha)
        return self._compared(found.shifted(*squared_penalty(self.filter_penalty_, self.filters_)))

    def _report_content(self, data: Data) -> ReportContent:
        from .pages.parts import content

        return content(self, data)

    def _check_fitted_sizes(self) -> None:
        """For what comes from a file: whether its pieces fit together."""
        fits = self.part_weights_.shape[2] == Pooling(self.regions).n_regions
        described = getattr(self.extractor_, "patch_shape", (self.n_features_in_,))
        fits = fits and int(np.prod(described)) == self.n_features_in_
        if isinstance(self.extractor_, ReducedPatches):
            reduced = self.extractor_
            inner = int(np.prod(getattr(reduced.extractor, "patch_shape", (-1,))))
            basis, mean = getattr(reduced, "basis_", None), getattr(reduced, "mean_", None)
            fits = fits and basis is not None and mean is not None and basis.shape == (self.n_features_in_, inner)
        if not fits:
            raise ValueError("parts, their weights, regions and what describes images do not fit together")


def _fingerprint(patches: Patches, label: np.ndarray, weight: np.ndarray | None) -> str:
    """What tells this data from other data."""
    found = zlib.crc32(np.ascontiguousarray(label, dtype=np.int64).tobytes())
    found = zlib.crc32(np.ascontiguousarray(patches.first, dtype=np.int64).tobytes(), found)
    if weight is not None:
        found = zlib.crc32(np.ascontiguousarray(weight, dtype=np.float64).tobytes(), found)
    some = patches.values[:: max(1, len(patches.values) // 1000)]
    return f"{patches.values.shape} {zlib.crc32(np.ascontiguousarray(some).tobytes(), found):08x}"
