"""What describes the regions of images, by name."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from ...estimators import inputs
from ...validation import one_of
from ..images import ImageSource
from .cnn import CNNRegions
from .extraction import lacking
from .words import WordHistograms


def extractor_for(features: object, grid: int | tuple[int, int], n_words: int, random_state: Any) -> Any:
    """Histograms of words, a network, or something of the user's that can do as much."""
    if not isinstance(features, str):
        missing = lacking(features)
        if missing:
            raise ValueError(
                f"features must be 'words', 'cnn' or have {', '.join(missing)}; got {features!r}. ``color`` says if it "
                "wants RGB or grey images, ``settings()`` gives a text that changes when its results do."
            )
        return features
    if one_of("features", features, ("words", "cnn")) == "cnn":
        return CNNRegions(grid)
    # Without a seed the words are the same every time all the same: else no cache would ever be of use.
    seed = 0 if random_state is None else int(inputs.generator(random_state).integers(0, 2**31))
    return WordHistograms(grid, n_words, random_state=seed)


def trained(extractor: object, images: Sequence[ImageSource], **run: Any) -> Any:
    """An extractor that has learned what it has to learn from images, such as words, if it had not yet."""
    if not hasattr(extractor, "fit") or any(hasattr(extractor, learned) for learned in ("vocabulary_", "basis_")):
        return extractor
    extractor = copy.deepcopy(extractor)  # parameters are the user's
    extractor.fit(images, **run)
    return extractor
