"""The classifier of scenes: its settings, how regions are prepared, and the learner that is trained on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import latent, persistence
from ..clustering import GMMKMeans
from ..estimators import LatentStructuralSVM, LinearSVC, inputs
from ..estimators.fit_callbacks import notified
from ..estimators.reporting import Reporting
from ..estimators.settings import check_settings, with_parameters
from ..persistence import storable
from ..problem import Certificate
from ..protocols import BoundChooser, Seed
from ..validation import one_of
from . import image_inputs
from .features.extraction import over_images
from .features.extractors import extractor_for
from .features.maps import MAPS, map_for, mapped, mostly_sparse
from .features.numbers import checked_grid
from .image_classifier import ImageClassifier
from .models import Reconfigurable
from .scenes import ReconfigurableBagOfWords, SpatialBagOfWords
from .scenes.counts import checked_temperature
from .scenes.region_models import RegionModels

if TYPE_CHECKING:
    from ..report.content import Data, ReportContent

KINDS = ("bow", "sbow", "rbow", "rbow+", "rbow++")
BOUNDS = ("cccp", "gmm", "coherent")
STARTS = ("em", "kmeans", "fixed", "random")
_PAIRS = {"rbow": None, "rbow+": "potts", "rbow++": "regular"}


@storable(
    classes_="labels[k]", grid_="tuple", left_out_="int", feature_map_="text",
    mean_="float[d]|none", extractor_="WordHistograms|CNNRegions|none", learner_="any", record=None, certified=False,
)  # fmt: skip
@with_parameters
class SceneClassifier(ImageClassifier, Reporting, BaseEstimator):
    """Classes of scenes, from images or from features of their regions, and which region model was used where.

    An image is cut into a grid of regions. A *bag of words* ("bow") forgets where its words were seen; the *spatial*
    one ("sbow") has a model for each region; in a *reconfigurable* one ("rbow") each class has a set of parts, and
    latent variables say which of them explains each region of an image. "rbow+" likes neighbours to have the same part,
    "rbow++" learns which parts go beside and above which (Naderi Parizi, chapter 2).

    Parameters
    ----------
    kind : {"bow", "sbow", "rbow", "rbow+", "rbow++"}
        A bag of words, one per region, or parts that regions choose, like to share or know their neighbours by.
    training : {"discriminative", "generative"}
        A (latent) structural SVM, which ends with a certificate; or distributions of words, estimated by counting and
        by EM ("bow", "sbow" and "rbow").
    C : float
        Regularization parameter: weight of the loss, for each region: scores are sums over regions, so that
        the same C suits grids of different sizes.
    grid : int or (int, int)
        Rows and columns of regions, where images are given and ``features`` has no grid of its own.
    n_parts : int
        Region models of each class.
    parts : {"separate", "shared"}
        Whether each class has parts of its own, or all have them in common.
    features : {"words", "cnn"} or object
        How regions of images are described: histograms of visual words, a network trained on ImageNet, or something
        of your own: a function from an image to an array (rows, columns, features) with an attribute ``color`` and a
        method ``settings()``, such as ``WordHistograms(grid=8, sift=DenseSIFT(step=4))``; it has its own grid and
        words, and is trained unless it has a vocabulary. Only those of this package can be saved with the model.
    n_words : int
        Size of the vocabulary.
    feature_map : {"auto", "sqrt", "root", "l2", "none"}
        The square root of normalised histograms, the square root of counts, vectors of length 1, or features as they
        are. "auto" is "sqrt" for histograms and "none" for others; for generative models, which need counts, "root".
    center : "auto" or bool
        Whether the mean of all regions is then subtracted, without which dense features have little to tell them apart
        and training is slow. "auto" does so unless many features are zero: centred, they would be zero no more.
    init : {"auto", "em", "kmeans", "fixed", "random"}
        The parts that regions begin with: likely ones under the generative model, clusters, part r for region r, or
        random ones. "auto" is "em" for histograms and "kmeans" for others. ``fit(..., Z=...)`` comes before it.
    bound : {"cccp", "gmm", "coherent"} or BoundChooser
        How the convex bounds of latent training are chosen; "coherent" are those of G-MM in which neighbours agree.
    eta : float
        As for :class:`maxmargin.LatentStructuralSVM`.
    smoothing : float
        Of generative models: added to each count.
    temperature : float or None
        Of generative models: the T by whose inverse words within a region count. By default a tenth of the words in a
        region, but at least 1, for "rbow"; it makes no difference to the others but for the weight of the classes.
    tol, bound_tol, max_bounds, max_passes
        As for :class:`maxmargin.LatentStructuralSVM` and :class:`maxmargin.LinearSVC`.
    cache : path or None
        A folder in which features are kept, by the content of each image: the next fit does not compute them again.
        They are then read from files; EM, k-means and the kinds without parts read them into memory all the same.
    on_error : {"raise", "skip"}
        What to do with images that cannot be read in ``fit``: one error that names them, or leave them out.
    memory, n_jobs, random_state, verbose
        As for the other estimators; ``n_jobs`` are also images at a time.

    Attributes
    ----------
    classes_ : array
    grid_ : (int, int)
    n_features_in_ : int
        Features of a region.
    left_out_ : int
        Images that could not be read.
    learner_ : estimator or generative model
    extractor_ : object or None
        What describes images; None where features were given.
    region_models_ : RegionModels
    certificate_ : Certificate
        Of discriminative training; for the kinds with latent parts see :class:`maxmargin.LatentStructuralSVM`.
    history_ : list
        One record per pass or per bound; for generative models the likelihoods of EM.

    Examples
    --------
    >>> from maxmargin.data.synthetic import scenes
    >>> some, others = scenes(5, random_state=0), scenes(5, random_state=1)
    >>> model = SceneClassifier("rbow", "generative", n_parts=8, feature_map="none", temperature=1)
    >>> model = model.fit(some.X, some.y, Z=some.regions)
    >>> model.score(others.X, others.y) > 0.6
    True
    >>> bool((model.predict_regions(others.X) == others.regions).mean() > 0.8)
    True
    """

    _unit = "regions"
    _described = staticmethod(image_inputs.images_or_regions)

    kind: str = "rbow"
    training: str = "discriminative"
    _: KW_ONLY
    C: float = 2.0
    grid: int | tuple[int, int] = 4
    n_parts: int = 16
    parts: str = "separate"
    features: Any = "words"
    n_words: int = 200
    feature_map: str = "auto"
    center: str | bool = "auto"
    init: str = "auto"
    bound: str | BoundChooser = "cccp"
    eta: float = 0.1
    smoothing: float = 1.0
    temperature: float | None = None
    tol: float = 1e-2
    bound_tol: float = 1e-2
    max_bounds: int = 100
    max_passes: int = 1000
    cache: str | os.PathLike[str] | None = None
    on_error: str = "raise"
    memory: int | str | None = None
    n_jobs: int | None = None
    random_state: Seed = None
    verbose: int = 0

    grid_: tuple[int, int] = field(init=False)
    feature_map_: str = field(init=False)
    mean_: np.ndarray | None = field(init=False)
    learner_: Any = field(init=False)  # a linear or latent SVM, or a generative model

    # Learning.

    @notified
    def fit(
        self,
        X: object,
        y: ArrayLike | None = None,
        Z: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Callable[..., object]] = (),
    ) -> SceneClassifier:
        """Train on a folder, on files or images, or on features of regions.

        Parameters
        ----------
        X : path, list or array
            A folder with one sub-folder of images per class; a list of files or of images; an array of images (n,
            height, width[, 3]) of unsigned bytes; or features of regions (n, rows, columns, features).
        y : labels, one for each image; None with a folder
        Z : int array (n, rows, columns) or None
            Parts of regions to begin with.
        sample_weight : array or None
        checkpoint, checkpoint_every, callbacks
            As for :meth:`maxmargin.LinearSVC.fit`, for discriminative training.
        """
        self._check_settings()
        if self.training == "generative" and (checkpoint is not None or len(callbacks)):
            raise ValueError("checkpoint and callbacks are for discriminative training; EM takes seconds.")
        if self.training == "generative" and sample_weight is not None:
            raise ValueError("sample_weight is for discriminative training.")
        regions, label, weight, kept = self._learn_from(X, y, sample_weight)
        self.grid_, self.n_features_in_ = (int(regions.shape[1]), int(regions.shape[2])), int(regions.shape[3])
        self.feature_map_, self.mean_ = self._map(regions), None
        if Z is not None and not self._has_parts():
            raise ValueError(
                f"Z are parts to begin with, and kind={self.kind!r} has none to choose from. Leave it out."
            )
        n_given = len(kept) + self.left_out_
        start = None if Z is None else image_inputs.checked_parts(Z, n_given, self.grid_, self.n_parts)[kept]
        if self.training == "generative":
            self.learner_ = self._fit_generative(regions, label, start)
            return self
        self.learner_ = self._fit_discriminative(
            regions, label, start, sample_weight=weight, checkpoint=checkpoint, checkpoint_every=checkpoint_every,
            callbacks=callbacks,
        )  # fmt: skip
        return self

    def _check_settings(self) -> None:
        check_settings(self)
        one_of("kind", self.kind, KINDS)
        one_of("training", self.training, ("discriminative", "generative"))
        one_of("parts", self.parts, ("separate", "shared"))
        one_of("feature_map", self.feature_map, ("auto", *MAPS))
        if not isinstance(self.center, bool | np.bool_ | str) or self.center not in ("auto", True, False):
            raise ValueError(f"center must be 'auto', True or False, got {self.center!r}.")
        one_of("init", self.init, ("auto", *STARTS))
        one_of("on_error", self.on_error, ("raise", "skip"))
        inputs.check_positive("smoothing", self.smoothing)
        if self.temperature is not None:
            checked_temperature(self.temperature)
        if self._has_parts():  # what would be refused after all images were described is refused now
            Reconfigurable(n_parts=self.n_parts, parts=self.parts, pairs=_PAIRS[self.kind])
        if self.training == "generative" and self.kind in ("rbow+", "rbow++"):
            raise ValueError(
                f"kind={self.kind!r} has no generative training: its neighbours are not independent. Use "
                "training='discriminative', or kind='rbow'."
            )
        if self.training == "discriminative":
            learner = self._learner((1, 1), 2)
            learner._check_settings()
            if self._has_parts():
                learner._chooser()

    def _has_parts(self) -> bool:
        return self.kind not in ("bow", "sbow")

    def _named_extractor(self) -> Any:
        return extractor_for(self.features, self.grid, self.n_words, self.random_state)

    def _extract(self, images: Sequence[Any], on_error: str) -> tuple[np.ndarray, np.ndarray]:
        return over_images(images, self.extractor_, settings=self.extractor_.settings(), **self._extraction(on_error))

    def _features_of(self, data: image_inputs.ImageInputs, on_error: str) -> tuple[np.ndarray, np.ndarray]:
        regions, kept = super()._features_of(data, on_error)
        return image_inputs.checked_regions(regions, kept), kept

    def _check_known(self, regions: np.ndarray) -> None:
        shape = (*self.grid_, self.n_features_in_)
        if regions.shape[1:] != shape:
            raise ValueError(
                f"The model was trained on regions of shape {shape}, got {regions.shape[1:]}: rows, columns, features."
            )

    def _map(self, regions: np.ndarray) -> str:
        if self.training == "generative":
            return one_of(
                "feature_map of generative models",
                "root" if self.feature_map == "auto" else self.feature_map,
                ("root", "none"),
            )
        return map_for(regions) if self.feature_map == "auto" else self.feature_map

    def _prepared(self, regions: np.ndarray) -> np.ndarray:
        """Regions as the learner takes them."""
        if self.kind == "bow":  # of counts the sum, of other features the mean
            mean = regions.mean(axis=(1, 2), dtype=np.float32)[:, None, None, :]
            regions = mean * (regions.shape[1] * regions.shape[2] if self.training == "generative" else 1)
        return mapped(self.feature_map_, regions, self.mean_, self.cache)

    def _fit_generative(self, regions: np.ndarray, label: np.ndarray, start: np.ndarray | None) -> Any:
        image_inputs.check_counts("training='generative'", regions, "training='discriminative'")
        words = _flat(self._prepared(regions))
        if self.kind != "rbow":
            return SpatialBagOfWords.fit(words, label, smoothing=self.smoothing, temperature=self.temperature or 1.0)
        begin = "fixed" if self.init == "fixed" else "random"
        return self._em(words, label, inputs.generator(self.random_state), begin if start is None else start)

    def _em(
        self, words: np.ndarray, label: np.ndarray, rng: np.random.Generator, start: str | np.ndarray = "random"
    ) -> ReconfigurableBagOfWords:
        return ReconfigurableBagOfWords.fit(
            words, label, n_parts=self.n_parts, shared=self.parts == "shared", start=start, smoothing=self.smoothing,
            temperature=self.temperature, random_state=rng,
        )  # fmt: skip

    def _fit_discriminative(
        self, regions: np.ndarray, label: np.ndarray, start: np.ndarray | None, **run: Any
    ) -> LinearSVC | LatentStructuralSVM:
        x = self._prepared(regions)
        if not mostly_sparse(x) if isinstance(self.center, str) else self.center:
            self.mean_ = x.mean(axis=(0, 1, 2), dtype=np.float64).astype(np.float32)
            x = self._prepared(regions)
        svm = self._learner((x.shape[1], x.shape[2]), self.classes_.size)
        if not self._has_parts():
            return svm.fit(x.reshape(len(x), -1), label, **run)
        return svm.fit(x, label, list(self._initial(regions, x, label) if start is None else start), **run)

    def _learner(self, grid: tuple[int, int], n_classes: int) -> Any:
        """The SVM that is to be trained."""
        C = self.C / (grid[0] * grid[1])
        shared: dict[str, Any] = {
            "tol": self.tol, "max_passes": self.max_passes, "memory": self.memory, "n_jobs": self.n_jobs,
            "random_state": self.random_state, "verbose": self.verbose,
        }  # fmt: skip
        if not self._has_parts():
            # Of two classes LinearSVC learns the difference v of both weight vectors, at ½‖v‖² instead of ¼‖v‖².
            return LinearSVC(2.0 * C if n_classes == 2 else C, **shared)
        return LatentStructuralSVM(
            Reconfigurable(n_classes, n_parts=self.n_parts, parts=self.parts, pairs=_PAIRS[self.kind]),
            C,
            bound=self._bound(grid),
            eta=self.eta,
            bound_tol=self.bound_tol,
            max_bounds=self.max_bounds,
            **shared,
        )

    def _initial(self, regions: np.ndarray, x: np.ndarray, label: np.ndarray) -> np.ndarray:
        """Parts (n, n_regions) to begin with: training is sensitive to them (Naderi Parizi §2.4.2)."""
        how = self.init if self.init != "auto" else "em" if map_for(regions) == "sqrt" else "kmeans"
        n, R, rng = len(x), x.shape[1] * x.shape[2], inputs.generator(self.random_state)
        if how == "random":
            return rng.integers(0, self.n_parts, (n, R)).astype(np.int16)
        if how == "fixed":
            return np.tile((np.arange(R) * self.n_parts // R).astype(np.int16), (n, 1))
        if how == "em":
            image_inputs.check_counts("init='em'", regions, "init='kmeans'")
            words = _flat(mapped("root", regions, folder=self.cache))
            return self._em(words, label, rng).assign(words, label).astype(np.int16)
        parts = np.empty((n, R), np.int16)
        for k in [None] if self.parts == "shared" else np.unique(label).tolist():
            mine = np.arange(n) if k is None else np.flatnonzero(label == k)
            points = np.asarray(x[mine], dtype=np.float32).reshape(-1, x.shape[3])
            clusters = GMMKMeans(min(self.n_parts, len(points)), random_state=rng).fit(points)
            parts[mine] = clusters.labels_.reshape(mine.size, R)
        return parts

    def _bound(self, grid: tuple[int, int]) -> str | BoundChooser:
        if isinstance(self.bound, str):
            one_of("bound", self.bound, BOUNDS)
        if not isinstance(self.bound, str) or self.bound != "coherent":
            return self.bound
        # A proposal changes one region, and each region should be tried several times.
        return latent.Biased(latent.Coherence.grid(*grid), sweeps=5 * grid[0] * grid[1])

    # Using what was learned.

    def _scores(self, x: np.ndarray) -> np.ndarray:
        """The score of every class, from regions as the learner takes them."""
        if self.training == "generative":
            return self.learner_.scores(_flat(x))
        if self._has_parts():
            threads = inputs.check_threads(self.learner_.n_jobs)
            return self.learner_.model_.class_scores(x, self.learner_.coef_, n_jobs=threads)
        scores = self.learner_.decision_function(x.reshape(len(x), -1))
        # Two classes have one weight vector, the difference of those that they would have among several.
        return np.stack([-0.5 * scores, 0.5 * scores], axis=1) if scores.ndim == 1 else scores

    def describe(self, X: object) -> np.ndarray:
        """The features of the regions of images, (n, rows, columns, features), as ``fit`` and ``predict`` take them."""
        check_is_fitted(self)
        regions, _ = self._features_of(self._described(X), "raise")
        self._check_known(regions)
        return regions

    def transform(self, X: object) -> np.ndarray:
        """What the learner is given: the same after ``feature_map``, less the mean. It is not for ``predict``."""
        return self._prepared(self.describe(X))

    def decision_function(self, X: object) -> np.ndarray:
        """The score of every class, (n, n_classes)."""
        return self._scores(self.transform(X))

    def predict_regions(self, X: object, y: ArrayLike | None = None) -> np.ndarray:
        """Which part explains each region, (n, rows, columns); for the class that is predicted, or for ``y``.

        ``y`` is one class for each image, or one for all of them.
        """
        check_is_fitted(self)
        if self.kind == "bow":
            raise ValueError("kind='bow' has one model for the whole image, and no regions to label.")
        x = self.transform(X)
        if y is None:
            classes = np.argmax(self._scores(x), axis=1)
        else:
            classes = self._codes(np.full(len(x), y) if np.ndim(y) == 0 else y, len(x))
        parts: np.ndarray
        if not self._has_parts():
            parts = np.tile(np.arange(x.shape[1] * x.shape[2]), (len(x), 1))
        elif self.training == "generative":
            parts = self.learner_.assign(_flat(x), classes)
        else:
            parts = np.array(self.learner_.model_.latent_oracle(x, classes).complete(self.learner_.coef_)[0])
        return parts.reshape(-1, *self.grid_)

    @property
    def region_models_(self) -> RegionModels:
        check_is_fitted(self)
        learner, preference, neighbours = self.learner_, cast(Any, None), cast(Any, ())
        if self.training == "generative":
            appearance, preference = learner.log_words, learner.log_parts
        elif self._has_parts():
            model, w = learner.model_, learner.coef_
            appearance, preference = model.appearance(w), model.preference(w)
            neighbours = () if model.pairs is None else model.tables(w)
        else:
            appearance = learner.coef_
            appearance = np.concatenate([-0.5 * appearance, 0.5 * appearance]) if len(appearance) == 1 else appearance
        k, (rows, cols) = len(self.classes_), (1, 1) if self.kind == "bow" else self.grid_
        if preference is None:  # region r always uses part r
            appearance = appearance.reshape(k, rows * cols, -1)
            preference = np.broadcast_to(np.eye(rows * cols), (k, rows * cols, rows * cols))
        appearance = np.broadcast_to(appearance, (k, *appearance.shape[1:]))
        return RegionModels(self.classes_, appearance, preference.reshape(k, rows, cols, -1), *neighbours)

    @property
    def certificate_(self) -> Certificate:
        check_is_fitted(self)
        self._check_certified()
        return self.learner_.certificate_

    def _check_certified(self) -> None:
        if self.training == "generative":
            raise AttributeError("Generative models have no certificate: EM and counting do not minimise a hinge loss.")

    @property
    def objective_(self) -> float:
        """What was minimised, at the weights that were found."""
        certificate = self.certificate_
        return self.learner_.objective_ if self._has_parts() else certificate.upper

    @property
    def history_(self) -> list[Any]:
        check_is_fitted(self)
        if self.training == "generative":
            return np.ravel(self.learner_.likelihoods).tolist()
        return self.learner_.history_

    def certify(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Certificate:
        """Bounds on the optimum, computed anew from images (or features) and labels.

        For kinds with parts it is the optimum of the last convex bound: see ``LatentStructuralSVM.certify``.
        """
        check_is_fitted(self)
        self._check_certified()
        regions, label, weight = self._certified_data(X, y, sample_weight)
        x = self._prepared(regions)
        return self.learner_.certify(x if self._has_parts() else x.reshape(len(x), -1), label, weight)

    def _report_content(self, data: Data) -> ReportContent:
        from .pages.scenes import content

        return content(self, data)

    def _check_fitted_sizes(self) -> None:
        """For what comes from a file: whether its pieces fit together."""
        grid, k, d = checked_grid(self.grid_), self.classes_.size, self.n_features_in_
        n_regions = 1 if self.kind == "bow" else grid[0] * grid[1]
        learner: Any = self.learner_
        kind = type(learner).__name__
        if self.training == "generative":
            fits = kind == ("ReconfigurableBagOfWords" if self._has_parts() else "SpatialBagOfWords")
            fits = fits and learner.log_prior.shape == (k,) and learner.log_words.shape[-1] == d
            by_region = learner.log_words if not fits or learner.log_parts is None else learner.log_parts
            fits = fits and by_region.shape[1] == n_regions
        elif self._has_parts():
            fits = kind == "LatentStructuralSVM" and isinstance(learner.model_, Reconfigurable)
            fits = fits and (learner.model_.n_classes, learner.model_.grid, learner.model_.n_features) == (k, grid, d)
        else:
            fits = kind == "LinearSVC" and learner.classes_.size == k and learner.n_features_in_ == n_regions * d
        extractor: Any = self.extractor_
        if extractor is not None:
            has_words = hasattr(extractor, "n_words")
            described = extractor.vocabulary_.shape[0] if has_words else extractor.shape[2]
            fits = fits and extractor.grid == grid and described == d
        if not fits or self.feature_map_ not in MAPS:
            raise ValueError(
                f"{k} classes, a grid of {grid}, the learner and what describes images do not fit together"
            )

    def save(self, path: str | Path) -> None:
        """Write the fitted classifier to one file (safetensors); ``maxmargin.load`` reads it back."""
        check_is_fitted(self)
        persistence.save(self, path)


def _flat(regions: np.ndarray) -> np.ndarray:
    """(n, rows, columns, features) as (n, regions, features)."""
    return regions.reshape(len(regions), -1, regions.shape[3])
