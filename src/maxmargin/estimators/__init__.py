"""Estimators with scikit-learn's API. Only here (and above) is scikit-learn known."""

from .classification import LinearSVC
from .path import path
from .ranking import RankingSVM
from .regression import LinearSVR

__all__ = ["LinearSVC", "LinearSVR", "RankingSVM", "path"]
