"""Images with what a detector has found in them: boxes and their scores, and where the parts are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .finding import Detections

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage
    from PIL.ImageDraw import ImageDraw as Draw

_COLOURS = ("#ff7043", "#4fc3f7", "#ffd54f", "#ba68c8", "#81c784", "#f06292")  # of components, in turn
_PART, _AGAINST = "#ffffff", "#7c4dff"
_DARK = "#202020"
_SIDE = 320  # pixels: the longer side of smaller images is brought to this, so that scores can be read


def drawn(pixels: np.ndarray, found: Detections, *, parts: bool = True) -> PillowImage:
    """A Pillow image with the detections drawn into it, the best on top.

    ``pixels`` is an array (h, w, 3) of bytes, ``found`` the detections in it. The larger the image, the wider are
    the lines.
    """
    from PIL import Image, ImageDraw

    image = Image.fromarray(pixels)
    scale = max(1, -(-_SIDE // max(image.size)))
    if scale > 1:
        image = image.resize((image.width * scale, image.height * scale))
    draw = ImageDraw.Draw(image)
    width = max(2, round(max(image.size) / 250))
    size = max(11, round(max(image.size) / 45))
    for i in reversed(range(len(found))):
        colour = _COLOURS[int(found.components[i]) % len(_COLOURS)]
        if parts:
            for box, sign in zip(found.part_boxes[i], found.part_signs[i], strict=True):
                if sign:
                    _frame(draw, box * scale, _PART if sign > 0 else _AGAINST, max(1, width // 2))
        box = found.boxes[i] * scale
        _frame(draw, box, colour, width)
        _tag(draw, box, f"{found.scores[i]:.2f}", colour, size)
    return image


def _frame(draw: Draw, box: np.ndarray, colour: str, width: int) -> None:
    """A frame just within a box, with a dark rim that makes it stand out from any background."""
    x0, y0, x1, y1 = (round(float(edge)) for edge in box)
    x1, y1 = max(x0 + 2, x1 - 1), max(y0 + 2, y1 - 1)
    draw.rectangle((x0 - 1, y0 - 1, x1 + 1, y1 + 1), outline=_DARK, width=width + 2)
    draw.rectangle((x0, y0, x1, y1), outline=colour, width=width)


def _tag(draw: Draw, box: np.ndarray, text: str, colour: str, size: int) -> None:
    """The score, above the upper left corner where there is room, within the box where there is none."""
    left, top, right, bottom = draw.textbbox((0, 0), text, font_size=size)
    wide, high = right - left + 6, bottom - top + 6
    x = min(max(0, round(float(box[0]))), max(0, draw.im.size[0] - wide))
    y = round(float(box[1])) - high
    y = y if y >= 0 else max(0, round(float(box[1])))
    draw.rectangle((x, y, x + wide, y + high), fill=colour, outline=_DARK)
    draw.text((x + 3 - left, y + 3 - top), text, fill=_DARK, font_size=size)
