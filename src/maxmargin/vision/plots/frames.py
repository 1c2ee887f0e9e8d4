"""What pictures of parts and detectors share: frames around boxes, in the same colours everywhere, and bare axes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

# Colours that the colour-blind tell apart too; what they say is also said by lines.
COLORS = {"object": "#f0e442", "part": "#56b4e9", "negative part": "#e69f00", "root": "white"}
LINES: dict[str, Literal["-", "--", ":"]] = {"object": "-", "part": "-", "negative part": "--", "root": ":"}


def outline(ax: Any, box: Any, color: str, width: float, style: str = "-", **more: Any) -> None:
    """A frame that is seen on bright and on dark; what else a ``Rectangle`` takes is passed on."""
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import Normal, Stroke

    left, top, right, bottom = (float(side) for side in box)
    dark = [Stroke(linewidth=width + 1.4, foreground="black", alpha=0.6 * more.get("alpha", 1.0)), Normal()]
    look = {"edgecolor": color, "linewidth": width, "linestyle": style, "path_effects": dark, **more}
    ax.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, **look))


def some_of(name: str, given: Any, n: int) -> list[int]:
    """Which of n things are to be drawn, checked."""
    found = [int(one) for one in np.atleast_1d(given)]
    if not found or min(found) < 0 or max(found) >= n:
        raise ValueError(f"{name} must be some of 0 to {n - 1}, got {found}.")
    return found


def number(value: float) -> str:
    """Two digits, and a minus that is as long as a plus."""
    return f"{value:.2f}".replace("-", "−")
