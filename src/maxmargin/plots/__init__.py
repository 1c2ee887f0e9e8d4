"""Pictures of what happened. Matplotlib is imported when a picture is drawn, not before."""

from .convergence import convergence
from .grid import segmentation
from .transitions import transitions

__all__ = ["convergence", "segmentation", "transitions"]
