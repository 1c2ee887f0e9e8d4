"""Images with boxes, as training sees them: checked, of known size, and read again when pixels are needed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..images import read_image
from .annotations import Annotated
from .reading import read_all


@dataclass(frozen=True)
class Photo:
    """One image: where it is read from, its size, the boxes in it, of which some are to be ignored, and its name."""

    source: Any
    height: int
    width: int
    boxes: np.ndarray
    ignored: np.ndarray
    name: str = ""
    """For messages."""


def photos_of(given: Annotated) -> list[Photo]:
    """All images that can be read."""
    return [
        Photo(given.images[i], image.shape[0], image.shape[1], boxes, given.ignored[i], given.name(i))
        for i, image, boxes in read_all(given)
    ]


def fingerprint(photos: Sequence[Photo]) -> str:
    """What tells this data from other data."""
    found = 0
    for photo in photos:
        found = zlib.crc32(read_image(photo.source, color=True).tobytes(), found)
        told = f"{photo.height}x{photo.width}".encode() + photo.boxes.tobytes() + photo.ignored.tobytes()
        found = zlib.crc32(told, found)
    return f"{len(photos)} {found:08x}"
