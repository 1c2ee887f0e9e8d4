"""Pictures of what happened. Matplotlib is imported when a picture is drawn, not before."""

from .bounds import bounds
from .confusion import confusion
from .convergence import convergence
from .detection import detected, detection_mosaic, precision_recall_curves
from .detector import detector_filters
from .grid import segmentation
from .hog import hog_glyphs
from .parts import filter_glyphs, part_curve, part_weights, top_detections
from .scenes import labelled_regions, region_models
from .transitions import transitions

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
