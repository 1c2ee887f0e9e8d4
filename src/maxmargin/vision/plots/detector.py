"""Detectors of deformable parts: what their filters look for, where, and what it costs to move them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...plots.needs import bare, figure_for, needs_matplotlib
from .frames import COLORS, LINES, number, outline, some_of
from .hog import edge_strengths, glyph_image, grey

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

    from ..detection.model import StarModel, View, ViewPart
    from ..detector import DeformablePartDetector

_FINE = 8  # pixels of a fine cell in a map of costs


@needs_matplotlib
def detector_filters(
    detector: DeformablePartDetector, components: Sequence[int] | None = None, *, fig: FigureBase | None = None
) -> FigureBase:
    """Draw the components of a detector, one in a row: root, parts, and what it costs to move them.

    Left are the edges that the root likes and those that it dislikes, in one scale. Beside them are the edges that the
    parts like, each part where it is expected, on cells half as large; then a map for every part of the cost to have
    its centre elsewhere: dark is cheap. Parts that are counter-evidence have pictures of their own: what these like
    lowers the score. Where two parts lie over each other, the stronger edge and the cheaper place are seen. Parts have
    the numbers that they have in ``Detections.part_boxes``.

    Parameters
    ----------
    detector : fitted DeformablePartDetector
    components : sequence of int or None
        Which ones; all by default.
    fig : matplotlib Figure, SubFigure or None
        A new figure by default.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from maxmargin.vision import DeformablePartDetector
    >>> images = np.random.default_rng(0).integers(0, 40, (6, 80, 80), dtype=np.uint8)
    >>> images[:, 20:52, 24:56] = 200
    >>> detector = DeformablePartDetector(n_parts=0, random_state=0).fit(images, [[24, 20, 56, 52]] * 6)
    >>> [ax.get_title() for ax in detector_filters(detector).axes]
    ['root, for', 'root, against']
    """
    star, w = _learned(detector)
    n = len(star.components)
    shown = list(range(n)) if components is None else some_of("components", components, n)
    views = [star.view(w, 2 * c) for c in shown]
    signs = [sign for sign in (1, -1) if any(part.sign == sign for view in views for part in view.parts)]
    dearest = max((float(_costs(part).max()) for view in views for part in view.parts), default=0.0) or 1.0
    fig = figure_for(fig, (1.2 + 1.9 * (2 + 2 * len(signs)), 0.5 + sum(_height(view) for view in views)))
    axes = fig.subplots(
        len(shown), 2 + 2 * len(signs), squeeze=False, gridspec_kw={"height_ratios": [_height(view) for view in views]}
    )
    maps = [
        picture
        for c, view, row in zip(shown, views, axes, strict=True)
        for picture in _draw_view(row, view, signs, dearest, f"component {c}", star.mirrored)
    ]
    titles = ["root, for", "root, against"]
    for sign in signs:
        titles += ["parts" if sign > 0 else "negative parts", "cost of moving"]
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(title, fontsize=9)
    if maps:
        bar = fig.colorbar(maps[0], ax=axes, shrink=0.6, aspect=24, pad=0.01)
        bar.ax.tick_params(labelsize=7)
        bar.set_label("cost", fontsize=8)
    return fig


def _learned(detector: DeformablePartDetector) -> tuple[StarModel, np.ndarray]:
    from sklearn.utils.validation import check_is_fitted

    if hasattr(detector, "get_params"):
        check_is_fitted(detector)
    if not hasattr(detector, "star_"):
        raise ValueError(f"detector_filters draws a fitted DeformablePartDetector, got {type(detector).__name__}.")
    return detector.star_, detector.coef_


def _height(view: View) -> float:
    """Inches of a row: as high as its root, if all are as wide."""
    rows, columns = view.root.shape[:2]
    return 1.9 * min(max(rows / columns, 0.5), 2.0)


def _draw_view(row: np.ndarray, view: View, signs: list[int], dearest: float, name: str, mirrored: bool) -> list[Any]:
    """One component; the maps of costs are returned."""
    rows, columns = view.root.shape[:2]
    sides = edge_strengths(view.root)
    white = max(float(side.max()) for side in sides) or 1.0
    for ax, side in zip(row, sides, strict=False):
        ax.imshow(glyph_image(side), cmap="gray", vmin=0.0, vmax=white, interpolation="antialiased")
        bare(ax)
    said = f"{name}\n{rows} × {columns} cells\nbias {number(view.bias)}"
    if mirrored:
        said += "\nand mirrored"
    row[0].set_ylabel(said, fontsize=8, rotation=0, ha="right", va="center")
    liked = [edge_strengths(part.filter)[0] for part in view.parts]
    white = max((float(side.max()) for side in liked), default=0.0) or 1.0
    maps = []
    for k, sign in enumerate(signs):
        glyphs, costs = row[2 + 2 * k : 4 + 2 * k]
        mine = [p for p, part in enumerate(view.parts) if part.sign == sign]
        if not mine:
            for ax in (glyphs, costs):
                ax.set_frame_on(False)
                bare(ax)
            continue
        strong = _pasted(view, mine, [glyph_image(liked[p]) for p in mine], np.fmax)
        cheap = _pasted(view, mine, [_costs(view.parts[p]) for p in mine], np.fmin)
        shade = {"vmin": 0.0, "interpolation": "antialiased", "extent": _reach(view)}
        glyphs.imshow(strong, cmap=grey("0.88"), vmax=white, **shade)
        maps.append(costs.imshow(cheap, cmap=grey("0.88"), vmax=dearest, **shade))
        for ax in (glyphs, costs):
            bare(ax)
            _frames(ax, view, mine, sign)
    return maps


def _reach(view: View) -> tuple[int, int, int, int]:
    """Left, right, bottom and top of root and parts together, in fine cells of the root."""
    rows, columns = view.root.shape[:2]
    boxes = [(0, 2 * columns, 2 * rows, 0)]
    for part in view.parts:
        boxes.append((part.left, part.left + part.filter.shape[1], part.top + part.filter.shape[0], part.top))
    left, right, bottom, top = zip(*boxes, strict=True)
    return min(left), max(right), max(bottom), min(top)


def _pasted(view: View, which: list[int], pictures: list[np.ndarray], meet: np.ufunc) -> np.ndarray:
    """Pictures of parts where these are expected; NaN where there is none."""
    left, right, bottom, top = _reach(view)
    side = pictures[0].shape[0] // view.parts[which[0]].filter.shape[0]  # pixels of a fine cell
    out = np.full(((bottom - top) * side, (right - left) * side), np.nan)
    for p, picture in zip(which, pictures, strict=True):
        y, x = (view.parts[p].top - top) * side, (view.parts[p].left - left) * side
        at = slice(y, y + picture.shape[0]), slice(x, x + picture.shape[1])
        out[at] = meet(out[at], picture)
    return out


def _costs(part: ViewPart) -> np.ndarray:
    """How much more than the cheapest place it costs a part to have its centre at each pixel of its own box."""
    dy, dx = ((np.arange(n * _FINE) + 0.5) / _FINE - 0.5 * n for n in part.filter.shape[:2])
    a, b, c, d = part.cost
    cost = (a * dy**2 + b * dy)[:, None] + (c * dx**2 + d * dx)
    return cost - cost.min()


def _frames(ax: Axes, view: View, which: list[int], sign: int) -> None:
    """A numbered frame around each part of a sign."""
    kind = "part" if sign > 0 else "negative part"
    for p in which:
        part = view.parts[p]
        rows, columns = part.filter.shape[:2]
        box = (part.left, part.top, part.left + columns, part.top + rows)
        outline(ax, box, COLORS[kind], 1.4, LINES[kind], clip_on=False)
        ax.text(
            part.left + 0.5 * columns, part.top + 0.3, str(p), fontsize=7, ha="center", va="top",
            color="black", bbox={"boxstyle": "round,pad=0.12", "facecolor": COLORS[kind], "edgecolor": "none"},
        )  # fmt: skip
