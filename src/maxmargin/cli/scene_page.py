"""What a report shows of a model of scenes: region models and labelled images."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..report.markup import Markup, together
from ..report.page import section
from .image_page import picture, pyplot

_LABELLED = 6  # images with their parts


def tiles(model: Any) -> list[tuple[str, str]]:
    return [("kind", model.kind), ("grid", f"{model.grid_[0]} × {model.grid_[1]}")]


def sections(model: Any, files: list[str], answered: np.ndarray) -> list[Markup | None]:
    if model.kind == "bow":
        return []
    figures = [_models(model, name, files, answered) for name in model.classes_]
    models = section("Region models of each class", together(*figures))
    if not files:
        return [models]
    return [section("Images and the parts of their regions", _labelled(model, files, answered)), models]


def _labelled(model: Any, files: list[str], answered: np.ndarray) -> Markup:
    """One image of each class, until there are enough."""
    from .. import plots

    shown = [int(np.flatnonzero(answered == name)[0]) for name in np.unique(answered)][:_LABELLED]
    parts = model.predict_regions([files[i] for i in shown], answered[shown])
    columns = min(3, len(shown))
    axes = pyplot().subplots(
        -(-len(shown) // columns), columns, figsize=(3.6 * columns, 3.0 * -(-len(shown) // columns)),
        layout="constrained", squeeze=False,
    )[1]  # fmt: skip
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, i, table in zip(axes.flat, shown, parts, strict=False):
        plots.labelled_regions(files[i], table, ax, legend=False)
        ax.set_title(str(answered[i]), fontsize=10)
    return picture(axes.flat[0].figure, "images with the parts of their regions")


def _models(model: Any, name: Any, files: list[str], answered: np.ndarray) -> Markup:
    from .. import plots

    mine = [files[i] for i in np.flatnonzero(answered == name)]
    return picture(plots.region_models(model, name, mine or None), f"region models of {name}")
