"""The report on a detector, as one HTML file: its filters, its bounds, what it finds and how precise that is."""

from __future__ import annotations

import base64
import io
import os
import time
from html import escape
from typing import Any

import numpy as np

from .. import __version__
from ..report import numbers
from ..report.markup import Markup, element, together
from ..report.page import document, section
from ..report.summary import settings
from .detect_pictures import drawn
from .detect_training import ABOUT, parts_of
from .image_page import picture, pyplot, tile_list

_SHOWN = 6  # images with what is found in them
_WIDE = 360  # pixels at most, in the page
_FITTING = "width:100%;height:auto"
_BESIDE = f"display:inline-block;vertical-align:top;max-width:{_WIDE}px;margin:0 1rem 1rem 0"


def page(detector: Any, title: str, files: list[str], curve: Any, more: list[tuple[str, str]]) -> str:
    """The page. ``curve`` is that of precision and recall on ``files``, None if objects in them are not known."""
    figures = pyplot()
    from .. import plots

    counts = parts_of(detector)
    tiles = [("components", numbers.count(len(detector.star_.components))), ("parts", numbers.count(counts["parts"]))]
    if counts["negative_parts"]:
        tiles.append(("negative parts", numbers.count(counts["negative_parts"])))
    tiles += [("bounds", numbers.count(detector.n_bounds_)), ("passes", numbers.count(detector.n_passes_)), *more]
    sections: list[Markup | None] = []
    if curve is not None:
        tiles = [
            ("average precision", numbers.share(curve.average_precision)), ("objects", numbers.count(curve.n_truths)),
            ("images", numbers.count(len(files))), *tiles,
        ]  # fmt: skip
        drawing = picture(
            plots.precision_recall_curves({detector.label_ or "objects": curve}).figure, "precision and recall"
        )
        sections.append(section("How precise it is, for every share that is found", drawing))
    sections.append(section("Filters", picture(plots.detector_filters(detector), "filters of the detector")))
    if files:
        sections.append(section("What it finds", _examples(detector, files)))
    values, _ = plots.bounds(detector.history_[detector.n_root_bounds_ :])  # of the last stage: each counts anew
    sections.append(section("How training got there", picture(values.figure, "bounds")))
    figures.close("all")
    return document(
        title,
        together(
            element("header", element("h1", title), _claim(detector), tile_list(tiles)),
            *[section for section in sections if section is not None],
            section("Settings", settings(detector)),
            element("footer", f"maxmargin {__version__}, {time.strftime('%Y-%m-%d')}"),
        ),
    )


def _claim(detector: Any) -> Markup:
    certificate = detector.certificate_
    gap = numbers.share(certificate.relative_gap)
    said = f"{certificate.lower:.8g} ≤ optimum ≤ {certificate.upper:.8g}: within {gap} of the best possible."
    return element("p", f"{said} The bounds are those {ABOUT}.")


def _examples(detector: Any, files: list[str]) -> Markup | None:
    """Some images, from the first to the last, with their boxes."""
    from ..vision.images import ImageError, read_image

    chosen = [files[i] for i in np.unique(np.linspace(0, len(files) - 1, min(_SHOWN, len(files))).astype(int))]
    shown = []
    for file in chosen:
        try:
            pixels = read_image(file, color=True)
        except ImageError:
            continue  # it has been named already
        name = os.path.basename(file).encode("utf-8", "replace").decode()
        found = detector.detect(pixels)
        caption = name
        if not len(found):
            caption += ": nothing found, this is the best box"
            found = detector.detect(pixels, threshold=-np.inf, most=1)
        image = drawn(pixels, found)
        image.thumbnail((2 * _WIDE, 2 * _WIDE))  # sharp on fine screens too
        data = io.BytesIO()
        image.save(data, "jpeg", quality=88)
        code = base64.b64encode(data.getvalue()).decode()
        image_tag = Markup(f'<img alt="{escape(name)}" style="{_FITTING}" src="data:image/jpeg;base64,{code}">')
        shown.append(element("figure", image_tag, element("figcaption", caption), style=_BESIDE))
    note = element("p", f"Boxes that score {detector.threshold_:.2f} or more, as detect finds them.", class_="note")
    return together(note, *shown) if shown else None
