"""What a report shows of a model of parts: their weights, what they respond to, and their filters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..report import numbers
from ..report.markup import Markup
from ..report.page import section
from .image_page import picture

_PATCHES = 10  # of each part
_FILTERS = 24
_RESPOND = "What the parts with the largest weights respond to, and the class answered for each image"


def tiles(model: Any) -> list[tuple[str, str]]:
    grids = " + ".join(f"{g} × {g}" for g in model.regions)
    return [("parts", numbers.count(len(model.filters_))), ("regions", grids)]


def sections(model: Any, files: list[str], answered: np.ndarray) -> list[Markup | None]:
    from .. import plots
    from ..plots.parts import heaviest_parts

    drawn = picture(plots.part_weights(model).figure, "part weights")
    found = [section("What parts say about classes", drawn)]
    if files:
        figure = plots.top_detections(model, files, n=_PATCHES, labels=answered)
        found.append(section(_RESPOND, picture(figure, "top detections")))
    if model.features == "hog":
        figure = plots.filter_glyphs(model, heaviest_parts(model.part_weights_)[:_FILTERS].tolist())
        found.append(section("Edges that filters like", picture(figure, "filters")))
    return found
