"""Pictures of what happened. Matplotlib is imported when a picture is drawn, not before."""

from .bounds import bounds
from .convergence import convergence
from .grid import segmentation
from .transitions import transitions

__all__ = ["bounds", "convergence", "segmentation", "transitions"]
