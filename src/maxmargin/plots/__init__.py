"""Pictures of what happened. Matplotlib is imported when a picture is drawn, not before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import extensions
from .convergence import bounds, convergence
from .grid import segmentation
from .reliability import reliability
from .tables import confusion, transitions

if TYPE_CHECKING:
    from ..vision.plots import *  # noqa: F403

__all__ = ["bounds", "confusion", "convergence", "reliability", "segmentation", "transitions"]
__all__.extend(extensions.names("vision.plots"))


def __getattr__(name: str) -> Any:
    return extensions.attribute(__name__, __all__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
