"""Three ways to learn scenes behind one face: scores of classes, parts of regions, and the arrays to look at.

Each is given regions (n, rows, columns, features): counts where it is generative, ψ of them where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from ...estimators import LatentStructuralSVM, LinearSVC
from ...estimators.inputs import check_threads
from ...persistence import storable_part
from ..models import Reconfigurable
from .em import ReconfigurableBagOfWords
from .multinomial import BagOfWords, SpatialBagOfWords


class Learner(Protocol):
    """A trained model of scenes; classes and parts are numbers."""

    def scores(self, regions: np.ndarray) -> np.ndarray:
        """The score of every class, (n, n_classes)."""
        ...

    def parts(self, regions: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """The part of every region, (n, n_regions), if the images are of these classes."""
        ...

    def tables(self) -> dict[str, np.ndarray | None]:
        """Appearance (n_classes, n_parts, n_features), preference (n_classes, n_regions, n_parts), and so on."""
        ...


def flat(regions: np.ndarray) -> np.ndarray:
    """(n, rows, columns, features) as (n, regions, features)."""
    return regions.reshape(len(regions), -1, regions.shape[3])


def pooled(regions: np.ndarray) -> np.ndarray:
    """The mean over all regions, as one region."""
    return regions.mean(axis=(1, 2), dtype=np.float32)[:, None, None, :]


def _one_each(n_classes: int, n_regions: int) -> np.ndarray:
    """Preferences where region r always uses part r."""
    return np.broadcast_to(np.eye(n_regions), (n_classes, n_regions, n_regions)).copy()


@dataclass(frozen=True)
class Generative:
    """Distributions of words: ``BagOfWords``, ``SpatialBagOfWords`` or ``ReconfigurableBagOfWords``."""

    model: Any

    def scores(self, regions: np.ndarray) -> np.ndarray:
        return self.model.scores(flat(regions))

    def parts(self, regions: np.ndarray, classes: np.ndarray) -> np.ndarray:
        if hasattr(self.model, "assign"):
            return self.model.assign(flat(regions), classes)
        n_regions = regions.shape[1] * regions.shape[2]
        return np.tile(np.arange(n_regions), (len(regions), 1))

    def tables(self) -> dict[str, np.ndarray | None]:
        words = self.model.log_words
        n_classes = self.model.log_prior.size
        if hasattr(self.model, "log_parts"):
            words = np.broadcast_to(words, (n_classes, *words.shape[1:]))
            return {"appearance": words, "preference": self.model.log_parts}
        words = words.reshape(n_classes, -1, words.shape[-1])
        return {"appearance": words, "preference": _one_each(n_classes, words.shape[1])}


@dataclass(frozen=True)
class Spatial:
    """A linear SVM on the features of all regions side by side; with a single region it is the bag of words.

    Two classes have one weight vector, the difference of those that they would have among several.
    """

    model: LinearSVC

    def scores(self, regions: np.ndarray) -> np.ndarray:
        scores = self.model.decision_function(regions.reshape(len(regions), -1))
        return np.stack([-0.5 * scores, 0.5 * scores], axis=1) if scores.ndim == 1 else scores

    def parts(self, regions: np.ndarray, classes: np.ndarray) -> np.ndarray:
        return np.tile(np.arange(regions.shape[1] * regions.shape[2]), (len(regions), 1))

    def tables(self, n_features: int = 1) -> dict[str, np.ndarray | None]:
        weights = self.model.coef_
        weights = np.concatenate([-0.5 * weights, 0.5 * weights]) if len(weights) == 1 else weights
        weights = weights.reshape(len(weights), -1, n_features)
        return {"appearance": weights, "preference": _one_each(*weights.shape[:2])}


@dataclass(frozen=True)
class Latent:
    """A latent structural SVM with a ``Reconfigurable`` model."""

    model: LatentStructuralSVM

    @property
    def _regions(self) -> Reconfigurable:
        return cast(Reconfigurable, self.model.model_)

    def scores(self, regions: np.ndarray) -> np.ndarray:
        return self._regions.class_scores(regions, self.model.coef_, n_jobs=check_threads(self.model.n_jobs))

    def parts(self, regions: np.ndarray, classes: np.ndarray) -> np.ndarray:
        data = self._regions.latent_oracle(regions, classes)
        return np.array(data.complete(self.model.coef_)[0]).reshape(len(regions), -1)

    def tables(self) -> dict[str, np.ndarray | None]:
        model, w = self._regions, self.model.coef_
        N, M, D = cast(int, model.n_classes), model.n_parts, cast(int, model.n_features)
        found: dict[str, np.ndarray | None] = {
            "appearance": np.broadcast_to(model.appearance(w), (N, M, D)),
            "preference": model.preference(w),
        }
        if model.pairs is not None:
            found["horizontal"], found["vertical"] = model.tables(w)
        return found


for _model in (BagOfWords, SpatialBagOfWords):
    storable_part(log_words="float[...]", log_prior="float[k]", temperature="float")(_model)
storable_part(
    log_words="float[...]", log_parts="float[...]", log_prior="float[k]", temperature="float", likelihoods="any",
    converged="any",
)(ReconfigurableBagOfWords)  # fmt: skip
