"""A box as its source wrote it down, where that was, and what it means in edges of pixels.

All files and tables of boxes become lists of records. A box is only looked at when its class is asked for: mistakes in
the boxes of other classes are nobody's trouble.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

CORNERS = "x_min, y_min, x_max, y_max"
SIZES = "x, y, width, height"
INCLUSIVE = "xmin, ymin, xmax, ymax, counted from 1, the last row and column included"

_CLASSES = 20  # that a message names
_IMAGES = 5


class Record(NamedTuple):
    """One box of one image; or, with no box, the word that there is such an image."""

    image: str
    """The name of the image, as the source has it."""
    box: Sequence[Any] | None
    """Four numbers, not checked yet."""
    form: str
    """What the numbers are: ``CORNERS``, ``SIZES`` or ``INCLUSIVE``."""
    label: str | None
    """The class of the object, where the source tells classes apart."""
    ignored: bool
    where: str
    """File and line, or the like, for messages."""


def corners(box: Sequence[Any], form: str, where: str) -> tuple[float, float, float, float]:
    """The edges of a box, from whatever form it has; a box that has no area or is none is refused.

    Examples
    --------
    >>> from maxmargin.vision.detection.records import INCLUSIVE, SIZES, corners
    >>> corners([10, 20, 5, 8], SIZES, "boxes.json, annotation 3")
    (10.0, 20.0, 15.0, 28.0)
    >>> corners(["1", "1", "4", "2"], INCLUSIVE, "a.xml, object 1")
    (0.0, 0.0, 4.0, 2.0)
    """
    if isinstance(box, str | bytes) or not hasattr(box, "__len__") or len(box) != 4:
        raise ValueError(f"{where}: a box is four numbers, {form}; got {_shown(box)}.")
    numbers = [_number(value, box, where) for value in box]
    if not all(map(math.isfinite, numbers)):
        raise ValueError(
            f"{where}: the box {_shown(numbers)} has a NaN or an infinity in it. Mend this box, or take it out."
        )
    a, b, c, d = numbers
    if form == SIZES:
        if c <= 0 or d <= 0:
            raise ValueError(
                f"{where}: the box {_shown(numbers)} has no area: its width is {c:g}, its height {d:g}. Both must be "
                f"positive, and the numbers mean {SIZES}. Mend this box, or take it out."
            )
        return a, b, a + c, b + d
    if form == INCLUSIVE:
        a, b = a - 1, b - 1
    for axis, low, high in (("x", a, c), ("y", b, d)):
        if high <= low:
            raise ValueError(
                f"{where}: the box {_shown(numbers)} has no area: {axis}_max is not greater than {axis}_min. The "
                f"numbers must be {form}. Are they {SIZES}? Then add: x_max = x + width, y_max = y + height."
            )
    return a, b, c, d


def _number(value: Any, box: Sequence[Any], where: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        comma = isinstance(value, str) and "," in value
        todo = "Write decimals with a point, not a comma." if comma else "Mend this box, or take it out."
        raise ValueError(
            f"{where}: {value!r} is not a number, in the box {_shown(box)}. A box is four numbers. {todo}"
        ) from None


def _shown(box: Any) -> str:
    if isinstance(box, str | bytes) or not hasattr(box, "__len__"):
        return repr(box)
    return "(" + ", ".join(f"{x:g}" if isinstance(x, float) else repr(x) for x in box) + ")"


def chosen(records: list[Record], label: Any, source: str) -> tuple[list[Record], str | None]:
    """The records of one class, and its name; those of others keep their image, but lose their box.

    Images without an object of this class are background, whatever else they show.
    """
    counts = Counter(record.label for record in records if record.box is not None and record.label is not None)
    wanted = None if label is None else str(label)
    if not counts:
        return records, wanted
    if wanted is None:
        if len(counts) > 1:
            first = counts.most_common(1)[0][0]
            raise ValueError(
                f"{source} has boxes of {len(counts)} classes: {_listed(counts)}. A detector finds one: choose with "
                f"label={first!r}. The others are then background."
            )
        wanted = next(iter(counts))
    elif wanted not in counts:
        close = difflib.get_close_matches(wanted, [name for name in counts if name], 1, 0.7)
        hint = f" Is {close[0]!r} meant?" if close else " Give label one of these."
        raise ValueError(f"{source} has no boxes of the class {wanted!r}; it has {_listed(counts)}.{hint}")
    return [
        record if record.box is None or record.label == wanted else record._replace(box=None) for record in records
    ], wanted


def _listed(counts: Counter) -> str:
    some = ", ".join(f"{name} ({count})" for name, count in counts.most_common(_CLASSES))
    return some + (f" and {len(counts) - _CLASSES} more" if len(counts) > _CLASSES else "")


def some(names: Sequence[str], between: str = ", ") -> str:
    """The first of many images, and how many more there are."""
    more = [f"and {len(names) - _IMAGES} more"] if len(names) > _IMAGES else []
    return between.join([*names[:_IMAGES], *more])
