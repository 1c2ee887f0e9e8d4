"""Detectors of deformable parts: what their filters look for, where, and what it costs to move them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...plots.needs import bare, figure_for
from ...validation import shown
from .frames import COLORS, LINES, number, outline, some_of
from .hog import edge_strengths, glyph_image

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

    from ..detection.model import View, ViewPart
    from ..detector import DeformablePartDetector

_FINE = 8  # pixels of a fine cell in a map of costs
_KINDS = {1: "part", -1: "negative part"}


def detector_filters(
    detector: DeformablePartDetector, components: Sequence[int] | None = None, *, fig: FigureBase | None = None
) -> FigureBase:
    """Draw the components of a detector, one in a row: root, parts, and what it costs to move them.

    Left are the edges that the root likes and those that it dislikes, in one scale. Beside them are the edges that the
    parts like, each part where it is expected, on cells half as large; then a map for every part of the cost to have
    its centre elsewhere: dark is cheap. Parts that are counter-evidence have pictures of their own: what these like
    lowers the score. Parts have the numbers that they have in ``Detections.part_boxes``.

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
    if not hasattr(detector, "star_"):
        raise ValueError(f"detector must be a fitted DeformablePartDetector, got {shown(detector)}. Call fit first.")
    star, n = detector.star_, len(detector.star_.components)
    wanted = some_of("components", range(n) if components is None else components, n)
    views = [star.view(detector.coef_, 2 * c) for c in wanted]
    signs = [sign for sign in (1, -1) if any(part.sign == sign for view in views for part in view.parts)]
    dearest = max((float(_costs(part).max()) for view in views for part in view.parts), default=0.0) or 1.0
    heights = [1.9 * min(max(view.root.shape[0] / view.root.shape[1], 0.5), 2.0) for view in views]
    columns = 2 + 2 * len(signs)
    fig = figure_for(fig, (1.2 + 1.9 * columns, 0.5 + sum(heights)))
    axes = fig.subplots(len(views), columns, squeeze=False, height_ratios=heights)
    for ax in axes.ravel():
        bare(ax)
    for c, view, row in zip(wanted, views, axes, strict=True):
        _draw_root(row, view, f"component {c}", star.mirrored)
        for k, sign in enumerate(signs):
            _draw_parts(row[2 + 2 * k : 4 + 2 * k], view, sign, dearest)
    titles = ["root, for", "root, against"]
    for sign in signs:
        titles += [_KINDS[sign] + "s", "cost of moving"]
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(title, fontsize=9)
    maps = [picture for ax in axes[:, 3::2].ravel() for picture in ax.images]
    if maps:
        fig.colorbar(maps[0], ax=axes, shrink=0.6, aspect=24, pad=0.01, label="cost")
    return fig


def _draw_root(row: np.ndarray, view: View, name: str, mirrored: bool) -> None:
    rows, columns = view.root.shape[:2]
    sides = edge_strengths(view.root)
    white = max(float(side.max()) for side in sides) or 1.0
    for ax, side in zip(row, sides, strict=False):
        ax.imshow(glyph_image(side), cmap="gray", vmin=0.0, vmax=white, interpolation="antialiased")
    said = f"{name}\n{rows} × {columns} cells\nbias {number(view.bias)}" + "\nand mirrored" * mirrored
    row[0].set_ylabel(said, fontsize=8, rotation=0, ha="right", va="center")


def _draw_parts(axes: np.ndarray, view: View, sign: int, dearest: float) -> None:
    """The edges that the parts of a sign like, and what it costs to move them, in fine cells of the root."""
    rows, columns = view.root.shape[:2]
    reach = [(0, 0, 2 * columns, 2 * rows), *map(_box, view.parts)]
    left, top, right, bottom = zip(*reach, strict=True)
    liked = [edge_strengths(part.filter)[0] for part in view.parts]
    white = max((float(side.max()) for side in liked), default=0.0) or 1.0
    kind = _KINDS[sign]
    label = {"boxstyle": "round,pad=0.12", "facecolor": COLORS[kind], "edgecolor": "none"}
    for p, part in enumerate(view.parts):
        if part.sign != sign:
            continue
        box = _box(part)
        pictures = (glyph_image(liked[p]), white), (_costs(part), dearest)
        for ax, (picture, most) in zip(axes, pictures, strict=True):
            extent = (box[0], box[2], box[3], box[1])
            ax.imshow(picture, cmap="gray", vmin=0.0, vmax=most, interpolation="antialiased", extent=extent)
            outline(ax, box, COLORS[kind], 1.4, LINES[kind], clip_on=False)
            ax.text(0.5 * (box[0] + box[2]), box[1] + 0.3, str(p), fontsize=7, ha="center", va="top", bbox=label)
    for ax in axes:
        ax.set_facecolor("0.88")
        ax.set_aspect("equal")
        ax.set_xlim(min(left), max(right))
        ax.set_ylim(max(bottom), min(top))


def _box(part: ViewPart) -> tuple[int, int, int, int]:
    rows, columns = part.filter.shape[:2]
    return part.left, part.top, part.left + columns, part.top + rows


def _costs(part: ViewPart) -> np.ndarray:
    """How much more than the cheapest place it costs a part to have its centre at each pixel of its own box."""
    dy, dx = ((np.arange(n * _FINE) + 0.5) / _FINE - 0.5 * n for n in part.filter.shape[:2])
    a, b, c, d = part.cost
    cost = (a * dy**2 + b * dy)[:, None] + (c * dx**2 + d * dx)
    return cost - cost.min()
