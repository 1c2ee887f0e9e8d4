"""Scenes as arrangements of parts: which part is where in an image, and what the parts of a class are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...plots.grid import draw_cells
from ...plots.needs import axes_for, bare, figure_for, needs_matplotlib
from .frames import cut_out, images_and_features, pixels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

    from ..classifier import SceneClassifier

_FEW_FEATURES = 40  # more bars than these are a fence
_NUMBERED = 100  # up to so many regions their parts are written into them


@needs_matplotlib
def labelled_regions(
    image: Any,
    regions: Any,
    ax: Axes | None = None,
    *,
    names: Any = None,
    colors: Any = None,
    opacity: float = 0.5,
    legend: bool = True,
) -> Axes:
    """Draw which part explains each region of an image: coloured, with the borders between parts and a legend.

    A part has the same colour in every picture.

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
    colors : list of colours or None
        Of parts 0, 1, ….
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
    table = np.asarray(regions)
    if table.ndim != 2 or table.dtype.kind not in "iu" or not table.size or table.min() < 0:
        raise ValueError(f"regions must be parts in a table of rows × columns, got {table.dtype} {table.shape}.")
    used = np.unique(table)
    for what, given in (("names", names), ("colors", colors)):
        if given is not None and len(given) <= used[-1]:
            raise ValueError(f"There is a part {used[-1]}, and {what} has {len(given)} entries; they count from 0.")
    from matplotlib.colors import to_rgba

    ax = axes_for(ax)
    picture = None if image is None else pixels(image)
    height, width = table.shape if picture is None else picture.shape[:2]
    said = {part: str(part) if names is None else names[part] for part in used.tolist()}
    draw_cells(
        ax, table, _palette(int(used[-1]) + 1) if colors is None else [to_rgba(color) for color in colors],
        said if legend else {}, picture=picture, extent=(0, width, height, 0), opacity=opacity,
        title="part" if names is None else None,
    )  # fmt: skip
    if table.size <= _NUMBERED:
        down, across = height / table.shape[0], width / table.shape[1]
        for (row, column), part in np.ndenumerate(table):
            x, y = (column + 0.5) * across, (row + 0.5) * down
            ax.text(x, y, str(part), ha="center", va="center", fontsize=8, bbox=_LABEL)
    return ax


@needs_matplotlib
def region_models(
    classifier: SceneClassifier,
    name: Any,
    images: Any = None,
    *,
    features: Any = None,
    n: int = 8,
    parts: int = 5,
    fig: FigureBase | None = None,
) -> FigureBase:
    """Draw the region models ("parts") of a class, one in a row: where it likes to be, and what it was used for.

    On the left are the preferences of the regions of the grid for the part. Beside them, where there are images, stand
    the regions of images that the part was assigned to when they were classified, best scores first; the second of
    an image comes after the first ones of all. Without images, there are the weights of the features, if these are few.

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
    >>> len(region_models(model, "beach", parts=2).axes)  # two maps and their scale, and two bar charts
    5
    """
    tables = classifier.region_models_.of(name)
    if classifier.kind == "bow":
        raise ValueError("kind='bow' has one model for the whole image, and no regions to draw.")
    if n < 1 or parts < 1:
        raise ValueError(f"n and parts must be at least 1, got {n} and {parts}.")
    fixed, likely = classifier.kind == "sbow", classifier.training == "generative"
    # Logarithms of probabilities are no sight: those themselves are drawn.
    preference = np.exp(tables.preference[0]) if likely and not fixed else tables.preference[0]
    given = images is not None or features is not None
    files, found = _used(classifier, name, images, features) if given else (None, None)
    uses = None if found is None else np.bincount(found[0].ravel(), minlength=preference.shape[2])
    shown = _most_used(uses, preference)[:parts]
    few = tables.appearance.shape[2] <= _FEW_FEATURES
    n_right = n if files is not None else int(few)
    fig, left, right = _layout(fig, len(shown), n_right, files is not None)
    drawn = preference[:, :, shown]
    limit = float(np.abs(drawn).max()) or 1.0
    signed = not (likely or fixed)
    cmap, least = ("RdBu_r", -limit) if signed else ("viridis", 0.0)
    for row, part in enumerate(shown):
        picture = left[row].imshow(preference[:, :, part], aspect="auto", cmap=cmap, vmin=least, vmax=limit)
        left[row].set_box_aspect(1.0)  # as images are about square, whatever their grid
        bare(left[row], edges=True)
        label = f"part {part}"
        if uses is not None:
            label += f"\n{100.0 * uses[part] / uses.sum():.0f} % of regions"
        left[row].set_ylabel(label, fontsize=8)
        if files is not None and found is not None:
            _patches(right[row], part, files, found)
        elif few:
            weights = tables.appearance[0, part]
            _bars(right[row][0], np.exp(weights) if likely else weights, tables.appearance[0][shown], likely)
    left[0].set_title("place" if fixed else "probability" if likely else "preference", fontsize=9)
    if not fixed:
        fig.colorbar(picture, ax=left, location="bottom", shrink=0.9, aspect=12, pad=0.02).ax.tick_params(labelsize=7)
    if n_right and files is None:
        right[0][0].set_title("probabilities of words" if likely else "weights of features", fontsize=9)
        right[-1][0].set_xlabel("word" if likely else "feature", fontsize=9)
        for above in right[:-1]:
            above[0].tick_params(labelbottom=False)
    said = f"{name}: region models"
    if files is not None:
        said += f", and regions of {len(files)} image{'s' * (len(files) > 1)} classified as {name}"
    fig.suptitle(said, fontsize=10)
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
    classifier: SceneClassifier, name: Any, images: Any, features: Any
) -> tuple[list[Any] | None, tuple[np.ndarray, np.ndarray]]:
    """Images of the class as classified, the parts of their regions, and the scores that these were chosen with."""
    files, X = None, features
    if images is not None:
        files, X = images_and_features(images, features, classifier.extractor_ is not None, "regions")
    mine = np.flatnonzero(classifier.predict(X) == name)
    if not mine.size:
        raise ValueError(f"None of the {len(X)} images is classified as {name!r}. Give images that are.")
    X = [X[i] for i in mine] if features is None else np.asarray(X)[mine]
    chosen = classifier.predict_regions(X, np.full(mine.size, name))
    tables = classifier.region_models_.of(name)
    psi = classifier.transform(X)
    scores = np.einsum("irck,pk->ircp", psi, tables.appearance[0], optimize=True)
    if classifier.training == "generative":
        scores = scores / classifier.learner_.temperature
    scores = scores + tables.preference[0]
    if classifier.training == "generative":
        # Likelihoods of many words are small, whatever they are: what counts is the probability of the part.
        scores = scores - np.logaddexp.reduce(scores, axis=3, keepdims=True)
    best = np.take_along_axis(scores, chosen[..., None].astype(np.int64), axis=3)[..., 0]
    return (None if files is None else [files[i] for i in mine]), (chosen, best)


