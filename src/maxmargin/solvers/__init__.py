"""Solvers, and ``solve``: the loop that runs them until a small enough duality gap is certified."""

from .block_ascent import BlockAscent
from .certificate import best_start, certify
from .choose import Means, choose
from .cutting_plane import CuttingPlane
from .dual_coordinate import DualCoordinate
from .interior_point import InteriorPoint
from .oracle_ascent import OracleAscent
from .proximal_point import ProximalAscent, ProximalPoint
from .solve import solve

__all__ = [
    "BlockAscent",
    "CuttingPlane",
    "DualCoordinate",
    "InteriorPoint",
    "Means",
    "OracleAscent",
    "ProximalAscent",
    "ProximalPoint",
    "best_start",
    "certify",
    "choose",
    "solve",
]
