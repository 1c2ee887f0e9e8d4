"""Solvers, and ``solve``: the one loop that runs them until the duality gap is small enough."""

from .certificate import best_start, certify
from .choose import choose
from .dual_coordinate import DualCoordinate
from .interior_point import InteriorPoint
from .proximal_point import ProximalPoint
from .solve import solve

__all__ = ["DualCoordinate", "InteriorPoint", "ProximalPoint", "best_start", "certify", "choose", "solve"]
