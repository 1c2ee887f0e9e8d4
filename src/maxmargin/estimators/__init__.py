"""Estimators with scikit-learn's API. Only here (and above) is scikit-learn known."""

from ..persistence import load
from .bags import LatentSVC
from .classification import LinearSVC
from .latent import LatentStructuralSVM
from .multilabel import MultilabelSVM
from .ranking import RankingSVM
from .regression import LinearSVR
from .sequence import SequenceSVM
from .structured import StructuralSVM
from .token_features import TokenFeatures
from .training import path

__all__ = [
    "LatentSVC",
    "LatentStructuralSVM",
    "LinearSVC",
    "LinearSVR",
    "MultilabelSVM",
    "RankingSVM",
    "SequenceSVM",
    "StructuralSVM",
    "TokenFeatures",
    "load",
    "path",
]
