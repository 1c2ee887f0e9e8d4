"""The content of a detector: its filters, how its bounds came down, what it finds and how precise that is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ...report import numbers
from ...report.content import LAST_BOUND, ReportContent
from ...report.curves import search
from ...report.markup import Markup, element, note, together
from ..detection.drawing import drawn
from ..detection.evaluation import PrecisionRecall
from ..images import ImageError, read_image
from .pictures import photograph, picture, pyplot

if TYPE_CHECKING:
    from ..detector import DeformablePartDetector

_SHOWN = 6  # images with what is found in them
_WIDE = 360  # pixels at most, in the page
ABOUT = "of the last convex bound, placements of objects fixed; about other placements nothing is proved"


def content(
    detector: DeformablePartDetector, images: list[Any], curve: PrecisionRecall | None, on: str
) -> ReportContent:
    """Of a fitted DeformablePartDetector; ``curve`` is None where the objects in the images are not known."""
    pyplot()  # complains before any work is done
    from .. import plots

    # Of the last stage: bounds of the one before count anew, and have another objective.
    history = search(detector.history_[detector.n_root_bounds_ :], detector.bound_tol, "placements")
    told = ReportContent("Detector", subject=LAST_BOUND, about=ABOUT, history=history)
    if curve is not None:
        told.results[f"average precision on {on}"] = numbers.share(curve.average_precision)
        told.results["objects"] = curve.n_truths
        drawing = plots.precision_recall_curves({detector.label_ or "objects": curve}).figure
        title = "Precision–recall curve"
        told.sections.append((title, picture(drawing, "precision and recall")))
    if images:
        told.results[f"images of {on}"] = len(images)
        told.sections.append(("What it finds", _examples(detector, images)))
    told.sections.append(("Filters", picture(plots.detector_filters(detector), "filters of the detector")))
    counts = parts_of(detector)
    told.tiles.update(components=len(detector.star_.components), parts=counts["parts"], bounds=detector.n_bounds_)
    if counts["negative_parts"]:
        told.tiles["negative parts"] = counts["negative_parts"]
    return told


def parts_of(detector: DeformablePartDetector) -> dict[str, int]:
    """How many parts all components have together, for and against."""
    signs = [part.sign for component in detector.star_.components for part in component.parts]
    return {"parts": sum(sign > 0 for sign in signs), "negative_parts": sum(sign < 0 for sign in signs)}


def _examples(detector: DeformablePartDetector, images: list[Any]) -> Markup | None:
    """Some images, from the first to the last, with their boxes."""
    shown = []
    for i in np.unique(np.linspace(0, len(images) - 1, min(_SHOWN, len(images))).astype(int)):
        try:
            pixels = read_image(images[i], color=True)
        except ImageError:
            continue  # it has been named already
        found = detector.detect(pixels)
        caption = name = _name(images[i], int(i))
        if not len(found):
            caption += ": nothing found, this is the best box"
            found = detector.detect(pixels, threshold=-np.inf, most=1)
        image = photograph(drawn(pixels, found), 2 * _WIDE, name)  # sharp on fine screens too
        shown.append(element("figure", image, element("figcaption", caption)))
    counts = parts_of(detector)
    said = f"Boxes that score {numbers.number(round(detector.threshold_, 2))} or more, as detect finds them."
    said += " White frames are their parts." if counts["parts"] else ""
    said += " Violet frames are parts that speak against an object." if counts["negative_parts"] else ""
    return together(note(said), element("div", *shown, class_="gallery")) if shown else None


def _name(image: object, i: int) -> str:
    """The name of a file, without its folder; images that are no files are counted."""
    if not isinstance(image, str | os.PathLike):
        return f"image {i}"
    return os.path.basename(os.fspath(image)).encode("utf-8", "replace").decode()
