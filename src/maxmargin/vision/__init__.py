"""Images: scenes as arrangements of regions, parts that nobody labelled, and objects found by their parts.

Needs ``pip install "maxmargin[vision]"`` as soon as a file is read.

Only this folder knows images. Names are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .classifier import SceneClassifier as SceneClassifier
    from .detector import DeformablePartDetector as DeformablePartDetector
    from .features.cnn import CNNPatches as CNNPatches, CNNRegions as CNNRegions
    from .features.hog_patches import HOGPatches as HOGPatches
    from .features.reduction import ReducedPatches as ReducedPatches
    from .features.sift import DenseSIFT as DenseSIFT
    from .features.words import WordHistograms as WordHistograms
    from .images import ImageError as ImageError, ImageFolder as ImageFolder, read_image as read_image
    from .part_classifier import PartClassifier as PartClassifier
    from .parts.patches import Patches as Patches

_NAMES = {
    "SceneClassifier": "classifier",
    "PartClassifier": "part_classifier",
    "DeformablePartDetector": "detector",
    "Patches": "parts.patches",
    "WordHistograms": "features.words",
    "DenseSIFT": "features.sift",
    "CNNRegions": "features.cnn",
    "HOGPatches": "features.hog_patches",
    "CNNPatches": "features.cnn",
    "ReducedPatches": "features.reduction",
    "ImageFolder": "images",
    "ImageError": "images",
    "read_image": "images",
}

__all__ = [*_NAMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f".{_NAMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
