"""What pictures of images share: the pixels, and frames around boxes in the same colours everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..image_inputs import images_or_regions
from ..images import read_image

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that the colour-blind tell apart too; what they say is also said by lines.
COLORS = {"object": "#f0e442", "part": "#56b4e9", "negative part": "#e69f00", "root": "white"}
LINES: dict[str, Literal["-", "--", ":"]] = {"object": "-", "part": "-", "negative part": "--", "root": ":"}


def outline(
    ax: Axes, box: np.ndarray | tuple[float, ...], color: str, width: float, style: str = "-", **more: Any
) -> None:
    """A frame that is seen on bright and on dark; what else a ``Rectangle`` takes is passed on."""
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import Normal, Stroke

    left, top, right, bottom = (float(side) for side in box)
    dark = [Stroke(linewidth=width + 1.4, foreground="black", alpha=0.6 * more.get("alpha", 1.0)), Normal()]
    look = {"edgecolor": color, "linewidth": width, "linestyle": style, "path_effects": dark, **more}
    ax.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, **look))


def some_of(name: str, given: ArrayLike, n: int) -> list[int]:
    """Which of n things are to be drawn, checked."""
    found = [int(one) for one in np.atleast_1d(given)]
    if not found or min(found) < 0 or max(found) >= n:
        raise ValueError(f"{name} must be some of 0 to {n - 1}, got {found}.")
    return found


def number(value: float) -> str:
    """Two digits, and a minus that is as long as a plus."""
    return f"{value:.2f}".replace("-", "−")


def images_and_features(images: object, features: Any, described: bool, unit: str) -> tuple[list[Any], Any]:
    """Images to cut out of, and what models are asked about: these, or features of them."""
    files = list(images_or_regions(images).images or [])
    if not files:
        raise ValueError(f"images must be a folder, files or arrays of pixels; features of {unit} go to features=.")
    if features is None and not described:
        raise ValueError(
            f"The model was trained on features of {unit} and cannot look at images: give features= as well."
        )
    if features is not None and len(features) != len(files):
        raise ValueError(f"There are {len(files)} images, and features of {len(features)}; they must belong together.")
    return files, files if features is None else features


def pixels(image: Any) -> np.ndarray:
    """The pixels (height, width, 3) of a file or an array."""
    return read_image(image, color=True)


def cut_out(image: np.ndarray, window: np.ndarray | tuple[float, ...], mirrored: bool = False) -> np.ndarray:
    """The pixels within a window: left, top, right and bottom as shares of the width and height.

    A window that reaches beyond the image ends at its border, and no window is empty.

    Parameters
    ----------
    image : array (height, width, …)
    window : four floats
    mirrored : bool
        Whether to show them as they are seen in a mirror.

    Examples
    --------
    >>> cut_out(np.arange(8).reshape(2, 4), (0.5, 0.0, 1.0, 1.0), mirrored=True).tolist()
    [[3, 2], [7, 6]]
    """
    (height, width), (left, top, right, bottom) = image.shape[:2], window
    rows, columns = _span(top, bottom, height), _span(left, right, width)
    found = image[rows, columns]
    return found[:, ::-1] if mirrored else found


def _span(begin: float, end: float, size: int) -> slice:
    first = min(max(round(begin * size), 0), size - 1)
    return slice(first, min(max(round(end * size), first + 1), size))
