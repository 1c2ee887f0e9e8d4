"""Pictures of what happened. Matplotlib is imported when a picture is drawn, not before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..extensions import attribute
from .bounds import bounds
from .confusion import confusion
from .convergence import convergence
from .grid import segmentation
from .transitions import transitions

if TYPE_CHECKING:
    from ..vision.plots import (
        detected as detected,
        detection_mosaic as detection_mosaic,
        detector_filters as detector_filters,
        filter_glyphs as filter_glyphs,
        hog_glyphs as hog_glyphs,
        labelled_regions as labelled_regions,
        part_curve as part_curve,
        part_weights as part_weights,
        precision_recall_curves as precision_recall_curves,
        region_models as region_models,
        top_detections as top_detections,
    )

__all__ = [
    "bounds",
    "confusion",
    "convergence",
    "detected",
    "detection_mosaic",
    "detector_filters",
    "filter_glyphs",
    "hog_glyphs",
    "labelled_regions",
    "part_curve",
    "part_weights",
    "precision_recall_curves",
    "region_models",
    "segmentation",
    "top_detections",
    "transitions",
]


def __getattr__(name: str) -> Any:
    return attribute(__name__, __all__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
