"""Solvers, and ``solve``: the loop that runs them until a small enough duality gap is certified."""

from .block_ascent import BlockAscent
from .certificate import best_start, certify
from .choose import Means, choose
from .cutting_plane import CuttingPlane
from .dual_coordinate import DualCoordinate
from .frank_wolfe import FrankWolfe
from .interior_point import InteriorPoint
from .oracle_ascent import OracleAscent
from .perceptron import Perceptron
from .proximal_point import ProximalAscent, ProximalPoint
from .smoothed_newton import SmoothedNewton
from .solve import solve
from .subgradient import Subgradient

__all__ = [
    "BlockAscent",
    "CuttingPlane",
    "DualCoordinate",
    "FrankWolfe",
    "InteriorPoint",
    "Means",
    "OracleAscent",
    "Perceptron",
    "ProximalAscent",
    "ProximalPoint",
    "SmoothedNewton",
    "Subgradient",
    "best_start",
    "certify",
    "choose",
    "solve",
]
