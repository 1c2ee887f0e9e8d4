"""Pictures within a page: figures of Matplotlib and photographs, as data that needs no file."""

from __future__ import annotations

import base64
import io
from typing import Any

from ...plots.needs import pyplot
from ...report.markup import Markup, element

_DOTS = 80  # per inch of a figure, as it is shown; it has twice as many, to be sharp on fine screens
_WIDE = 640  # dots: wider figures scroll on a phone, where their text would be too small


def picture(figure: Any, what: str) -> Markup:
    """A figure, on white in a dark page as well; it is closed."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=2 * _DOTS, facecolor="white")
    pyplot().close(figure)
    across = round(figure.get_figwidth() * _DOTS)
    shown = image(data.getvalue(), "png", what, across)
    return element("span", shown, class_="plate wide" if across > _WIDE else "plate")


def photograph(drawn: Any, most: int, what: str) -> Markup:
    """A Pillow image, with ``most`` pixels on its longer side."""
    drawn.thumbnail((most, most))
    data = io.BytesIO()
    drawn.save(data, "jpeg", quality=88)
    return image(data.getvalue(), "jpeg", what)


def image(data: bytes, form: str, what: str, width: int | None = None) -> Markup:
    return element("img", alt=what, width=width, src=f"data:image/{form};base64,{base64.b64encode(data).decode()}")
