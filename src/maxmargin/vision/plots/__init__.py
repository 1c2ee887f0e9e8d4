"""Pictures of scenes, parts and detections. Users find them in ``maxmargin.plots``."""

from .detection import (
    detected as detected,
    detection_mosaic as detection_mosaic,
    precision_recall_curves as precision_recall_curves,
)
from .detector import detector_filters as detector_filters
from .hog import hog_glyphs as hog_glyphs
from .parts import (
    filter_glyphs as filter_glyphs,
    part_curve as part_curve,
    part_weights as part_weights,
    top_detections as top_detections,
)
from .scenes import labelled_regions as labelled_regions, region_models as region_models
