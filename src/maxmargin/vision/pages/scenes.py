"""The content of a model of scenes: region models, and images with the parts of their regions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...plots.needs import tiles_for
from ...report.content import LAST_BOUND, Data, ReportContent
from ...report.curves import climb, convergence, search
from ...report.linear import MOST_CLASSES
from ...report.markup import Markup, element, note, together
from .classified import Classified, classified, compare, features_kept
from .pictures import picture, pyplot

if TYPE_CHECKING:
    from ..classifier import SceneClassifier

_LABELLED = 6  # images with their parts
ABOUT = "of the last convex bound, its parts fixed; about other parts nothing is proved"


def content(model: SceneClassifier, data: Data) -> ReportContent:
    """Of a fitted SceneClassifier."""
    pyplot()  # complains before any work is done
    told = ReportContent("Scenes")
    grid = f"{model.grid_[0]} × {model.grid_[1]}"
    told.tiles.update(classes=model.classes_.size, kind=model.kind, training=model.training, grid=grid)
    _proof(model, told)
    with features_kept(model):
        looked = classified(model, data)
        if looked is not None:
            compare(model, looked, data.name, told)
        if model.kind != "bow":
            told.sections += _regions(model, looked)
    return told


def _proof(model: SceneClassifier, told: ReportContent) -> None:
    """What is proved, and how training went."""
    if model.training == "generative":
        told.claim = note("Generative training: counts and EM. There is no certificate.")
        told.history = climb(model.history_)
    elif model.history_ and hasattr(model.history_[0], "changed"):
        told.subject, told.about = LAST_BOUND, ABOUT
        told.history = search(model.history_, model.bound_tol, "parts of regions")
    else:
        told.history = convergence(model.history_, model.tol)


def _regions(model: SceneClassifier, looked: Classified | None) -> list[tuple[str, Markup | None]]:
    from .. import plots

    figures = []
    for name in model.classes_[:MOST_CLASSES]:
        mine: dict[str, Any] = {}
        at = np.flatnonzero(looked.answered == name) if looked is not None else np.empty(0, int)
        if looked is not None and at.size:
            mine = (
                {"features": np.asarray(looked.features)[at]}
                if looked.images is None
                else {"images": [looked.images[i] for i in at]}
            )
        figures.append(picture(plots.region_models(model, name, **mine), f"region models of {name}"))
    if model.classes_.size > MOST_CLASSES:
        figures.append(
            element("p", f"The first {MOST_CLASSES} of {model.classes_.size} classes are shown.", class_="note")
        )
    sections: list[tuple[str, Markup | None]] = [("Region models of each class", together(*figures))]
    if looked is not None and looked.images is not None:
        labelled = _labelled(model, looked.images, looked.answered)
        sections.insert(0, ("Images and the parts of their regions", labelled))
    return sections


def _labelled(model: SceneClassifier, images: list[Any], answered: np.ndarray) -> Markup:
    """One image of each class, until there are enough."""
    from .. import plots

    shown = [int(np.flatnonzero(answered == name)[0]) for name in np.unique(answered)][:_LABELLED]
    parts = model.predict_regions([images[i] for i in shown], answered[shown])
    figure, axes = tiles_for(None, len(shown), 3, (3.6, 3.0))
    for ax, i, table in zip(axes, shown, parts, strict=True):
        plots.labelled_regions(images[i], table, ax, legend=False)
        ax.set_axis_off()
        ax.set_title(str(answered[i]), fontsize=10)
    return picture(figure, "images with the parts of their regions")
