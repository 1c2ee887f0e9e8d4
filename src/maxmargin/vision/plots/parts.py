"""Parts that nobody labelled: what they are, where they are seen, and which classes they speak for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...plots.needs import axes_for, open_frame, tiles_for
from ...plots.tables import draw_weights
from ...validation import shown
from .frames import cut_out, images_and_features, pixels, some_of
from .hog import edge_strengths, hog_glyphs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

    from ..part_classifier import PartClassifier

_MANY_PARTS = 60  # beyond it only some are numbered
_SHOWN = 8  # parts, if nobody says which


def part_weights(model: PartClassifier, region: int = 0, ax: Axes | None = None) -> Axes:
    """Draw how much every part speaks for every class (red) or against it (blue), in one region of the image.

    Parameters
    ----------
    model : fitted PartClassifier
    region : int
        Regions are counted through the grids, row by row: with ``regions=(1, 2)`` 0 is the whole image, 1 its upper
        left quarter.
    ax : matplotlib Axes or None
        A new figure by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from maxmargin.vision import PartClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(8, 5, 4)), list("ab" * 4)
    >>> model = PartClassifier(3, "random", regions=(1,), random_state=0).fit(X, y)
    >>> part_weights(model).images[0].get_array().shape  # parts, classes
    (3, 2)
    """
    table = _checked(model).part_weights_
    n_classes, n_parts, n_regions = table.shape
    if not 0 <= region < n_regions:
        raise ValueError(f"region must be from 0 to {n_regions - 1}, got {region}.")
    drawn = table[:, :, region].T
    ax = axes_for(ax, (2.2 + 0.3 * n_classes, 1.6 + 0.19 * min(n_parts, _MANY_PARTS)))
    limit = float(np.abs(table).max())  # the same for all regions
    draw_weights(ax, drawn, limit, names=[str(name) for name in model.classes_])
    ax.set_yticks(np.arange(0, n_parts, -(-n_parts // _MANY_PARTS)))
    ax.set_ylabel("part")
    ax.set_title(f"weights, region {region}", fontsize=10)
    return ax


def top_detections(
    model: PartClassifier | Mapping[str, PartClassifier],
    images: object,
    parts: Sequence[int] | None = None,
    n: int = 10,
    *,
    features: object = None,
    labels: Any = None,
    per_image: int = 1,
    fig: FigureBase | None = None,
) -> FigureBase:
    """Draw the patches that parts respond to most, one part in a row, the best first.

    They are cut out of the images; those that were found in the mirror image are shown as they are seen there.

    Parameters
    ----------
    model : fitted PartClassifier, or dict of names and such
        Several models, such as those before and after joint training, have their rows under each other.
    images : folder, pattern, list of files or of arrays
    parts : sequence of int or None
        By default those with the largest weights, in the first model, eight at most.
    n : int
        Patches of each part.
    features : None, or what the model takes
        Patches of ``images``, with windows, where the model was trained on features.
    labels : array (n_images,), "predicted" or None
        To be written above each patch: classes of the images.
    per_image : int
        Patches of a part from one image, at most.
    fig : matplotlib Figure, SubFigure or None
        A new figure by default.

    Returns
    -------
    Figure
    """
    models: dict[str, PartClassifier] = dict(model) if isinstance(model, Mapping) else {"": model}
    shown = _chosen_parts(models, parts)
    described = all(one.extractor_ is not None for one in models.values())
    files, X = images_and_features(images, features, described, "patches")
    if labels is not None and not isinstance(labels, str) and len(labels) != len(files):
        raise ValueError(f"There are {len(files)} images, and labels of {len(labels)}; each needs one.")
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}.")
    rows = len(shown) * len(models)
    fig, axes = tiles_for(fig, rows * n, n, (0.95 + 0.8 / n, 1.0 if labels is None else 1.2))
    for k, (name, one) in enumerate(models.items()):
        names = one.predict(X) if isinstance(labels, str) else labels
        for j, (part, found) in enumerate(zip(shown, one.detections(X, shown, n, per_image=per_image), strict=True)):
            row = axes.reshape(rows, n)[j * len(models) + k]
            row[0].set_ylabel(f"part {part}\n{name}".strip(), fontsize=8, rotation=0, ha="right", va="center")
            _patches(row, found, files, names)
    return fig


def filter_glyphs(
    model: PartClassifier,
    parts: Sequence[int] | None = None,
    *,
    columns: int = 8,
    fig: FigureBase | None = None,
) -> FigureBase:
    """Draw the filters of parts over histograms of gradients, each in its own scale: see ``hog_glyphs``.

    Parameters
    ----------
    model : fitted PartClassifier
        With features "hog".
    parts : sequence of int or None
        By default those with the largest weights, eight at most.
    columns : int
        Filters in a row.
    fig : matplotlib Figure, SubFigure or None
        A new figure by default.

    Returns
    -------
    Figure
    """
    shown = _chosen_parts({"": model}, parts)
    filters = _checked(model).filter_images()
    edge_strengths(filters[0])  # complains of what is no such filter, before there is an empty figure
    fig, axes = tiles_for(fig, len(shown), columns, (1.3, 1.5))
    for ax, part in zip(axes, shown, strict=True):
        hog_glyphs(filters[part], ax).set_title(f"part {part}", fontsize=8)
    return fig


def part_curve(results: Mapping[str, Mapping[int, Any]], ax: Axes | None = None) -> Axes:
    """Draw accuracy against the number of parts, a curve for each way to get them.

    Parameters
    ----------
    results : dict of dicts
        ``{"random": {8: 0.41, 16: [0.50, 0.52]}, "joint": …}``: names of curves, numbers of parts, and the share that
        is right; or that of several trials, of which the mean is drawn, and the range between worst and best.
    ax : matplotlib Axes or None
        A new figure by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> ax = part_curve({"random": {8: [0.4, 0.5], 16: 0.6}, "joint": {8: 0.7}})
    >>> ax.lines[0].get_xydata().round(1).tolist()
    [[8.0, 45.0], [16.0, 60.0]]
    """
    if (
        not isinstance(results, Mapping)
        or not results
        or not all(isinstance(c, Mapping) and c for c in results.values())
    ):
        raise ValueError(
            "results must have for each curve at least one number of parts and its accuracy, {'joint': {16: 0.7}}; "
            f"got {shown(results)}."
        )
    if min(min(curve) for curve in results.values()) < 1:
        raise ValueError("Numbers of parts must be at least 1: they are drawn in powers of two.")
    ax = axes_for(ax, (5.2, 3.6))
    for name, curve in results.items():
        at = sorted(curve)
        trials = [100.0 * np.atleast_1d(np.asarray(curve[m], dtype=np.float64)) for m in at]
        (line,) = ax.plot(at, [t.mean() for t in trials], marker="o", markersize=4, label=name)
        if any(t.size > 1 for t in trials):
            low, high = [t.min() for t in trials], [t.max() for t in trials]
            ax.fill_between(at, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter("{x:g}")
    open_frame(ax, "parts", "right, %")
    ax.legend(frameon=False)
    return ax


def heaviest_parts(part_weights: np.ndarray) -> np.ndarray:
    """All parts, those with the largest weights for all classes and regions together first."""
    return np.argsort(-np.sqrt((part_weights**2).sum(axis=(0, 2))), kind="stable")


def _checked(model: PartClassifier) -> PartClassifier:
    if not hasattr(model, "part_weights_"):
        raise ValueError(f"model must be a fitted PartClassifier, got {shown(model)}. Call fit first.")
    return model


def _chosen_parts(models: dict[str, PartClassifier], parts: Sequence[int] | None) -> list[int]:
    """The parts that were asked for, or those with the largest weights."""
    if not models:
        raise ValueError("There is no model: give a PartClassifier, or a dict of names and such.")
    first, *_ = [_checked(model).part_weights_ for model in models.values()]
    if parts is None:
        return heaviest_parts(first)[:_SHOWN].tolist()
    return some_of("parts", parts, min(one.part_weights_.shape[1] for one in models.values()))


def _patches(axes: np.ndarray, found: list[Any], files: list[Any], labels: Any) -> None:
    for ax, detection in zip(axes, found, strict=False):
        if detection.window is None:
            raise ValueError("Nobody knows where these patches are: give Patches with windows as features=.")
        patch = cut_out(pixels(files[detection.image]), detection.window, detection.mirrored)
        ax.imshow(patch, aspect="auto")
        ax.set_box_aspect(1.0)  # windows are square in cells, if not in pixels
        if labels is not None:
            ax.set_title(str(labels[detection.image]), fontsize=7, pad=2)
