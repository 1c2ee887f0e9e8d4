"""Annotated images are opened: pixels, and boxes that lie within them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from ..images import ImageError, read_image
from .annotations import Annotated
from .records import CORNERS, some


def _inside(boxes: np.ndarray, height: int, width: int, name: str) -> np.ndarray:
    inside = np.clip(boxes, 0, [width, height, width, height])
    outside = np.flatnonzero((inside[:, 2:] <= inside[:, :2]).any(axis=1))
    if outside.size:
        box = ", ".join(f"{edge:g}" for edge in boxes[outside[0]])
        raise ValueError(
            f"{name}: {outside.size} of {len(boxes)} boxes lie outside the image, which is {width} × {height} pixels "
            f"(width × height); the first is box {outside[0]}: ({box}). Boxes are {CORNERS} in pixels. Was the image "
            "scaled or turned after its boxes were drawn, or are x and y swapped?"
        )
    return inside


def read_all(given: Annotated, *, color: bool = True) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """The images that can be read, one after the other: position, pixels, and boxes within the image.

    Boxes are in the order of ``given.boxes[i]``, so that ``given.ignored[i]`` is theirs. After the last image one
    warning names the images that could not be read, and one counts the boxes that stuck out of their image.

    Parameters
    ----------
    given : Annotated
    color : bool, default True
        RGB (h, w, 3), otherwise grey (h, w); unsigned bytes.

    Raises
    ------
    ImageError
        After the last image, if none could be read, or none that has an object.
    ValueError
        If a box lies outside its image.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision.detection.annotations import annotated
    >>> from maxmargin.vision.detection.reading import read_all
    >>> given = annotated(np.zeros((2, 40, 60), np.uint8), [[10, 5, 30, 25], None])
    >>> for i, image, boxes in read_all(given):
    ...     print(i, image.shape, boxes.tolist())
    0 (40, 60, 3) [[10.0, 5.0, 30.0, 25.0]]
    1 (40, 60, 3) []
    """
    broken: list[str] = []
    cut = objects = 0
    for i, source in enumerate(given.images):
        name = given.name(i)
        try:
            image = read_image(source, color=color)
        except ImageError as error:
            broken.append(str(error) if name in str(error) else f"{name}: {error}")
            continue
        boxes = _inside(given.boxes[i], image.shape[0], image.shape[1], name)
        cut += int((boxes != given.boxes[i]).any(axis=1).sum())
        objects += int((~given.ignored[i]).sum())
        yield i, image, boxes
    if broken:
        message = f"{len(broken)} of {len(given)} images cannot be used:\n  " + some(broken, "\n  ")
        if len(broken) == len(given):
            raise ImageError(f"{message}\nNone is left.")
        if not objects:
            raise ImageError(f"{message}\nThere are no positives: none of the others has an object.")
        warnings.warn(f"{message}\nThey are left out.", stacklevel=2)
    if cut:
        total = sum(map(len, given.boxes))
        warnings.warn(f"{cut} of {total} boxes stick out of their images and are cut off.", stacklevel=2)
