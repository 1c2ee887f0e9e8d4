"""The report on a model of images, as one HTML file: what scenes and parts have in common."""

from __future__ import annotations

import base64
import io
import time
from html import escape
from typing import Any

import numpy as np

from .. import __version__
from ..report import numbers
from ..report.markup import Markup, element, together
from ..report.page import document, section
from .images import kind_of, task_of

_DOTS = 80  # per inch


def page(model: Any, title: str, files: list[str], true: np.ndarray | None, answered: np.ndarray, facts: Markup) -> str:
    """The page. ``true`` are the classes of the folders that images lie in, ``answered`` those of the model.

    ``facts`` are the settings, to stand at its end.
    """
    from . import part_page, scene_page

    figures = pyplot()
    from .. import plots

    task = task_of(model) or ""
    own: Any = {"scene": scene_page, "parts": part_page}[task]
    tiles = [("classes", numbers.count(model.classes_.size)), ("training", model.training), *own.tiles(model)]
    sections: list[Markup | None] = []
    if true is not None:
        right = true == answered
        mean = np.mean([right[true == name].mean() for name in np.unique(true)])
        tiles = [("accuracy", numbers.share(right.mean())), ("mean over classes", numbers.share(mean)), *tiles]
        ax = plots.confusion(true, answered, classes=np.union1d(model.classes_, true))
        sections.append(section("Which class was taken for which", picture(ax.figure, "confusion matrix")))
    if files:
        tiles.append(("images", numbers.count(len(files))))
    sections += own.sections(model, files, answered)
    figures.close("all")
    return document(
        title,
        together(
            element("header", element("h1", title), _claim(model, kind_of(task).about(model)), tile_list(tiles)),
            *[section for section in sections if section is not None],
            section("Settings", facts),
            element("footer", f"maxmargin {__version__}, {time.strftime('%Y-%m-%d')}"),
        ),
    )


def pyplot() -> Any:
    """Matplotlib, to draw into files."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError('A report on images draws pictures: pip install "maxmargin[plots]".') from error
    matplotlib.use("agg")
    from matplotlib import pyplot

    return pyplot


def _claim(model: Any, about: str) -> Markup:
    if model.training == "generative":
        return element("p", "Generative training: counts and EM. There is no certificate.", class_="note")
    certificate = model.certificate_
    if not certificate.exact:
        said = "No upper bound: parts that know their neighbours were searched approximately."
    else:
        gap = numbers.share(certificate.relative_gap)
        said = f"{certificate.lower:.8g} ≤ optimum ≤ {certificate.upper:.8g}: within {gap} of the best possible."
    return element("p", f"{said} The bounds are those {about}." if about else said)


def tile_list(tiles: list[tuple[str, str]]) -> Markup:
    """Numbers side by side, each with its name."""
    return element("dl", *[element("div", element("dt", k), element("dd", v)) for k, v in tiles], class_="tiles")


def picture(figure: Any, what: str) -> Markup:
    """A figure, within the page."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=_DOTS)
    pyplot().close(figure)
    code = base64.b64encode(data.getvalue()).decode()
    image = f'<img alt="{escape(what)}" style="max-width:100%;height:auto" src="data:image/png;base64,{code}">'
    return Markup(f'<p style="max-width:none;display:inline-block;margin-right:1rem">{image}</p>')
