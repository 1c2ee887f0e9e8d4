"""Images with boxes, as training sees them: checked, of known size, and read again when pixels are needed."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...validation import shown
from ..images import ImageError, ImageSource, read_image, some
from .annotations import Annotated
from .records import CORNERS


@dataclass(frozen=True)
class Photo:
    """One image: where it is read from, its size, the boxes in it, of which some are to be ignored, and its name."""

    source: ImageSource
    height: int
    width: int
    boxes: np.ndarray
    ignored: np.ndarray
    name: str = ""
    """For messages."""


def photos_of(given: Annotated) -> list[Photo]:
    """All images that can be read."""
    return [photo for photo, _ in read_all(given)]


def read_all(given: Annotated) -> Iterator[tuple[Photo, np.ndarray]]:
    """The images that can be read, one after the other, with their pixels, (h, w, 3) of unsigned bytes.

    Boxes end where their image ends. After the last image one warning names the images that could not be read, and one
    counts the boxes that stuck out of their image.

    Raises
    ------
    ImageError
        After the last image, if none that has an object could be read.
    ValueError
        If a box lies outside its image.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision.detection.annotations import annotated
    >>> given = annotated(np.zeros((2, 40, 60), np.uint8), [[10, 5, 30, 25], None])
    >>> for photo, pixels in read_all(given):
    ...     print(photo.name, pixels.shape, photo.boxes.tolist())
    image 0 (40, 60, 3) [[10.0, 5.0, 30.0, 25.0]]
    image 1 (40, 60, 3) []
    """
    broken: list[str] = []
    cut = objects = 0
    for i, (source, drawn, ignored) in enumerate(zip(given.images, given.boxes, given.ignored, strict=True)):
        name = given.name(i)
        try:
            pixels = read_image(source, color=True)
        except ImageError as error:
            broken.append(str(error) if name in str(error) else f"{name}: {error}")
            continue
        height, width = pixels.shape[:2]
        boxes = _inside(drawn, height, width, name)
        cut += int((boxes != drawn).any(axis=1).sum())
        objects += int((~ignored).sum())
        yield Photo(source, height, width, boxes, ignored, name), pixels
    if broken:
        message = f"{len(broken)} of {len(given)} images cannot be used:\n  " + some(broken, between="\n  ")
        if not objects:
            raise ImageError(f"{message}\nThere are no positives: none of the others has an object.")
        warnings.warn(f"{message}\nThey are left out.", stacklevel=2)
    if cut:
        total = sum(map(len, given.boxes))
        warnings.warn(f"{cut} of {total} boxes stick out of their images and are cut off.", stacklevel=2)


def _inside(boxes: np.ndarray, height: int, width: int, name: str) -> np.ndarray:
    inside = np.clip(boxes, 0, [width, height, width, height])
    outside = np.flatnonzero((inside[:, 2:] <= inside[:, :2]).any(axis=1))
    if outside.size:
        raise ValueError(
            f"{name}: {outside.size} of {len(boxes)} boxes lie outside the image, which is {width} × {height} pixels "
            f"(width × height), or have no area; the first is {shown(boxes[outside[0]].tolist())}. Boxes are {CORNERS} "
            "in pixels. Was the image scaled or turned after its boxes were drawn, or are x and y swapped?"
        )
    return inside


def fingerprint(photos: Sequence[Photo]) -> str:
    """What tells this data from other data."""
    found = 0
    for photo in photos:
        found = zlib.crc32(read_image(photo.source, color=True).tobytes(), found)
        told = f"{photo.height}x{photo.width}".encode() + photo.boxes.tobytes() + photo.ignored.tobytes()
        found = zlib.crc32(told, found)
    return f"{len(photos)} {found:08x}"
