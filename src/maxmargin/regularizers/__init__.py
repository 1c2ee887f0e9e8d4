"""Regularizers: each is a value Ω(w), a conjugate Ω*(v) and the map v → w that joins them."""

from .blocks import Blocks
from .bounded import Bounded
from .gaussian import GaussianPrior
from .group import GroupNorm
from .l2 import L2
from .shape import Shape

__all__ = ["L2", "Blocks", "Bounded", "GaussianPrior", "GroupNorm", "Shape"]
