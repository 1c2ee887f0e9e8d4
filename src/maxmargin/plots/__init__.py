"""Pictures of what happened. Matplotlib is imported when a picture is drawn, not before."""

from .bounds import bounds
from .confusion import confusion
from .convergence import convergence
from .detection import plot_detection_mosaic, plot_detections, plot_precision_recall
from .detector import plot_detector
from .grid import segmentation
from .hog import hog_glyphs
from .parts import filter_glyphs, part_curve, part_weights, top_detections
from .scenes import labelled_regions, region_models
from .transitions import transitions

__all__ = [
    "bounds",
    "confusion",
    "convergence",
    "filter_glyphs",
    "hog_glyphs",
    "labelled_regions",
    "part_curve",
    "part_weights",
    "plot_detection_mosaic",
    "plot_detections",
    "plot_detector",
    "plot_precision_recall",
    "region_models",
    "segmentation",
    "top_detections",
    "transitions",
]