def _patches(axes: np.ndarray, part: int, files: list[Any], found: tuple[np.ndarray, np.ndarray]) -> None:
    chosen, scores = found
    image, row, column = np.nonzero(chosen == part)
    score = scores[image, row, column]
    order = np.lexsort((-score, image))
    turn = np.empty(image.size, np.int64)  # the first of its image, the second, …
    begins = np.flatnonzero(np.r_[True, np.diff(image[order]) > 0])
    turn[order] = np.arange(image.size) - np.repeat(begins, np.diff(np.r_[begins, image.size]))
    best = np.lexsort((-score, turn))
    for ax in axes:
        ax.set_axis_off()
    for ax, at in zip(axes, best, strict=False):
        left, top, (rows, columns) = column[at], row[at], chosen.shape[1:]
        window = left / columns, top / rows, (left + 1) / columns, (top + 1) / rows
        ax.imshow(cut_out(pixels(files[image[at]]), window))


def _bars(ax: Axes, weights: np.ndarray, all_shown: np.ndarray, likely: bool) -> None:
    ax.bar(np.arange(weights.size), weights, color="#1b6ca8")
    values = np.exp(all_shown) if likely else all_shown
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    ax.set_ylim(1.05 * low, 1.05 * high or 1.0)  # the same in all rows
    ax.axhline(0.0, color="0.3", linewidth=0.8)
    ax.tick_params(labelsize=7)
    ax.locator_params(axis="x", integer=True)
    ax.spines[["top", "right"]].set_visible(False)


def _layout(fig: FigureBase | None, rows: int, n_right: int, images: bool) -> tuple[FigureBase, np.ndarray, np.ndarray]:
    """Axes of the maps, and those to the right of each."""
    widths = [1.25] + ([1.0] * n_right if images else [3.0] * n_right)
    fig = figure_for(fig, (1.0 + 1.1 * sum(widths), 0.9 + 1.25 * rows))
    axes = fig.subplots(rows, 1 + n_right, squeeze=False, width_ratios=widths)
    return fig, axes[:, 0], axes[:, 1:]


def _palette(n: int) -> list[tuple[float, float, float, float]]:
    """Strong colours first, then paler ones; the same number has the same colour however many there are."""
    from matplotlib import colormaps

    strong, pale, more = colormaps["tab10"].colors, colormaps["tab20"].colors[1::2], colormaps["tab20b"].colors  # type: ignore[attr-defined]
    every = [*strong[:7], *strong[8:], *pale[:7], *pale[8:], *more]  # no greys: images are grey
    return [(*every[k % len(every)], 1.0) for k in range(n)]
