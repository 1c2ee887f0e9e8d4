"""The content of a model of parts: their weights, what they respond to, and their filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...report.content import Data, ReportContent
from ...report.curves import steps
from .classified import classified, compare, features_kept
from .pictures import picture, pyplot

if TYPE_CHECKING:
    from ..part_classifier import PartClassifier

_PATCHES = 10  # of each part
_FILTERS = 24
ABOUT = "of the part weights, the filters fixed; about other filters nothing is proved"


def content(model: PartClassifier, data: Data) -> ReportContent:
    """Of a fitted PartClassifier."""
    pyplot()  # complains before any work is done
    from .. import plots
    from ..plots.parts import heaviest_parts

    told = ReportContent(
        "Parts", subject="With these filters the objective", about=ABOUT, history=steps(model.history_)
    )
    grids = " + ".join(f"{g} × {g}" for g in model.regions)
    told.tiles.update(classes=model.classes_.size, parts=len(model.filters_), regions=grids, training=model.training)
    with features_kept(model):
        looked = classified(model, data)
        if looked is not None:
            compare(model, looked, data.name, told)
        weights = picture(plots.part_weights(model).figure, "part weights")
        told.sections.append(("What parts say about classes", weights))
        if looked is not None and looked.images is not None:
            figure = plots.top_detections(model, looked.images, n=_PATCHES, labels=looked.answered)
            title = "What the parts with the largest weights respond to, and the class answered for each image"
            told.sections.append((title, picture(figure, "top detections")))
    if model.features == "hog" and model.extractor_ is not None:
        figure = plots.filter_glyphs(model, heaviest_parts(model.part_weights_)[:_FILTERS].tolist())
        told.sections.append(("Edges that filters like", picture(figure, "filters")))
    return told
