"""What a detector finds in images, and how often it is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...plots.needs import axes_for, open_frame, tiles_for
from ..detection.boxes import as_boxes, as_scores, falling
from ..detection.evaluation import PrecisionRecall, matched
from ..detection.finding import Detections
from ..image_inputs import images_or_regions
from .frames import COLORS, LINES, number, outline, pixels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

_RIGHT, _WRONG, _UNKNOWN = "#009e73", "#d55e00", "#1b6ca8"  # which is also said in words
_AROUND = 1.7  # what is cut out around a detection, in sides of its box
_MARKS = {"": _UNKNOWN, "right": _RIGHT}


def detected(
    image: object,
    detections: object,
    *,
    ax: Axes | None = None,
    most: int = 10,
    parts: bool = True,
    roots: bool = False,
) -> Axes:
    """Draw what was found in an image: boxes with their scores, and the parts in them; the best stand out.

    Parameters
    ----------
    image : path or array (height, width[, 3])
    detections : Detections
        What ``DeformablePartDetector.detect`` found in it.
    ax : matplotlib Axes or None
        A new figure by default.
    most : int
        Draw so many of them, the best.
    parts : bool
        Draw boxes of parts: thin lines, broken ones for counter-evidence.
    roots : bool
        Draw where root filters are too, dotted. The boxes are predicted from roots and parts, and differ from them.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from maxmargin.vision import DeformablePartDetector
    >>> images = np.random.default_rng(0).integers(0, 40, (6, 80, 80), dtype=np.uint8)
    >>> images[:, 20:52, 24:56] = 200
    >>> detector = DeformablePartDetector(n_parts=0, random_state=0).fit(images, [[24, 20, 56, 52]] * 6)
    >>> axes = detected(images[0], detector.detect(images[0]), most=1)
    >>> len(axes.patches)
    1
    """
    if most < 0:
        raise ValueError(f"most must be at least 0, got {most}.")
    if not isinstance(detections, Detections):
        raise ValueError(
            f"detections must be what a detector's detect found, got {type(detections).__name__}. "
            "Of predict's list give the entry of this image."
        )
    picture = pixels(image)
    height, width = picture.shape[:2]
    explained = len(detections) > 0 and most > 0 and (roots or (parts and bool(detections.part_signs.any())))
    scale, beside = 5.0 / max(height, width), 1.6 if explained else 0.0
    ax = axes_for(ax, (max(width * scale, 1.5) + beside, max(height * scale, 1.5)))
    ax.imshow(picture, extent=(0, width, height, 0))
    drawn: set[str] = set()

    def frame(box: np.ndarray, kind: str, alpha: float, line: float = 1.2) -> None:
        outline(ax, box, COLORS[kind], line, LINES[kind], alpha=alpha)
        drawn.add(kind)

    for k in reversed(range(min(most, len(detections)))):  # the best on top, the others paler
        alpha = max(0.65**k, 0.25)
        if parts:
            for box, sign in zip(detections.part_boxes[k], detections.part_signs[k], strict=True):
                if sign:
                    frame(box, "part" if sign > 0 else "negative part", alpha)
        if roots:
            frame(detections.root_boxes[k], "root", alpha)
        frame(detections.boxes[k], "object", alpha, 2.2)
    for k in reversed(range(min(most, len(detections)))):
        _score(ax, detections.boxes[k], detections.scores[k], height)
    ax.set_xlim(0, width)
    ax.set_ylim(height, 0)
    ax.set_axis_off()
    if not len(detections):
        ax.set_title("nothing found", fontsize=9)
    elif len(drawn) > 1:
        _legend(ax, drawn)
    return ax


def precision_recall_curves(curves: object, ax: Axes | None = None) -> Axes:
    """Draw precision over recall, with the average precision of each curve in the legend.

    The strong line is the best precision at a recall or a larger one: the area under it is the average precision. The
    faint one has a point for every box.

    Parameters
    ----------
    curves : PrecisionRecall, or dict of names and such
        What ``DeformablePartDetector.precision_recall`` or ``precision_recall`` returns.
    ax : matplotlib Axes or None
        A new figure by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from maxmargin.vision.detection.evaluation import precision_recall
    >>> curve = precision_recall([([[0, 0, 9, 9], [9, 9, 18, 18]], [2.0, 1.0])], [[[9, 9, 18, 18]]])
    >>> precision_recall_curves({"squares": curve}).get_legend().get_texts()[0].get_text()
    'squares, AP 50.0 %'
    """
    named: dict[str, Any] = dict(curves) if isinstance(curves, Mapping) else {"": curves}
    if not named or not all(isinstance(curve, PrecisionRecall) for curve in named.values()):
        given = {name: type(curve).__name__ for name, curve in named.items()} if isinstance(curves, Mapping) else curves
        raise ValueError(
            f"curves must be what precision_recall returns, or a dict of names and at least one such, got {given!r}."
        )
    ax = axes_for(ax, (4.6, 4.0))
    for name, curve in named.items():
        label = f"{name}, AP {100.0 * curve.average_precision:.1f} %".removeprefix(", ")
        (line,) = ax.plot(*envelope(curve.precision, curve.recall), linewidth=1.8, label=label)
        ax.plot(curve.recall, curve.precision, color=line.get_color(), linewidth=0.7, alpha=0.45)
    ax.set_xlim(0.0, 1.02)
    ax.set_ylim(0.0, 1.03)
    open_frame(ax, "recall", "precision")
    ax.legend(frameon=False, loc="lower left", fontsize=9)
    return ax


def detection_mosaic(
    images: object,
    found: Sequence[object],
    truths: Sequence[object] | None = None,
    n: int = 12,
    *,
    overlap: float = 0.5,
    columns: int = 6,
    fig: FigureBase | None = None,
) -> FigureBase:
    """Draw the best detections of many images, cut out, with some of what is around them; the best first.

    Where the objects are known, each is marked as right or wrong by the rule of ``precision_recall``: "second" is a box
    on an object that a better box has found already. Broken lines show the objects themselves.

    Parameters
    ----------
    images : folder, pattern, list of files or of arrays
    found : list of Detections, or of pairs of boxes and scores
        For each image, such as ``DeformablePartDetector.predict`` returns.
    truths : list of arrays (m, 4), or None
        Boxes of the objects of each image.
    n : int
        Detections to draw.
    overlap : float
        Boxes that overlap by at least so much show the same object.
    columns : int
        Detections in a row.
    fig : matplotlib Figure, SubFigure or None
        A new figure by default.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> image = np.zeros((30, 40), np.uint8)
    >>> found = [([[0, 0, 9, 9], [9, 9, 18, 18]], [2.0, 1.0])]
    >>> figure = detection_mosaic([image], found, [[[9, 9, 18, 20]]], n=2)
    >>> [ax.get_title() for ax in figure.axes]
    ['2.00 wrong', '1.00 right']
    """
    if n < 1 or columns < 1:
        raise ValueError(f"n and columns must be at least 1, got {n} and {columns}.")
    files = list(images_or_regions(images).images or [])
    pairs, objects = _found_in(files, found, truths)
    image = np.repeat(np.arange(len(files)), [len(scores) for _, scores in pairs])
    boxes, scores = (np.concatenate(part) for part in zip(*pairs, strict=True))
    if not scores.size:
        raise ValueError(f"Nothing was found in the {len(files)} images. Detect with a lower threshold.")
    verdicts = [""] * scores.size if truths is None else judged(pairs, objects, overlap)
    shown = falling(scores)[:n].tolist()
    fig, axes = tiles_for(fig, len(shown), columns, (1.55, 1.75))
    for ax, k, verdict in zip(axes, shown, verdicts, strict=False):
        color = _MARKS.get(verdict, _WRONG)
        _cut_out_with_box(ax, pixels(files[image[k]]), boxes[k], objects[image[k]], color)
        ax.set_title(f"{number(scores[k])} {verdict}".strip(), fontsize=8, pad=2, color=color)
    return fig


def envelope(precision: np.ndarray, recall: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners (recall, precision) of the best precision at each recall or a larger one: level, then down.

    >>> [side.tolist() for side in envelope(np.array([1.0, 0.5, 0.6]), np.array([0.3, 0.3, 0.6]))]
    [[0.0, 0.3, 0.3, 0.6, 0.6], [1.0, 1.0, 0.6, 0.6, 0.0]]
    """
    best = np.maximum.accumulate(precision[::-1])[::-1]
    rises = np.diff(recall, prepend=0.0) > 0.0
    x, y = recall[rises], best[rises]
    return np.r_[0.0, np.repeat(x, 2)], np.r_[np.repeat(y, 2), 0.0]


