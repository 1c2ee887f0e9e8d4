"""Pictures of what happened. Matplotlib is imported when a picture is drawn, not before."""

from .convergence import convergence

__all__ = ["convergence"]
