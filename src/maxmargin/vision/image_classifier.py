"""What classifiers of images have in common: what they are given, what describes it, and how they answer."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..estimators import inputs
from .features.extractors import trained
from .image_inputs import ImageInputs, one_each
from .images import ImageFolder


class ImageClassifier(ClassifierMixin, ABC):
    """Base of the classifiers of images. ``_unit`` is what an image consists of, as messages call it."""

    classes_: np.ndarray
    extractor_: Any
    left_out_: int
    n_features_in_: int
    cache: str | os.PathLike[str] | None
    n_jobs: int | None
    on_error: str
    verbose: int
    _unit: str
    _compared_with_labels = False

    @staticmethod
    @abstractmethod
    def _described(X: object) -> ImageInputs:
        """Images, or features as this estimator takes them."""

    @abstractmethod
    def _named_extractor(self) -> Any:
        """What ``features`` means."""

    @abstractmethod
    def _extract(self, images: Sequence[object], on_error: str) -> tuple[Any, np.ndarray]:
        """Features of all images that can be read, and which these are."""

    @abstractmethod
    def _check_known(self, features: Any) -> None:
        """An error, if the features are not of the kind that the model was trained on."""

    @abstractmethod
    def decision_function(self, X: object) -> np.ndarray: ...

    def _extraction(self, on_error: str) -> dict[str, Any]:
        """How images are worked on."""
        return {"cache": self.cache, "n_jobs": self.n_jobs, "on_error": on_error, "verbose": self.verbose}

    def _training(self, X: object, y: ArrayLike | None) -> ImageInputs:
        """What to learn from. A folder has one sub-folder for each class, and then there is no ``y``."""
        if isinstance(X, str | os.PathLike | ImageFolder):
            if y is not None:
                raise ValueError(
                    "A folder of images brings its labels, the names of its sub-folders: leave y out. With labels of "
                    "your own give a list of files."
                )
            folder = X if isinstance(X, ImageFolder) else ImageFolder(X)
            return ImageInputs(images=folder.paths, labels=folder.labels)
        found = self._described(X)
        if y is None:
            raise ValueError(
                "y is missing: one class for each image. Only a folder with one sub-folder per class does without."
            )
        inputs.check_labels(y)  # as they came: an array of text and numbers is one of text
        return replace(found, labels=one_each("y", y, len(found)))

    def _features_of(self, data: ImageInputs, on_error: str) -> tuple[Any, np.ndarray]:
        """Features of all images that could be read, and which these are."""
        if data.images is None:
            return data.features, np.arange(len(data))
        if self.extractor_ is None:
            raise ValueError(
                f"This model was trained on features of {self._unit} and cannot describe images. Give their features, "
                "or train it on images."
            )
        return self._extract(data.images, on_error)

    def _learn_from(
        self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
        """Features, numbers of classes and weights of the images that could be read, and which these are."""
        data = self._training(X, y)
        weight = data.weights(sample_weight)
        if not len(data):
            raise ValueError(f"X has no images: its shape is {np.shape(data.given)}.")
        assert data.labels is not None
        inputs.check_classes(data.labels)
        self.classes_, label = np.unique(data.labels, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(f"{type(self).__name__} needs images of at least 2 classes, got {self.classes_[0]} alone.")
        if data.images is None:
            self.extractor_ = None
        else:
            self.extractor_ = trained(self._named_extractor(), data.images, **self._extraction(self.on_error))
        features, kept = self._features_of(data, self.on_error)
        label = label[kept]
        gone = np.setdiff1d(np.arange(self.classes_.size), label)
        if gone.size:
            raise ValueError(f"No image of the class {self.classes_[gone[0]]} could be read.")
        self.left_out_ = len(data) - len(kept)
        return features, label, None if weight is None else inputs.check_weights(weight[kept], label), kept

    def _certified_data(
        self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Features, numbers of classes and weights, of the kind that the model was trained on."""
        check_is_fitted(self)
        data = self._training(X, y)
        features, kept = self._features_of(data, self.on_error)
        self._check_known(features)
        label = self._codes(data.labels[kept], len(kept))  # type: ignore[index]
        weight = data.weights(sample_weight)
        return features, label, None if weight is None else inputs.check_weights(weight[kept], label)

    def _codes(self, y: ArrayLike, n: int) -> np.ndarray:
        """The numbers of classes."""
        y = one_each("y", y, n)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"y has classes that were not there in fit: {unknown[:5].tolist()}.")
        return np.searchsorted(self.classes_, y)

    def predict(self, X: object) -> np.ndarray:
        """The class of every image: of a folder, a pattern, files, arrays, or of features as ``fit`` takes them."""
        scores = self.decision_function(X)  # which says so if nothing was fitted
        return self.classes_[np.argmax(scores, axis=1)]

    def score(self, X: object, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """The share of images whose class is right; ``y`` is None with a folder of one sub-folder per class."""
        data = self._training(X, y)
        weight = data.weights(sample_weight)
        return float(np.average(self.predict(data.given) == data.labels, weights=weight))