def judged(found: list[tuple[np.ndarray, np.ndarray]], objects: list[np.ndarray], overlap: float) -> np.ndarray:
    """What the boxes of all images are, by falling score: right, wrong, or second on an object."""
    scores, shown = matched(found, objects, overlap)
    shown = shown[falling(scores)]
    first = np.isin(np.arange(shown.size), np.unique(shown, return_index=True)[1])
    return np.where(shown < 0, "wrong", np.where(first, "right", "second"))


def _score(ax: Axes, box: Any, score: float, height: int) -> None:
    """Above the box, or within it where the image ends there."""
    above = "bottom" if box[1] > 0.06 * height else "top"
    label = {"boxstyle": "square,pad=0.15", "facecolor": COLORS["object"], "edgecolor": "none", "alpha": 0.9}
    ax.text(
        float(box[0]), float(box[1]), number(score), fontsize=8, ha="left", va=above, color="black", clip_on=True,
        bbox=label,
    )  # fmt: skip


def _legend(ax: Axes, drawn: set[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=COLORS[kind] if kind != "root" else "0.6", linestyle=line, linewidth=2.0, label=kind)
        for kind, line in LINES.items()
        if kind in drawn
    ]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)


def _found_in(
    files: list[Any], found: Sequence[Any], truths: Sequence[Any] | None
) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[np.ndarray]]:
    """Boxes and scores of each image, and its objects."""
    truths = [[]] * len(files) if truths is None else truths
    if not len(files) == len(found) == len(truths):
        raise ValueError(
            f"There are {len(files)} images, found of {len(found)} and truths of {len(truths)}; each image needs one."
        )
    pairs = [(some.boxes, some.scores) if isinstance(some, Detections) else tuple(some) for some in found]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("found must have Detections, or boxes and scores, for each image.")
    boxes = [as_boxes(f"boxes of found[{i}]", pair[0]) for i, pair in enumerate(pairs)]
    scores = [as_scores(f"scores of found[{i}]", pair[1], boxes[i]) for i, pair in enumerate(pairs)]
    objects = [as_boxes(f"truths[{i}]", some) for i, some in enumerate(truths)]
    return list(zip(boxes, scores, strict=True)), objects


def _cut_out_with_box(ax: Axes, picture: np.ndarray, box: np.ndarray, objects: np.ndarray, color: str) -> None:
    """A square around a box; grey where the image has ended."""
    height, width = picture.shape[:2]
    half = 0.5 * _AROUND * max(float(box[2] - box[0]), float(box[3] - box[1]), 1.0)
    x, y = 0.5 * float(box[0] + box[2]), 0.5 * float(box[1] + box[3])
    ax.imshow(picture, extent=(0, width, height, 0))
    for one in objects:
        outline(ax, one, "white", 1.0, "--")
    outline(ax, box, color, 2.0)
    ax.set_xlim(x - half, x + half)
    ax.set_ylim(y + half, y - half)
    ax.set_facecolor("0.85")
