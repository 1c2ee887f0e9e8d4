"""Scenes as arrangements of parts: which part is where in an image, and what the parts of a class are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ...plots.grid import segmentation
from ...plots.needs import tiles_for
from .frames import cut_out, images_and_features, pixels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

    from ..classifier import SceneClassifier

_NUMBERED = 100  # up to so many regions their parts are written into them


def labelled_regions(
    image: object,
    regions: ArrayLike,
    ax: Axes | None = None,
    *,
    names: Sequence[str] | None = None,
    opacity: float = 0.5,
    legend: bool = True,
) -> Axes:
    """Draw which part explains each region of an image, as ``segmentation`` draws labels, with the parts' numbers.

    Parameters
    ----------
    image : path, array (height, width[, 3]) or None
        Drawn below the colours; None: the colours alone.
    regions : int array (rows, columns)
        Parts, such as one entry of ``SceneClassifier.predict_regions``.
    ax : matplotlib Axes or None
        A new figure by default.
    names : list of str or None
        Names of parts 0, 1, …; their numbers by default.
    opacity : float
        How much the colours cover the image.
    legend : bool

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> axes = labelled_regions(None, np.array([[2, 2, 2], [0, 0, 2]]), names=["sea", "sand", "sky"])
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['sea', 'sky']
    """
    picture = None if image is None else pixels(image)
    table = np.asarray(regions)
    if names is None:
        names = [str(part) for part in range(int(table.max(initial=0)) + 1)]
    ax = segmentation(table, picture, ax, names=names if legend else None, opacity=opacity)
    if table.size <= _NUMBERED:
        height, width = table.shape if picture is None else picture.shape[:2]
        for (row, column), part in np.ndenumerate(table):
            x, y = (column + 0.5) * width / table.shape[1], (row + 0.5) * height / table.shape[0]
            ax.text(x, y, str(part), ha="center", va="center", fontsize=8, bbox=_LABEL)
    return ax


def region_models(
    classifier: SceneClassifier,
    name: object,
    images: object = None,
    *,
    features: object = None,
    n: int = 8,
    parts: int = 5,
    fig: FigureBase | None = None,
) -> FigureBase:
    """Draw the region models ("parts") of a class, one in a row: where it likes to be, and what it was used for.

    On the left are the preferences of the regions of the grid for the part. Beside them, where there are images, stand
    regions that the part was assigned to when they were classified; the second of an image comes after the first ones
    of all.

    Parameters
    ----------
    classifier : fitted SceneClassifier
        Of a kind with regions: all but "bow".
    name : class
    images : folder, list of files or of arrays, or None
        Those that are classified as ``name`` are used, the others passed over.
    features : array (n_images, rows, columns, n_features) or None
        What describes the regions of ``images``, where the classifier was trained on features; it may come alone.
    n : int
        Regions to show of each part.
    parts : int
        Parts to show: those most used in these images; if there are none, those that most regions prefer.
    fig : matplotlib Figure, SubFigure or None
        A new figure by default.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from maxmargin.data.synthetic import scenes
    >>> from maxmargin.vision import SceneClassifier
    >>> data = scenes(3, random_state=0)
    >>> model = SceneClassifier("rbow", "generative", n_parts=3, random_state=0).fit(data.X, data.y)
    >>> len(region_models(model, "beach", parts=2).axes)  # two maps and their scale
    3
    """
    tables = classifier.region_models_.of(name)
    if classifier.kind == "bow":
        raise ValueError("kind='bow' has one model for the whole image, and no regions to draw.")
    if n < 1 or parts < 1:
        raise ValueError(f"n and parts must be at least 1, got {n} and {parts}.")
    fixed, likely = classifier.kind == "sbow", classifier.training == "generative"
    # Logarithms of probabilities are no sight: those themselves are drawn.
    preference = np.exp(tables.preference[0]) if likely and not fixed else tables.preference[0]
    files, chosen = _used(classifier, name, images, features)
    uses = None if chosen is None else np.bincount(chosen.ravel(), minlength=preference.shape[2])
    shown = _most_used(uses, preference)[:parts]
    columns = 1 if files is None else 1 + n
    fig, axes = tiles_for(fig, len(shown) * columns, columns, (1.2, 1.25))
    limit = float(np.abs(preference[:, :, shown]).max()) or 1.0
    cmap, least = ("viridis", 0.0) if likely or fixed else ("RdBu_r", -limit)
    grid = axes.reshape(len(shown), columns)
    for part, (place, *others) in zip(shown, grid, strict=True):
        picture = place.imshow(preference[:, :, part], aspect="auto", cmap=cmap, vmin=least, vmax=limit)
        place.set_box_aspect(1.0)  # as images are about square, whatever their grid
        used = "" if uses is None else f"\n{100.0 * uses[part] / uses.sum():.0f} % of regions"
        place.set_ylabel(f"part {part}{used}", fontsize=8)
        if files is not None and chosen is not None:
            _patches(others, part, files, chosen)
    grid[0, 0].set_title("place" if fixed else "probability" if likely else "preference", fontsize=9)
    if not fixed:
        fig.colorbar(picture, ax=grid[:, 0], location="bottom", shrink=0.9, aspect=12, pad=0.02)
    of = "" if files is None else f": region models, and regions of {len(files)} images classified as {name}"
    fig.suptitle(f"{name}{of}", fontsize=10)
    return fig


_LABEL = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.6}


def _most_used(uses: np.ndarray | None, preference: np.ndarray) -> np.ndarray:
    """Parts that are used, those most used first; where nobody knows, all, those that most regions prefer first."""
    if uses is None:
        best = np.bincount(preference.argmax(axis=2).ravel(), minlength=preference.shape[2])
        return np.lexsort((-preference.max(axis=(0, 1)), -best))
    order = np.argsort(-uses, kind="stable")
    return order[uses[order] > 0]


def _used(
    classifier: SceneClassifier, name: object, images: Any, features: Any
) -> tuple[list[Any] | None, np.ndarray | None]:
    """Images of the class as classified, and the parts of their regions."""
    if images is None and features is None:
        return None, None
    files, X = None, features
    if images is not None:
        files, X = images_and_features(images, features, classifier.extractor_ is not None, "regions")
    mine = np.flatnonzero(classifier.predict(X) == name)
    if not mine.size:
        raise ValueError(f"None of the {len(X)} images is classified as {name!r}. Give images that are.")
    X = [X[i] for i in mine] if features is None else np.asarray(X)[mine]
    chosen = classifier.predict_regions(X, np.full(mine.size, name))
    return (None if files is None else [files[i] for i in mine]), chosen


def _patches(axes: list[Axes], part: int, files: list[Any], chosen: np.ndarray) -> None:
    image, row, column = np.nonzero(chosen == part)
    turn = np.arange(image.size) - np.searchsorted(image, image)  # the first of its image, the second, …
    for ax, at in zip(axes, np.argsort(turn, kind="stable"), strict=False):
        left, top, (rows, columns) = column[at], row[at], chosen.shape[1:]
        window = left / columns, top / rows, (left + 1) / columns, (top + 1) / rows
        ax.imshow(cut_out(pixels(files[image[at]]), window))
