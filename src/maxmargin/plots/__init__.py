"""Pictures of what happened. Matplotlib is imported when a picture is drawn, not before."""

from .bounds import bounds
from .confusion import confusion
from .convergence import convergence
from .grid import segmentation
from .scenes import labelled_regions, region_models
from .transitions import transitions

__all__ = ["bounds", "confusion", "convergence", "labelled_regions", "region_models", "segmentation", "transitions"]
