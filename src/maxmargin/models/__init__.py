"""Problems in terms of labels: each model here turns examples and labels into constraints."""

from .binary import binary
from .multiclass import multiclass
from .ranking import ranking
from .regression import regression

__all__ = ["binary", "multiclass", "ranking", "regression"]
