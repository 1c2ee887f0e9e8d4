"""What a worker does with its shard: improve its own dual variables while everybody else's stand still.

Each kind of problem has its solver, and these are the solvers of one machine. What makes their work fit together is the
regularizer they work under (``regularizers.divided``): Ω/σ, seen from the v of the whole problem.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from ..problem import Loss, Planes, Problem
from ..regularizers.divided import Divided
from ..regularizers.tilted import Tilted
from ..regularizers.vectors import dot
from ..solvers.block_ascent import BlockAscent
from ..solvers.dual_coordinate import DualCoordinate
from ..solvers.oracle_ascent import OracleAscent


class Task(NamedTuple):
    """What a round asks of a worker."""

    sigma: float
    """How much the changes of the others must be reckoned with: the number of shards is always safe."""
    wanted: float
    """The gap that this shard may keep: below it there is nothing to do."""
    seconds: float
    """Work at least so long, unless there is nothing to do: what it takes to be worth the communication."""


class Improvement(NamedTuple):
    """What has come of a round; the change of v comes with it."""

    linear: float
    """The change of the part of the dual objective that is linear in α."""
    curved: float
    """What Δv costs by the safe estimate: (Ω*(v + σΔv) − Ω*(v))/σ − w·Δv."""
    gap: float
    """The duality gap that was met on the way."""
    visited: int
    active: int
    n_constraints: int
    nbytes: int
    seconds: float
    loss: Loss | None = None
    """The loss at the weights that the round began with, where it was computed on the way."""
