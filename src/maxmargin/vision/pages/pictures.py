"""Pictures within a page: figures of Matplotlib and photographs, as data that needs no file."""

from __future__ import annotations

import base64
import io
from typing import Any

from ...report.markup import Markup, element

_DOTS = 80  # per inch


def pyplot() -> Any:
    """Matplotlib, with the backend that it has."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('A report on images draws pictures: pip install "maxmargin[plots]"') from error
    return pyplot


def picture(figure: Any, what: str) -> Markup:
    """A figure, on white in a dark page as well; it is closed."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=_DOTS, facecolor="white")
    pyplot().close(figure)
    return element("span", image(data.getvalue(), "png", what), class_="plate")


def photograph(drawn: Any, most: int, what: str) -> Markup:
    """A Pillow image, with ``most`` pixels on its longer side."""
    drawn.thumbnail((most, most))
    data = io.BytesIO()
    drawn.save(data, "jpeg", quality=88)
    return image(data.getvalue(), "jpeg", what)


def image(data: bytes, form: str, what: str) -> Markup:
    return element("img", alt=what, src=f"data:image/{form};base64,{base64.b64encode(data).decode()}")
