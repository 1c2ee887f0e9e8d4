"""The report on a model of scenes: confusions, region models and labelled images, as one HTML file."""

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

_LABELLED = 6  # images with their parts
_DOTS = 80  # per inch


def page(model: Any, title: str, files: list[str], true: np.ndarray | None, answered: np.ndarray, facts: Markup) -> str:
    """The page. ``true`` are the classes of the folders that images lie in, ``answered`` those of the model.

    ``facts`` are the settings, to stand at its end.
    """
    pyplot = _pyplot()
    from .. import plots

    tiles = [("classes", numbers.count(model.classes_.size)), ("kind", model.kind), ("training", model.training)]
    tiles.append(("grid", f"{model.grid_[0]} × {model.grid_[1]}"))
    sections: list[Markup | None] = []
    if true is not None:
        right = true == answered
        mean = np.mean([right[true == name].mean() for name in np.unique(true)])
        tiles = [("accuracy", numbers.share(right.mean())), ("mean over classes", numbers.share(mean)), *tiles]
        ax = plots.confusion(true, answered, classes=np.union1d(model.classes_, true))
        sections.append(section("Which class was taken for which", _picture(ax.figure, "confusion matrix")))
    if files:
        tiles.append(("images", numbers.count(len(files))))
    if model.kind != "bow":
        if files:
            sections.append(section("Images and the parts of their regions", _labelled(model, files, answered)))
        figures = [_models(model, name, files, answered) for name in model.classes_]
        sections.append(section("Region models of each class", together(*figures)))
    pyplot.close("all")
    return document(
        title,
        together(
            element("header", element("h1", title), *_claim(model), _tiles(tiles)),
            *[section for section in sections if section is not None],
            section("Settings", facts),
            element("footer", f"maxmargin {__version__}, {time.strftime('%Y-%m-%d')}"),
        ),
    )


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError('A report on scenes draws pictures: pip install "maxmargin[plots]"') from error
    matplotlib.use("agg")
    from matplotlib import pyplot

    return pyplot


def _claim(model: Any) -> list[Markup]:
    if model.training == "generative":
        return [element("p", "Generative training: counts and EM. There is no certificate.", class_="note")]
    certificate = model.certificate_
    if not certificate.exact:
        said = "No upper bound: parts that know their neighbours were searched approximately."
    else:
        gap = numbers.share(certificate.relative_gap)
        said = f"{certificate.lower:.8g} ≤ optimum ≤ {certificate.upper:.8g}: within {gap} of the best possible."
    if model.kind not in ("bow", "sbow"):
        said += " This is about the last convex bound, its parts fixed; about other parts nothing is proved."
    return [element("p", said)]


def _tiles(tiles: list[tuple[str, str]]) -> Markup:
    return element("dl", *[element("div", element("dt", k), element("dd", v)) for k, v in tiles], class_="tiles")


def _labelled(model: Any, files: list[str], answered: np.ndarray) -> Markup:
    """One image of each class, until there are enough."""
    from .. import plots

    shown = [int(np.flatnonzero(answered == name)[0]) for name in np.unique(answered)][:_LABELLED]
    parts = model.predict_regions([files[i] for i in shown], answered[shown])
    columns = min(3, len(shown))
    axes = _pyplot().subplots(
        -(-len(shown) // columns), columns, figsize=(3.6 * columns, 3.0 * -(-len(shown) // columns)),
        layout="constrained", squeeze=False,
    )[1]  # fmt: skip
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, i, table in zip(axes.flat, shown, parts, strict=False):
        plots.labelled_regions(files[i], table, ax, legend=False)
        ax.set_title(str(answered[i]), fontsize=10)
    return _picture(axes.flat[0].figure, "images with the parts of their regions")


def _models(model: Any, name: Any, files: list[str], answered: np.ndarray) -> Markup:
    from .. import plots

    mine = [files[i] for i in np.flatnonzero(answered == name)]
    return _picture(plots.region_models(model, name, mine or None), f"region models of {name}")


def _picture(figure: Any, what: str) -> Markup:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=_DOTS)
    _pyplot().close(figure)
    code = base64.b64encode(data.getvalue()).decode()
    image = f'<img alt="{escape(what)}" style="max-width:100%;height:auto" src="data:image/png;base64,{code}">'
    return Markup(f'<p style="max-width:none;display:inline-block;margin-right:1rem">{image}</p>')
