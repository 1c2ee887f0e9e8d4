"""Images that a model of scenes or of parts has classified for a report, and what both kinds of models tell of them."""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...report import numbers
from ...report.answers import confusion
from ...report.content import Data, ReportContent
from ...report.tallies import Classes, positions
from ..images import ImageError, ImageFolder, list_images

if TYPE_CHECKING:
    from ..image_classifier import ImageClassifier
    from ..image_inputs import ImageInputs

_AT_A_TIME = 256  # images whose features are held while answering


@dataclass(frozen=True)
class Classified:
    """Images, or features where those were given, with true classes where they are known, and those answered."""

    images: list[Any] | None
    features: Any
    true: np.ndarray | None
    answered: np.ndarray


@contextlib.contextmanager
def features_kept(model: ImageClassifier) -> Iterator[None]:
    """Features of images are asked for several times: those kept nowhere are kept until the page is done."""
    if model.cache is not None or model.extractor_ is None:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        model.cache = folder
        try:
            yield
        finally:
            model.cache = None


def classified(model: ImageClassifier, data: Data) -> Classified | None:
    """Answers to the images of a report. None where nothing was given."""
    if not data.given:
        return None
    found = model._described(data.X)
    true = _true(data, found, model.classes_)
    if found.images is None:
        return Classified(None, found.features, true, np.asarray(model.predict(found.features)))
    if model.extractor_ is None:
        raise ValueError(
            "The model was trained on features and cannot look at images: give features of these images instead."
        )
    images = list(found.images)
    wanted = np.arange(len(images)) if true is None else np.flatnonzero(true != "")
    kept, answered = answers(model, images, wanted)
    return Classified([images[i] for i in kept], None, None if true is None else true[kept], answered)


def _true(data: Data, found: ImageInputs, classes: np.ndarray) -> np.ndarray | None:
    """Classes that were given, or that the folders of the images are named by."""
    if data.y is not None:
        true = np.asarray(data.y)
        if true.shape != (len(found),):
            raise ValueError(f"X has {len(found)} images, y has shape {true.shape}; one label for each is needed.")
        return true
    if isinstance(data.X, ImageFolder):
        return data.X.labels
    if isinstance(data.X, str | os.PathLike) and os.path.isdir(data.X):
        return folder_classes(data.X, list_images(data.X), classes)
    return None


def folder_classes(folder: str | os.PathLike[str], files: list[str], classes: np.ndarray) -> np.ndarray | None:
    """The sub-folders that images lie in, if all of these have names of classes; no text for images in none."""
    inside = [os.path.relpath(file, folder).split(os.sep) for file in files]
    if not all(steps[0] in classes for steps in inside if len(steps) > 1) or max(map(len, inside)) == 1:
        return None
    return np.array([steps[0] if len(steps) > 1 else "" for steps in inside])


def scored(model: ImageClassifier, images: list[Any], wanted: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Numbers of the images that could be read and the scores of their classes, some images at a time.

    Images that cannot be read are an error, or left out with a warning: as the model's ``on_error`` says.
    """
    for begin in range(0, wanted.size, _AT_A_TIME):
        at = wanted[begin : begin + _AT_A_TIME]
        try:
            scores = model.decision_function([images[i] for i in at])
        except ImageError:
            if model.on_error == "raise":
                raise
            found = []
            for i in at:  # one by one, to see which of them
                try:
                    found.append((i, model.decision_function([images[i]])[0]))
                except ImageError as error:
                    warnings.warn(f"left out: {error}", UserWarning, stacklevel=2)
            at, scores = np.array([i for i, _ in found], np.int64), np.array([one for _, one in found])
        if at.size:
            yield at, scores


def answers(model: ImageClassifier, images: list[Any], wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the images that could be read, and the classes that are answered for them."""
    found = list(scored(model, images, wanted))
    if not found:
        raise ValueError(f"None of the {len(images)} images could be read.")
    kept, scores = (np.concatenate(part) for part in zip(*found, strict=True))
    return kept, model.classes_[scores.argmax(axis=1)]


def accuracies(true: np.ndarray, answered: np.ndarray) -> tuple[float, float]:
    """The share of right answers, and its mean over the classes: small ones count as much as large ones."""
    right = true == answered
    return float(right.mean()), float(np.mean([right[true == name].mean() for name in np.unique(true)]))


def compare(model: ImageClassifier, looked: Classified, on: str, told: ReportContent) -> None:
    """Accuracies and confusions, where classes are known."""
    if looked.true is not None:
        share, mean = (numbers.share(part) for part in accuracies(looked.true, looked.answered))
        told.results |= {f"accuracy on {on}": share, "mean over classes": mean}
        tally = Classes(model.classes_)
        true, answered = (positions(model.classes_, side) for side in (looked.true, looked.answered))
        tally.compare(true, answered, looked.true.tolist())
        told.sections.append(("Which class was taken for which", confusion(tally, "images")))
    told.results[f"images of {on}"] = looked.answered.size
