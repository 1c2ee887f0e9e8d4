"""k-means by generalized majorization-minimization, whole: compiled loops, bounds, starts, estimator and report."""

from .estimator import GMMKMeans

__all__ = ["GMMKMeans"]
