"""Solvers, and ``solve``: the one loop that runs them until the duality gap is small enough."""

from .certificate import certify
from .dual_coordinate import DualCoordinate
from .proximal_point import ProximalPoint
from .solve import solve

__all__ = ["DualCoordinate", "ProximalPoint", "certify", "solve"]
